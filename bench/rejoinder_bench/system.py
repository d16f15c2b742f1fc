"""A whole system on this machine, to be measured: the server and the workers are processes of their
own, or threads of such processes; the learner is whoever calls."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rq.exceptions import DequeueTimeout
from rq.queue import Queue

from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus, Packed, lease_message
from rejoinder.transport.server import end_with_parent

REAL = "rejoinder_worker.main"  # the module whose `serve` a worker runs
QUIET = {"eval_every": 0, "checkpoint_every": 0}  # nothing but training
_LOOK = 1.0  # seconds between two looks at processor times
_LEAVING = 10.0  # seconds that a worker may take to end


@contextmanager
def workers(
    count: int, url: str, run: str, folder: Path, module: str = REAL
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes; they are ended when this is left."""
    started = [_worker(f"w{i}", url, run, folder, module) for i in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(_LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()


def any_died(processes: Iterable[subprocess.Popen[bytes]]) -> bool:
    """Whether a worker has ended with an error: a learner would wait for it for ever."""
    return any(process.poll() for process in processes)


def last_words(folder: Path, workers: int) -> str:
    logs = [(folder / f"w{i}.log").read_text().splitlines() for i in range(workers)]
    return "; ".join(lines[-1] for lines in logs if lines)


def _worker(name: str, url: str, run: str, folder: Path, module: str) -> subprocess.Popen[bytes]:
    code = f"from {module} import serve; serve({url!r}, run={run!r}, name={name!r})"
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )


def in_threads(work: Callable[..., None], each: Iterable[tuple[Any, ...]]) -> None:
    """Do it with each of the arguments, all at once, until all have ended."""
    threads = [threading.Thread(target=work, args=arguments) for arguments in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def next_lease(bus: Bus) -> tuple[str, bytes] | None:
    """The name and the message of the next lease; None if there is none for a second."""
    try:
        found = Queue.dequeue_any([bus.queue], 1, bus.client, serializer=Packed)
    except DequeueTimeout:
        return None
    assert found is not None
    return found[0].id, lease_message(found[0])


class TooShort(ValueError):
    """A run that is over before it can be timed."""


class WatchedBus(Bus):
    """A learner's bus that notes when the first and the last snapshot of the timed games went out.

    The processor seconds of this process and of the server are looked up now and then: that takes
    half a millisecond.
    """

    def __init__(self, client: Any, run: str, first: int, server: int | None) -> None:
        super().__init__(client, run)
        self._first, self._server = first, server or 0  # games that are not timed; process id
        self._began = self._ended = (0, 0.0)  # games, time
        self._used: list[tuple[float, float, float]] = []  # time, learner, server

    def name_newest(self, name: SnapshotId) -> None:
        super().name_newest(name)
        self._ended = (name.games, time.perf_counter())
        if self._began[0] < self._first:
            self._began = self._ended
            self._used.clear()
        if len(self._used) < 2 or self._ended[1] - self._used[-1][0] > _LOOK:
            used = (time.process_time(), cpu_seconds(self._server))
            self._used.append((self._ended[1], *used))

    @property
    def rate(self) -> float:
        """Games a second."""
        if self._ended == self._began:
            raise TooShort(f"{self._ended[0]:,} games are too few to be timed")
        return (self._ended[0] - self._began[0]) / (self._ended[1] - self._began[1])

    @property
    def shares(self) -> tuple[float, float]:
        """Of a core: what learner and server have used."""
        seconds, learner, server = (
            after - before for before, after in zip(self._used[0], self._used[-1], strict=True)
        )
        return learner / seconds, server / seconds


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int | str = "self") -> int:
    """The most memory that a process has had resident so far (Linux)."""
    return _memory_figure(pid, "VmHWM")


def resident_bytes(pid: int | str = "self") -> int:
    """The memory that a process has resident now (Linux)."""
    return _memory_figure(pid, "VmRSS")


def _memory_figure(pid: int | str, what: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the system does not tell the memory ({what}) of process {pid}")
