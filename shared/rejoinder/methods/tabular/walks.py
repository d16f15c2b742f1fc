"""One unit of external, outcome or chance sampling: a block of iterations with one fixed strategy.

The strategy is the snapshot's; an infoset that it does not know is played uniformly. What the
iterations give is added up by infoset, in the order in which infosets are first met: that is the
delta. A forced move is no decision and leaves nothing.

External sampling (Lanctot et al., 2009): for each player in turn, try every action at their
infosets and sample one everywhere else. Outcome sampling: sample a single game for each player,
exploring at their infosets, and weight what it gives by one over the probability of that sample.
That weight grows exponentially with the number of decisions and is cut off at 1 / `MIN_SAMPLED`:
games that are sampled less often than once in a million count too little, which biases what is
learned of long games (of dozens of decisions) and leaves short ones as they are.
Chance sampling (Zinkevich et al., 2007): sample the deal and walk everything that players can do
with it, for all of them at once; the k-th random event of every branch draws the same numbers.

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
    utility,
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

MIN_SAMPLED = 1e-6  # outcome sampling: no game counts as less likely, so as more than a million


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


@kernel
def play_external(
    template: Any, snapshot: Any, scratch: Any, seed: Any, unit: Any, block: Any, delta: Any
) -> None:
    """Play one unit of external sampling into an empty table of `sums_dtype`; MemoryError if that
    has too little room."""
    rng, averages = scratch.streams[0], block.players == 2
    _open_unit(rng, seed, unit)
    for i in range(block.iterations):
        beginner = _beginner(block, unit, i)
        for player in range(block.players):
            _deal(scratch.states[0], template[0], beginner, block.abstraction, rng)
            _walk_external(scratch, player, block.abstraction, snapshot, delta, averages, rng)
        if not averages:
            _average(scratch.states[0], template[0], beginner, block, snapshot, delta, rng)


@kernel
def play_outcome(
    template: Any, snapshot: Any, scratch: Any, seed: Any, unit: Any, block: Any, delta: Any
) -> None:
    """The same for outcome sampling: a kernel of its own, so that each is compiled by itself."""
    rng, averages = scratch.streams[0], block.players == 2
    _open_unit(rng, seed, unit)
    for i in range(block.iterations):
        beginner = _beginner(block, unit, i)
        for player in range(block.players):
            _deal(scratch.states[0], template[0], beginner, block.abstraction, rng)
            _walk_outcome(scratch, player, block, snapshot, delta, averages, rng)
        if not averages:
            _average(scratch.states[0], template[0], beginner, block, snapshot, delta, rng)


@kernel
def play_chance(
    template: Any, snapshot: Any, scratch: Any, seed: Any, unit: Any, block: Any, delta: Any
) -> None:
    """The same for chance sampling."""
    rng = scratch.streams[0]
    _open_unit(rng, seed, unit)
    for i in range(block.iterations):
        beginner = _beginner(block, unit, i)
        _deal(scratch.states[0], template[0], beginner, block.abstraction, rng)
        _walk_all(scratch, block, snapshot, delta)


@rule
def _open_unit(rng: Any, seed: Any, unit: Any) -> None:
    open_stream(rng, np.uint64(seed), np.uint64(unit), np.uint64(TRAINING))


@rule
def _beginner(block: Any, unit: Any, i: Any) -> Any:
    return (unit * block.iterations + i) % block.starts


@rule
def _deal(state: Any, template: Any, beginner: Any, abstraction: Any, rng: Any) -> None:
    copy_record(state, template)
    start(state, beginner)
    settle(state, abstraction, rng)


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
        if _let_others_play(
            states[depth], frames[depth], player, abstraction, snapshot, delta, averages, 1.0, rng
        ):
            _open(states[depth], frames[depth], abstraction, snapshot, delta)
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
                _add_regrets(delta.rows[frame.row], frame, value, 1.0)
        frame = frames[depth]
        action = _next_action(frame)
        copy_record(states[depth + 1], states[depth])
        depth += 1
        state = states[depth]
        play_action(state, abstraction, action)
        settle(state, abstraction, rng)


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
    while _let_others_play(
        state, frames[depth], player, abstraction, snapshot, delta, averages, 1.0 / sampled, rng
    ):
        frame = frames[depth]
        _open(state, frame, abstraction, snapshot, delta)
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
            _open(state, frame, abstraction, snapshot, delta)
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
        action = _next_action(frame)
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
    _add_regrets(row, frame, frame.expected[frame.player], others)
    own = frame.reach[frame.player]
    left = load(frame, "legal")
    while some(left):
        a = first(left)
        left = rest(left)
        row.average[a] += own * frame.strategy[a]


@rule
def _average(
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
        _deal(state, template, beginner, block.abstraction, rng)
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
def _let_others_play(
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
def _open(state: Any, frame: Any, abstraction: Any, snapshot: Any, delta: Any) -> None:
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
def _next_action(frame: Any) -> Any:
    untried = load(frame, "untried")
    action = first(untried)
    store(frame, "untried", rest(untried))
    frame.action = action
    return action


@hot
def _add_regrets(row: Any, frame: Any, expected: Any, weight: Any) -> None:
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
