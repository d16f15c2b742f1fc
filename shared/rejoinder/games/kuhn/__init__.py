"""Kuhn poker: three cards, one bet. The smallest game with a known answer (−1/18 for seat 0).

Each player antes 1 and is dealt one of three cards. Seat `first` acts: pass or bet 1. A bet may be
called (bet) or folded to (pass). The higher card wins the pot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games import contract
from rejoinder.games.base import Game, Rules, States, concrete
from rejoinder.games.poker import (
    NO_CARD,
    PokerView,
    card_name,
    differs_from_play,
    observation,
    observed,
    seat_of,
)
from rejoinder.kernel.jit import rule
from rejoinder.kernel.rng import below

STATE = np.dtype(
    [
        ("card", "i1", (2,)),  # by order of play, not by seat; NO_CARD before the deal
        ("moves", "i1", (3,)),  # PASS or BET, in order
        ("n_moves", "i1"),
        ("first", "i1"),  # the seat that acts first
    ],
    align=True,
)
PASS, BET = 0, 1
CARDS = 3
MAX_DECISIONS = 3


@rule
def start(state: Any, first_player: Any) -> None:
    state.card[0] = NO_CARD
    state.card[1] = NO_CARD
    for k in range(3):
        state.moves[k] = 0
    state.n_moves = 0
    state.first = first_player


@rule
def current_player(state: Any) -> Any:
    if state.card[1] == NO_CARD:
        return contract.CHANCE
    if _is_over(state):
        return contract.OVER
    return seat_of(state, state.n_moves & 1)


@rule
def utility(state: Any, player: Any) -> Any:
    moves, n = state.moves, state.n_moves
    winner = 0 if state.card[0] > state.card[1] else 1  # at showdown, by order of play
    stake = 1.0
    if n == 2 and moves[0] == BET:
        if moves[1] == BET:
            stake = 2.0
        else:
            winner = 0
    elif n == 3:
        if moves[2] == BET:
            stake = 2.0
        else:
            winner = 1
    return stake if seat_of(state, winner) == player else -stake


@rule
def legal_actions(state: Any, abstraction: Any) -> Any:
    return np.uint64(3)


@rule
def apply(state: Any, move: Any) -> None:
    if state.card[0] == NO_CARD:
        state.card[0] = move
    elif state.card[1] == NO_CARD:
        state.card[1] = move
    else:
        state.moves[state.n_moves] = move
        state.n_moves += 1


@rule
def infoset_key(state: Any, abstraction: Any) -> Any:
    """Bit fields: own card, the moves, how many they are, the seat."""
    mover = state.n_moves & 1
    key = np.uint64(state.card[mover])
    for k in range(state.n_moves):
        key |= np.uint64(state.moves[k]) << np.uint64(2 + k)
    key |= np.uint64(state.n_moves) << np.uint64(5)
    return key | (np.uint64(seat_of(state, mover)) << np.uint64(8))


@rule
def chance_outcomes(state: Any, probabilities: Any) -> Any:
    left = CARDS if state.card[0] == NO_CARD else CARDS - 1
    for c in range(CARDS):
        probabilities[c] = 0.0 if c == state.card[0] else 1.0 / left
    return CARDS


@rule
def sample_outcome(state: Any, rng: Any) -> Any:
    if state.card[0] == NO_CARD:
        return below(rng, CARDS)
    return _nth_other(state.card[0], below(rng, CARDS - 1))


@rule
def resolve_chance(state: Any, rng: Any) -> Any:
    reach = 1.0
    while state.card[1] == NO_CARD:
        reach /= CARDS if state.card[0] == NO_CARD else CARDS - 1
        apply(state, sample_outcome(state, rng))
    return reach


@rule
def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    if state.card[1] == NO_CARD:
        return
    own = 0 if seat_of(state, 0) == player else 1
    state.card[1 - own] = _nth_other(state.card[own], below(rng, CARDS - 1))


@rule
def _nth_other(card: Any, n: Any) -> Any:
    """The n-th of the cards that are not `card`."""
    return n + 1 if n >= card else n


@rule
def _is_over(state: Any) -> Any:
    if state.n_moves == 2:
        return not (state.moves[0] == PASS and state.moves[1] == BET)
    return state.n_moves == 3


contract.implement(
    STATE,
    start=start,
    current_player=current_player,
    utility=utility,
    legal_actions=legal_actions,
    apply=apply,
    infoset_key=infoset_key,
    observed=observed,
    chance_outcomes=chance_outcomes,
    sample_outcome=sample_outcome,
    resolve_chance=resolve_chance,
    shuffle_hidden=shuffle_hidden,
)

MOVES = ("pass", "bet")
CARD_NAMES = ("J", "Q", "K")


def describe(key: int) -> dict[str, Any]:
    """What an infoset key says."""
    moves = [MOVES[key >> 2 + k & 1] for k in range(key >> 5 & 7)]
    return {"player": key >> 8, "card": CARD_NAMES[key & 3], "moves": moves}


def template(rules: Rules) -> States:
    return np.zeros(1, STATE)


def view(states: States, player: int) -> PokerView:
    state = states[0]
    own = int(state["first"]) ^ player
    return PokerView.of(
        states,
        player,
        card=card_name(int(state["card"][own]), CARD_NAMES),
        opponent_card=card_name(int(state["card"][1 - own]), CARD_NAMES),
        public=None,
        moves=[MOVES[m] for m in state["moves"][: state["n_moves"]]],
    )


def check(states: States, rules: Rules) -> str | None:
    """Whether the game can come to a state: it is played again."""
    state = states[0]
    if not 0 <= state["n_moves"] <= 3:
        return "n_moves: it is in 0 to 3"
    return differs_from_play(
        states,
        first=int(state["first"]),
        cards=[int(card) for card in state["card"] if card != NO_CARD],
        moves=[int(move) for move in state["moves"][: state["n_moves"]]],
    )


GAME = Game(
    name="kuhn",
    title="Kuhn poker",
    players=2,
    dtype=STATE,
    moves=MOVES,
    outcomes=CARD_NAMES,
    abstractions=(concrete(MOVES, describe=describe),),
    configurations={"standard": Rules()},
    template=template,
    view=view,
    enumerable=frozenset({"standard"}),
    utility_unit="chips",
    counts_wins=False,
    max_decisions=lambda _: MAX_DECISIONS,
    check=check,
    observation=observation(MOVES, CARD_NAMES, MAX_DECISIONS),
    max_utility=2.0,
    max_chance_events=lambda _: 2,
)
