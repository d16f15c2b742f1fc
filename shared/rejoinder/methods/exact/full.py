"""Full-tree CFR and its relatives, exactly, on a game in sequence form.

One iteration updates the players in turn. For each: his counterfactual values from the terminals
and the others' reach, then one sweep over his infosets from the last to the first that adds regrets
and hands values up. All four variants are one family, discounted CFR with parameters (α, β, γ)
(Brown and Sandholm, 2019): after iteration t positive regrets are multiplied by tᵅ/(tᵅ+1), negative
ones by tᵝ/(tᵝ+1), and iteration t enters the average strategy with weight tᵞ.

    cfr   (∞, ∞, 0)     keeps everything, uniform average
    cfr+  (∞, −∞, 1)    forgets negative regret, linear average
    lcfr  (1, 1, 1)     weights iteration t by t
    dcfr  (1.5, 0, 2)   the paper's recommendation
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rejoinder.kernel.jit import kernel, rule
from rejoinder.methods.exact.tree import Form, Tree
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.table import Table, table_of

VARIANTS = {
    "cfr": (math.inf, math.inf, 0.0),
    "cfr+": (math.inf, -math.inf, 1.0),
    "lcfr": (1.0, 1.0, 1.0),
    "dcfr": (1.5, 0.0, 2.0),
}


class _Work(NamedTuple):
    """A solver's numbers; the first three are its state."""

    regret: Any  # float64[slots]
    average: Any  # float64[slots]: weighted sums of own reach times strategy
    strategy: Any  # float64[slots]: current
    reach: Any  # float64[sequences]: scratch
    value: Any  # float64[sequences]: scratch


class FullSolver:
    """CFR on a tree. `run` continues where it stopped."""

    def __init__(self, tree: Tree, variant: str = "cfr") -> None:
        if variant not in VARIANTS:
            raise ValueError(f"algorithm: no {variant!r}; there are {', '.join(VARIANTS)}")
        self.tree = tree
        self.iterations = 0
        self._parameters = VARIANTS[variant]
        self._work = _Work(
            np.zeros(tree.slots),
            np.zeros(tree.slots),
            uniform_strategy(tree),
            np.zeros(tree.sequences),
            np.zeros(tree.sequences),
        )

    def run(self, iterations: int) -> None:
        form, work = self.tree.form, self._work
        _iterate(form, work, self._parameters, self.iterations, iterations)
        self.iterations += iterations

    def average_strategy(self) -> Any:
        """By slot; uniform where an infoset was never reached."""
        return normalised(self.tree, self._work.average)

    def policy(self) -> Table:
        """The average strategy by policy key, as agents and other trees take it."""
        owners = self.tree.form.infosets[self.tree.form.infosets["owns_slots"]]
        if len(np.unique(owners["policy_key"])) < len(owners):
            raise ValueError(
                f"{self.tree.game.name}: this strategy uses more memory than a policy key holds"
            )
        rows = np.zeros(len(owners), policy_dtype(len(self.tree.policy.actions)))
        rows["key"] = owners["policy_key"]
        _read(owners, self.tree.moves, self.average_strategy(), rows)
        return table_of(rows)


def uniform_strategy(tree: Tree) -> Any:
    return normalised(tree, np.zeros(tree.slots))


def normalised(tree: Tree, weights: Any) -> Any:
    """A strategy by slot in proportion to weights by slot."""
    strategy = np.zeros(tree.slots)
    _normalise(tree.form.infosets, weights, strategy)
    return strategy


@kernel
def _normalise(infosets: Any, weights: Any, strategy: Any) -> None:
    for i in range(len(infosets)):
        slot, n = infosets[i].slot, infosets[i].actions
        total = 0.0
        for k in range(slot, slot + n):
            total += weights[k]
        for k in range(slot, slot + n):
            strategy[k] = weights[k] / total if total > 0.0 else 1.0 / n


@kernel
def _read(owners: Any, moves: Any, strategy: Any, rows: Any) -> None:
    for i in range(len(owners)):
        for k in range(owners[i].actions):
            p = strategy[owners[i].slot + k]
            for column in range(2):
                rows[i].policy[column, moves[owners[i].first + k]] = p


@kernel
def _iterate(form: Form, work: Any, parameters: Any, done: Any, iterations: Any) -> None:
    alpha, beta, gamma = parameters
    players = form.terminals.shape[1]
    for p in range(players):
        spread_reach(form.infosets, work.strategy, p, work.reach)
    for t in range(done + 1, done + iterations + 1):
        keep_positive = _discount(t, alpha)
        keep_negative = _discount(t, beta)
        weight = np.float64(t) ** gamma
        for p in range(players):
            terminal_values(form, work.reach, p, work.value)
            _add_regrets(form.infosets, work, p)
            _match(form.infosets, work, p, keep_positive, keep_negative)
            spread_reach(form.infosets, work.strategy, p, work.reach)
            _add_strategy(form.infosets, work, p, weight)


@rule
def _discount(t: Any, exponent: Any) -> Any:
    if exponent == np.inf:
        return 1.0
    if exponent == -np.inf:
        return 0.0
    power = np.float64(t) ** exponent
    return power / (power + 1.0)


@rule
def spread_reach(infosets: Any, strategy: Any, player: Any, reach: Any) -> None:
    """The probability with which `player` plays each of his sequences."""
    reach[player] = 1.0
    for i in range(len(infosets)):
        infoset = infosets[i]
        if infoset.player == player:
            own = reach[infoset.parent]
            for k in range(infoset.actions):
                reach[infoset.first + k] = own * strategy[infoset.slot + k]


@rule
def terminal_values(form: Any, reach: Any, player: Any, value: Any) -> None:
    """What each of the player's sequences earns where the game ends, against the others' reach."""
    value[:] = 0.0
    terminals, utilities = form.terminals, form.utilities
    players = terminals.shape[1]
    if players == 2:
        for z in range(len(terminals)):
            value[terminals[z, player]] += utilities[z, player] * reach[terminals[z, 1 - player]]
    else:
        for z in range(len(terminals)):
            worth = utilities[z, player]
            for other in range(players):
                if other != player:
                    worth *= reach[terminals[z, other]]
            value[terminals[z, player]] += worth


@rule
def _add_regrets(infosets: Any, work: Any, player: Any) -> None:
    """Children come after parents, so go backwards and hand values up."""
    value = work.value
    for i in range(len(infosets) - 1, -1, -1):
        infoset = infosets[i]
        if infoset.player == player:
            first, slot, n = infoset.first, infoset.slot, infoset.actions
            expected = 0.0
            for k in range(n):
                expected += work.strategy[slot + k] * value[first + k]
            for k in range(n):
                work.regret[slot + k] += value[first + k] - expected
            value[infoset.parent] += expected


@rule
def _add_strategy(infosets: Any, work: Any, player: Any, weight: Any) -> None:
    """The new strategy enters the average, so the arbitrary first one never does."""
    for i in range(len(infosets)):
        infoset = infosets[i]
        if infoset.player == player:
            for k in range(infoset.actions):
                work.average[infoset.slot + k] += weight * work.reach[infoset.first + k]


@rule
def _match(infosets: Any, work: Any, player: Any, positive: Any, negative: Any) -> None:
    """Regret matching, then the discount (a common factor does not change the strategy)."""
    for i in range(len(infosets)):
        infoset = infosets[i]
        # Infosets with one policy key share their slots: the first that owns them does the work.
        if infoset.player != player or not infoset.owns_slots:
            continue
        slot, n = infoset.slot, infoset.actions
        total = 0.0
        for k in range(slot, slot + n):
            total += max(work.regret[k], 0.0)
        for k in range(slot, slot + n):
            regret = work.regret[k]
            work.strategy[k] = max(regret, 0.0) / total if total > 0.0 else 1.0 / n
            work.regret[k] = regret * (positive if regret > 0.0 else negative)
