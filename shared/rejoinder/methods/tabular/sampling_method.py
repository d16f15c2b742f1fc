"""The methods `external`, `outcome` and `chance`: sampled CFR in blocks (see `walks`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import Field

from rejoinder.kernel.masks import mask_field, mask_table
from rejoinder.kernel.rng import STREAM
from rejoinder.methods.base import Delta, Method, Rows, Settings, Task, Work
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular import walks
from rejoinder.methods.tabular.model import TableModel, TableSnapshot, check_keys
from rejoinder.methods.tabular.policy import read_policies
from rejoinder.methods.tabular.table import EMPTY, new_table
from rejoinder.methods.tabular.weighting import (
    DISCOUNTED,
    FLOAT,
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
        self._states = np.zeros(depth, task.game.dtype)
        self._streams = np.zeros(depth, STREAM)
        self._frames = np.zeros(depth, walks.frame_dtype(task.actions, task.game.players))
        self._seed = task.seed
        self._settings = (
            task.settings.iterations,
            task.game.players,
            task.game.starts,
            task.abstraction.argument(),
            *((task.settings.exploration,) if isinstance(task.settings, OutcomeSettings) else ()),
        )
        self._delta = new_table(walks.sums_dtype(task.actions), _FIRST_ENTRIES)
        self._entry_dtype = entry_dtype(task.actions)

    def play(self, unit: int, snapshot: TableSnapshot) -> Delta:
        """The delta of a unit; valid until the next call."""
        while True:
            self._empty_delta()
            try:
                self._play_block(
                    self._template,
                    snapshot.table,
                    self._states,
                    self._streams,
                    self._frames,
                    self._seed,
                    unit,
                    *self._settings,
                    self._delta,
                )
            except MemoryError:  # a unit can be played again from its beginning
                room = 2 * len(self._delta.rows)
                if room > 2 * MAX_ENTRIES:
                    raise
                self._delta = new_table(self._delta.rows.dtype, room)
            else:
                sums = self._delta.rows[: self._delta.size[0]]
                made: Delta = np.zeros(len(sums), self._entry_dtype)
                walks.round_sums(sums, made)
                return made

    def _empty_delta(self) -> None:
        used = self._delta.rows[: self._delta.size[0]]
        used.view(np.uint8).fill(0)
        self._delta.slots.fill(EMPTY)
        self._delta.size[0] = 0


def _model(task: Task, rows: Rows | None) -> TableModel:
    weighting = WEIGHTINGS[task.settings.weighting]
    made = Discounts()

    def fold(table: Any, entries: Any, first: int, counts: list[int], touched: Any) -> None:
        if weighting == UNIFORM:
            fold_alike(table, entries, touched)
            return
        products = made.up_to(first + len(counts)) if weighting == DISCOUNTED else np.empty(0)
        discounts = np.concatenate([[float(weighting)], products])
        fold_units(table, entries, np.array(counts, np.int64), first, discounts, touched)

    return TableModel(_state_dtype(task), fold, _strategies, rows, task.dense)


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
    """Rows with the names that the rollout method's have: those are what readers take."""
    actions = rows.dtype["regret"].shape[0]
    made = np.zeros(
        len(rows),
        [
            *(("key", "<u8"), mask_field("legal", actions), ("updates", "<i8"), ("reach", "<f8")),
            *(("regret", "<f8", (actions,)), ("count", "<f8", (actions,))),
            ("policy", "<f8", (2, actions)),
        ],
    )
    for name in ("key", "legal", "regret"):
        made[name] = rows[name]
    made["updates"] = made["reach"] = rows["visits"]  # visits are sampled by reach
    made["count"] = rows["weight"][:, None]
    made["policy"] = _policies(rows)["policy"]
    return made


def _decisions(delta: Rows) -> Rows:
    """Entries that have regrets; visits are sampled by reach."""
    actions = delta.dtype["regret"].shape[0]
    met = delta[delta["visits"] > 0]
    made = np.zeros(len(met), [("key", "<u8"), ("reach", "<f8"), ("regret", "<f8", (actions,))])
    made["key"], made["reach"], made["regret"] = met["key"], met["visits"], met["regret"]
    return made


def _check_delta(task: Task, entries: Rows) -> str | None:
    flaw = first_flaw(entries, task.actions, MAX_SUM)
    return (
        f"entry {flaw} is not what a unit gives" if flaw >= 0 else check_keys(task.dense, entries)
    )


def _check_snapshot(rows: Rows) -> str | None:
    strategy = rows["strategy"]
    if not ((strategy >= 0) & (strategy <= 1)).all():  # NaN fails too
        return "probabilities must lie between 0 and 1"
    if not (np.abs(strategy.sum(axis=1) - 1) < 1e-5).all():
        return "probabilities must sum to 1"
    return None


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
        kernels=(play_block, fold_units, fold_alike, read_strategies),
        counts="iterations",
        delta_dtype=lambda task: entry_dtype(task.actions),
        state_dtype=_state_dtype,
        snapshot_dtype=lambda task: strategy_dtype(task.actions),
        most_entries=lambda _: MAX_ENTRIES,
        check_delta=_check_delta,
        check_snapshot=lambda _, rows: _check_snapshot(rows),
        actor=lambda task: BlockActor(task, play_block),
        model=_model,
        snapshot=lambda task: TableSnapshot(strategy_dtype(task.actions), dense=task.dense),
        snapshot_rows=lambda _, rows: _strategies(rows),
        policy_dtype=_state_dtype,
        check_policies=_check_policies,
        policy_rows=lambda _, rows: rows,
        learned=lambda _, rows: _learned(rows),
        work=lambda task, entries, _: _work(task, entries),
        decisions=_decisions,
        quick=lambda settings: settings.model_copy(update={"iterations": 1}),
        solvers={solver: {"weighting": "uniform"}},
    )


EXTERNAL = _method("external", ExternalSettings, walks.play_external, "es-mccfr")
OUTCOME = _method("outcome", OutcomeSettings, walks.play_outcome, "os-mccfr")
CHANCE = _method("chance", ChanceSettings, walks.play_chance, "cs-mccfr")
