"""Leduc poker: six cards, two betting rounds, one public card (Southey et al., 2005).

Two suits of three ranks. Each player antes 1 and gets one private card; after the first betting
round one public card is turned. Raises are 2 chips in the first round and 4 in the second, at most
two a round. A pair with the public card wins, else the higher rank; equal ranks split.
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
        ("card", "i1", (2,)),  # private card by order of play (rank = card // 2), or NO_CARD
        ("public", "i1"),  # the public card, or NO_CARD
        ("paid", "i1", (2,)),  # chips in the pot, by order of play
        ("round", "i1"),  # 0 or 1; OVER_ROUND once nobody can act any more
        ("mover", "i1"),  # who acts, by order of play
        ("calls", "i1"),  # checks and calls since the last raise of this round
        ("raises", "i1"),  # raises in this round
        ("folded", "i1"),  # who folded, by order of play, or NOBODY
        ("first", "i1"),  # the seat that acts first in both rounds
        ("n_moves", "i1"),
        ("history", "<u2"),  # two bits a move (action + 1), the latest lowest
    ],
    align=True,
)
FOLD, CALL, RAISE = 0, 1, 2
NOBODY = -1
OVER_ROUND = 2
CARDS = 6
MAX_RAISES = 2
MAX_DECISIONS = 8


@rule
def start(state: Any, first_player: Any) -> None:
    for k in range(2):
        state.card[k] = NO_CARD
        state.paid[k] = 1
    state.public = NO_CARD
    state.round = 0
    state.mover = 0
    state.calls = 0
    state.raises = 0
    state.folded = NOBODY
    state.first = first_player
    state.n_moves = 0
    state.history = 0


@rule
def current_player(state: Any) -> Any:
    if state.round == OVER_ROUND:
        return contract.OVER
    if state.card[1] == NO_CARD or (state.round == 1 and state.public == NO_CARD):
        return contract.CHANCE
    return seat_of(state, state.mover)


@rule
def utility(state: Any, player: Any) -> Any:
    own = state.first ^ player
    other = 1 - own
    if state.folded != NOBODY:
        won = state.folded == other
    else:
        mine, his = _strength(state, own), _strength(state, other)
        if mine == his:
            return 0.0
        won = mine > his
    return np.float64(state.paid[other]) if won else -np.float64(state.paid[own])


@rule
def legal_actions(state: Any, abstraction: Any) -> Any:
    legal = np.uint64(1 << CALL)
    if state.paid[1 - state.mover] > state.paid[state.mover]:
        legal |= np.uint64(1 << FOLD)
    if state.raises < MAX_RAISES:
        legal |= np.uint64(1 << RAISE)
    return legal


@rule
def apply(state: Any, move: Any) -> None:
    if state.card[0] == NO_CARD:
        state.card[0] = move
    elif state.card[1] == NO_CARD:
        state.card[1] = move
    elif state.round == 1 and state.public == NO_CARD:
        state.public = move
    else:
        _act(state, move)


@rule
def _act(state: Any, move: Any) -> None:
    mover = state.mover
    state.history = (state.history << 2) | (move + 1)
    state.n_moves += 1
    state.mover = 1 - mover
    if move == FOLD:
        state.folded = mover
        state.round = OVER_ROUND
    elif move == RAISE:
        state.paid[mover] = state.paid[1 - mover] + (2 if state.round == 0 else 4)
        state.raises += 1
        state.calls = 0
    else:
        state.paid[mover] = state.paid[1 - mover]
        state.calls += 1
        if state.calls == 2 or state.raises > 0:
            state.round += 1
            state.mover = 0
            state.calls = 0
            state.raises = 0


@rule
def infoset_key(state: Any, abstraction: Any) -> Any:
    key = np.uint64(state.history) << np.uint64(8)
    key |= np.uint64(state.card[state.mover]) << np.uint64(4)
    key |= np.uint64(state.public + 1) << np.uint64(1)
    return key | np.uint64(seat_of(state, state.mover))


@rule
def chance_outcomes(state: Any, probabilities: Any) -> Any:
    left = _undealt(state)
    for c in range(CARDS):
        dealt = c == state.card[0] or c == state.card[1]
        probabilities[c] = 0.0 if dealt else 1.0 / left
    return CARDS


@rule
def resolve_chance(state: Any, rng: Any) -> Any:
    """All cards that are due; the n-th of the cards not yet dealt each time."""
    reach = 1.0
    while current_player(state) == contract.CHANCE:
        left = _undealt(state)
        apply(state, _nth_undealt(state, below(rng, left)))
        reach /= left
    return reach


@rule
def sample_outcome(state: Any, rng: Any) -> Any:
    return _nth_undealt(state, below(rng, _undealt(state)))


@rule
def _undealt(state: Any) -> Any:
    """Cards left when the next one is dealt; the public card is the last."""
    left = CARDS
    for k in range(2):
        left -= state.card[k] != NO_CARD
    return left


@rule
def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    if state.card[1] == NO_CARD:
        return
    own = state.first ^ player
    state.card[1 - own] = NO_CARD
    left = CARDS - 1 - (state.public != NO_CARD)
    state.card[1 - own] = _nth_undealt(state, below(rng, left))


@rule
def _nth_undealt(state: Any, n: Any) -> Any:
    for c in range(CARDS):
        if c != state.card[0] and c != state.card[1] and c != state.public:
            if n == 0:
                return c
            n -= 1
    return NO_CARD


@rule
def _strength(state: Any, k: Any) -> Any:
    rank = state.card[k] // 2
    return rank + 3 if rank == state.public // 2 else rank


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

MOVES = ("fold", "call", "raise")
CARD_NAMES = ("J♠", "J♥", "Q♠", "Q♥", "K♠", "K♥")


def describe(key: int) -> dict[str, Any]:
    """What an infoset key says."""
    history, public = key >> 8, key >> 1 & 7
    told = [MOVES[(history >> shift & 3) - 1] for shift in range(0, history.bit_length(), 2)]
    return {
        "player": key & 1,
        "card": CARD_NAMES[key >> 4 & 15],
        "public_card": CARD_NAMES[public - 1] if public else None,
        "moves": told[::-1],
    }


def template(rules: Rules) -> States:
    return np.zeros(1, STATE)


def check(states: States, rules: Rules) -> str | None:
    """Whether the game can come to a state: it is played again."""
    state = states[0]
    if not 0 <= state["n_moves"] <= 8:
        return "n_moves: it is in 0 to 8"
    return differs_from_play(
        states,
        first=int(state["first"]),
        cards=[int(card) for card in (*state["card"], state["public"]) if card != NO_CARD],
        moves=_moves(state),
    )


def _moves(state: Any) -> list[int]:
    """All moves so far, in order."""
    n, history = int(state["n_moves"]), int(state["history"])
    return [(history >> 2 * (n - 1 - k) & 3) - 1 for k in range(n)]


def view(states: States, player: int) -> PokerView:
    state = states[0]
    own = int(state["first"]) ^ player
    return PokerView.of(
        states,
        player,
        card=card_name(int(state["card"][own]), CARD_NAMES),
        opponent_card=card_name(int(state["card"][1 - own]), CARD_NAMES),
        public=card_name(int(state["public"]), CARD_NAMES),
        moves=[MOVES[move] for move in _moves(state)],
    )


GAME = Game(
    name="leduc",
    title="Leduc poker",
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
    max_utility=13.0,
    max_chance_events=lambda _: 3,
)
