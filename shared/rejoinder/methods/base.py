"""The method contract: how a game is learned, in one place.

A method says what a training unit gives (the *delta*), what becomes of it (the *model*), what
players of further units need (the *snapshot*) and what has been learned (*rows* and *policies*).
Learner, workers, wire and run directory ask the contract and know no method.

Everything that travels or is kept is an array of rows of one dtype:

    delta rows      what one unit gives, in order; folded as a whole
    state rows      what the learner knows; rows keep their place for ever, new ones come last
    snapshot rows   what an actor reads, one for each state row, so that a snapshot is sent as a
                    patch: row numbers and what to write there
    policy rows     what agents play by, in matches and at the gateway: rows of probabilities (see
                    `policies`), or the state rows themselves, where their `regret` and `average`
                    are what strategies are made of (see `tabular.policy`)

A *unit* is what is leased, folded and recorded: a game, or a block of `block` iterations that are
played with one snapshot and merged before they travel. A delta is a pure function of (task,
snapshot, unit), and the state after n units one of (task, the n deltas in order).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.games.responses import response_actions
from rejoinder.methods.patch import Patch

Rows: TypeAlias = np.ndarray[Any, np.dtype[Any]]  # of one structured dtype
Delta: TypeAlias = Rows  # of one unit
Policy: TypeAlias = Any
"""What agents go by: what compiled code finds probabilities in (see `tabular.policy`)."""
DeltaCheck: TypeAlias = Callable[[Rows], str | None]  # why no unit can have given these entries


class Settings(BaseModel):
    """A method's own learning fields, which are part of the fingerprint."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    """The method's name."""

    @property
    def block(self) -> int:
        """Iterations in a unit."""
        return 1

    def meaning_of_rows(self) -> dict[str, Any]:
        """The settings without which the state rows would mean something else."""
        return {"name": self.name}


@dataclass(frozen=True)
class Task:
    """What is to be learned: all that a method may depend on."""

    game: Game
    rules: Rules
    abstraction: Abstraction
    seed: int
    settings: Any  # the method's own, of its type `Method.settings`

    @property
    def actions(self) -> int:
        return len(self.abstraction.actions)

    def in_responses(self, legal: Any) -> Any:
        """Which decisions are of a response phase, from their legal actions: bool[n, actions]."""
        mask = response_actions(self.game, self.abstraction)
        return legal[:, [a for a in range(self.actions) if mask >> a & 1]].any(axis=1)

    @property
    def dense(self) -> int | None:
        """All infoset keys are below that, where the game has dense keys."""
        keys = self.abstraction.dense_keys
        return None if keys is None else keys(self.rules)


class Snapshot(Protocol):
    """What an actor plays with."""

    @property
    def rows(self) -> Rows:
        """All rows; later patches write into them."""

    def apply(self, patch: Patch) -> None:
        """Write rows; `ValueError` if the patch belongs to another snapshot."""

    def complete(self) -> None:
        """All patches are here: get ready to be played with; `ValueError` if it cannot be."""

    def copy(self) -> Snapshot:
        """One that later patches of this one do not touch."""


class Actor(Protocol):
    """Plays units; keeps nothing from one to the next but memory to write into."""

    def play(self, unit: int, snapshot: Any) -> Delta:
        """The delta of a unit; valid until the next call."""


class CheckedActor:
    """An actor whose deltas are those that the learner takes, or there are none."""

    def __init__(self, method: Method, task: Task) -> None:
        self._name, self._actor = method.name, method.actor(task)
        self._check, self._most_entries = method.delta_check(task), method.most_entries(task)

    def play(self, unit: int, snapshot: Any) -> Delta:
        delta = self._actor.play(unit, snapshot)
        if len(delta) > self._most_entries:
            most = self._most_entries
            raise ValueError(f"unit {unit} has {len(delta):,} entries, not {most:,} at most")
        if flaw := self._check(delta):
            raise ValueError(f"unit {unit} of the method {self._name} is wrong: {flaw}")
        return delta


class Model(Protocol):
    """What the learner knows. It hears of deltas and of nothing else."""

    @property
    def rows(self) -> Rows:
        """The state in order of first use; later folds write into it."""

    def flaw(self, delta: Delta) -> str | None:
        """Why the next unit cannot have given this delta, though another one might have."""

    def fold(self, first: int, counts: list[int], entries: Rows) -> None:
        """Add the deltas of consecutive units, end to end; `first` were folded before."""

    def changes(self) -> Patch:
        """The snapshot rows that were written since this was last asked."""

    def written(self) -> Any:
        """The numbers of the rows that were written since then, increasing."""

    def mark(self, index: Any) -> None:
        """Count rows as written."""


class Work(NamedTuple):
    """What some units took, for whoever watches a worker."""

    responses: int = 0  # decisions in a response phase
    phases: int = 0  # response phases
    rollouts: int = 0


@dataclass(frozen=True)
class Method:
    """One way of learning. Functions take the task first."""

    name: str
    settings: type[Settings]
    code: tuple[Any, ...]  # functions and classes that deltas and states depend on
    counts: str  # what an iteration is called: games or iterations
    delta_dtype: Callable[[Task], np.dtype[Any]]
    state_dtype: Callable[[Task], np.dtype[Any]]
    snapshot_dtype: Callable[[Task], np.dtype[Any]]
    most_entries: Callable[[Task], int]  # of one unit
    delta_check: Callable[[Task], DeltaCheck]
    check_snapshot: Callable[[Task, Rows], str | None]  # why no learner can have sent these rows
    actor: Callable[[Task], Actor]
    model: Callable[[Task, Rows | None], Model]  # from state rows, or from nothing
    snapshot: Callable[[Task], Snapshot]  # an empty one
    snapshot_rows: Callable[[Task, Rows], Rows]  # of state rows
    policy_dtype: Callable[[Task], np.dtype[Any]]
    check_policies: Callable[[Task, Rows], str | None]  # why these cannot be policy rows
    policy_rows: Callable[[Task, Rows], Rows]  # of state rows, or those themselves
    policy_snapshot: Callable[[Task], Snapshot]  # an empty one of policy rows
    policy: Callable[[Task, Rows], Policy]  # of policy rows
    learned: Callable[[Task, Rows], Rows]  # state rows as readers take them, see `methods.learned`
    work: Callable[[Task, Rows, Sequence[int]], Work]  # in units with so many entries each
    decisions: Callable[[Rows], Rows]  # delta rows as readers take them: key, reach, regret
    quick: Callable[[Any], Any] = lambda settings: settings  # settings that compile the same code
    is_default: bool = False  # the method of a config that names none
    check_task: Callable[[Task], str | None] = lambda _: None  # why it cannot be learned by this
    as_start: Callable[[Task, Rows], Rows] = lambda _, rows: rows
    """State rows of another run, as a run begins with them."""
    max_units: int = 10**12  # in a run
    requires: Mapping[str, Any] = field(default_factory=dict)  # values of a run's other fields
    solvers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Algorithms of the literature by their short names: the settings that make it one."""
