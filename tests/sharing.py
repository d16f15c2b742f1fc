"""A game of three players that is not zero-sum, with utilities that are known by heart.

Chance picks a lucky seat, which nobody sees. Then the seats act in turn and see what came before:
keep, or give. Seat p has p for its place, 3 if it is the lucky one, 1 from each other seat that
gives, and pays 1/2 if it gives itself. So to keep is right everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel

from rejoinder.games import contract
from rejoinder.games.base import Game, Rules, States, concrete
from rejoinder.kernel.jit import rule
from rejoinder.kernel.rng import below

SEATS = 3
KEEP, GIVE = 0, 1
NOT_DRAWN = -1
STATE = np.dtype(
    [
        ("lucky", "i1"),  # a seat, or NOT_DRAWN
        ("moves", "i1", (SEATS,)),  # KEEP or GIVE, by seat
        ("n_moves", "i1"),
    ],
    align=True,
)


@rule
def start(state: Any, first_player: Any) -> None:
    state.lucky = NOT_DRAWN
    state.n_moves = 0
    for seat in range(SEATS):
        state.moves[seat] = KEEP


@rule
def current_player(state: Any) -> Any:
    if state.lucky == NOT_DRAWN:
        return contract.CHANCE
    return np.int64(state.n_moves) if state.n_moves < SEATS else np.int64(contract.OVER)


@rule
def utility(state: Any, player: Any) -> Any:
    won = np.float64(player)
    if state.lucky == player:
        won += 3.0
    for seat in range(SEATS):
        if state.moves[seat] == GIVE:
            won += -0.5 if seat == player else 1.0
    return won


@rule
def legal_actions(state: Any, abstraction: Any) -> Any:
    return np.uint64(3)


@rule
def apply(state: Any, move: Any) -> None:
    if state.lucky == NOT_DRAWN:
        state.lucky = move
    else:
        state.moves[state.n_moves] = move
        state.n_moves += 1


@rule
def infoset_key(state: Any, abstraction: Any) -> Any:
    key = np.uint64(state.n_moves)
    for seat in range(state.n_moves):
        key |= np.uint64(state.moves[seat]) << np.uint64(2 + seat)
    return key


@rule
def observed(state: Any, move: Any, player: Any) -> Any:
    return np.int64(contract.HIDDEN if state.lucky == NOT_DRAWN else move)


@rule
def chance_outcomes(state: Any, probabilities: Any) -> Any:
    for seat in range(SEATS):
        probabilities[seat] = 1.0 / SEATS
    return SEATS


@rule
def sample_outcome(state: Any, rng: Any) -> Any:
    return below(rng, SEATS)


@rule
def resolve_chance(state: Any, rng: Any) -> Any:
    if state.lucky != NOT_DRAWN:
        return 1.0
    apply(state, sample_outcome(state, rng))
    return 1.0 / SEATS


@rule
def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    if state.lucky != NOT_DRAWN:
        state.lucky = below(rng, SEATS)


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


class View(BaseModel):
    moves: list[int]


def view(states: States, player: int) -> View:
    return View(moves=states[0]["moves"][: states[0]["n_moves"]].tolist())


def describe(key: int) -> dict[str, Any]:
    return {"player": key & 3, "moves": key >> 2}


MOVES = ("keep", "give")
SHARING = Game(
    name="sharing",
    title="Sharing",
    players=SEATS,
    dtype=STATE,
    moves=MOVES,
    outcomes=("first", "second", "third"),
    abstractions=(concrete(MOVES, describe=describe),),
    configurations={"standard": Rules()},
    template=lambda _: np.zeros(1, STATE),
    view=view,
    zero_sum=False,
    counts_wins=False,
    max_decisions=lambda _: SEATS,
    check=lambda _, __: None,
)
