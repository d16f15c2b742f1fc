"""What a trainer writes into its run directory while it trains, and how it goes on from there.

A disk that is full, or gone, does not stop the training: what could not be written is kept and
written with the next checkpoint. Only at the end is it an error.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from rejoinder.measure.metrics import exact_exploitability, table_statistics
from rejoinder.run.checkpoints import Policies, RunError
from rejoinder.run.config import RunConfig
from rejoinder.run.rundir import RunDir
from rejoinder_learner.state import Learner
from rejoinder_learner.telemetry import LearnerMetrics

Report = Callable[[str], None]
Evaluations = dict[int, Policies]  # still to come: the policies after so many games


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
        self.saved = 0  # games of the newest checkpoint

    def resume(self, most: int | None = None) -> tuple[Learner, Evaluations]:
        """The learner of the newest usable checkpoint (of at most so many games), or a new one."""
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
        abstraction = learner.config.load_abstraction()
        record = {"games": learner.games, **table_statistics(learner.learned, abstraction)}
        exploitability = exact_exploitability(self._run.config, learner.policy_rows())
        if exploitability is not None:
            record["exploitability"] = exploitability
        self._note(record)
        return record

    def matches(self, games: int, played: Mapping[str, Any]) -> None:
        """Note how the policies after so many games did."""
        self._note({"games": games, "matches": played})

    def save(self, learner: Learner, evaluations: Evaluations | None = None) -> bool:
        """Write a checkpoint; False, after a report, if the disk does not take it."""
        self._try_metrics()  # first: an evaluation that is here is no longer in the checkpoint
        try:
            self._save(learner, evaluations or {})
        except OSError as error:
            why = error.strerror or str(error)
            self._report(f"no checkpoint at game {learner.games:,}: {why}; {self._what_holds()}")
            return False
        return True

    def save_last(self, learner: Learner, evaluations: Evaluations | None = None) -> None:
        """Write the checkpoint that a run ends with; a disk that does not take it is an error."""
        try:
            self._save(learner, evaluations or {})
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
        begin = time.perf_counter()
        self._records += learner.take_records()
        checkpoint = dataclasses.replace(learner.checkpoint(), evaluations=dict(evaluations))
        try:
            self._run.extend_ledger(self._ledger_from, self._records)
            self._run.save(checkpoint)
        except OSError:
            self._telemetry.not_saved()
            raise
        self._ledger_from, self._records = learner.games, b""
        self.saved = learner.games
        self._telemetry.saved(self.saved, time.perf_counter() - begin)

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
