"""A game with as many infosets as one likes, for `rejoinder bench table`; importing registers it.

Each of two players is dealt one of n cards, all equally likely, and plays one of three moves; they
see nothing else. Who wins depends on the moves and on the cards. So there are n infosets a player,
each as likely as any other, and 2n in all. Keys are dense (twice the card, plus the player), or
these mixed.
"""
# ruff: noqa: ARG001 (the contract fixes the signatures of rules)

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from rejoinder.games import GAMES, contract
from rejoinder.games.base import Game, Rules, States, concrete
from rejoinder.kernel.jit import kernel, rule
from rejoinder.kernel.rng import below, mix

NO_CARD = -1
MOVES = ("rock", "paper", "scissors")
INFOSETS = 5_000_000

STATE = np.dtype(
    [
        ("cards", "<i4"),  # n
        ("card", "<i4", (2,)),  # by seat; NO_CARD before the deal
        ("moves", "i1", (2,)),  # by order of play
        ("n_moves", "i1"),
        ("first", "i1"),  # the seat that acts first
        ("mixed", "?"),  # whether keys are
    ],
    align=True,
)


class TableRules(Rules):
    infosets: int = Field(INFOSETS, ge=2, le=2**31 - 2, multiple_of=2)
    """How many there are, of both players together."""
    mixed_keys: bool = False
    """Whether keys are any words, as in most games, instead of dense."""


class TableView(BaseModel):
    player: int
    card: int | None
    moves: int


@rule
def start(state: Any, first_player: Any) -> None:
    state.card[0] = NO_CARD
    state.card[1] = NO_CARD
    state.moves[0] = 0
    state.moves[1] = 0
    state.n_moves = 0
    state.first = first_player


@rule
def current_player(state: Any) -> Any:
    if state.card[1] == NO_CARD:
        return contract.CHANCE
    if state.n_moves == 2:
        return contract.OVER
    return np.int64(state.first ^ state.n_moves)


@rule
def utility(state: Any, player: Any) -> Any:
    outcome = (state.moves[0] - state.moves[1] + state.card[0] + state.card[1] + 3) % 3
    won = 0.0 if outcome == 0 else (1.0 if outcome == 1 else -1.0)
    return won if player == state.first else -won


@rule
def legal_actions(state: Any, abstraction: Any) -> Any:
    return np.uint64(7)


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
    player = state.first ^ state.n_moves
    key = np.uint64(2 * np.int64(state.card[player]) + player)
    return mix(key) if state.mixed else key


@rule
def observed(state: Any, move: Any, player: Any) -> Any:
    due = 0 if state.card[0] == NO_CARD else 1
    if state.card[1] == NO_CARD:
        return np.int64(move) if due == player else np.int64(contract.HIDDEN)
    return np.int64(move) if state.first ^ state.n_moves == player else np.int64(contract.HIDDEN)


@rule
def chance_outcomes(state: Any, probabilities: Any) -> Any:
    for c in range(state.cards):
        probabilities[c] = 1.0 / state.cards
    return state.cards


@rule
def sample_outcome(state: Any, rng: Any) -> Any:
    return below(rng, state.cards)


@rule
def resolve_chance(state: Any, rng: Any) -> Any:
    reach = 1.0
    while state.card[1] == NO_CARD:
        reach /= state.cards
        apply(state, sample_outcome(state, rng))
    return reach


@rule
def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    if state.card[1] != NO_CARD:
        state.card[1 - player] = below(rng, state.cards)


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


def template(rules: Any) -> States:
    states = np.zeros(1, STATE)
    states["cards"], states["mixed"] = rules.infosets // 2, rules.mixed_keys
    return states


def key_of(card: int, player: int, rules: Any) -> int:
    """The key of an infoset."""
    key = np.uint64(2 * card + player)
    return int(_mixed(key)) if rules.mixed_keys else int(key)


@kernel
def _mixed(key: Any) -> Any:
    return mix(key)


def view(states: States, player: int) -> TableView:
    card = int(states["card"][0, player])
    shown = None if card == NO_CARD else card
    return TableView(player=player, card=shown, moves=int(states["n_moves"][0]))


def check(states: States, rules: Any) -> str | None:
    state = states[0]
    if state["cards"] != rules.infosets // 2:
        return "cards: it is half the infosets"
    if state["mixed"] != rules.mixed_keys:
        return "mixed: the rules say otherwise"
    if not ((state["card"] >= NO_CARD) & (state["card"] < state["cards"])).all():
        return "card: it is below the number of cards"
    return None if 0 <= state["n_moves"] <= 2 else "n_moves: it is in 0 to 2"


GAME = Game(
    name="table",
    title="Cards without number",
    players=2,
    dtype=STATE,
    moves=MOVES,
    outcomes=(),
    abstractions=(
        dataclasses.replace(
            concrete(MOVES),
            dense_keys=lambda rules: None if rules.mixed_keys else rules.infosets,
        ),
    ),
    configurations={"standard": TableRules(infosets=INFOSETS)},
    template=template,
    view=view,
    max_decisions=lambda _: 2,
    check=check,
)
GAMES[GAME.name] = GAME
