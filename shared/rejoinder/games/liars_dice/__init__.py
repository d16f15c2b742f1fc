"""Liar's Dice for two players: names, rules and views around the compiled rules in `engine`."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rejoinder.games import queries
from rejoinder.games.base import Game, Rules, States, concrete
from rejoinder.games.contract import CHANCE, OVER
from rejoinder.games.liars_dice.engine import (
    BIDS,
    LIAR,
    MOST_DICE,
    MOST_FACES,
    NO_DIE,
    STATE,
)
from rejoinder.games.numbers import Pieces, one_hot

FACES = tuple(str(face + 1) for face in range(MOST_FACES))
MOVES = (
    *(f"{bid // MOST_FACES + 1} × {FACES[bid % MOST_FACES]}" for bid in range(BIDS)),
    "liar",
)


class LiarsDiceRules(Rules):
    """How much is rolled."""

    dice: int = Field(default=1, ge=1, le=MOST_DICE)
    """Dice of each player."""
    faces: int = Field(default=6, ge=2, le=MOST_FACES)
    """Faces of a die; the highest is wild."""


class LiarsDiceView(BaseModel):
    """Everything that one player may know now."""

    model_config = ConfigDict(frozen=True)

    player: int
    dice: list[str]  # their own
    opponent_dice: list[str] | None  # shown at the end
    bids: list[str]  # so far, from the lowest to the highest
    first_player: int  # who made the first of them; the players take turns
    wild: str  # the face that counts as every face
    to_move: int | None
    over: bool
    won: float | None  # 1 or -1, at the end


def template(rules: LiarsDiceRules) -> States:
    made = np.zeros(1, STATE)
    made["per_player"], made["faces"] = rules.dice, rules.faces
    return made


def view(states: States, player: int) -> LiarsDiceView:
    state, mover = states[0], queries.current_player(states)
    own, over = int(state["first"]) ^ player, mover == OVER
    won = np.zeros(2)
    if over:
        queries.utilities(states, won)
    return LiarsDiceView(
        player=player,
        dice=_faces(state["dice"][own]),
        opponent_dice=_faces(state["dice"][1 - own]) if over else None,
        bids=[MOVES[bid] for bid in queries.bits(int(state["bids"]))],
        first_player=int(state["first"]),
        wild=FACES[int(state["faces"]) - 1],
        to_move=None if mover in (CHANCE, OVER) else mover,
        over=over,
        won=float(won[player]) if over else None,
    )


def _faces(dice: Any) -> list[str]:
    return [FACES[die] for die in sorted(int(die) for die in dice) if die != NO_DIE]


def describe(key: int) -> dict[str, Any]:
    """What an infoset key means."""
    low, high = key >> BIDS & 7, (key >> BIDS + 3 & 7) - 1
    return {
        "player": key >> BIDS + 6,
        "dice": [FACES[low], *([FACES[high]] if high != NO_DIE else [])],
        "bids": [MOVES[bid] for bid in queries.bits(key & (1 << BIDS) - 1)],
    }


def check(states: States, rules: LiarsDiceRules) -> str | None:
    """Whether the game can come to a state: it is played again."""
    state, again = states[0], np.zeros(1, STATE)
    if state["first"] not in (0, 1):
        return "first: a seat is needed"
    if not 0 <= state["rolled"] <= 2 * rules.dice:
        return f"rolled: it is in 0 to {2 * rules.dice}"
    queries.start(again, template(rules), int(state["first"]))
    for d in range(int(state["rolled"])):
        die = int(state["dice"][d // rules.dice][d % rules.dice])
        if not 0 <= die < rules.faces:
            return f"dice: {die} is no face of a die"
        queries.apply(again, die)
    for move in [*queries.bits(int(state["bids"])), *([LIAR] if state["called"] else [])]:
        if state["rolled"] < 2 * rules.dice:
            return "bids: there are none before all dice are rolled"
        if move not in queries.bits(queries.legal_actions(again, 0)):
            return f"bids: {MOVES[move]!r} is not possible there"
        queries.apply(again, move)
    for name in STATE.names or ():
        if not np.array_equal(state[name], again[0][name]):
            there, here = again[0][name].tolist(), state[name].tolist()
            return f"{name}: the dice and bids lead to {there}, not {here}"
    return None


def observation(rules: LiarsDiceRules, view: LiarsDiceView) -> Pieces:
    """A view as numbers."""
    return {
        "seat": one_hot(view.player, 2),
        "to_move": [view.to_move == view.player],
        "first": [view.first_player == view.player],
        "dice": [float(view.dice.count(face)) for face in FACES],
        "opponent_dice": [float((view.opponent_dice or []).count(face)) for face in FACES],
        "bids": [float(name in view.bids) for name in MOVES[:BIDS]],
        "over": [view.over],
    }


GAME = Game(
    name="liars-dice",
    title="Liar's Dice",
    players=2,
    dtype=STATE,
    moves=MOVES,
    outcomes=FACES,
    abstractions=(concrete(MOVES, describe=describe),),
    configurations={
        "standard": LiarsDiceRules(),
        "small": LiarsDiceRules(faces=3),
        "two-each": LiarsDiceRules(dice=2, faces=3),
    },
    template=template,
    view=view,
    enumerable=frozenset({"standard", "small", "two-each"}),
    utility_unit="wins",
    max_decisions=lambda rules: 2 * rules.dice * rules.faces + 1,
    check=check,
    observation=observation,
    max_utility=1.0,
    max_chance_events=lambda rules: 2 * rules.dice,
)
