"""The whole system on two cores, against what it is made of.

Three things take turns: ordered training by a learner, a server and two worker processes;
unordered training by the same; and two processes that only play, without any queue, the very games
of the ordered run with the very snapshots that these ask for. Nobody is pinned or evaluates, and
the clock runs over the same games when everybody has warmed up.

`ordered_over_unordered` and `system_over_kernels` compare games a second. Unordered training learns
other policies, whose games may be shorter or longer; `ordered_over_unordered_playing` leaves that
out and compares the share of the workers' time in which they play. Of the paper's config it is also
measured how long its experiment takes as a user would run it.

Any config can be measured (`--config`). Rates are in what its method counts, games or iterations.
"""

from __future__ import annotations

import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.methods.patch import Patch
from rejoinder.run.config import RunConfig, load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder_bench import Result, stopwatch, system
from rejoinder_learner.main import LearnerService
from rejoinder_learner.state import Learner

_CONFIG = "paper"
_UNITS = 1_000  # at least
_SECONDS = 6.0  # of play at least, on all workers together
_FIRST = 200  # units before it are not timed: workers start, policies settle
_WORKERS = 2
_ROUNDS = 5
_PAPER_GAMES = 1_000


def run(say: Callable[[str], None], config: str = _CONFIG) -> Result:
    result = Result()
    ordered = timed_config("index", config)
    counts = ordered.load_method().counts
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
        folder = Path(name)
        with Kernels(ordered) as kernels:
            rounds = []
            for n in range(_ROUNDS):
                one = System(folder / f"ordered-{n}", ordered)
                unordered = ordered.model_copy(update={"order": "arrival"})
                other = System(folder / f"unordered-{n}", unordered)
                rounds.append((one, other, kernels.rate()))
                rates = f"ordered {one.rate:,.1f}, unordered {other.rate:,.1f}"
                say(f"{counts}/s: {rates}, kernels {rounds[-1][2]:,.1f}")
        result.ratios["ordered_over_unordered"] = statistics.median(
            one.rate / other.rate for one, other, _ in rounds
        )
        result.ratios["ordered_over_unordered_playing"] = statistics.median(
            one.shares["worker_play"] / other.shares["worker_play"] for one, other, _ in rounds
        )
        result.ratios["system_over_kernels"] = statistics.median(
            one.rate / rate for one, _, rate in rounds
        )
        for what, ratio in result.ratios.items():
            say(f"{what}: {ratio:.3f}")
        result.figures |= {
            f"ordered_{counts}_per_second": statistics.median(one.rate for one, _, _ in rounds),
            f"unordered_{counts}_per_second": statistics.median(two.rate for _, two, _ in rounds),
            f"kernels_{counts}_per_second": statistics.median(rate for _, _, rate in rounds),
        }
        for what in rounds[0][0].shares:
            share = statistics.median(one.shares[what] for one, _, _ in rounds)
            result.figures[f"{what}_share"] = share
            say(f"{what}_share: {share:.1%}")
        if config == _CONFIG:
            seconds = _seconds_of_the_paper(folder / "paper")
            result.figures["paper_seconds"] = seconds
            say(f"the paper's {_PAPER_GAMES:,} games, from command to report: {seconds:.1f} s")
    return result


def timed_config(order: str, name: str = _CONFIG) -> RunConfig:
    """A config with as many units as take long enough to be timed."""
    config = load_config(name, system.QUIET | {"order": order})
    learner, actor = Learner(config), config.actor()
    begin, seconds = 0.0, 0.0
    while seconds < _SECONDS / 20 or learner.units < 3:
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))
        begin = begin or time.perf_counter()  # the first one compiles
        seconds = time.perf_counter() - begin
    units = max(_UNITS, int(_WORKERS * _SECONDS * (learner.units - 1) / seconds))
    return config.model_copy(update={"games": units * config.block})


class System:
    """One run of learner, server and workers."""

    def __init__(self, folder: Path, config: RunConfig, workers: int = _WORKERS) -> None:
        directory = RunDir.create(folder / "run", config)
        with EmbeddedServer(folder / "server.log") as server:
            first = _FIRST * config.block
            bus = system.WatchedBus(connect(server.url), directory.id, first, server.pid)
            with system.workers(
                workers, server.url, directory.id, folder, stopwatch.__name__
            ) as processes:
                result = LearnerService(
                    directory,
                    bus,
                    workers=workers,
                    should_stop=lambda: system.any_died(processes),
                ).serve()
                if not result.finished:
                    raise RuntimeError(f"a worker died: {system.last_words(folder, workers)}")
                for process in processes:
                    process.wait()  # until they have seen the end and said what they did
        self.rate = bus.rate
        self.shares = _worker_shares(folder, workers)  # of the workers' time, and of one core's
        self.shares["learner_cpu"], self.shares["server_cpu"] = bus.shares


def _worker_shares(folder: Path, workers: int) -> dict[str, float]:
    said = [stopwatch.read(folder / f"w{i}.log") for i in range(workers)]
    total = sum(one["total"] for one in said)
    return {f"worker_{part}": sum(one[part] for one in said) / total for part in stopwatch.PARTS}


class Kernels:
    """Processes that play the units of an ordered run, and nothing else."""

    def __init__(self, config: RunConfig, workers: int = _WORKERS) -> None:
        self._config = config
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        snapshots = _snapshots(config)
        for n in range(workers):
            units = range(_FIRST + n, config.units, workers)
            here, there = context.Pipe()
            process = context.Process(
                target=_play, args=(there, config, snapshots, units), daemon=True
            )
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def __enter__(self) -> Kernels:
        self.rate()  # warm up
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
            process.join()

    def rate(self) -> float:
        """Games (iterations) a second, of all processes at the same time."""
        for pipe in self._pipes:
            pipe.send("go")
        return float(sum(pipe.recv() for pipe in self._pipes))


def _snapshots(config: RunConfig) -> dict[int, Any]:
    """The policies of every snapshot of a run, by version."""
    actor, learner, rows = config.actor(), Learner(config), {}
    while learner.units < config.units:
        snapshot, version = learner.snapshot_for(learner.units), config.version_for(learner.units)
        if version not in rows:
            rows[version] = snapshot.rows.copy()
        learner.fold(actor.play(learner.units, snapshot))
    return rows


def _play(pipe: Connection, config: RunConfig, snapshots: dict[int, Any], units: range) -> None:
    """In a process of its own: play some of the units whenever told to."""
    actor = config.actor()
    method, task, loaded = config.load_method(), config.task(), {}
    for version, rows in snapshots.items():
        loaded[version] = method.snapshot(task)
        loaded[version].apply(Patch(np.arange(len(rows)), rows))
    while pipe.recv():
        begin = time.perf_counter()
        for unit in units:
            actor.play(unit, loaded[config.version_for(unit)])
        pipe.send(len(units) * config.block / (time.perf_counter() - begin))


def _seconds_of_the_paper(folder: Path) -> float:
    """`rejoinder train paper`, as a user runs it, with evaluations, checkpoints and report."""
    command = [sys.executable, "-m", "rejoinder_cli.main", "train", "paper", "--report"]
    command += ["--workers", str(_WORKERS), "--games", str(_PAPER_GAMES), "--run", str(folder)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin
