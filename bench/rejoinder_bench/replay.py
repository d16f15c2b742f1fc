"""Simulated workers: real ones in all but the playing, which is slept through.

Each has its own connection, takes its leases from the real queue, reads the real snapshots and
delivers the recorded deltas of its games, after as long as such games take. So one machine can have
as many workers as many machines would.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rejoinder.run.config import RunConfig
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder_bench import system
from rejoinder_bench.recording import Recording
from rejoinder_learner.main import LearnerService
from rejoinder_worker.job import Player, take_lease

_PROCESSES = 2  # that share the workers
_BEAT = 1.0  # seconds between two signs of life
_LEAVING = 10.0  # seconds until all workers have seen the end


class ReplayActor:
    """Plays by heart; in the place of an `Actor`."""

    def __init__(self, recording: Recording, durations: Sequence[float]) -> None:
        self._recording, self._durations = recording, durations

    def play(self, game: int, _: Any) -> Any:
        if self._durations:
            time.sleep(self._durations[game % len(self._durations)])
        return self._recording.deltas[game]


def rate(
    recording: Recording, durations: Sequence[float], workers: int, first: int, folder: Path
) -> float:
    """Games a second of a learner with so many simulated workers, from game `first` on.

    `RuntimeError` if it does not come to the digest of the recording.
    """
    directory = RunDir.create(folder, recording.config)
    context = multiprocessing.get_context("spawn")
    with EmbeddedServer(folder.with_suffix(".log")) as server:
        processes = [
            context.Process(
                target=_share,
                args=(
                    range(n, workers, _PROCESSES),
                    server.url,
                    directory.id,
                    recording,
                    durations,
                ),
                daemon=True,
            )
            for n in range(_PROCESSES)
        ]
        for process in processes:
            process.start()
        bus = system.WatchedBus(connect(server.url), directory.id, first, server.pid)
        result = LearnerService(
            directory,
            bus,
            workers=workers,
            should_stop=lambda: any(process.exitcode for process in processes),
        ).serve()
        for process in processes:
            process.join(_LEAVING)
            process.kill()
    if not result.finished:
        raise RuntimeError("a process of simulated workers died")
    if result.digest != recording.digest:
        raise RuntimeError(f"{workers} simulated workers have led to another digest")
    return bus.rate


def _share(
    places: range, url: str, run: str, recording: Recording, durations: Sequence[float]
) -> None:
    """In a process of its own: some of the workers, each in a thread."""
    replace_actor(recording, durations)
    system.in_threads(_work, ((f"w{place}", url, run, recording) for place in places))


def replace_actor(recording: Recording, durations: Sequence[float]) -> None:
    """From now on the workers of this process replay."""
    setattr(RunConfig, "actor", lambda _: ReplayActor(recording, durations))  # noqa: B010


def _work(name: str, url: str, run: str, recording: Recording) -> None:
    bus = Bus(connect(url), run)
    player = Player(bus, recording.config, name)
    beaten = 0.0
    while True:
        if time.monotonic() - beaten > _BEAT:
            bus.beat(name, {})
            beaten = time.monotonic()
            if (bus.info() or {}).get("finished"):
                return
        if found := system.next_lease(bus):
            take_lease(player, *found)
