"""The method `rollout`: the paper's rollout MCCFR (see `rollout` for the algorithm)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from rejoinder.games.clamps import Clamps
from rejoinder.kernel.masks import mask_table, words_for, words_of
from rejoinder.kernel.rng import STREAM
from rejoinder.methods.base import Delta, Method, Rows, Settings, Task, Work
from rejoinder.methods.policies import check_keys, check_policies, policy_dtype
from rejoinder.methods.rows import opaque
from rejoinder.methods.tabular.model import TableModel, TableSnapshot, table_policy
from rejoinder.methods.tabular.rollout import (
    AVERAGING,
    entry_dtype,
    first_flaw,
    fold,
    play_game,
    policy_rows,
    row_dtype,
)


class RolloutSettings(Settings):
    name: Literal["rollout"] = "rollout"
    """The method."""
    rollouts: int = Field(20, ge=1, le=1_000_000)
    """N: full-game rollouts for each available action of each decision."""
    epsilon: float = Field(0.1, ge=0, le=1, allow_inf_nan=False)
    """Share of training moves that are uniformly random."""
    common_random_numbers: bool = False
    """Whether a decision's actions are tried with the same luck, which cancels in their regrets."""
    decay: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    """Factor on the old regrets at each update (1.0 in the paper's text, 0.99 in its program)."""
    averaging: Literal["buffer", "uniform", "linear"] = "buffer"
    """How past policies make the average one: the last `buffer_size`, all alike, or by age."""
    buffer_size: int = Field(10, ge=1, le=1_000)
    """Past policies kept for each infoset with averaging = "buffer"."""

    @property
    def kept_policies(self) -> int:
        """Past policies in a row of the learner's table; other averages need only sums."""
        return self.buffer_size if self.averaging == "buffer" else 1

    def meaning_of_rows(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "averaging": self.averaging,
            "buffer_size": self.kept_policies,
        }


class RolloutActor:
    """Plays the games of one task."""

    def __init__(self, task: Task) -> None:
        settings: RolloutSettings = task.settings
        self._template = task.game.template(task.rules)
        self._states = np.zeros(2, task.game.dtype)
        self._streams = np.zeros(3, STREAM)
        self._entries = np.zeros(task.game.max_decisions(task.rules), entry_dtype(task.actions))
        self._seed = task.seed
        self._settings = (
            task.game.players,
            task.game.starts,
            task.abstraction.argument(),
            settings.rollouts,
            settings.epsilon,
            settings.common_random_numbers,
        )

    def play(self, unit: int, snapshot: TableSnapshot) -> Delta:
        decisions = play_game(
            self._template,
            snapshot.table,
            self._states,
            self._streams,
            self._seed,
            unit,
            *self._settings,
            self._entries,
        )
        return self._entries[:decisions]


def _model(task: Task, rows: Rows | None) -> TableModel:
    settings: RolloutSettings = task.settings
    clamps = task.abstraction.capability(Clamps) or Clamps()
    words = words_for(task.actions)
    fixed = (
        settings.decay,
        AVERAGING[settings.averaging],
        words_of(clamps.never, words),
        words_of(clamps.passive, words),
    )

    def fold_units(table: Any, entries: Any, _: int, __: list[int], touched: Any) -> None:
        fold(table, entries, *fixed, touched)

    def read(rows: Any, index: Any) -> Any:
        return policy_rows(opaque(rows)[index].view(rows.dtype))

    return TableModel(_state_dtype(task), fold_units, read, rows, task.dense)


def _state_dtype(task: Task) -> np.dtype[Any]:
    return row_dtype(task.actions, task.settings.kept_policies)


def _check_entries(task: Task, entries: Rows) -> str | None:
    flaw = first_flaw(entries, task.actions)
    return (
        f"entry {flaw} is not what a game gives" if flaw >= 0 else check_keys(task.dense, entries)
    )


def _work(task: Task, entries: Rows, counts: Sequence[int]) -> Work:
    """Read off the legal actions of the decisions, in the order in which they were made.

    A phase begins with a response that follows something else, or nothing, in its game.
    """
    legal = mask_table(entries["legal"], task.actions)
    responds = task.in_responses(legal)
    goes_on = np.zeros(len(legal), bool)  # whether the decision before was a response, too
    goes_on[1:] = responds[:-1]
    ends = np.cumsum(counts)
    goes_on[ends[ends < len(legal)]] = False  # the first decisions of games
    actions = legal.sum(axis=1)
    return Work(
        responses=int(responds.sum()),
        phases=int((responds & ~goes_on).sum()),
        rollouts=int(actions[actions > 1].sum()) * task.settings.rollouts,  # none of forced moves
    )


ROLLOUT = Method(
    name="rollout",
    settings=RolloutSettings,
    code=(RolloutActor, _model, TableSnapshot),
    counts="games",
    delta_dtype=lambda task: entry_dtype(task.actions),
    state_dtype=_state_dtype,
    snapshot_dtype=lambda task: policy_dtype(task.actions),
    most_entries=lambda task: task.game.max_decisions(task.rules),
    delta_check=lambda task: partial(_check_entries, task),
    check_snapshot=lambda task, rows: check_policies(rows, task.dense),
    actor=RolloutActor,
    model=_model,
    snapshot=lambda task: TableSnapshot(policy_dtype(task.actions), dense=task.dense),
    snapshot_rows=lambda _, rows: policy_rows(rows),
    policy_dtype=lambda task: policy_dtype(task.actions),
    check_policies=lambda task, rows: check_policies(rows, task.dense),
    policy_rows=lambda _, rows: policy_rows(rows),
    policy_snapshot=lambda task: TableSnapshot(policy_dtype(task.actions), dense=task.dense),
    policy=table_policy,
    learned=lambda _, rows: rows,
    work=_work,
    decisions=lambda delta: delta,
    quick=lambda settings: settings.model_copy(update={"rollouts": 1}),
    is_default=True,
)
