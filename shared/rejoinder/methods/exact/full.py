"""Full-tree CFR and its relatives, exactly, on a game in sequence form.

One iteration updates the players in turn. For each: the counterfactual values from the terminals
and the others' reach, then one sweep over the player's infosets from the last to the first that
adds regrets and hands values up. All four variants are one family, discounted CFR with parameters
(α, β, γ) (Brown and Sandholm, 2019): after iteration t positive regrets are multiplied by
tᵅ/(tᵅ+1), negative ones by tᵝ/(tᵝ+1), and iteration t enters the average strategy with weight tᵞ.

    cfr   (∞, ∞, 0)     keeps everything, uniform average
    cfr+  (∞, −∞, 1)    forgets negative regret, linear average
    lcfr  (1, 1, 1)     weights iteration t by t
    dcfr  (1.5, 0, 2)   the paper's recommendation

A strategy is one of policy keys. Where a game's key holds less than a player remembers, infosets
with one key share their strategy, and CFR promises nothing (so far it found equilibria all the
same); what the strategy is worth is measured against players who remember everything.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rejoinder.kernel.jit import kernel, rule
from rejoinder.kernel.masks import WORD, mask_field
from rejoinder.methods.base import Rows
from rejoinder.methods.exact.tree import Form, Tree
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.rows import without_gaps
from rejoinder.methods.tabular.policy import read_policies
from rejoinder.methods.tabular.table import InfosetTable, table_of

VARIANTS = {
    "cfr": (math.inf, math.inf, 0.0),
    "cfr+": (math.inf, -math.inf, 1.0),
    "lcfr": (1.0, 1.0, 1.0),
    "dcfr": (1.5, 0.0, 2.0),
}


def row_dtype(actions: int) -> np.dtype[Any]:
    """A decision as a solver knows it, by which the solving can go on."""
    return without_gaps(
        [
            ("key", "<u8"),  # of the policy
            mask_field("legal", actions),
            ("iterations", "<u8"),  # so far; the same in all rows
            ("weight", "<f8"),  # of those iterations in the regrets, the same in all rows
            ("regret", "<f8", (actions,)),
            ("average", "<f8", (actions,)),  # weighted sum of own reach times strategy
        ]
    )


class _Work(NamedTuple):
    """A solver's numbers; the first three are its state."""

    regret: Any  # float64[slots]
    average: Any  # float64[slots]: weighted sums of own reach times strategy
    weight: Any  # float64[1]: of all iterations in the regrets
    strategy: Any  # float64[slots]: what regret matching makes of the regrets
    reach: Any  # float64[sequences]: scratch
    value: Any  # float64[sequences]: scratch


class FullSolver:
    """CFR on a tree. `run` continues where it stopped, or where some rows say that it did."""

    def __init__(self, tree: Tree, variant: str = "cfr") -> None:
        if variant not in VARIANTS:
            raise ValueError(f"algorithm: no {variant!r}; there are {', '.join(VARIANTS)}")
        self.tree = tree
        self.iterations = 0
        self._parameters = VARIANTS[variant]
        self._layout = _Layout(tree)
        self._work = _Work(
            np.zeros(tree.slots),
            np.zeros(tree.slots),
            np.zeros(1),
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

    def rows(self) -> Rows:
        """All that is needed to go on, by policy key."""
        layout, rows = self._layout, self._layout.rows.copy()
        rows["iterations"], rows["weight"] = self.iterations, self._work.weight[0]
        for name, by_slot in (("regret", self._work.regret), ("average", self._work.average)):
            rows[name][layout.row, layout.action] = by_slot[layout.slot]
        return rows

    def restore(self, rows: Rows) -> None:
        """Go on from rows; decisions that they do not have begin anew."""
        layout, work = self._layout, self._work
        self.iterations = int(rows["iterations"].max(initial=0))
        work.weight[0] = rows["weight"].max(initial=0.0)
        mine = np.zeros(len(layout.rows), rows.dtype)
        _, here, there = np.intersect1d(
            layout.rows["key"], rows["key"], assume_unique=True, return_indices=True
        )
        mine[here] = rows[there]
        for name, by_slot in (("regret", work.regret), ("average", work.average)):
            by_slot[layout.slot] = mine[name][layout.row, layout.action]
        _match_all(self.tree.form.infosets, work, self.tree.game.players)

    @property
    def decisions(self) -> Rows:
        """The rows before the first iteration: every state has these keys and legal actions."""
        return self._layout.rows

    def policy(self) -> InfosetTable:
        """The strategies by policy key, as agents and other trees take them."""
        return table_of(policies(self.rows()))


class _Layout:
    """Where the slots of a tree's decisions are in rows; a forced move is no decision."""

    def __init__(self, tree: Tree) -> None:
        infosets = tree.form.infosets
        decisions = infosets[infosets["owns_slots"] & (infosets["actions"] > 1)]
        if len(np.unique(decisions["policy_key"])) < len(decisions):
            raise ValueError(
                f"{tree.game.name}: infosets with one key of {tree.policy.name} have "
                "different actions"
            )
        counts = decisions["actions"]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        self.row = np.repeat(np.arange(len(decisions)), counts)
        self.slot = np.repeat(decisions["slot"], counts) + within
        self.action = tree.moves[np.repeat(decisions["first"], counts) + within]
        self.rows = np.zeros(len(decisions), row_dtype(len(tree.policy.actions)))
        self.rows["key"] = decisions["policy_key"]
        words = self.rows["legal"].reshape(len(decisions), -1)
        bit = np.uint64(1) << (self.action % WORD).astype(np.uint64)
        np.bitwise_or.at(words, (self.row, self.action // WORD), bit)
        self.rows["legal"] = words.reshape(self.rows["legal"].shape)


def policies(rows: Rows) -> Rows:
    """The strategies of regret matching and the average ones."""
    made = np.zeros(len(rows), policy_dtype(rows.dtype["regret"].shape[0]))
    read_policies(rows, made)
    return made


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
def _iterate(form: Form, work: Any, parameters: Any, done: Any, iterations: Any) -> None:
    alpha, beta, gamma = parameters
    players = form.terminals.shape[1]
    for p in range(players):
        spread_reach(form.infosets, work.strategy, p, work.reach)
    for t in range(done + 1, done + iterations + 1):
        keep_positive = _discount(t, alpha)
        keep_negative = _discount(t, beta)
        weight = _power(t, gamma)
        work.weight[0] = (work.weight[0] + 1.0) * keep_positive
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
    power = _power(t, exponent)
    return power / (power + 1.0)


@rule
def _power(t: Any, exponent: Any) -> Any:
    """By products and a square root, for halves: those are the same bits on every machine."""
    whole, power = int(exponent), 1.0
    for _ in range(whole):
        power *= np.float64(t)
    return power * np.sqrt(np.float64(t)) if exponent > whole else power


@rule
def spread_reach(infosets: Any, strategy: Any, player: Any, reach: Any) -> None:
    """The probability with which `player` plays each of their sequences."""
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


@kernel
def _match_all(infosets: Any, work: Any, players: Any) -> None:
    """The strategies that belong to the regrets."""
    for p in range(players):
        _match(infosets, work, p, 1.0, 1.0)


@rule
def _match(infosets: Any, work: Any, player: Any, positive: Any, negative: Any) -> None:
    """Discount the regrets, then match them: the strategy is a function of what is kept."""
    for i in range(len(infosets)):
        infoset = infosets[i]
        # Infosets with one policy key share their slots: the first that owns them does the work.
        if infoset.player != player or not infoset.owns_slots:
            continue
        slot, n = infoset.slot, infoset.actions
        total = 0.0
        for k in range(slot, slot + n):
            work.regret[k] *= positive if work.regret[k] > 0.0 else negative
            total += max(work.regret[k], 0.0)
        for k in range(slot, slot + n):
            work.strategy[k] = max(work.regret[k], 0.0) / total if total > 0.0 else 1.0 / n
