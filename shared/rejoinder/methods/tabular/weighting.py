"""Folding sums of regrets and strategies, and how much older ones count.

    uniform      all iterations alike
    linear       unit t counts t times (Linear CFR): sums are scaled by t / (t + 1) after unit t
    discounted   Discounted CFR (Brown and Sandholm, 2019) with α = 3/2, β = 0, γ = 2: after unit t
                 positive regrets are scaled by t^α / (t^α + 1), negative ones by 1/2, strategy sums
                 by (t / (t + 1))^γ
    floor        regrets never fall below zero (regret matching+), strategies as in linear

Only rows that a delta touches are scaled, by the product of all factors since they were last
touched. Regret matching does not see a common factor, so the others need not be looked at. All
factors come from products, quotients and square roots, which are the same bits on every machine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rejoinder.kernel.jit import kernel, lowest_bit, rule
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.methods.tabular.regret import match_regrets
from rejoinder.methods.tabular.table import find_or_add, without_gaps

UNIFORM, LINEAR, DISCOUNTED, FLOOR = range(4)
WEIGHTINGS = {"uniform": UNIFORM, "linear": LINEAR, "discounted": DISCOUNTED, "floor": FLOOR}
MAX_SUM = 1e12  # of one entry; far beyond any game's stakes

_HALVINGS = 200  # after so many a negative regret counts as zero
FLOAT = "<f4"


def entry_dtype(actions: int) -> np.dtype[Any]:
    """What a unit gives for one infoset."""
    return without_gaps(
        [
            ("key", "<u8"),
            ("legal", "<u8"),
            ("visits", "<u4"),  # regrets that were added up
            ("regret", FLOAT, (actions,)),
            ("average", FLOAT, (actions,)),  # sum of weighted strategies
        ]
    )


def row_dtype(actions: int, weighting: int) -> np.dtype[Any]:
    """An infoset as the learner knows it."""
    scaled = [] if weighting == UNIFORM else [("unit", "<u4")]  # it was last scaled for
    return without_gaps(
        [
            ("key", "<u8"),
            ("legal", "<u8"),  # mask of its actions
            ("visits", "<u4"),
            *scaled,
            ("weight", FLOAT),  # visits, scaled as regrets are: what mean regrets are means over
            ("regret", FLOAT, (actions,)),
            ("average", FLOAT, (actions,)),
        ]
    )


def strategy_dtype(actions: int) -> np.dtype[Any]:
    """An infoset as an actor needs it."""
    return without_gaps([("key", "<u8"), ("strategy", FLOAT, (actions,))])


class Discounts:
    """Products of the factors t^(3/2) / (t^(3/2) + 1) of Discounted CFR, over t < n."""

    def __init__(self) -> None:
        self._products = np.ones(2)

    def up_to(self, unit: int) -> Any:
        """An array with the product for every n up to that unit."""
        while len(self._products) <= unit + 1:
            first, more = len(self._products), np.empty(len(self._products))
            product = float(self._products[-1])
            for n in range(len(more)):
                t = first + n - 1
                power = t * math.sqrt(t)
                product *= power / (power + 1.0)
                more[n] = product
            self._products = np.concatenate([self._products, more])
        return self._products


@kernel
def fold_units(
    table: Any,
    entries: Any,
    counts: Any,  # entries of each unit
    first: Any,  # units folded before
    discounts: Any,
    touched: Any,  # out: the row of each entry
) -> None:
    """Fold with weights (see `table.with_room`)."""
    e = 0
    for n in range(len(counts)):
        unit = first + n + 1
        for _ in range(counts[n]):
            entry = entries[e]
            touched[e] = find_or_add(table, entry.key)
            row = table.rows[touched[e]]
            if row.legal != 0 and row.unit < unit:
                _scale(row, unit, discounts)
            row.unit = unit
            _add(row, entry, discounts[0] == FLOOR)
            e += 1


@kernel
def fold_alike(table: Any, entries: Any, touched: Any) -> None:
    """Fold with all units alike."""
    for e in range(len(entries)):
        entry = entries[e]
        touched[e] = find_or_add(table, entry.key)
        _add(table.rows[touched[e]], entry, False)


@rule
def _add(row: Any, entry: Any, floor: Any) -> None:
    row.legal = entry.legal
    row.visits += entry.visits
    row.weight += np.float32(entry.visits)
    left = entry.legal
    while left:
        a = lowest_bit(left)
        left &= left - np.uint64(1)
        regret = np.float64(row.regret[a]) + np.float64(entry.regret[a])
        row.regret[a] = max(regret, 0.0) if floor else regret
        row.average[a] += entry.average[a]


@rule
def _scale(row: Any, unit: Any, discounts: Any) -> None:
    """Bring the sums of a row from the unit that it was last scaled for to this one."""
    share: Any = np.float64(row.unit) / np.float64(unit)  # the product of t / (t + 1)
    positive, negative, average = share, share, share
    if discounts[0] == DISCOUNTED:
        positive = discounts[1 + unit] / discounts[1 + row.unit]
        halvings = unit - row.unit
        negative = 0.0 if halvings > _HALVINGS else 1.0
        for _ in range(min(halvings, _HALVINGS)):
            negative *= 0.5
        average = share * share
    elif discounts[0] == FLOOR:
        positive, negative = 1.0, 1.0
    row.weight *= positive
    left = row.legal
    while left:
        a = lowest_bit(left)
        left &= left - np.uint64(1)
        row.regret[a] *= positive if row.regret[a] > 0.0 else negative
        row.average[a] *= average


@kernel
def first_flaw(entries: Any, actions: Any) -> Any:
    """The first entry that no unit can have given, or -1: for deltas that come from outside."""
    for e in range(len(entries)):
        entry = entries[e]
        if entry.legal == 0 or (actions < 64 and entry.legal >> np.uint64(actions)):
            return e
        for a in range(actions):
            regret, average = entry.regret[a], entry.average[a]
            if not (abs(regret) <= MAX_SUM and average >= 0.0 and average <= MAX_SUM):  # NaN too
                return e
            if not (entry.legal >> np.uint64(a)) & np.uint64(1) and (regret != 0 or average != 0):
                return e
    return -1


@kernel
def read_strategies(rows: Any, made: Any) -> None:
    """The strategies that regret matching makes of rows."""
    strategy = np.zeros(rows[0].regret.shape[0])
    for r in range(len(rows)):
        made[r].key = rows[r].key
        match_regrets(rows[r].regret, rows[r].legal, strategy)
        _copy_legal(strategy, rows[r].legal, made[r].strategy)


@kernel
def read_policies(rows: Any, made: Any) -> None:
    """The same beside the average strategies."""
    for r in range(len(rows)):
        made[r].key = rows[r].key
        match_regrets(rows[r].regret, rows[r].legal, made[r].policy[LATEST])
        match_regrets(rows[r].average, rows[r].legal, made[r].policy[AVERAGE])


@rule
def _copy_legal(source: Any, legal: Any, target: Any) -> None:
    for a in range(len(target)):
        target[a] = source[a] if (legal >> np.uint64(a)) & np.uint64(1) else 0.0
