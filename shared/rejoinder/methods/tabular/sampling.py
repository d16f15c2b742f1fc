"""External- and outcome-sampling MCCFR on any game (Lanctot et al., 2009).

One iteration walks the game once for each player. External sampling: try every action at the
walking player's infosets, sample one everywhere else, add the regrets on the way back. Outcome
sampling: sample one game, exploring at the walking player's infosets, and weight what it says by
one over the probability with which he sampled it.

The average strategy is added up where the *others* act: they are reached by their own strategy, so
a visit has the right weight by itself (divided by the walking player's sampling probability in
outcome sampling).

The walks are loops over an explicit stack: numba's cache does not survive recursive kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.games.contract import (
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
from rejoinder.kernel.jit import copy_record, kernel, lowest_bit, popcount, rule
from rejoinder.kernel.rng import TRAINING, stream, uniform
from rejoinder.methods.policies import AVERAGE, LATEST, policy_dtype
from rejoinder.methods.tabular.regret import NEGLIGIBLE, match_regrets
from rejoinder.methods.tabular.table import Table, find_or_add, new_table, table_of

EXTERNAL, OUTCOME = 0, 1
ALGORITHMS = {"es-mccfr": EXTERNAL, "os-mccfr": OUTCOME}
EXPLORATION = 0.6  # of outcome sampling, as in the original paper's experiments


class SamplingSolver:
    """MCCFR with a table for at most `infosets` infosets. `run` continues where it stopped."""

    def __init__(
        self,
        game: Game,
        rules: Rules,
        abstraction: Abstraction,
        algorithm: str,
        *,
        infosets: int,
        seed: int = 1,
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm: no {algorithm!r}; there are {', '.join(ALGORITHMS)}")
        actions = len(abstraction.actions)
        depth = game.max_decisions(rules) + 1
        self.table = new_table(_row_dtype(actions), infosets)
        self.iterations = 0
        self._algorithm = ALGORITHMS[algorithm]
        self._game, self._abstraction = game, abstraction
        self._template = game.template(rules)
        self._states = np.zeros(depth, game.dtype)
        self._frames = np.zeros(depth, _frame_dtype(actions))
        self._rng = stream(seed, 0, TRAINING)

    def run(self, iterations: int) -> None:
        _run(
            self._template,
            self.table,
            self._states,
            self._frames,
            self._rng,
            self._abstraction.number,
            self._algorithm,
            self._game.players,
            self._game.starts,
            self.iterations,
            iterations,
        )
        self.iterations += iterations

    def policy(self) -> Table:
        """The average strategy (and, as the latest one, that of regret matching)."""
        used = self.table.rows[: self.table.size[0]]
        rows = np.zeros(len(used), policy_dtype(len(self._abstraction.actions)))
        rows["key"] = used["key"]
        _read(used, rows)
        return table_of(rows)


def _row_dtype(actions: int) -> np.dtype[Any]:
    return np.dtype(
        [
            ("key", "<u8"),
            ("legal", "<u8"),  # mask of the actions of this infoset
            ("regret", "<f8", (actions,)),
            ("average", "<f8", (actions,)),  # cumulative strategy weights
        ],
        align=True,
    )


def _frame_dtype(actions: int) -> np.dtype[Any]:
    """One infoset of the walking player on the current path."""
    return np.dtype(
        [
            ("row", "<i8"),
            ("untried", "<u8"),  # mask of the actions still to be walked
            ("action", "<i8"),  # the one being walked
            ("expected", "<f8"),  # value so far under the strategy
            ("strategy", "<f8", (actions,)),
            ("value", "<f8", (actions,)),
        ],
        align=True,
    )


@kernel
def _run(
    template: Any,
    table: Any,
    states: Any,
    frames: Any,
    rng: Any,
    abstraction: Any,
    algorithm: Any,
    players: Any,
    starts: Any,
    done: Any,
    iterations: Any,
) -> None:
    for t in range(done, done + iterations):
        for player in range(players):
            copy_record(states[0], template[0])
            start(states[0], t % starts)
            resolve_chance(states[0], rng[0])
            if algorithm == EXTERNAL:
                _walk_external(states, frames, player, abstraction, table, rng[0])
            else:
                _walk_outcome(states[0], frames, player, abstraction, table, rng[0])


@rule
def _walk_external(
    states: Any, frames: Any, player: Any, abstraction: Any, table: Any, rng: Any
) -> None:
    depth = 0
    while True:
        # Down: to the player's next infoset, or to the end of the game.
        if _let_others_play(states[depth], player, abstraction, table, rng, 1.0):
            _open(states[depth], frames[depth], abstraction, table)
        else:
            value = utility(states[depth], player)
            # Up: hand the value to the frames above until one has an action left to try.
            while True:
                if depth == 0:
                    return
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
        action = lowest_bit(frame.untried)
        frame.untried &= frame.untried - np.uint64(1)
        frame.action = action
        copy_record(states[depth + 1], states[depth])
        depth += 1
        state = states[depth]
        apply(state, resolve(state, abstraction, action))
        resolve_chance(state, rng)


@rule
def _walk_outcome(
    state: Any, frames: Any, player: Any, abstraction: Any, table: Any, rng: Any
) -> None:
    depth = 0
    sampled = 1.0  # probability of the player's own sampled actions
    while _let_others_play(state, player, abstraction, table, rng, 1.0 / sampled):
        frame = frames[depth]
        _open(state, frame, abstraction, table)
        legal = frame.untried
        explored = EXPLORATION / popcount(legal)
        u = uniform(rng)
        left = legal
        frame.action = lowest_bit(legal)
        chosen = 1.0
        while left:
            a = lowest_bit(left)
            left &= left - np.uint64(1)
            p = explored + (1.0 - EXPLORATION) * frame.strategy[a]
            if u >= 0.0:
                frame.action = a
                chosen = p
            u -= p
        sampled *= chosen
        apply(state, resolve(state, abstraction, frame.action))
        resolve_chance(state, rng)
        depth += 1
    # The others and chance were sampled as they play, so only his own sampling is corrected for.
    weight = utility(state, player) / sampled
    tail = 1.0  # probability of his actions from below this infoset to the end
    while depth > 0:
        depth -= 1
        frame = frames[depth]
        row = table.rows[frame.row]
        expected = frame.strategy[frame.action] * tail
        left = row.legal
        while left:
            a = lowest_bit(left)
            left &= left - np.uint64(1)
            row.regret[a] += weight * ((tail if a == frame.action else 0.0) - expected)
        tail = expected


@rule
def _open(state: Any, frame: Any, abstraction: Any, table: Any) -> None:
    """Start a frame at an infoset of the walking player."""
    legal = legal_actions(state, abstraction)
    frame.row = find_or_add(table, infoset_key(state, abstraction))
    frame.untried = legal
    frame.expected = 0.0
    row = table.rows[frame.row]
    row.legal = legal
    match_regrets(row.regret, legal, frame.strategy)


@rule
def _let_others_play(
    state: Any, player: Any, abstraction: Any, table: Any, rng: Any, weight: Any
) -> Any:
    """Sample the others' moves until it is the player's turn (True) or the game is over (False)."""
    while True:
        mover = current_player(state)
        if mover == player:
            return True
        if mover == OVER:
            return False
        legal = legal_actions(state, abstraction)
        row = table.rows[find_or_add(table, infoset_key(state, abstraction))]
        row.legal = legal
        # Regret matching, averaging and sampling in one: this is the hottest loop there is.
        total = 0.0
        left = legal
        while left:
            a = lowest_bit(left)
            left &= left - np.uint64(1)
            total += max(row.regret[a], 0.0)
        scale = 1.0 / total if total > NEGLIGIBLE else 0.0
        even = 0.0 if total > NEGLIGIBLE else 1.0 / popcount(legal)
        u = uniform(rng)
        chosen = lowest_bit(legal)
        left = legal
        while left:
            a = lowest_bit(left)
            left &= left - np.uint64(1)
            p = max(row.regret[a], 0.0) * scale + even
            row.average[a] += weight * p
            if u >= 0.0 and p > 0.0:
                chosen = a
            u -= p
        apply(state, resolve(state, abstraction, chosen))
        resolve_chance(state, rng)


@kernel
def _read(used: Any, rows: Any) -> None:
    """Strategies from regrets and cumulative weights."""
    for r in range(len(used)):
        match_regrets(used[r].regret, used[r].legal, rows[r].policy[LATEST])
        match_regrets(used[r].average, used[r].legal, rows[r].policy[AVERAGE])
