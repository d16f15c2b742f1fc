"""External- and outcome-sampling MCCFR on any game (Lanctot et al., 2009).

One iteration walks the tree once for each player. External sampling: try every action at the
walking player's infosets, sample one elsewhere; add the regrets on the way back. Outcome sampling:
sample one whole game with some exploration, weight what it says by one over its probability.

The average strategy is accumulated where the walking player's *opponent* acts (external sampling)
or weighted by his own reach over the sampling probability (outcome sampling).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.cfr.table import Table, find_or_add, grown, new_table
from rejoinder.games.contract import (
    CHANCE,
    OVER,
    apply,
    current_player,
    infoset_key,
    legal_actions,
    resolve,
    resolve_chance,
    start,
    utility,
)
from rejoinder.jit import copy_record, kernel, lowest_bit, popcount, rule
from rejoinder.rng import STREAM, TRAINING, open_stream, uniform

_ROOM = 4096  # rows that an iteration may add before the table must be grown; checked between chunks


def row_dtype(num_actions: int) -> np.dtype[Any]:
    return np.dtype(
        [
            ("key", "<u8"),
            ("legal", "<u8"),  # mask of the actions of this infoset
            ("regret", "<f8", (num_actions,)),
            ("average", "<f8", (num_actions,)),  # cumulative strategy weights
        ],
        align=True,
    )


def frame_dtype(num_actions: int) -> np.dtype[Any]:
    return np.dtype(
        [
            ("row", "<i8"),
            ("untried", "<u8"),  # mask of the actions still to be walked
            ("action", "<i8"),  # the one being walked
            ("expected", "<f8"),  # value so far under the strategy
            ("strategy", "<f8", (num_actions,)),
            ("value", "<f8", (num_actions,)),
        ],
        align=True,
    )


@kernel
def run_external(
    root: Any,
    table: Any,
    states: Any,
    frames: Any,
    rng: Any,
    abstraction: Any,
    iterations: Any,
    players: Any,
) -> Any:
    """Run up to `iterations`; stops early when the table is nearly full. Returns how many ran."""
    for done in range(iterations):
        if table.size[0] + _ROOM > len(table.rows):
            return done
        for player in range(players):
            copy_record(states[0], root[0])
            resolve_chance(states[0], rng[0])
            _walk_external(states, frames, player, abstraction, table, rng[0])
    return iterations


@rule
def _walk_external(
    states: Any, frames: Any, player: Any, abstraction: Any, table: Any, rng: Any
) -> Any:
    """Value of states[0] for `player`. A frame is one of his infosets on the current path."""
    depth = 0
    while True:
        # Down: to the player's next infoset, or to the end of the game.
        if _sample_others(states[depth], player, abstraction, table, rng):
            frame = frames[depth]
            state = states[depth]
            legal = legal_actions(state, abstraction)
            frame.row = find_or_add(table, infoset_key(state, abstraction))
            frame.untried = legal
            frame.expected = 0.0
            row = table.rows[frame.row]
            row.legal = legal
            match_regrets(row.regret, legal, frame.strategy)
        else:
            value = utility(states[depth], player)
            # Up: hand the value to the frames above until one has an action left to try.
            while True:
                if depth == 0:
                    return value
                depth -= 1
                frame = frames[depth]
                frame.value[frame.action] = value
                frame.expected += frame.strategy[frame.action] * value
                if frame.untried:
                    break
                row = table.rows[frame.row]
                value = frame.expected
                left = row.legal
                while left:
                    a = lowest_bit(left)
                    left &= left - np.uint64(1)
                    row.regret[a] += frame.value[a] - value
        frame = frames[depth]
        a = lowest_bit(frame.untried)
        frame.untried &= frame.untried - np.uint64(1)
        frame.action = a
        copy_record(states[depth + 1], states[depth])
        depth += 1
        state = states[depth]
        apply(state, resolve(state, abstraction, a))
        resolve_chance(state, rng)


@rule
def _sample_others(state: Any, player: Any, abstraction: Any, table: Any, rng: Any) -> Any:
    """Let the others play until it is the player's turn (True) or the game is over (False)."""
    while True:
        mover = current_player(state)
        if mover == player:
            return True
        if mover == OVER:
            return False
        legal = legal_actions(state, abstraction)
        row = table.rows[find_or_add(table, infoset_key(state, abstraction))]
        row.legal = legal
        total = 0.0
        left = legal
        while left:
            a = lowest_bit(left)
            left &= left - np.uint64(1)
            total += max(row.regret[a], 0.0)
        scale = 1.0 / total if total > 0.0 else 0.0
        even = 0.0 if total > 0.0 else 1.0 / popcount(legal)
        u = uniform(rng)
        chosen = lowest_bit(legal)
        left = legal
        while left:
            a = lowest_bit(left)
            left &= left - np.uint64(1)
            p = max(row.regret[a], 0.0) * scale + even
            row.average[a] += p
            if u >= 0.0 and p > 0.0:
                chosen = a
            u -= p
        apply(state, resolve(state, abstraction, chosen))
        resolve_chance(state, rng)


@rule
def match_regrets(regret: Any, legal: Any, strategy: Any) -> None:
    """Regret matching: in proportion to positive regret, uniform where there is none."""
    total = 0.0
    left = legal
    while left:
        a = lowest_bit(left)
        left &= left - np.uint64(1)
        total += max(regret[a], 0.0)
    scale = 1.0 / total if total > 0.0 else 0.0
    even = 0.0 if total > 0.0 else 1.0 / popcount(legal)
    left = legal
    while left:
        a = lowest_bit(left)
        left &= left - np.uint64(1)
        strategy[a] = max(regret[a], 0.0) * scale + even
