"""Small games that have what the shipped ones lack. They are registered only in tests.

trio    three players, general sum. Seats 0 and 1 choose heads or tails at once and play for
        each other's points; seat 2 guesses a card that only they see. In the one equilibrium 0
        and 1 choose heads with probability 1/3 and 2 guesses right.
wide    70 actions, so that masks have two words, and 70 outcomes of chance. Both players are
        told a number and win a point by naming it.
climb   options, scratch memory and data of an abstraction; 100 concrete moves in masks of one
        word. Each move is high or low, and which is right depends on the player's symbol. The
        abstraction `plan` has four actions: play high to the end, play low to the end, look
        every symbol up in the data to the end (which is always right), play high once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games import GAMES, contract
from rejoinder.games.base import Abstraction, Game, Rules, States, concrete
from rejoinder.games.contract import CHANCE, CONCRETE, DECIDE, HIDDEN, OVER
from rejoinder.kernel.jit import rule
from rejoinder.kernel.rng import below

UNKNOWN = -1  # a card, a number or a symbol that has not been dealt, a move not made


class View(BaseModel):
    """Everything that one player may know now: numbers by name."""

    model_config = ConfigDict(frozen=True)

    player: int
    knows: dict[str, int]


def _no_check(states: States, rules: Rules) -> None:
    """Positions of these games come from play alone."""


# --- trio ---------------------------------------------------------------------------------------

TRIO = np.dtype([("card", "i1"), ("moves", "i1", (3,)), ("n_moves", "i1"), ("first", "i1")])
TAKER = 2  # the seat that sees the card


@rule
def _trio_start(state: Any, first_player: Any) -> None:
    state.card = UNKNOWN
    for seat in range(3):
        state.moves[seat] = UNKNOWN
    state.n_moves = 0
    state.first = first_player


@rule
def _trio_player(state: Any) -> Any:
    if state.card == UNKNOWN:
        return CHANCE
    return OVER if state.n_moves == 3 else np.int64((state.first + state.n_moves) % 3)


@rule
def _trio_utility(state: Any, player: Any) -> Any:
    right = state.moves[TAKER] == state.card
    if player == TAKER:
        return 2.0 if right else -1.0
    points = 1.0 if right else 2.0
    if state.moves[0] == 0 and state.moves[1] == 0:
        points *= 3.0
    elif state.moves[0] != state.moves[1]:
        points = -points
    return points if player == 0 else -points


@rule
def _two_actions(state: Any, abstraction: Any) -> Any:
    return np.uint64(3)


@rule
def _as_it_is(state: Any, abstraction: Any, action: Any) -> Any:
    return np.int64(action)


@rule
def _trio_apply(state: Any, move: Any) -> None:
    if state.card == UNKNOWN:
        state.card = move
    else:
        state.moves[_trio_player(state)] = move
        state.n_moves += 1


@rule
def _trio_key(state: Any, abstraction: Any) -> Any:
    player = _trio_player(state)
    card = state.card if player == TAKER else 0
    return np.uint64(card + 2 * player + 8 * state.first)


@rule
def _trio_observed(state: Any, move: Any, player: Any) -> Any:
    sees = player == (TAKER if state.card == UNKNOWN else _trio_player(state))
    return np.int64(move) if sees else np.int64(HIDDEN)


@rule
def _trio_outcomes(state: Any, probabilities: Any) -> Any:
    probabilities[0] = probabilities[1] = 0.5
    return 2


@rule
def _trio_sample(state: Any, rng: Any) -> Any:
    return below(rng, 2)


@rule
def _trio_chance(state: Any, rng: Any) -> Any:
    if state.card != UNKNOWN:
        return 1.0
    state.card = below(rng, 2)
    return 0.5


@rule
def _trio_shuffle(state: Any, player: Any, rng: Any) -> None:
    if player != TAKER and state.card != UNKNOWN:
        state.card = below(rng, 2)
    for seat in range(3):
        if seat != player and state.moves[seat] != UNKNOWN:
            state.moves[seat] = below(rng, 2)


contract.implement(
    TRIO,
    start=_trio_start,
    current_player=_trio_player,
    utility=_trio_utility,
    legal_actions=_two_actions,
    resolve=_as_it_is,
    apply=_trio_apply,
    infoset_key=_trio_key,
    observed=_trio_observed,
    chance_outcomes=_trio_outcomes,
    sample_outcome=_trio_sample,
    resolve_chance=_trio_chance,
    shuffle_hidden=_trio_shuffle,
)


def _trio_view(states: States, player: int) -> View:
    state = states[0]
    knows = {"first": state["first"], "moved": state["n_moves"], "own": state["moves"][player]}
    if player == TAKER:
        knows["card"] = state["card"]
    return View(player=player, knows={name: int(n) for name, n in knows.items()})


def _trio_describe(key: int) -> dict[str, Any]:
    return {"player": key >> 1 & 3, "card": key & 1, "first": key >> 3}


TRIO_GAME = Game(
    name="trio",
    title="Pennies for two and a guess for a third",
    players=3,
    dtype=TRIO,
    moves=("heads", "tails"),
    outcomes=("card 0", "card 1"),
    abstractions=(concrete(("heads", "tails"), describe=_trio_describe),),
    configurations={"standard": Rules()},
    template=lambda _: np.zeros(1, TRIO),
    view=_trio_view,
    max_decisions=lambda _: 3,
    check=_no_check,
    starts=3,
    enumerable=frozenset({"standard"}),
    zero_sum=False,
    counts_wins=False,
)

# --- wide ---------------------------------------------------------------------------------------

WIDE = np.dtype([("number", "i1", (2,)), ("named", "i1", (2,)), ("n_moves", "i1"), ("first", "i1")])
NUMBERS = 70
LOWEST = np.array([65, 60], np.int64)  # the numbers that a player may be told, by order of play


@rule
def _wide_start(state: Any, first_player: Any) -> None:
    for k in range(2):
        state.number[k] = UNKNOWN
        state.named[k] = UNKNOWN
    state.n_moves = 0
    state.first = first_player


@rule
def _wide_player(state: Any) -> Any:
    if state.number[1] == UNKNOWN:
        return CHANCE
    return OVER if state.n_moves == 2 else np.int64(state.first ^ state.n_moves)


@rule
def _wide_utility(state: Any, player: Any) -> Any:
    points = np.float64(state.named[0] == state.number[0])
    points -= np.float64(state.named[1] == state.number[1])
    return points if player == state.first else -points


@rule
def _wide_actions(state: Any, abstraction: Any) -> Any:
    """All numbers for the first player, those from 60 on for the second."""
    if state.n_moves == 0:
        return (~np.uint64(0), np.uint64(0x3F))
    return (np.uint64(0xF) << np.uint64(60), np.uint64(0x3F))


@rule
def _wide_apply(state: Any, move: Any) -> None:
    if state.number[1] == UNKNOWN:
        state.number[_wide_dealt(state)] = move
    else:
        state.named[state.n_moves] = move
        state.n_moves += 1


@rule
def _wide_dealt(state: Any) -> Any:
    """Who is told a number next, by order of play."""
    return 0 if state.number[0] == UNKNOWN else 1


@rule
def _wide_key(state: Any, abstraction: Any) -> Any:
    number = np.uint64(state.number[state.n_moves])
    order = np.uint64(state.n_moves) | np.uint64(state.first) << np.uint64(1)
    return number | order << np.uint64(8)


@rule
def _wide_observed(state: Any, move: Any, player: Any) -> Any:
    order = player ^ state.first
    acting = _wide_dealt(state) if state.number[1] == UNKNOWN else state.n_moves
    return np.int64(move) if order == acting else np.int64(HIDDEN)


@rule
def _wide_outcomes(state: Any, probabilities: Any) -> Any:
    lowest = LOWEST[_wide_dealt(state)]
    for k in range(NUMBERS):
        probabilities[k] = 1.0 / (NUMBERS - lowest) if k >= lowest else 0.0
    return NUMBERS


@rule
def _wide_sample(state: Any, rng: Any) -> Any:
    lowest = LOWEST[_wide_dealt(state)]
    return lowest + below(rng, NUMBERS - lowest)


@rule
def _wide_chance(state: Any, rng: Any) -> Any:
    reach = 1.0
    while state.number[1] == UNKNOWN:
        reach /= NUMBERS - LOWEST[_wide_dealt(state)]
        _wide_apply(state, _wide_sample(state, rng))
    return reach


@rule
def _wide_shuffle(state: Any, player: Any, rng: Any) -> None:
    if state.number[1] != UNKNOWN:
        other = 1 - (player ^ state.first)
        state.number[other] = LOWEST[other] + below(rng, NUMBERS - LOWEST[other])


contract.implement(
    WIDE,
    start=_wide_start,
    current_player=_wide_player,
    utility=_wide_utility,
    legal_actions=_wide_actions,
    resolve=_as_it_is,
    apply=_wide_apply,
    infoset_key=_wide_key,
    observed=_wide_observed,
    chance_outcomes=_wide_outcomes,
    sample_outcome=_wide_sample,
    resolve_chance=_wide_chance,
    shuffle_hidden=_wide_shuffle,
)


def _wide_view(states: States, player: int) -> View:
    state = states[0]
    order = int(state["first"]) ^ player
    knows = {"first": state["first"], "number": state["number"][order], "moved": state["n_moves"]}
    return View(player=player, knows={name: int(n) for name, n in knows.items()})


_NAMES = tuple(f"number {n}" for n in range(NUMBERS))
WIDE_GAME = Game(
    name="wide-numbers",
    title="Naming a number",
    players=2,
    dtype=WIDE,
    moves=_NAMES,
    outcomes=_NAMES,
    abstractions=(concrete(_NAMES),),
    configurations={"standard": Rules()},
    template=lambda _: np.zeros(1, WIDE),
    view=_wide_view,
    max_decisions=lambda _: 2,
    check=_no_check,
    mask_words=2,
    enumerable=frozenset({"standard"}),
)

# --- climb --------------------------------------------------------------------------------------

CLIMB = np.dtype(
    [
        ("symbol", "i1", (2,)),  # by order of play; UNKNOWN: not dealt, or not needed any more
        ("score", "i1", (2,)),
        ("option", "i1", (2,)),  # action + 1 of `plan` that is being carried out, 0: none
        ("ply", "i1"),
        ("first", "i1"),
    ]
)
PLIES, SYMBOLS, STEPS = 4, 3, 100
LOW, HIGH = 0, STEPS - 1  # the moves that options make; those from 50 on are high
RIGHT = np.array([1, 0, 1], np.int8)  # by symbol: whether a high move is right
PLAN = 1
ALL_HIGH, ALL_LOW, LOOK_UP, HIGH_ONCE = range(4)
SCRATCH = np.dtype([("votes", "<i8", (2,))])


class Plan(NamedTuple):
    """An abstraction of climb as compiled code takes it."""

    number: Any
    table: Any  # int8[SYMBOLS]: whether to play high
    scratch: Any  # SCRATCH[1]


@rule
def _climb_start(state: Any, first_player: Any) -> None:
    for k in range(2):
        state.symbol[k] = UNKNOWN
        state.score[k] = 0
        state.option[k] = 0
    state.ply = 0
    state.first = first_player


@rule
def _climb_dealt(state: Any) -> Any:
    """Who gets a symbol now, by order of play, or UNKNOWN."""
    for ply in range(state.ply, min(state.ply + 2, PLIES)):
        if state.symbol[ply & 1] == UNKNOWN:
            return ply & 1
    return UNKNOWN


@rule
def _climb_player(state: Any) -> Any:
    if state.ply == PLIES:
        return OVER
    if _climb_dealt(state) != UNKNOWN:
        return CHANCE
    return np.int64(state.first ^ (state.ply & 1))


@rule
def _climb_utility(state: Any, player: Any) -> Any:
    points = np.float64(state.score[0] - state.score[1])
    return points if player == state.first else -points


@rule
def _climb_actions(state: Any, abstraction: Any) -> Any:
    return np.uint64(0) if abstraction.number == CONCRETE else np.uint64(0xF)


@rule
def _climb_moves(state: Any, concrete: Any, out: Any) -> None:
    for move in range(len(out)):
        out[move] = True


@rule
def _climb_resolve(state: Any, abstraction: Any, action: Any) -> Any:
    if abstraction.number == CONCRETE:
        return np.int64(action)
    if action != LOOK_UP:
        return np.int64(LOW if action == ALL_LOW else HIGH)
    votes = abstraction.scratch[0].votes
    votes[0] = 0
    votes[1] = 0
    votes[abstraction.table[state.symbol[state.ply & 1]]] += 1
    return np.int64(HIGH if votes[1] > votes[0] else LOW)


@rule
def _climb_begin(state: Any, abstraction: Any, action: Any) -> None:
    keeps = abstraction.number == PLAN and action != HIGH_ONCE
    state.option[state.ply & 1] = action + 1 if keeps else 0


@rule
def _climb_pending(state: Any, abstraction: Any) -> Any:
    if abstraction.number == CONCRETE or _climb_player(state) < 0:
        return np.int64(DECIDE)
    option = state.option[state.ply & 1]
    return _climb_resolve(state, abstraction, option - 1) if option > 0 else np.int64(DECIDE)


@rule
def _climb_apply(state: Any, move: Any) -> None:
    dealt = _climb_dealt(state)
    if dealt != UNKNOWN:
        state.symbol[dealt] = move
        return
    mover = state.ply & 1
    right = (move >= STEPS // 2) == (RIGHT[state.symbol[mover]] == 1)
    state.score[mover] += 1 if right else -1
    state.symbol[mover] = UNKNOWN
    state.ply += 1


@rule
def _climb_key(state: Any, abstraction: Any) -> Any:
    mover = state.ply & 1
    key = np.uint64(state.ply) | np.uint64(state.first) << np.uint64(4)
    if abstraction.number == CONCRETE:
        key |= np.uint64(state.symbol[mover]) << np.uint64(8)
        key |= np.uint64(state.score[mover] + PLIES) << np.uint64(16)
    return key


@rule
def _climb_observed(state: Any, move: Any, player: Any) -> Any:
    dealt = _climb_dealt(state)
    if dealt == UNKNOWN or dealt == player ^ state.first:
        return np.int64(move)
    return np.int64(HIDDEN)


@rule
def _climb_outcomes(state: Any, probabilities: Any) -> Any:
    for k in range(SYMBOLS):
        probabilities[k] = 1.0 / SYMBOLS
    return SYMBOLS


@rule
def _climb_sample(state: Any, rng: Any) -> Any:
    return below(rng, SYMBOLS)


@rule
def _climb_chance(state: Any, rng: Any) -> Any:
    reach = 1.0
    while state.ply < PLIES and _climb_dealt(state) != UNKNOWN:
        reach /= SYMBOLS
        _climb_apply(state, _climb_sample(state, rng))
    return reach


@rule
def _climb_shuffle(state: Any, player: Any, rng: Any) -> None:
    other = 1 - (player ^ state.first)
    if state.symbol[other] != UNKNOWN:
        state.symbol[other] = below(rng, SYMBOLS)


@rule
def _climb_baseline(state: Any, abstraction: Any, number: Any, weights: Any) -> None:
    """Opponent 0 always looks up, 1 never does anything but play low."""
    for a in range(len(weights)):
        weights[a] = np.float64(a == (LOOK_UP if number == 0 else ALL_LOW))


contract.implement(
    CLIMB,
    start=_climb_start,
    current_player=_climb_player,
    utility=_climb_utility,
    legal_actions=_climb_actions,
    legal_moves=_climb_moves,
    resolve=_climb_resolve,
    apply=_climb_apply,
    infoset_key=_climb_key,
    observed=_climb_observed,
    chance_outcomes=_climb_outcomes,
    sample_outcome=_climb_sample,
    resolve_chance=_climb_chance,
    shuffle_hidden=_climb_shuffle,
    begin_option=_climb_begin,
    pending_move=_climb_pending,
    baseline=_climb_baseline,
)


def _plan(number: int, table: Any) -> Plan:
    return Plan(number, np.asarray(table, np.int8), np.zeros(1, SCRATCH))


def _climb_view(states: States, player: int) -> View:
    state = states[0]
    order = int(state["first"]) ^ player
    knows = {"symbol": state["symbol"][order], "score": state["score"][order]}
    knows |= {"first": state["first"], "ply": state["ply"]}
    return View(player=player, knows={name: int(n) for name, n in knows.items()})


_STEP_NAMES = tuple(f"step {n}" for n in range(STEPS))
CLIMB_GAME = Game(
    name="climb",
    title="High or low",
    players=2,
    dtype=CLIMB,
    moves=_STEP_NAMES,
    outcomes=("red", "green", "blue"),
    abstractions=(
        concrete(_STEP_NAMES, make_argument=lambda _: _plan(CONCRETE, np.zeros(SYMBOLS))),
        Abstraction(
            "plan",
            PLAN,
            ("all high", "all low", "look up", "high once"),
            describe_state=lambda states: {"ply": int(states[0]["ply"])},
            options=True,
            data=lambda: {"right": RIGHT},
            make_argument=lambda data: _plan(PLAN, data["right"]),
        ),
    ),
    configurations={"standard": Rules()},
    template=lambda _: np.zeros(1, CLIMB),
    view=_climb_view,
    max_decisions=lambda _: PLIES,
    check=_no_check,
    starts=2,
    baselines=("looks up", "plays low"),
)

SYNTHETIC = (TRIO_GAME, WIDE_GAME, CLIMB_GAME)


@contextmanager
def registered() -> Iterator[None]:
    """Have the games found by name."""
    GAMES.update({game.name: game for game in SYNTHETIC})
    try:
        yield
    finally:
        for game in SYNTHETIC:
            del GAMES[game.name]
