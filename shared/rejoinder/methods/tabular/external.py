"""External sampling (Lanctot et al., 2009).

For each player in turn, deal, try every action at their infosets and sample one everywhere else.
What an action is worth is the mean of what the walks below it end with.
"""

from __future__ import annotations

from typing import Any

from rejoinder.games.contract import play_action, settle, utility
from rejoinder.kernel.jit import copy_record, kernel, rule
from rejoinder.kernel.masks import load, some
from rejoinder.methods.tabular.walks import (
    add_regrets,
    average_strategies,
    beginner_of,
    deal,
    let_others_play,
    next_action,
    open_frame,
    open_unit,
)


@kernel
def play_external(
    template: Any, snapshot: Any, scratch: Any, seed: Any, unit: Any, block: Any, delta: Any
) -> None:
    """Play one unit of external sampling into an empty table of `sums_dtype`; MemoryError if that
    has too little room."""
    rng, averages = scratch.streams[0], block.players == 2
    open_unit(rng, seed, unit)
    for i in range(block.iterations):
        beginner = beginner_of(block, unit, i)
        for player in range(block.players):
            deal(scratch.states[0], template[0], beginner, block.abstraction, rng)
            _walk_external(scratch, player, block.abstraction, snapshot, delta, averages, rng)
        if not averages:
            average_strategies(
                scratch.states[0], template[0], beginner, block, snapshot, delta, rng
            )


@rule
def _walk_external(
    scratch: Any,
    player: Any,
    abstraction: Any,
    snapshot: Any,
    delta: Any,
    averages: Any,
    rng: Any,
) -> None:
    states, frames = scratch.states, scratch.frames
    depth = 0
    while True:
        # Down: to the player's next infoset, or to the end of the game.
        if let_others_play(
            states[depth], frames[depth], player, abstraction, snapshot, delta, averages, 1.0, rng
        ):
            open_frame(states[depth], frames[depth], abstraction, snapshot, delta)
        else:
            value = utility(states[depth], player)
            # Up: hand the value to the frames above until one has an action left to try.
            while True:
                if depth == 0:
                    return
                depth -= 1
                frame = frames[depth]
                frame.value[frame.action] = value
                frame.expected[0] += delta.rows[frame.row].strategy[frame.action] * value
                if some(load(frame, "untried")):
                    break
                value = frame.expected[0]
                add_regrets(delta.rows[frame.row], frame, value, 1.0)
        frame = frames[depth]
        action = next_action(frame)
        copy_record(states[depth + 1], states[depth])
        depth += 1
        state = states[depth]
        play_action(state, abstraction, action)
        settle(state, abstraction, rng)
