"""The worker process.

serve
  find the run      wait until there is one
  warm up           compile or load the kernels, before the first lease
  work              take leases as they come (see `job`), say so once a second
  when Redis goes   back off, with jitter, and go on; nothing is lost, the learner leases again
                    gone for long: give up, whoever had started it has ended
  when told to stop finish the lease under way and leave
"""

from __future__ import annotations

import math
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from rq import SimpleWorker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.job import Job
from rq.queue import Queue
from rq.worker.base import WorkerStatus

from rejoinder.measure.warm import warm_up_player
from rejoinder.run.config import ConfigError, make_config
from rejoinder.telemetry import NOWHERE, WORKER_JOB, Exposure, exposed
from rejoinder.transport.bus import Bus, Packed, lease_message, runs
from rejoinder.transport.connection import LOST, Backoff, BusError, connect, refuses, shown
from rejoinder_worker.job import ForeignLease, Player, about, take_lease
from rejoinder_worker.telemetry import WorkerMetrics

Report = Callable[[str], None]

PATIENCE = 600.0  # seconds that a lost server may stay away
BEAT = 1.0  # seconds between two signs of life
_POLL = 0.2  # seconds between two looks for a run
_DEQUEUE = 2  # seconds that a worker waits for a lease before it looks around
_ABANDONED = 30.0  # seconds without a learner after which a worker looks for another run


class WorkerRefused(ValueError):
    """A worker that cannot work on this run; the message says why."""

    exit_code = 3


class WorkerStopped(Exception):
    """Somebody asked the worker to stop."""


@dataclass(frozen=True)
class Server:
    """Where the leases are, and how long a worker waits for it."""

    url: str
    patience: float  # seconds

    def backoff(self, report: Report) -> Backoff:
        return Backoff(report, self.patience)

    def given_up(self, error: BaseException) -> Exception:
        """Why it is tried no more, after its last error."""
        where = f"the server at {shown(self.url)}"
        if refuses(error):
            return WorkerRefused(f"{where} refuses us: {error}")
        return BusError(
            f"{where} has been away for {self.patience:g} seconds, so the worker gives up: {error}"
        )


def serve(
    url: str,
    *,
    run: str | None = None,
    name: str | None = None,
    report: Report = print,
    exposure: Exposure = NOWHERE,
    patience: float = PATIENCE,
) -> None:
    """Work until stopped, or, if a run was named, until that run is finished.

    A server that stays away for longer than `patience` is given up; 0: never.
    """
    server = Server(url, patience or math.inf)
    name = name or f"{socket.gethostname()}-{os.getpid()}"
    metrics = WorkerMetrics()
    stop_on_signals()
    try:
        with exposed(metrics.registry, exposure, WORKER_JOB, name):
            while True:
                _work_on_a_run(server, run, name, report, metrics)
                if run is not None:
                    return
    except WorkerStopped:
        report(f"worker {name} stops")


def _work_on_a_run(
    server: Server, run: str | None, name: str, report: Report, metrics: WorkerMetrics
) -> None:
    stop_on_signals()  # RQ has taken them over for the run before
    metrics.wait()
    player = _find_work(server, run, name, report, metrics)
    warm_up_player(player.config)
    report(f"worker {name} works on {player.bus.run}")
    if not LeaseWorker(player, server, report, stays=run is not None).serve():
        raise WorkerStopped
    report(f"{player.bus.run} has no more work; {player.games:,} games were played here")


def stop_on_signals() -> None:
    def stop(*_: Any) -> None:
        raise WorkerStopped

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _find_work(
    server: Server, wanted: str | None, name: str, report: Report, metrics: WorkerMetrics
) -> Player:
    """The run that was asked for, or any that has a learner and that this worker is fit for."""
    client = connect(server.url)
    pause, said = server.backoff(report), set[str]()
    while True:
        metrics.step()
        try:
            for run in [wanted] if wanted else runs(client):
                bus = Bus(client, run)
                info = bus.info()
                if info is None or not (wanted or bus.has_learner()):
                    continue
                try:
                    return _player(bus, info, name, metrics)
                except WorkerRefused as refused:
                    if wanted:
                        raise
                    _report_once(str(refused), said, report)
            pause.reset()
        except LOST as error:
            if not pause.wait(error):
                raise server.given_up(error) from None
        _report_once(f"waiting for {wanted or 'a run'} on {shown(server.url)}", said, report)
        time.sleep(_POLL)


def _report_once(text: str, said: set[str], report: Report) -> None:
    if text not in said:
        said.add(text)
        report(text)


def _player(
    bus: Bus, info: dict[str, Any], name: str, metrics: WorkerMetrics | None = None
) -> Player:
    """The means to play this run, if there is anything to play and this worker is fit for it."""
    if info.get("finished"):
        raise WorkerRefused(f"the run {bus.run} is finished already")
    try:
        config = make_config(info["config"], source=f"the run {bus.run}")
    except (ConfigError, KeyError, TypeError) as error:
        raise WorkerRefused(f"the run {bus.run} cannot be played here: {error}") from None
    if config.fingerprint != info.get("fingerprint"):
        raise WorkerRefused(f"the run {bus.run} announces a config that is not its own")
    if info.get("kernel") != config.kernel:
        raise WorkerRefused(
            f"the run {bus.run} is made with kernels {info.get('kernel')} and this worker has "
            f"{config.kernel}; results could differ, so install the same version of Rejoinder"
        )
    return Player(bus, config, name, metrics)


class LeaseWorker(SimpleWorker):
    """RQ's worker in one process, with the bookkeeping that short leases can afford.

    RQ's own life of a job takes dozens of commands. A lease is taken from the queue, read, answered
    and removed, the last two in one go: registries, results and retries would only repeat what the
    learner knows better.
    """

    def __init__(self, player: Player, server: Server, report: Report, stays: bool = True) -> None:
        self._player = player
        self._server = server
        self._report = report
        self._stays = stays  # even if the run's learner is gone for long
        self._since = self._learner_seen = time.monotonic()
        self._beaten = 0.0
        self._pause = server.backoff(report)
        self._failure: Exception | None = None  # why this worker must not go on
        self._finished = False  # the run is, or seems to be
        player.between_units = self._look_around_if_possible
        super().__init__(
            [player.bus.queue],
            name=f"{player.bus.run}-{player.name}-{os.getpid()}",
            connection=player.bus.client,
            serializer=Packed,
            worker_ttl=_DEQUEUE + 15,  # RQ waits for a job 15 seconds less than this
        )

    def serve(self) -> bool:
        """Take leases; True once there is no more work here, False when stopped by a signal."""
        self.work(logging_level="CRITICAL")
        with suppress(*LOST):  # if the server is away it forgets us by itself
            self._player.bus.leave(self._player.name)
        if self._failure:
            raise self._failure
        if not self._finished and self._shutdown_requested_date is None:
            raise RuntimeError("RQ has ended the worker without being asked")
        return self._finished

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """The next lease; survives a server that goes away and comes back."""
        self._state = WorkerStatus.IDLE  # a signal now stops at once
        while True:
            try:
                self._housekeeping()
                found = self.queue_class.dequeue_any(
                    self.queues, timeout, self.connection, serializer=self.serializer
                )
                self._state = WorkerStatus.BUSY  # a signal now waits for the end of the lease
                self._pause.reset()
                return found
            except DequeueTimeout:
                self._pause.reset()
            except StopRequested:
                raise
            except LOST as error:
                self._wait_for_server(error)
            except Exception as error:  # something in the queue that is not a lease
                self._drop(getattr(error, "job_id", None), error)

    def execute_job(self, job: Job, queue: Queue) -> None:
        try:
            take_lease(self._player, job.id, lease_message(job))
        except StopRequested:
            raise
        except LOST as error:
            self._wait_for_server(error)
        except ForeignLease as error:
            self._give_back(job, queue)
            self._stop_for(WorkerRefused(str(error)))
        except Exception as error:  # RQ would log it and go on as if nothing had happened
            self._stop_for(error)

    def _housekeeping(self) -> None:
        """Once a second: say what has been done, and see whether there is still work."""
        now = time.monotonic()
        if now - self._beaten < BEAT:
            return
        self._beaten = now
        self._player.metrics.step()
        bus = self._player.bus
        said = about(self._player, self._since, host=self.hostname, pid=self.pid)
        if not bus.beat(self._player.name, said | {"kernel": self._player.config.kernel}):
            self._stop_for(
                WorkerRefused(f"{self._player.name} was caught with wrong deltas and is banned")
            )
        if bus.has_learner():
            self._learner_seen = now
        abandoned = not self._stays and now - self._learner_seen > _ABANDONED
        if abandoned or (bus.info() or {}).get("finished"):
            self._finished = True
            raise StopRequested

    def _look_around_if_possible(self) -> None:
        """The same in the middle of a lease, which a server that is away need not disturb."""
        with suppress(*LOST):
            self._housekeeping()

    def _wait_for_server(self, error: BaseException) -> None:
        if not self._pause.wait(error):
            self._stop_for(self._server.given_up(error))

    def _drop(self, job: str | None, error: Exception) -> None:
        """Remove what cannot even be read; the learner leases again what it needs."""
        self._report(f"dropped {job or 'something'} from the queue, which is no lease: {error}")
        with suppress(*LOST):
            self._player.bus.withdraw([job] if job else [])

    def _stop_for(self, failure: Exception) -> NoReturn:
        self._failure = failure
        raise StopRequested

    def _give_back(self, job: Job, queue: Queue) -> None:
        """Somebody else may be able to do it."""
        pipeline = self.connection.pipeline()
        pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
        pipeline.lpush(queue.key, job.id)
        pipeline.execute()

    # What RQ would tell the server around every job; `_housekeeping` says it once a second.

    def set_state(self, state: str, pipeline: Any = None) -> None:
        self._state = state

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        pass

    def register_birth(self) -> None:
        pass

    def register_death(self) -> None:
        pass

    def subscribe(self) -> None:
        pass

    def unsubscribe(self) -> None:
        pass

    def set_shutdown_requested_date(self) -> None:
        pass

    def check_for_suspension(self, burst: bool) -> None:
        pass

    def run_maintenance_tasks(self) -> None:
        pass
