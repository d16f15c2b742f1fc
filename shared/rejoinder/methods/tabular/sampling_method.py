"""The methods `external`, `outcome` and `chance`: sampled CFR in blocks.

The modules of their names have the algorithms, `walks` what these have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from rejoinder.kernel.masks import mask_table
from rejoinder.kernel.rng import STREAM
from rejoinder.methods.base import Delta, Method, Rows, Settings, Task, Work
from rejoinder.methods.learned import learned_rows
from rejoinder.methods.policies import check_keys, policy_dtype
from rejoinder.methods.rows import opaque
from rejoinder.methods.tabular.chance import play_chance
from rejoinder.methods.tabular.external import play_external
from rejoinder.methods.tabular.model import TableModel, TableSnapshot, table_policy
from rejoinder.methods.tabular.outcome import play_outcome
from rejoinder.methods.tabular.policy import read_policies
from rejoinder.methods.tabular.table import EMPTY, drawn_again, is_crowded, new_table
from rejoinder.methods.tabular.walks import Block, Scratch, frame_dtype, round_sums, sums_dtype
from rejoinder.methods.tabular.weighting import (
    DISCOUNTED,
    FLOAT,
    MAX_COUNT,
    MAX_SUM,
    UNIFORM,
    WEIGHTINGS,
    Discounts,
    entry_dtype,
    first_flaw,
    fold_alike,
    fold_units,
    read_strategies,
    row_dtype,
    strategy_dtype,
)

Kernel = Callable[..., None]

MAX_ENTRIES = 2**22  # of one unit
MAX_UNITS = 2**31 - 1  # of one run; rows count those of the runs before it, too
_FIRST_ENTRIES = 1024  # room in a new delta; it grows by itself


class SamplingSettings(Settings):
    """What all three have."""

    iterations: int = Field(100, ge=1, le=1_000_000)
    """Iterations in a unit: played with one snapshot and merged before they travel."""
    weighting: Literal["uniform", "linear", "discounted", "floor"] = "discounted"
    """How much the regrets and strategies of older units count."""

    @property
    def block(self) -> int:
        return self.iterations

    def meaning_of_rows(self) -> dict[str, Any]:
        return {"name": self.name, "weighting": self.weighting}


class ExternalSettings(SamplingSettings):
    name: Literal["external"] = "external"
    """The method."""


class OutcomeSettings(SamplingSettings):
    name: Literal["outcome"] = "outcome"
    """The method."""
    exploration: float = Field(0.6, gt=0, le=1, allow_inf_nan=False)
    """Share of the walking player's moves that are uniformly random."""


class ChanceSettings(SamplingSettings):
    name: Literal["chance"] = "chance"
    """The method."""


class BlockActor:
    """Plays the blocks of one task."""

    def __init__(self, task: Task, play_block: Kernel) -> None:
        self._play_block = play_block
        depth = task.game.max_decisions(task.rules) + 3
        self._template = task.game.template(task.rules)
        self._scratch = Scratch(
            np.zeros(depth, task.game.dtype),
            np.zeros(depth, STREAM),
            np.zeros(depth, frame_dtype(task.actions, task.game.players)),
        )
        self._seed = task.seed
        self._block = Block(
            task.settings.iterations,
            task.game.players,
            task.game.starts,
            task.abstraction.argument(),
            getattr(task.settings, "exploration", 0.0),
        )
        self._delta = new_table(sums_dtype(task.actions), _FIRST_ENTRIES)
        self._emptied = 0
        self._entry_dtype = entry_dtype(task.actions)

    def play(self, unit: int, snapshot: TableSnapshot) -> Delta:
        """The delta of a unit; valid until the next call."""
        while True:
            self._empty_delta()
            try:
                self._play_block(
                    self._template,
                    snapshot.table,
                    self._scratch,
                    self._seed,
                    unit,
                    self._block,
                    self._delta,
                )
            except MemoryError:  # a unit can be played again from its beginning
                room = 2 * len(self._delta.rows)
                if room > MAX_ENTRIES:
                    raise ValueError(
                        f"unit {unit} meets more than {MAX_ENTRIES:,} infosets: "
                        "give units fewer iterations"
                    ) from None
                self._delta = new_table(self._delta.rows.dtype, room)
            else:
                sums = self._delta.rows[: self._delta.size[0]]
                made: Delta = np.zeros(len(sums), self._entry_dtype)
                round_sums(sums, made)
                return made

    def _empty_delta(self) -> None:
        now = self._emptied & (self._emptied - 1) == 0  # units meet much the same keys
        crowded = now and is_crowded(self._delta)
        self._emptied += 1
        used = self._delta.rows[: self._delta.size[0]]
        used.view(np.uint8).fill(0)
        if crowded:
            self._delta = drawn_again(self._delta)
        else:
            self._delta.slots.fill(EMPTY)
            self._delta.size[0] = 0


def _model(task: Task, rows: Rows | None) -> TableModel:
    weighting = WEIGHTINGS[task.settings.weighting]
    weighted = weighting != UNIFORM
    before = int(rows["before"].max(initial=0)) if weighted and rows is not None else 0
    made = Discounts()

    def fold(table: Any, entries: Any, first: int, counts: list[int], touched: Any) -> None:
        if not weighted:
            fold_alike(table, entries, touched)
            return
        last = before + first + len(counts)
        discounts = made.up_to(last) if weighting == DISCOUNTED else np.empty(0)
        each = np.array(counts, np.int64)
        fold_units(table, entries, each, first, before, weighting, discounts, touched)

    return TableModel(_state_dtype(task), fold, _strategies, rows, task.dense)


def _as_start(task: Task, rows: Rows) -> Rows:
    """Rows of a run as another begins with them: its units follow the last that they know of."""
    if WEIGHTINGS[task.settings.weighting] == UNIFORM or len(rows) == 0:
        return rows
    made: Rows = opaque(rows).copy().view(rows.dtype)
    before = int(rows["unit"].max())
    if before > MAX_COUNT - MAX_UNITS:
        raise ValueError(f"{before:,} units behind it are too many for a run to start from")
    made["before"] = before
    return made


def _state_dtype(task: Task) -> np.dtype[Any]:
    return row_dtype(task.actions, WEIGHTINGS[task.settings.weighting])


def _strategies(rows: Rows, index: Any = None) -> Rows:
    index = np.arange(len(rows)) if index is None else index
    made = np.zeros(len(index), strategy_dtype(rows.dtype["regret"].shape[0]))
    read_strategies(rows, index, made)
    return made


def _policies(rows: Rows) -> Rows:
    made = np.zeros(len(rows), policy_dtype(rows.dtype["regret"].shape[0]))
    read_policies(rows, made)
    return made


def _learned(rows: Rows) -> Rows:
    """Visits are sampled by reach."""
    visits, policy = rows["visits"], _policies(rows)["policy"]
    return learned_rows(rows, updates=visits, reach=visits, policy=policy)


def _decisions(delta: Rows) -> Rows:
    """Entries that have regrets; visits are sampled by reach."""
    actions = delta.dtype["regret"].shape[0]
    met = delta[delta["visits"] > 0]
    made = np.zeros(len(met), [("key", "<u8"), ("reach", "<f8"), ("regret", "<f8", (actions,))])
    made["key"], made["reach"], made["regret"] = met["key"], met["visits"], met["regret"]
    return made


def _check_entries(task: Task, entries: Rows) -> str | None:
    flaw = first_flaw(entries, task.actions, MAX_SUM)
    return (
        f"entry {flaw} is not what a unit gives" if flaw >= 0 else check_keys(task.dense, entries)
    )


def _check_snapshot(task: Task, rows: Rows) -> str | None:
    strategy = rows["strategy"]
    if not ((strategy >= 0) & (strategy <= 1)).all():  # NaN fails too
        return "probabilities must lie between 0 and 1"
    if not (np.abs(strategy.sum(axis=1) - 1) < 1e-5).all():
        return "probabilities must sum to 1"
    return check_keys(task.dense, rows)


def _check_policies(task: Task, rows: Rows) -> str | None:
    """Why no learner can have had these rows, by what agents read of them."""
    flaw = first_flaw(rows, task.actions, float(np.finfo(FLOAT).max))
    return f"row {flaw} is not what a learner has" if flaw >= 0 else check_keys(task.dense, rows)


def _work(task: Task, entries: Rows) -> Work:
    """Infosets of response phases; a block does not tell where games begin."""
    legal = mask_table(entries["legal"], task.actions)
    return Work(responses=int(task.in_responses(legal).sum()))


def _method(name: str, settings: type[SamplingSettings], play_block: Kernel, solver: str) -> Method:
    return Method(
        name=name,
        settings=settings,
        code=(play_block, BlockActor, _model, _as_start, TableSnapshot),
        counts="iterations",
        delta_dtype=lambda task: entry_dtype(task.actions),
        state_dtype=_state_dtype,
        snapshot_dtype=lambda task: strategy_dtype(task.actions),
        most_entries=lambda _: MAX_ENTRIES,
        delta_check=lambda task: partial(_check_entries, task),
        check_snapshot=_check_snapshot,
        actor=lambda task: BlockActor(task, play_block),
        model=_model,
        snapshot=lambda task: TableSnapshot(strategy_dtype(task.actions), dense=task.dense),
        snapshot_rows=lambda _, rows: _strategies(rows),
        policy_dtype=_state_dtype,
        check_policies=_check_policies,
        policy_rows=lambda _, rows: rows,
        policy_snapshot=lambda task: TableSnapshot(_state_dtype(task), dense=task.dense),
        policy=table_policy,
        learned=lambda _, rows: _learned(rows),
        as_start=_as_start,
        max_units=MAX_UNITS,
        work=lambda task, entries, _: _work(task, entries),
        decisions=_decisions,
        quick=lambda settings: settings.model_copy(update={"iterations": 1}),
        solvers={solver: {"weighting": "uniform"}},
    )


EXTERNAL = _method("external", ExternalSettings, play_external, "es-mccfr")
OUTCOME = _method("outcome", OutcomeSettings, play_outcome, "os-mccfr")
CHANCE = _method("chance", ChanceSettings, play_chance, "cs-mccfr")
