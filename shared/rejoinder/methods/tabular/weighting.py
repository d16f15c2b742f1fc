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

from rejoinder.kernel.jit import kernel, rule
from rejoinder.kernel.masks import (
    first,
    has,
    load,
    mask_field,
    rest,
    some,
    store,
    within,
)
from rejoinder.methods.rows import without_gaps
from rejoinder.methods.tabular.regret import match_regrets
from rejoinder.methods.tabular.table import find_or_add

UNIFORM, LINEAR, DISCOUNTED, FLOOR = range(4)
WEIGHTINGS = {"uniform": UNIFORM, "linear": LINEAR, "discounted": DISCOUNTED, "floor": FLOOR}
# Of one entry: a unit has 10⁶ iterations at most, each weighs 10⁶ at most (`outcome.MIN_SAMPLED`)
# and meets an infoset a thousand times, for stakes of a thousand. 2³¹ units of it are finite, too.
MAX_SUM = 1e18
MAX_COUNT = 2**32 - 1  # visits beyond that are not counted

_HALVINGS = 200  # after so many a negative regret counts as zero
_AHEAD = 256  # entries whose rows are found at once
FLOAT = "<f4"


def entry_dtype(actions: int) -> np.dtype[Any]:
    """What a unit gives for one infoset."""
    return without_gaps(
        [
            ("key", "<u8"),
            mask_field("legal", actions),
            ("visits", "<u4"),  # regrets that were added up
            ("regret", FLOAT, (actions,)),
            ("average", FLOAT, (actions,)),  # sum of weighted strategies
        ]
    )


def row_dtype(actions: int, weighting: int) -> np.dtype[Any]:
    """An infoset as the learner knows it."""
    scaled = [
        ("unit", "<u4"),  # it was last scaled for, counted through all runs from the first on
        ("before", "<u4"),  # units behind the start of this run; the same in all rows
    ]
    return without_gaps(
        [
            ("key", "<u8"),
            mask_field("legal", actions),  # mask of its actions
            ("visits", "<u4"),
            *([] if weighting == UNIFORM else scaled),
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
    first: Any,  # units of this run that were folded before
    before: Any,  # units behind its start
    weighting: Any,
    discounts: Any,  # the products of `Discounts` (DISCOUNTED)
    touched: Any,  # out: the row of each entry
) -> None:
    """Fold with weights (see `table.with_room`)."""
    e = 0
    found = 0  # entries whose rows are known
    for n in range(len(counts)):
        unit = before + first + n + 1
        for _ in range(counts[n]):
            if e == found:
                found = _find_some(table, entries, found, touched)
            entry = entries[e]
            row = table.rows[touched[e]]
            if some(load(row, "legal")) and row.unit < unit:
                _scale(row, unit, weighting, discounts)
            row.unit, row.before = unit, before
            _add(row, entry, weighting == FLOOR)
            e += 1


@kernel
def fold_alike(table: Any, entries: Any, touched: Any) -> None:
    """Fold with all units alike."""
    found = 0
    for e in range(len(entries)):
        if e == found:
            found = _find_some(table, entries, found, touched)
        _add(table.rows[touched[e]], entries[e], False)


@rule
def _find_some(table: Any, entries: Any, first: Any, touched: Any) -> Any:
    """Find the rows of the next entries; returns the number of the one after them.

    Rows of a big table are in no cache: a short loop waits for many of them at once.
    """
    end = min(first + _AHEAD, len(entries))
    for e in range(first, end):
        touched[e] = find_or_add(table, entries[e].key)
    return end


@rule
def _add(row: Any, entry: Any, floor: Any) -> None:
    if not some(load(row, "legal")):
        store(row, "legal", load(entry, "legal"))
    legal = load(row, "legal")  # those of an entry that lies about them are not
    row.visits = min(np.int64(row.visits) + np.int64(entry.visits), MAX_COUNT)
    row.weight += np.float32(entry.visits)
    left = legal
    while some(left):
        a = first(left)
        left = rest(left)
        regret = np.float64(row.regret[a]) + np.float64(entry.regret[a])
        row.regret[a] = max(regret, 0.0) if floor else regret
        row.average[a] += entry.average[a]


@rule
def _scale(row: Any, unit: Any, weighting: Any, discounts: Any) -> None:
    """Bring the sums of a row from the unit that it was last scaled for to this one."""
    share: Any = np.float64(row.unit) / np.float64(unit)  # the product of t / (t + 1)
    positive, negative, average = share, share, share
    if weighting == DISCOUNTED:
        positive = discounts[unit] / discounts[row.unit]
        halvings: Any = np.int64(unit - row.unit)
        negative = 0.0 if halvings > _HALVINGS else math.ldexp(1.0, -halvings)
        average = share * share
    elif weighting == FLOOR:
        positive, negative = 1.0, 1.0
    row.weight *= positive
    left = load(row, "legal")
    while some(left):
        a = first(left)
        left = rest(left)
        row.regret[a] *= positive if row.regret[a] > 0.0 else negative
        row.average[a] *= average


@kernel
def first_flaw(entries: Any, actions: Any, most: Any) -> Any:
    """The first entry or row with impossible sums, or -1: for what comes from outside."""
    for e in range(len(entries)):
        entry = entries[e]
        legal = load(entry, "legal")
        if not some(legal) or not within(legal, actions):
            return e
        for a in range(actions):
            regret, average = entry.regret[a], entry.average[a]
            if not (abs(regret) <= most and average >= 0.0 and average <= most):  # NaN too
                return e
            if not has(legal, a) and (regret != 0 or average != 0):
                return e
            if regret != 0 and entry.visits == 0:
                return e
    return -1


@kernel
def read_strategies(rows: Any, index: Any, made: Any) -> None:
    """The strategies that regret matching makes of the rows with these numbers."""
    if len(index) == 0:
        return
    strategy = np.zeros(rows[0].regret.shape[0])
    for n in range(len(index)):
        row = rows[index[n]]
        made[n].key = row.key
        legal = load(row, "legal")
        match_regrets(row.regret, legal, strategy)
        _copy_legal(strategy, legal, made[n].strategy)


@rule
def _copy_legal(source: Any, legal: Any, target: Any) -> None:
    for a in range(len(target)):
        target[a] = source[a] if has(legal, a) else 0.0
