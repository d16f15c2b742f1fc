"""The learner process: plans leases, folds what comes back, publishes snapshots, saves.

serve
  establish       become the run's learner, announce it, begin a chain of snapshots
  until all games are folded and evaluated
    receive       deltas, evaluations and refusals, in whatever order they come
    fold          strictly by game index (on arrival in unordered mode)
    lease         every game whose snapshot now exists, publishing the snapshot first
    look around   now and then: lease again what is late, count the workers, tell the status
  when Redis goes establish anew: everything there can be made again

The learner trusts the run directory and its own memory, never the server.
"""

from __future__ import annotations

import base64
import gc
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from rejoinder.run.checkpoints import Policies, RunError
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import LEARNER_TTL, Bus, Flushed
from rejoinder.transport.connection import LOST, Backoff, BusError
from rejoinder.transport.wire import Codec, Deltas, Evaluation, Refusal, WireError
from rejoinder_learner.audit import Auditor
from rejoinder_learner.evaluations import Evaluations
from rejoinder_learner.inbox import Arrived, Inbox
from rejoinder_learner.journal import Journal, Report, is_due, next_stop
from rejoinder_learner.leases import Leases
from rejoinder_learner.planner import MAX_OUTSTANDING
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.sequential import TrainResult
from rejoinder_learner.state import Learner, warm_up
from rejoinder_learner.status import Rate, describe
from rejoinder_learner.telemetry import LearnerMetrics

LOOK = 0.2  # seconds between two looks around
PATIENCE = 60.0  # seconds that a lost server may stay away

Status = dict[str, Any]


class LearnerService:
    """Trains one run with whatever workers there are."""

    def __init__(
        self,
        run: RunDir,
        bus: Bus,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        report: Report = lambda _: None,
        on_status: Callable[[Status], None] = lambda _: None,
        patience: float = PATIENCE,
        workers: int = 1,  # that are going to come
        about: Mapping[str, Any] = MappingProxyType({}),
        telemetry: LearnerMetrics | None = None,
    ) -> None:
        self._run, self._config, self._bus = run, run.config, bus
        self._asked_to_stop = should_stop
        self._report, self._on_status = report, on_status
        self._patience, self._about = patience, about  # said with every status
        telemetry = self._telemetry = telemetry or LearnerMetrics(run.id)
        codec = self._codec = Codec(run.config)
        self._journal = Journal(run, report, telemetry)
        self._publisher = Publisher(bus, codec, telemetry)
        self._leases = Leases(bus, codec, run.config, self._publisher, workers)
        self._evaluations = Evaluations(bus, codec, run.config, self._publisher)
        self._inbox = Inbox(run.config)
        self._auditor = Auditor(run.config)
        self._banned: set[str] = set()
        self._noted: dict[str, Any] = {}  # who has brought what, as it was last written
        self._quarantined = 0
        self._rate, self._looked = Rate(), 0.0
        self._began: float | None = None  # when the first worker was there
        self._metrics: dict[str, Any] = {}  # the latest of each kind

    def serve(self) -> TrainResult:
        """Bring the run to its number of games; returns early when asked to stop."""
        with self._run.locked():
            known = self._run.workers()
            self._inbox.first_from, self._banned = known["first_unit"], set(known["banned"])
            self._go_on_from(*self._journal.resume())
            self._run.begin_session(from_game=self._learner.games)
            self._telemetry.begin(self._learner.games, self._config.target, len(self._learner.rows))
            warm_up(self._config)
            gc.freeze()  # compiled code is a big heap that the collector need not search again
            self._keep_trying(self._establish)
            first, ready = self._learner.games, time.monotonic()
            try:
                while not self.finished and not self._must_stop():
                    self._keep_trying(self._step)
            except Exception:
                self._rescue()
                raise
            seconds = time.monotonic() - (self._began or ready)
            self._note_workers()
            self._journal.save_last(self._learner, self._evaluations.waiting)
            self._leave()
        self._telemetry.end()
        games, digest = self._learner.games, self._learner.digest()
        return TrainResult(games, games - first, seconds, digest, self.finished)

    def _rescue(self) -> None:
        """After an error, whatever it is: nothing that was learned is lost, nor is the error."""
        try:
            if self._learner.whole:
                self._save()
        except Exception as error:
            self._report(f"what was learned since the last checkpoint cannot be saved: {error!r}")
        self._journal.wait()

    def _step(self) -> None:
        with self._bus.in_one_go():
            for message in self._bus.receive(LOOK):
                self._telemetry.received(len(message))
                self._receive(message)
            self._fold()
            self._leases.lease_what_can_be_played()
        self._housekeeping()

    def _must_stop(self) -> bool:
        return self._asked_to_stop() or self._run.stop_requested()

    @property
    def finished(self) -> bool:
        return self._learner.units >= self._config.units and not self._evaluations.waiting

    @property
    def longest_pause(self) -> float:
        """Seconds that a checkpoint has kept the learner from folding."""
        return self._journal.longest_pause

    @property
    def infosets(self) -> int:
        return len(self._learner.rows)

    def _receive(self, data: bytes) -> None:
        """Give a message to whom it concerns; what nobody can use goes into quarantine."""
        try:
            message = self._codec.decode(data)
            if isinstance(message, Deltas):
                self._take(message)
            elif isinstance(message, Evaluation):
                self._take_evaluation(message)
            elif isinstance(message, Refusal):
                self._handle_refusal(message)
            else:
                raise WireError(f"a {type(message).__name__.lower()} is not for a learner")
        except WireError as error:
            self._quarantine(str(error), data)

    def _take(self, deltas: Deltas) -> None:
        if deltas.worker in self._banned:
            self._telemetry.deltas("banned", len(deltas.counts))
            self._leases.worthless(deltas.units)
            return
        for arrived in self._inbox.contradiction(deltas):
            if self._auditor.is_wrong(self._learner, arrived):
                self._ban(arrived)
        if deltas.worker in self._banned:
            self._telemetry.deltas("banned", len(deltas.counts))
            return
        new = self._inbox.add(deltas)
        self._telemetry.deltas("accepted", len(new))
        self._leases.arrived(new, deltas)

    def _take_evaluation(self, evaluation: Evaluation) -> None:
        if evaluation.worker in self._banned:
            self._evaluations.worthless(evaluation)
        elif self._evaluations.take(evaluation):
            self._metrics = self._metrics | {"matches": evaluation.matches}
            self._journal.matches(evaluation.snapshot.games, evaluation.matches)

    def _fold(self) -> None:
        """Fold what is next, stopping wherever something is to be measured or saved."""
        stop = next_stop(self._config, self._learner.units)
        while units := self._inbox.next_units(stop):
            if liar := self._auditor.find_mismatch(self._learner, units):
                self._ban(liar)
                return
            self._fold_now(units)
            if self._learner.units == stop:
                self._measure_and_save()
                stop = next_stop(self._config, self._learner.units)

    def _fold_now(self, units: list[Arrived]) -> None:
        learner, begin = self._learner, time.perf_counter()
        learner.fold_all([arrived.played for arrived in units])
        seconds = time.perf_counter() - begin
        self._inbox.folded(units)
        self._telemetry.folded(
            len(units) * self._config.block, learner.games, len(learner.rows), seconds
        )

    def _measure_and_save(self) -> None:
        if is_due(self._config, self._config.eval_every, self._learner.units):
            self._metrics = self._metrics | self._journal.statistics(self._learner)
            self._evaluations.order(self._learner)
        if is_due(self._config, self._config.checkpoint_every, self._learner.units):
            self._save()

    def _save(self) -> None:
        self._note_workers()
        self._journal.save(self._learner, self._evaluations.waiting)

    def _note_workers(self) -> None:
        """Who has brought what, so that a lie can be undone by the next learner, too."""
        note = {"first_unit": dict(self._inbox.first_from), "banned": sorted(self._banned)}
        if note == self._noted:
            return
        try:
            self._run.write_workers(note)
            self._noted = note
        except OSError as error:
            self._report(f"the list of workers cannot be written: {error.strerror}")

    def _housekeeping(self) -> None:
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        self._journal.poll()
        if not self._bus.claim():
            raise RunError(f"another learner has taken over the run {self._bus.run}")
        queued = self._bus.waiting()
        self._leases.lease_late_ones_again(queued)
        self._evaluations.order_late_ones_again(queued)
        workers = self._bus.workers()
        self._leases.workers = len(workers)
        if workers and self._began is None:
            self._began = self._looked
        self._publish_status(len(queued), workers)

    def _establish(self) -> None:
        """Put on the server whatever must be there; it may be new, or have lost everything."""
        deadline = time.monotonic() + LEARNER_TTL + 1
        while not self._bus.claim():
            if time.monotonic() > deadline:
                raise RunError(f"another learner is at work on the run {self._bus.run}")
            time.sleep(0.05)
        self._announce(finished=False)
        for worker in self._banned:
            self._bus.ban(worker)
        self._publisher.start_again(self._learner)
        self._leases.start_again(self._learner, *self._inbox.accounted_for())
        self._evaluations.start_again()

    def _keep_trying(self, action: Callable[[], None]) -> None:
        """Do something that needs the server; when it is away, wait for it and establish anew."""
        pause = Backoff(self._report, self._patience)
        while not self._must_stop():
            self._telemetry.step()
            try:
                action()
                return
            except (*LOST, Flushed) as error:
                action = self._establish
                if not isinstance(error, Flushed) and not pause.wait(error):
                    raise BusError(
                        f"the Redis server cannot be used ({error}); what was learned is saved, "
                        "and the next learner (train --resume) goes on from there"
                    ) from None

    def _handle_refusal(self, refusal: Refusal) -> None:
        """A worker could not do what a lease asked for."""
        if not refusal.snapshot_missing:
            self._report(f"{refusal.worker} refused {refusal.lease}: {refusal.reason}")
        elif self._leases.holds(refusal.lease):
            self._publisher.send_again()
        self._leases.refused(refusal.lease)
        self._evaluations.refused(refusal.lease)

    def _ban(self, liar: Arrived) -> None:
        """A delta is not what its game gives: undo all that its worker has brought."""
        worker, game = liar.worker, liar.played.unit * self._config.block
        self._banned.add(worker)
        self._quarantine(f"{worker} sent a wrong delta of game {game}", liar.played.delta.tobytes())
        before = self._inbox.first_from.get(worker)
        dropped = self._inbox.drop(worker)
        self._note_workers()
        if before is None:  # the server last: it may be away, and is told again when it is back
            self._bus.ban(worker)
            self._leases.lease_again(dropped)
            return
        before *= self._config.block
        learner, evaluations = self._journal.resume(most=before)
        self._run.go_back(learner.games)
        self._report(
            f"games by {worker} were folded from game {before:,} on: "
            f"going back to game {learner.games:,}"
        )
        self._go_on_from(learner, evaluations)
        self._establish()

    def _go_on_from(self, learner: Learner, evaluations: dict[int, Policies]) -> None:
        """The state to go on with; what the server holds is another matter (`_establish`)."""
        self._learner = learner
        in_order = self._config.order == "index"
        self._inbox.start_again(learner, None if in_order else self._run.ledger())
        self._evaluations.waiting = dict(evaluations)
        self._metrics = next(iter(self._run.metrics()[-1:]), {})

    def _quarantine(self, reason: str, data: bytes) -> None:
        """Keep what was refused, with the reason."""
        self._quarantined += 1
        self._report(f"quarantined: {reason}")
        text = base64.b64encode(data).decode()
        record = {"time": time.time(), "reason": reason, "bytes": len(data), "message": text}
        try:
            self._run.add_to_quarantine(record)
        except OSError as error:
            self._report(f"the quarantine cannot be written: {error.strerror}")

    def _announce(self, finished: bool) -> None:
        self._bus.announce(
            {
                "fingerprint": self._config.fingerprint,
                "kernel": self._config.kernel,
                "config": self._config.model_dump(mode="json"),
                "finished": finished,
            }
        )

    def _publish_status(
        self, queued: int, workers: dict[str, Any], state: str = "training"
    ) -> None:
        games, target = self._learner.games, self._config.target
        status = describe(
            games=games,
            target=target,
            rate=self._rate.update(games, time.monotonic()),
            metrics=self._metrics,
            workers=workers,
            figures={
                **self._about,
                "state": state if workers or state != "training" else "waiting for workers",
                "id": self._run.id,
                "fingerprint": self._config.fingerprint,
                "counts": self._config.counts,
                "utility_unit": self._config.load_game().utility_unit,
                "version": self._learner.units // self._config.batch,
                "infosets": len(self._learner.rows),
                "queued": queued,
                "outstanding": self._leases.outstanding * self._config.block,
                "unfolded": len(self._inbox.waiting) * self._config.block,
                "leased_again": self._leases.repeated * self._config.block,
                "duplicates": self._inbox.duplicates * self._config.block,
                "stale": self._inbox.stale * self._config.block,
                "audited": self._auditor.audited,
                "quarantined": self._quarantined,
                "banned": sorted(self._banned),
                "checkpoint": self._journal.saved,
            },
        )
        units, config = self._learner.units, self._config
        end = min(config.units, config.playable_before(units), units + MAX_OUTSTANDING)
        self._telemetry.tell(
            status,
            window=(end - units) * config.block,
            snapshot_bytes=self._publisher.sent_bytes,
            lease_bytes=self._leases.sent_bytes + self._evaluations.sent_bytes,
        )
        self._on_status(status)
        self._bus.write_status(status)
        try:
            self._run.write_status(status)
        except OSError as error:
            self._report(f"the status cannot be written: {error.strerror}")

    def _leave(self) -> None:
        """Say whether the run is over, and let go of it; the server need not be there any more."""
        try:
            if self.finished:
                self._announce(finished=True)
            self._leases.withdraw()
            self._publish_status(0, self._bus.workers(), "finished" if self.finished else "stopped")
            self._bus.release()
        except (*LOST, Flushed) as error:
            self._report(f"the server is away, so it was not told of the end: {error}")
