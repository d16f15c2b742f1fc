"""Policies as players go by them: rows of a table, looked up by infoset key.

A `PolicyLookup` is a policy and, where that knows nothing, another one to fall back on. The
fallback is a finished policy, so its average column is what counts, whoever asks.

A row holds its probabilities (`policy`), or the sums that they are made of (`regret`, `average`);
compiled code chooses by the fields of the row's type. So a player can go by the learner's rows as
they are, mapped from a file, and no second table is made of them. The probabilities of both forms
are the same bits. Rollouts in training have rows of probabilities and go by `sample_lookup` and
`read_lookup`, which read no others: with `policy_of` they were up to 5 % slower.
"""
# ruff: noqa: ARG001 (numba fixes the signatures of what it chooses from)

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils as numba_cgutils
from numba.core import types as numba_types
from numba.extending import models, overload, register_model

from rejoinder.games.contract import infoset_key, random_action
from rejoinder.kernel.jit import RULE_OPTIONS, hot, intrinsic, kernel, rule
from rejoinder.kernel.masks import count, first, has, load, rest, some
from rejoinder.kernel.rng import uniform
from rejoinder.methods.policies import AVERAGE, LATEST, policy_dtype
from rejoinder.methods.tabular.regret import match_regrets, scale_regrets
from rejoinder.methods.tabular.table import EMPTY, InfosetTable, find

_OPTIONS: Any = RULE_OPTIONS
cgutils: Any = numba_cgutils
types: Any = numba_types


class PolicyLookup(NamedTuple):
    """What a player goes by."""

    policy: Any  # InfosetTable whose rows have probabilities, or regrets and averages
    abstraction: Any
    fallback: Any  # the same actions
    fallback_abstraction: Any


@hot
def sample_lookup(state: Any, lookup: Any, column: Any, legal: Any, rng: Any) -> Any:
    """An action by the lookup; uniformly where it does not know the infoset."""
    row = find(lookup.policy, infoset_key(state, lookup.abstraction))
    if row != EMPTY:
        return draw(lookup.policy.rows[row].policy[column], legal, uniform(rng))
    row = find(lookup.fallback, infoset_key(state, lookup.fallback_abstraction))
    if row != EMPTY:
        return draw(lookup.fallback.rows[row].policy[AVERAGE], legal, uniform(rng))
    return random_action(legal, rng)


@rule
def read_lookup(state: Any, lookup: Any, column: Any, legal: Any, strategy: Any) -> Any:
    """Write the lookup's probability of every action; returns whether its own policy knew them."""
    row = find(lookup.policy, infoset_key(state, lookup.abstraction))
    fallback = find(lookup.fallback, infoset_key(state, lookup.fallback_abstraction))
    for a in range(len(strategy)):
        if not has(legal, a):
            strategy[a] = 0.0
        elif row != EMPTY:
            strategy[a] = lookup.policy.rows[row].policy[column, a]
        elif fallback != EMPTY:
            strategy[a] = lookup.fallback.rows[fallback].policy[AVERAGE, a]
        else:
            strategy[a] = 1.0 / count(legal)
    return row != EMPTY


@hot
def sample_rows(state: Any, lookup: Any, column: Any, legal: Any, rng: Any) -> Any:
    """`sample_lookup` with rows of either form."""
    row = find(lookup.policy, infoset_key(state, lookup.abstraction))
    if row != EMPTY:
        return draw(policy_of(lookup.policy.rows[row])[column], legal, uniform(rng))
    row = find(lookup.fallback, infoset_key(state, lookup.fallback_abstraction))
    if row != EMPTY:
        return draw(policy_of(lookup.fallback.rows[row])[AVERAGE], legal, uniform(rng))
    return random_action(legal, rng)


def with_probabilities(lookup: PolicyLookup) -> PolicyLookup:
    """The lookup as `sample_lookup` takes it: rows of sums are made into rows of probabilities."""
    policy = _probabilities(lookup.policy)
    fallback = policy if lookup.fallback is lookup.policy else _probabilities(lookup.fallback)
    return lookup._replace(policy=policy, fallback=fallback)


def _probabilities(table: InfosetTable) -> InfosetTable:
    if "policy" in table.rows.dtype.names:
        return table
    rows = np.zeros(len(table.rows), policy_dtype(table.rows.dtype["regret"].shape[0]))
    read_policies(table.rows[: table.size[0]], rows)
    return table._replace(rows=rows)


@kernel
def read_policies(rows: Any, made: Any) -> None:
    """The latest and average strategies that rows of sums stand for."""
    for r in range(len(rows)):
        made[r].key = rows[r].key
        legal = load(rows[r], "legal")
        match_regrets(rows[r].regret, legal, made[r].policy[LATEST])
        match_regrets(rows[r].average, legal, made[r].policy[AVERAGE])


@rule
def read_rows(state: Any, lookup: Any, column: Any, legal: Any, strategy: Any) -> Any:
    """`read_lookup` with rows of either form."""
    row = find(lookup.policy, infoset_key(state, lookup.abstraction))
    if row != EMPTY:
        _copy(policy_of(lookup.policy.rows[row])[column], legal, strategy)
        return True
    fallback = find(lookup.fallback, infoset_key(state, lookup.fallback_abstraction))
    if fallback != EMPTY:
        _copy(policy_of(lookup.fallback.rows[fallback])[AVERAGE], legal, strategy)
        return False
    for a in range(len(strategy)):
        strategy[a] = 1.0 / count(legal) if has(legal, a) else 0.0
    return False


@rule
def _copy(weights: Any, legal: Any, strategy: Any) -> None:
    for a in range(len(strategy)):
        strategy[a] = weights[a] if has(legal, a) else 0.0


@hot
def draw(weights: Any, legal: Any, u: Any) -> Any:
    """The legal action at `u` on the line of weights laid end to end, for u in [0, their sum)."""
    chosen = first(legal)
    left = legal
    while some(left):
        a = first(left)
        left = rest(left)
        if u >= 0.0 and weights[a] > 0.0:
            chosen = a
        u -= weights[a]
    return chosen


@intrinsic
def policy_of(typingctx: Any, row: Any) -> Any:
    """The policy of a row, `policy_of(row)[column][a]`: the field of that name, or made of sums.

    The field is read by the instructions of `row.policy`.
    """
    if "policy" in row.fields:

        def field(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.get_getattr(row, "policy")(context, builder, row, args[0], "policy")

        return row.typeof("policy")(row), field

    def wrap(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        made.row = args[0]
        return made._getvalue()

    return _Sums(row)(row), wrap


class _Sums(types.Type):  # type: ignore[misc]
    """The `regret` and `average` of a row."""

    def __init__(self, row: Any) -> None:
        self.row = row
        super().__init__(name=f"Sums({row})")


class _Strategy(types.Type):  # type: ignore[misc]
    """One of them, and what makes probabilities of it."""

    def __init__(self, row: Any) -> None:
        self.row = row
        super().__init__(name=f"Strategy({row})")


@register_model(_Sums)
class _SumsModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("row", types.CPointer(kind.row))]
        super().__init__(manager, kind, members)  # type: ignore[no-untyped-call]


@register_model(_Strategy)
class _StrategyModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        scale = types.UniTuple(types.float64, 2)  # see `scale_regrets`
        members = [("row", types.CPointer(kind.row)), ("column", types.int64), ("scale", scale)]
        super().__init__(manager, kind, members)  # type: ignore[no-untyped-call]


@overload(operator.getitem, jit_options=_OPTIONS)
def _item(value: Any, index: Any) -> Any:
    def strategy(value: Any, index: Any) -> Any:
        return _strategy(value, index)

    def probability(value: Any, index: Any) -> Any:
        return _probability(value, index)

    if isinstance(value, _Sums):
        return strategy
    return probability if isinstance(value, _Strategy) else None


@intrinsic
def _strategy(typingctx: Any, sums: Any, column: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        made.row = cgutils.create_struct_proxy(sums)(context, builder, value=args[0]).row
        made.column = args[1]
        scale = types.UniTuple(types.float64, 2)(sums.row, types.int64)
        function: Any = _scale
        values = (made.row, made.column)
        made.scale = context.compile_internal(builder, function.py_func, scale, values)
        return made._getvalue()

    return _Strategy(sums.row)(sums, types.int64), codegen


@rule
def _scale(row: Any, column: Any) -> Any:
    if column == LATEST:
        return scale_regrets(row.regret, load(row, "legal"))
    return scale_regrets(row.average, load(row, "legal"))


@intrinsic
def _probability(typingctx: Any, strategy: Any, a: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = cgutils.create_struct_proxy(strategy)(context, builder, value=args[0])
        values = (parts.row, parts.column, parts.scale, args[1])
        scale = types.UniTuple(types.float64, 2)
        called = types.float64(strategy.row, types.int64, scale, types.int64)
        function: Any = _scaled
        return context.compile_internal(builder, function.py_func, called, values)

    return types.float64(strategy, types.int64), codegen


@rule
def _scaled(row: Any, column: Any, scale: Any, a: Any) -> Any:
    weight = row.regret[a] if column == LATEST else row.average[a]
    return max(weight, 0.0) * scale[0] + scale[1]


policy_of._defn.choices = (_item,)  # type: ignore[attr-defined]
