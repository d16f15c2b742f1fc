"""Outcome sampling (Lanctot et al., 2009).

Sample a single game for each player, exploring at their infosets, and weight what it gives by one
over the probability of that sample. That weight grows exponentially with the number of decisions
and is cut off at 1 / `MIN_SAMPLED`: games that are sampled less often than once in a million count
too little, which biases what is learned of long games (of dozens of decisions) and leaves short
ones as they are.
"""

from __future__ import annotations

from typing import Any

from rejoinder.games.contract import play_action, settle, utility
from rejoinder.kernel.jit import kernel, rule
from rejoinder.kernel.masks import count, first, load, rest, some
from rejoinder.kernel.rng import uniform
from rejoinder.methods.tabular.walks import (
    average_strategies,
    beginner_of,
    deal,
    let_others_play,
    open_frame,
    open_unit,
)

MIN_SAMPLED = 1e-6  # no game counts as less likely, so as more than a million


@kernel
def play_outcome(
    template: Any, snapshot: Any, scratch: Any, seed: Any, unit: Any, block: Any, delta: Any
) -> None:
    """The same for outcome sampling: a kernel of its own, so that each is compiled by itself."""
    rng, averages = scratch.streams[0], block.players == 2
    open_unit(rng, seed, unit)
    for i in range(block.iterations):
        beginner = beginner_of(block, unit, i)
        for player in range(block.players):
            deal(scratch.states[0], template[0], beginner, block.abstraction, rng)
            _walk_outcome(scratch, player, block, snapshot, delta, averages, rng)
        if not averages:
            average_strategies(
                scratch.states[0], template[0], beginner, block, snapshot, delta, rng
            )


@rule
def _walk_outcome(
    scratch: Any,
    player: Any,
    block: Any,
    snapshot: Any,
    delta: Any,
    averages: Any,
    rng: Any,
) -> None:
    state, frames = scratch.states[0], scratch.frames
    abstraction, exploration = block.abstraction, block.exploration
    depth = 0
    sampled = 1.0  # probability of the player's own sampled actions
    while let_others_play(
        state, frames[depth], player, abstraction, snapshot, delta, averages, 1.0 / sampled, rng
    ):
        frame = frames[depth]
        open_frame(state, frame, abstraction, snapshot, delta)
        legal, strategy = load(frame, "legal"), delta.rows[frame.row].strategy
        explored = exploration / count(legal)
        u = uniform(rng)
        frame.action = first(legal)
        chosen = 1.0
        left = legal
        while some(left):
            a = first(left)
            left = rest(left)
            p = explored + (1.0 - exploration) * strategy[a]
            if u >= 0.0:
                frame.action = a
                chosen = p
            u -= p
        sampled = max(sampled * chosen, MIN_SAMPLED)
        play_action(state, abstraction, frame.action)
        settle(state, abstraction, rng)
        depth += 1
    # The others and chance were sampled as they play, so only the player's own sampling is undone.
    weight = utility(state, player) / sampled
    tail = 1.0  # probability of the player's actions from below this infoset to the end
    while depth > 0:
        depth -= 1
        frame = frames[depth]
        row = delta.rows[frame.row]
        expected = row.strategy[frame.action] * tail
        row.visits += 1
        left = load(frame, "legal")
        while some(left):
            a = first(left)
            left = rest(left)
            gained = tail if a == frame.action else 0.0
            row.regret[a] += weight * (gained - expected)
        tail = expected
