"""The worker process.

serve
  find the run      wait until there is one
  warm up           compile or load the kernels, before the first lease
  work              take leases as they come (see `job`), say so once a second
  when Redis goes   back off, with jitter, and go on; nothing is lost, the learner leases again
  when told to stop finish the lease under way and leave
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from rq import SimpleWorker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.job import Job
from rq.queue import Queue
from rq.worker.base import WorkerStatus

from rejoinder.bus import LOST, Backoff, Bus, Packed, connect, runs, shown
from rejoinder.config import ConfigError, make_config
from rejoinder.jit import KERNEL_VERSION
from rejoinder.warm import warm_up_player
from rejoinder_worker.job import ForeignLease, Player, about, take_lease

Report = Callable[[str], None]

BEAT = 1.0  # seconds between two signs of life
_POLL = 0.2  # seconds between two looks for a run
_DEQUEUE = 2  # seconds that a worker waits for a lease before it looks around


class WorkerRefused(ValueError):
    """A worker that cannot work on this run; the message says why."""

    exit_code = 3


class WorkerStopped(Exception):
    """Somebody asked the worker to stop."""


def serve(
    url: str, *, run: str | None = None, name: str | None = None, report: Report = print
) -> None:
    """Work until stopped, or, if a run was named, until that run is finished."""
    name = name or f"{socket.gethostname()}-{os.getpid()}"
    try:
        while True:
            stop_on_signals()
            bus, info = _find_run(url, run, report)
            player = _player(bus, info, name)
            warm_up_player(player.config)
            report(f"worker {name} works on {bus.run}")
            if not LeaseWorker(player, report).serve():
                break
            report(f"{bus.run} is finished; {player.games:,} games of it were played here")
            if run is not None:
                return
    except WorkerStopped:
        pass
    report(f"worker {name} stops")


def stop_on_signals() -> None:
    def stop(*_: Any) -> None:
        raise WorkerStopped

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _find_run(url: str, wanted: str | None, report: Report) -> tuple[Bus, dict[str, Any]]:
    """The run to work on, as soon as somebody has announced one that is not finished."""
    client = connect(url)
    waiting = False
    pause = Backoff(report)
    while True:
        try:
            for run in [wanted] if wanted else runs(client):
                info = Bus(client, run).info()
                if info is not None and not info.get("finished"):
                    return Bus(client, run), info
                if info is not None and wanted:
                    raise WorkerRefused(f"the run {wanted} is finished already")
            pause.reset()
        except LOST as error:
            pause.wait(error)
        if not waiting:
            report(f"waiting for {wanted or 'a run'} on {shown(url)}")
            waiting = True
        time.sleep(_POLL)


def _player(bus: Bus, info: dict[str, Any], name: str) -> Player:
    """The means to play this run, if this worker is fit for it."""
    if info.get("kernel") != KERNEL_VERSION:
        raise WorkerRefused(
            f"the run {bus.run} is made with kernels {info.get('kernel')} and this worker has "
            f"{KERNEL_VERSION}; results could differ, so install the same version of Rejoinder"
        )
    try:
        config = make_config(info["config"], source=f"the run {bus.run}")
    except (ConfigError, KeyError) as error:
        raise WorkerRefused(f"the run {bus.run} cannot be played here: {error}") from None
    if config.fingerprint != info.get("fingerprint"):
        raise WorkerRefused(f"the run {bus.run} announces a config that is not its own")
    return Player(bus, config, name)


class LeaseWorker(SimpleWorker):
    """RQ's worker in one process, with the bookkeeping that short leases can afford.

    RQ's own life of a job takes some sixty commands. A lease needs four of them: it is taken from
    the queue, read, answered and removed, the last two in one go. Registries, results and retries
    would only repeat what the learner knows better.
    """

    def __init__(self, player: Player, report: Report) -> None:
        self._player = player
        self._since = time.monotonic()
        self._beaten = 0.0
        self._pause = Backoff(report)
        self._failure: Exception | None = None  # why this worker must not go on
        self._finished = False  # the run is
        super().__init__(
            [player.bus.queue],
            name=f"{player.bus.run}-{player.name}-{os.getpid()}",
            connection=player.bus.client,
            serializer=Packed,
            worker_ttl=_DEQUEUE + 15,  # RQ waits for a job 15 seconds less than this
        )

    def serve(self) -> bool:
        """Take leases; True once the run is finished, False when stopped by a signal."""
        self.work(logging_level="CRITICAL")
        with suppress(*LOST):  # if the server is away it forgets us by itself
            self._player.bus.leave(self._player.name)
        if self._failure:
            raise self._failure
        return self._finished

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """The next lease; survives a server that goes away and comes back."""
        self._state = WorkerStatus.IDLE  # a signal now stops at once
        while True:
            try:
                self._look_around()
                found = self.queue_class.dequeue_any(
                    self.queues, timeout, self.connection, serializer=self.serializer
                )
                self._state = WorkerStatus.BUSY  # a signal now waits for the end of the lease
                self._pause.reset()
                return found
            except DequeueTimeout:
                continue
            except LOST as error:
                self._pause.wait(error)

    def execute_job(self, job: Job, queue: Queue) -> None:
        try:
            take_lease(self._player, job.id, job.args[0])
        except LOST as error:
            self._pause.wait(error)
        except ForeignLease as error:
            self._give_back(job, queue)
            self._stop_for(WorkerRefused(str(error)))
        except Exception as error:  # RQ would log it and go on as if nothing had happened
            self._stop_for(error)

    def _look_around(self) -> None:
        """Once a second: say what has been done, and see whether there is still work."""
        now = time.monotonic()
        if now - self._beaten < BEAT:
            return
        self._beaten = now
        bus = self._player.bus
        said = about(self._player, self._since, host=self.hostname, pid=self.pid)
        if not bus.beat(self._player.name, said | {"kernel": KERNEL_VERSION}):
            self._stop_for(
                WorkerRefused(f"{self._player.name} was caught with wrong deltas and is banned")
            )
        info = bus.info()
        if info is not None and info.get("finished"):
            self._finished = True
            raise StopRequested

    def _stop_for(self, failure: Exception) -> NoReturn:
        self._failure = failure
        raise StopRequested

    def _give_back(self, job: Job, queue: Queue) -> None:
        """Somebody else may be able to do it."""
        pipeline = self.connection.pipeline()
        pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
        pipeline.lpush(queue.key, job.id)
        pipeline.execute()

    # What RQ would tell the server around every job; `_look_around` says it once a second.

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
