"""Chance sampling (Zinkevich et al., 2007).

Sample the deal and walk everything that players can do with it, for all of them at once; the k-th
random event of every branch draws the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.contract import (
    OVER,
    current_player,
    legal_actions,
    play_action,
    settle,
    utility,
)
from rejoinder.kernel.jit import copy_record, kernel, rule
from rejoinder.kernel.masks import first, load, rest, several, some, store
from rejoinder.kernel.rng import TRAINING, open_stream
from rejoinder.methods.tabular.walks import (
    add_regrets,
    beginner_of,
    deal,
    next_action,
    open_frame,
    open_unit,
)


@kernel
def play_chance(
    template: Any, snapshot: Any, scratch: Any, seed: Any, unit: Any, block: Any, delta: Any
) -> None:
    """The same for chance sampling."""
    rng = scratch.streams[0]
    open_unit(rng, seed, unit)
    for i in range(block.iterations):
        beginner = beginner_of(block, unit, i)
        deal(scratch.states[0], template[0], beginner, block.abstraction, rng)
        _walk_all(scratch, block, snapshot, delta)


@rule
def _walk_all(scratch: Any, block: Any, snapshot: Any, delta: Any) -> None:
    """Walk everything that players can do with one deal; streams[0] is where its events go on."""
    states, streams, frames = scratch.states, scratch.streams, scratch.frames
    players, abstraction = block.players, block.abstraction
    depth = 0
    root = frames[0]
    for p in range(players):
        root.reach[p] = 1.0
    copy_record(streams[1], streams[0])
    while True:
        state, frame = states[depth], frames[depth]
        if _play_forced(state, frame, abstraction, streams[depth + 1]):
            open_frame(state, frame, abstraction, snapshot, delta)
            frame.player = current_player(state)
            for a in range(len(frame.strategy)):
                frame.strategy[a] = delta.rows[frame.row].strategy[a]
            for p in range(players):
                frame.expected[p] = 0.0
        else:
            if depth == 0:
                break
            depth -= 1
            above = frames[depth]
            _take_end(state, above, players)
            while not some(load(above, "untried")):
                _close(above, players, delta)
                if depth == 0:
                    depth = -1
                    break
                depth -= 1
                _take_values(frames[depth + 1], frames[depth], players)
                above = frames[depth]
            if depth < 0:
                break
        frame = frames[depth]
        action = next_action(frame)
        below = frames[depth + 1]
        for p in range(players):
            own = frame.strategy[action] if p == frame.player else 1.0
            below.reach[p] = frame.reach[p] * own
        copy_record(states[depth + 1], states[depth])
        copy_record(streams[depth + 2], streams[depth + 1])
        depth += 1
        state = states[depth]
        play_action(state, abstraction, action)
        settle(state, abstraction, streams[depth + 1])
    _skip(streams[0])


@rule
def _skip(rng: Any) -> None:
    """Go on with other numbers than the branches have drawn."""
    open_stream(rng, rng.s0, rng.s1, np.uint64(TRAINING))


@rule
def _play_forced(state: Any, frame: Any, abstraction: Any, rng: Any) -> Any:
    """Play moves without a choice until there is one (True, the frame has the legal actions) or the
    game is over (False)."""
    while current_player(state) != OVER:
        legal = legal_actions(state, abstraction)
        if several(legal):
            store(frame, "legal", legal)
            return True
        play_action(state, abstraction, first(legal))
        settle(state, abstraction, rng)
    return False


@rule
def _take_end(state: Any, above: Any, players: Any) -> None:
    """The utilities of a game that is over are the values of the action that led there."""
    p_action = above.strategy[above.action]
    for p in range(players):
        value = utility(state, p)
        above.expected[p] += p_action * value
        if p == above.player:
            above.value[above.action] = value


@rule
def _take_values(below: Any, above: Any, players: Any) -> None:
    """The same for an infoset whose actions have all been walked."""
    p_action = above.strategy[above.action]
    for p in range(players):
        above.expected[p] += p_action * below.expected[p]
    above.value[above.action] = below.expected[above.player]


@rule
def _close(frame: Any, players: Any, delta: Any) -> None:
    """Add what an infoset gives: regrets by the others' reach, the strategy by its own."""
    row = delta.rows[frame.row]
    others = 1.0
    for p in range(players):
        if p != frame.player:
            others *= frame.reach[p]
    add_regrets(row, frame, frame.expected[frame.player], others)
    own = frame.reach[frame.player]
    left = load(frame, "legal")
    while some(left):
        a = first(left)
        left = rest(left)
        row.average[a] += own * frame.strategy[a]
