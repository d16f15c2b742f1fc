"""What a trainer writes into its run directory while it trains, and how it goes on from there.

A disk that is full, or gone, does not stop the training: what could not be written is kept and
written with the next checkpoint. Only at the end is it an error.

The checkpoint of a big table is written beside the folding (see `writer`): the ledger is extended
first, here, and what becomes of the rest is noticed later. There is one writer at a time; a
checkpoint that falls due while one is at work waits for it.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from rejoinder.measure.metrics import (
    exact_exploitability,
    statistics_step,
    table_statistics,
)
from rejoinder.run.checkpoints import Increment, Policies, RunError
from rejoinder.run.config import RunConfig
from rejoinder.run.rundir import RunDir
from rejoinder_learner.state import Learner
from rejoinder_learner.telemetry import LearnerMetrics
from rejoinder_learner.writer import Writer

BIG_BYTES = 2**24  # of rows: from here on checkpoints are increments, written beside the folding

Report = Callable[[str], None]
Evaluations = dict[int, Policies]  # still to come: the policies after so many games


class _Begun(NamedTuple):
    """A checkpoint that is being written."""

    writer: Writer
    learner: Learner
    games: int
    index: Any  # rows written since the checkpoint before
    since: float


class Journal:
    """Writes down one learner's progress."""

    def __init__(
        self, run: RunDir, report: Report, telemetry: LearnerMetrics | None = None
    ) -> None:
        self._run = run
        self._report = report
        self._telemetry = telemetry or LearnerMetrics(run.id)
        self._ledger_from = 0  # game of the first record not yet in the ledger's file
        self._records = b""
        self._metrics: list[Mapping[str, Any]] = []  # not yet in the file
        self._metrics_told = False  # that they cannot be written
        self._begun: _Begun | None = None  # the checkpoint that is being written
        self._whole = False  # whether the next one shares no file with one before
        self.saved = 0  # games of the newest checkpoint
        self.longest_pause = 0.0  # seconds that a checkpoint has kept the learner from folding

    def resume(self, most: int | None = None) -> tuple[Learner, Evaluations]:
        """The learner of the newest usable checkpoint (of at most so many games), or a new one."""
        self.wait()
        run, config = self._run, self._run.config
        checkpoint = run.supported_checkpoint(self._report, most)
        learner = Learner(config, checkpoint)
        if checkpoint and checkpoint.kernel != config.kernel:
            self._report(
                f"the checkpoint was made by kernels {checkpoint.kernel} and goes on with "
                f"{config.kernel}: the digest may differ from that of an uninterrupted run"
            )
        run.drop_metrics_after(learner.games)
        self._ledger_from = self.saved = learner.games
        self._records, self._metrics = b"", []
        self._telemetry.has_checkpoint(self.saved)
        records = run.metrics()
        for record in records:  # the last of each kind is what is known until the next one
            self._telemetry.measured(record)
        known = {record["games"] for record in records if "matches" in record}
        pending = checkpoint.evaluations if checkpoint else {}
        return learner, {games: pending[games] for games in pending if games not in known}

    def statistics(self, learner: Learner) -> dict[str, Any]:
        """Note what the table looks like now."""
        abstraction, infosets = learner.config.load_abstraction(), len(learner.rows)
        some = learner.learned_at(slice(None, None, statistics_step(infosets)))
        record = {"games": learner.games, **table_statistics(some, abstraction, infosets)}
        exploitability = exact_exploitability(self._run.config, learner.policy_rows)
        if exploitability is not None:
            record["exploitability"] = exploitability
        self._note(record)
        return record

    def matches(self, games: int, played: Mapping[str, Any]) -> None:
        """Note how the policies after so many games did."""
        self._note({"games": games, "matches": played})

    def save(self, learner: Learner, evaluations: Evaluations | None = None) -> bool:
        """Write a checkpoint, or begin to; False, after a report, if the disk does not take it."""
        self._try_metrics()  # first: an evaluation that is here is no longer in the checkpoint
        begin = time.perf_counter()
        try:
            self.wait()
            self._save(learner, evaluations or {})
        except OSError as error:
            self._report_failure(learner.games, error)
            return False
        finally:
            self.longest_pause = max(self.longest_pause, time.perf_counter() - begin)
        return True

    def poll(self) -> None:
        """See what has become of a checkpoint that is being written."""
        if self._begun is not None and self._begun.writer.has_ended():
            self.wait()

    def wait(self) -> None:
        """Until the checkpoint that is being written is there, or is reported as failed."""
        games = self._begun.games if self._begun is not None else 0
        try:
            self._finish()
        except OSError as error:
            self._report_failure(games, error)

    def save_last(self, learner: Learner, evaluations: Evaluations | None = None) -> None:
        """Write the checkpoint that a run ends with; a disk that does not take it is an error."""
        try:
            self.wait()
            self._save(learner, evaluations or {})
            self._finish()
        except OSError as error:
            raise RunError(
                f"the checkpoint at game {learner.games:,} could not be written to "
                f"{self._run.path}: {error.strerror or error}; {self._what_holds()}"
            ) from None
        try:
            self._write_metrics()
        except OSError as error:
            raise RunError(
                f"{len(self._metrics)} metrics could not be written to {self._run.path}: "
                f"{error.strerror or error}; the checkpoint at game {self.saved:,} holds"
            ) from None

    def _save(self, learner: Learner, evaluations: Evaluations) -> None:
        """Write a checkpoint, or begin to if it is a big one."""
        begin, index = time.perf_counter(), learner.take_unsaved()
        with self._unsaved_if_it_fails(learner, index):
            self._records += learner.take_records()
            checkpoint = dataclasses.replace(learner.view(), evaluations=dict(evaluations))
            big = checkpoint.rows.nbytes >= BIG_BYTES
            increment = Increment(self.saved, index) if big and not self._whole else None

            def write(before_rename: Callable[[], None] = lambda: None) -> None:
                self._run.sync_ledger()  # it has to be there before the checkpoint is
                self._run.save(checkpoint, increment, before_rename)

            self._run.extend_ledger(self._ledger_from, self._records, sync=False)
            self._ledger_from, self._records = learner.games, b""
            writer = self._writer(write) if big else None
            if writer is not None:
                self._begun = _Begun(writer, learner, learner.games, index, begin)
                return
            write()
        self._has_saved(learner.games, begin)

    @contextmanager
    def _unsaved_if_it_fails(self, learner: Learner, index: Any) -> Iterator[None]:
        """These rows stay due whatever goes wrong; after an error that is not the disk's, all."""
        try:
            yield
        except BaseException as error:
            learner.mark_unsaved(index)
            self._whole = self._whole or not isinstance(error, OSError)
            self._telemetry.not_saved()
            raise

    def _writer(self, write: Callable[[Callable[[], None]], None]) -> Writer | None:
        """A child that writes, or None where there can be none."""
        if not hasattr(os, "fork"):
            return None
        try:
            return Writer(write)
        except OSError as error:
            why = error.strerror or error
            self._report(f"no process to write the checkpoint ({why}): the learner writes it")
            return None

    def _finish(self) -> None:
        """Until the checkpoint that is being written is there; OSError if it could not be."""
        if self._begun is None:
            return
        begun = self._begun
        begun.writer.wait()  # if this is interrupted, the child is still at work
        self._begun = None
        with self._unsaved_if_it_fails(begun.learner, begun.index):
            begun.writer.check()
        self._has_saved(begun.games, begun.since)

    def _has_saved(self, games: int, since: float) -> None:
        self.saved, self._whole = games, False
        self._telemetry.saved(games, time.perf_counter() - since)

    def _report_failure(self, games: int, error: OSError) -> None:
        why = error.strerror or str(error)
        self._report(f"no checkpoint at game {games:,}: {why}; {self._what_holds()}")

    def _what_holds(self) -> str:
        if not self._run.path.exists():
            return f"{self._run.path} is gone, and what was in it"
        return f"the one at game {self.saved:,} holds, and the next learner goes on from there"

    def _note(self, record: Mapping[str, Any]) -> None:
        self._telemetry.measured(record)
        self._metrics.append(record)
        self._try_metrics()

    def _try_metrics(self) -> None:
        try:
            self._write_metrics()
        except OSError as error:
            if not self._metrics_told:  # once while it lasts
                games, why = self._metrics[0]["games"], error.strerror or error
                self._report(f"metrics at game {games:,}: {why}; kept for later")
            self._metrics_told = True

    def _write_metrics(self) -> None:
        while self._metrics:
            self._run.append_metrics(self._metrics[0])
            self._metrics.pop(0)
        self._metrics_told = False


def is_due(config: RunConfig, every: int, units: int) -> bool:
    """At every so many games (rounded up to whole units), and at the last one; 0 means never."""
    return every > 0 and (units == config.units or units % config.in_units(every) == 0)


def next_stop(config: RunConfig, units: int) -> int:
    """The next number of units at which there is something to measure or to save."""
    regular = [
        config.in_units(every) for every in (config.eval_every, config.checkpoint_every) if every
    ]
    return min([config.units, *((units // every + 1) * every for every in regular)])
