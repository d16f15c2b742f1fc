"""The method `full`: CFR on the whole tree, exactly (see `full`), as training by units.

A unit is some iterations that go on from the snapshot, which is the whole state of the solver; its
delta is the state after them, and folding it replaces the state. So every unit needs the one before
it (`requires`: a snapshot after each unit, and none behind the newest): one worker is at work at a
time. The state after n iterations does not depend on how they are cut into units.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import Field

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.kernel.jit import kernel
from rejoinder.kernel.masks import mask_table
from rejoinder.methods.base import Delta, Method, Rows, Settings, Task, Work
from rejoinder.methods.exact.full import VARIANTS, FullSolver, policies, row_dtype
from rejoinder.methods.exact.tree import Tree, build_tree, why_not_enumerable
from rejoinder.methods.learned import learned_rows
from rejoinder.methods.rows import opaque
from rejoinder.methods.tabular.model import TableModel, TableSnapshot
from rejoinder.methods.tabular.table import find_or_add, index_of

MAX_ENTRIES = 2**22  # of one unit
MAX_ITERATIONS = 2**53  # those of the runs before it, too; the kernels count in floats


class FullSettings(Settings):
    name: Literal["full"] = "full"
    """The method."""
    algorithm: Literal["cfr", "cfr+", "lcfr", "dcfr"] = "dcfr"
    """Which of the family: plain CFR, CFR+, linear or discounted CFR."""
    iterations: int = Field(100, ge=1, le=1_000_000)
    """Iterations in a unit."""

    @property
    def block(self) -> int:
        return self.iterations

    def meaning_of_rows(self) -> dict[str, Any]:
        return {"name": self.name, "algorithm": self.algorithm}


class FullActor:
    """Goes on with the solving of one task."""

    def __init__(self, task: Task) -> None:
        self._solver = _solver(task)
        self._iterations = task.settings.iterations

    def play(self, unit: int, snapshot: TableSnapshot) -> Delta:  # noqa: ARG002
        """The state of the solver after the snapshot's and a unit more."""
        self._solver.restore(snapshot.rows)
        self._solver.run(self._iterations)
        return self._solver.rows()


def _solver(task: Task) -> FullSolver:
    return FullSolver(_tree(task.game, task.rules, task.abstraction), task.settings.algorithm)


@lru_cache(maxsize=2)
def _tree(game: Game, rules: Rules, abstraction: Abstraction) -> Tree:
    return build_tree(game, rules, abstraction)


def _model(task: Task, rows: Rows | None) -> TableModel:
    def replace(table: Any, entries: Any, _: int, __: list[int], touched: Any) -> None:
        _find(table, entries, touched)
        table.rows[touched] = entries

    def gather(rows: Rows, index: Any) -> Rows:
        return opaque(rows)[index].view(rows.dtype)  # type: ignore[no-any-return]

    def flaw(rows: Rows, delta: Delta) -> str | None:
        due = int(rows["iterations"].max(initial=0)) + task.settings.iterations
        return None if (delta["iterations"] == due).all() else f"it is not of iteration {due}"

    return TableModel(row_dtype(task.actions), replace, gather, rows, flaw=flaw)


@kernel
def _find(table: Any, entries: Any, touched: Any) -> None:
    for e in range(len(entries)):
        touched[e] = find_or_add(table, entries[e].key)


class FullDeltaCheck:
    """A delta is a state of the game's tree; that is enumerated when the first one comes."""

    def __init__(self, task: Task) -> None:
        self._task = task

    @cached_property
    def _decisions(self) -> Rows:
        return _solver(self._task).decisions

    def __call__(self, delta: Rows) -> str | None:
        expected = self._decisions
        if len(delta) != len(expected) or (delta["key"] != expected["key"]).any():
            return f"its keys are not those of the game's {len(expected)} decisions"
        if (delta["legal"] != expected["legal"]).any():
            return "its legal actions are not the game's"
        return _check_rows(self._task, delta)


def _check_rows(task: Task, rows: Rows) -> str | None:
    """Why no solver can have been in this state."""
    legal = mask_table(rows["legal"], task.actions)
    sums = np.stack([rows["regret"], rows["average"]])
    if not np.isfinite(sums).all() or not np.isfinite(rows["weight"]).all():
        return "regrets, averages and weights must be finite"
    if (rows["average"] < 0).any() or (rows["weight"] < 0).any():
        return "averages and weights must not be negative"
    actions, bits = legal.sum(axis=1), np.bitwise_count(rows["legal"])
    if (actions < 2).any() or bits.sum() > actions.sum():
        return "a decision has at least two of the game's actions"
    if (sums[:, ~legal] != 0).any():
        return "an action that is not legal has no regret and no average"
    if (rows["iterations"] > MAX_ITERATIONS).any():
        return f"a run has at most {MAX_ITERATIONS} iterations"
    if len(np.unique(rows["iterations"])) > 1 or len(np.unique(rows["weight"])) > 1:
        return "all rows must be of one iteration"
    return None


def _learned(rows: Rows) -> Rows:
    """Regrets have the others' reach in them already, so here all infosets weigh the same."""
    policy = policies(rows)["policy"]
    return learned_rows(rows, updates=rows["iterations"], reach=1.0, policy=policy)


def _decisions(delta: Rows) -> Rows:
    """Every decision; the regrets are the sums after the unit, since that is what a delta has."""
    actions = delta.dtype["regret"].shape[0]
    made = np.zeros(len(delta), [("key", "<u8"), ("reach", "<f8"), ("regret", "<f8", (actions,))])
    made["key"], made["reach"], made["regret"] = delta["key"], 1.0, delta["regret"]
    return made


def _work(task: Task, entries: Rows) -> Work:
    legal = mask_table(entries["legal"], task.actions)
    return Work(responses=int(task.in_responses(legal).sum()))


FULL = Method(
    name="full",
    settings=FullSettings,
    code=(FullActor, _model, TableSnapshot),
    counts="iterations",
    delta_dtype=lambda task: row_dtype(task.actions),
    state_dtype=lambda task: row_dtype(task.actions),
    snapshot_dtype=lambda task: row_dtype(task.actions),
    most_entries=lambda _: MAX_ENTRIES,
    check_task=lambda task: why_not_enumerable(task.game, task.rules),
    delta_check=FullDeltaCheck,
    check_snapshot=_check_rows,
    actor=FullActor,
    model=_model,
    snapshot=lambda task: TableSnapshot(row_dtype(task.actions)),
    snapshot_rows=lambda _, rows: rows.copy(),
    policy_dtype=lambda task: row_dtype(task.actions),
    check_policies=_check_rows,
    policy_rows=lambda _, rows: rows,
    policy_snapshot=lambda task: TableSnapshot(row_dtype(task.actions)),
    policy=lambda _, rows: index_of(rows),
    learned=lambda _, rows: _learned(rows),
    work=lambda task, entries, _: _work(task, entries),
    decisions=_decisions,
    requires={"batch": 1, "lag": 0},
    solvers={name: {"algorithm": name} for name in VARIANTS},
    quick=lambda settings: settings.model_copy(update={"iterations": 1}),
)
