"""What the sampled walks have in common: a unit is a block of iterations with one fixed strategy.

The strategy is the snapshot's; an infoset that it does not know is played uniformly. What the
iterations give is added up by infoset, in the order in which infosets are first met: that is the
delta. A forced move is no decision and leaves nothing.

The average strategy. Chance sampling adds it weighted by the player's own reach. In the sampled
walks of two players it is added where the *other* player acts: they are reached by their own
strategy, so a visit has the right weight by itself (divided by the walker's sampling probability in
outcome sampling). With more players the strategies of the third would weigh as well and would not
cancel (Lanctot, 2013, chapter 4, and the note on averaging in OpenSpiel's external sampling). There
each player gets a walk of their own in which they play by their strategy and all others uniformly:
what a visit then weighs beyond the player's own reach does not change from one iteration to the
next, and no subtree is left out because somebody avoids it.

The walks are loops over an explicit stack: numba's cache does not survive recursive kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rejoinder.games.contract import (
    OVER,
    current_player,
    infoset_key,
    legal_actions,
    play_action,
    random_action,
    settle,
    start,
)
from rejoinder.kernel.jit import copy_record, hot, kernel, rule
from rejoinder.kernel.masks import (
    count,
    first,
    load,
    mask_field,
    rest,
    several,
    some,
    store,
)
from rejoinder.kernel.rng import TRAINING, open_stream, uniform
from rejoinder.methods.tabular.policy import draw
from rejoinder.methods.tabular.table import EMPTY, find, find_or_add
from rejoinder.methods.tabular.weighting import MAX_COUNT


def frame_dtype(actions: int, players: int) -> np.dtype[Any]:
    """One infoset on the current path."""
    return np.dtype(
        [
            ("row", "<i8"),  # in the delta
            ("player", "<i8"),  # who decides (chance sampling)
            mask_field("legal", actions),
            mask_field("untried", actions),  # mask of the actions still to be walked
            ("action", "<i8"),  # the one being walked
            ("strategy", "<f8", (actions,)),
            ("value", "<f8", (actions,)),  # for the player
            ("expected", "<f8", (players,)),  # so far, under the strategy
            ("reach", "<f8", (players,)),  # by each player's own moves (chance sampling)
        ],
        align=True,
    )


def sums_dtype(actions: int) -> np.dtype[Any]:
    """What iterations have given for one infoset so far, and what is played there."""
    return np.dtype(
        [
            ("key", "<u8"),
            mask_field("legal", actions),
            ("visits", "<i8"),
            ("strategy", "<f8", (actions,)),  # the snapshot's
            ("regret", "<f8", (actions,)),
            ("average", "<f8", (actions,)),
        ],
        align=True,
    )


class Scratch(NamedTuple):
    """Memory to walk in: one of each for every decision on a path, and some more."""

    states: Any
    streams: Any
    frames: Any


class Block(NamedTuple):
    """What the iterations of a unit have in common."""

    iterations: Any
    players: Any
    starts: Any  # seats that begin in turn
    abstraction: Any
    exploration: Any  # of outcome sampling; the others do not look at it


@rule
def open_unit(rng: Any, seed: Any, unit: Any) -> None:
    open_stream(rng, np.uint64(seed), np.uint64(unit), np.uint64(TRAINING))


@rule
def beginner_of(block: Any, unit: Any, i: Any) -> Any:
    return (unit * block.iterations + i) % block.starts


@rule
def deal(state: Any, template: Any, beginner: Any, abstraction: Any, rng: Any) -> None:
    copy_record(state, template)
    start(state, beginner)
    settle(state, abstraction, rng)


@rule
def average_strategies(
    state: Any,
    template: Any,
    beginner: Any,
    block: Any,
    snapshot: Any,
    delta: Any,
    rng: Any,
) -> None:
    """Add the strategies of all players, each along a game of their own."""
    for player in range(block.players):
        deal(state, template, beginner, block.abstraction, rng)
        _walk_average(state, player, block.abstraction, snapshot, delta, rng)


@rule
def _walk_average(
    state: Any, player: Any, abstraction: Any, snapshot: Any, delta: Any, rng: Any
) -> None:
    """Add a player's strategy along a game in which the others play uniformly."""
    while current_player(state) != OVER:
        legal = legal_actions(state, abstraction)
        if current_player(state) != player:
            action = random_action(legal, rng)
        elif several(legal):
            action = _add_average(state, legal, 1.0, abstraction, snapshot, delta, rng)
        else:
            action = first(legal)
        play_action(state, abstraction, action)
        settle(state, abstraction, rng)


@rule
def let_others_play(
    state: Any,
    frame: Any,  # the legal actions, if it is True
    player: Any,
    abstraction: Any,
    snapshot: Any,
    delta: Any,
    averages: Any,
    weight: Any,
    rng: Any,
) -> Any:
    """Sample moves until the player has a choice (True) or the game is over (False)."""
    while True:
        mover = current_player(state)
        if mover == OVER:
            return False
        legal = legal_actions(state, abstraction)
        if not several(legal):
            action = first(legal)
        elif mover == player:
            store(frame, "legal", legal)
            return True
        elif averages:
            action = _add_average(state, legal, weight, abstraction, snapshot, delta, rng)
        else:
            _read(snapshot, infoset_key(state, abstraction), legal, frame.strategy)
            action = draw(frame.strategy, legal, uniform(rng))
        play_action(state, abstraction, action)
        settle(state, abstraction, rng)


@hot
def _add_average(
    state: Any, legal: Any, weight: Any, abstraction: Any, snapshot: Any, delta: Any, rng: Any
) -> Any:
    """Add the strategy of the player to move to the delta; returns an action drawn from it.

    Reading, adding and drawing are one loop here: it is the hottest there is.
    """
    row = delta.rows[_enter(delta, snapshot, infoset_key(state, abstraction), legal)]
    u = uniform(rng)
    chosen = first(legal)
    left = legal
    while some(left):
        a = first(left)
        left = rest(left)
        p = row.strategy[a]
        row.average[a] += weight * p
        if u >= 0.0 and p > 0.0:
            chosen = a
        u -= p
    return chosen


@hot
def open_frame(state: Any, frame: Any, abstraction: Any, snapshot: Any, delta: Any) -> None:
    """Start a frame at an infoset with a choice, among the frame's legal actions."""
    legal = load(frame, "legal")
    frame.row = _enter(delta, snapshot, infoset_key(state, abstraction), legal)
    store(frame, "untried", legal)
    frame.expected[0] = 0.0


@rule
def _enter(delta: Any, snapshot: Any, key: Any, legal: Any) -> Any:
    """The row of an infoset in the delta; the snapshot is searched for it once in a unit."""
    size = delta.size[0]
    row = find_or_add(delta, key)
    if row == size:
        store(delta.rows[row], "legal", legal)
        _read(snapshot, key, legal, delta.rows[row].strategy)
    return row


@hot
def next_action(frame: Any) -> Any:
    untried = load(frame, "untried")
    action = first(untried)
    store(frame, "untried", rest(untried))
    frame.action = action
    return action


@hot
def add_regrets(row: Any, frame: Any, expected: Any, weight: Any) -> None:
    row.visits += 1
    left = load(frame, "legal")
    while some(left):
        a = first(left)
        left = rest(left)
        row.regret[a] += weight * (frame.value[a] - expected)


@rule
def _read(snapshot: Any, key: Any, legal: Any, strategy: Any) -> None:
    """The snapshot's strategy at an infoset; uniform where it knows none."""
    row = find(snapshot, key)
    even = 1.0 / count(legal)
    left = legal
    while some(left):
        a = first(left)
        left = rest(left)
        strategy[a] = even if row == EMPTY else np.float64(snapshot.rows[row].strategy[a])


@kernel
def round_sums(sums: Any, entries: Any) -> None:
    """Entries as they travel."""
    for e in range(len(sums)):
        entries[e].key = sums[e].key
        entries[e].legal = sums[e].legal
        entries[e].visits = min(sums[e].visits, MAX_COUNT)
        for a in range(len(sums[e].regret)):
            entries[e].regret[a] = sums[e].regret[a]
            entries[e].average[a] = sums[e].average[a]
