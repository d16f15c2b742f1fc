"""The learner alone: how many games it can take in, and what publishing a big table costs.

The deltas of the flagship's games are recorded once and put on a real server, as workers would: one
message a lease. A learner on a core of its own then takes them in. It never finds more of them than
the contract's window, (L + 1)·B games, because in a real run no more can be there; B is what a run
with a hundred workers would have, since no fewer could keep a learner busy. `games_per_second` is
receiving, decoding, checking, folding, the ledger, publishing and acknowledging. The same with the
default B is `default_batch_…`; `service_…` is a whole `LearnerService`, which also plans and queues
leases, keeps an eye on them and tells its status.

`publish_time_ratio` is the time to publish the same number of changed rows of a table ten times as
big, the complete snapshots now and then included.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

import numpy as np

from rejoinder.methods.tabular.rollout import entry_dtype
from rejoinder.run.config import RunConfig, load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec, Deltas
from rejoinder_bench import Result, system
from rejoinder_bench.recording import Recording, record
from rejoinder_learner.inbox import Inbox
from rejoinder_learner.main import LearnerService
from rejoinder_learner.planner import MAX_OUTSTANDING
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner, Played, warm_up

# Digest, games a second and games a processor second, from the server's URL, the run directory and
# the messages that may be brought at once.
TakeIn: TypeAlias = Callable[[str, Path, int], tuple[str, float, float]]

ABOUT = {"games": 1234, "leases": 123, "busy_seconds": 12.345, "host": "h" * 12, "pid": 12345}

_GAMES = 10_000
_BATCH = 1_000  # ten games for each of a hundred workers
_LEASE = 10  # games in a message
_ROUNDS = 5
_LASTING = 3600  # seconds that workers which nobody hears of again are known

_BIG, _SMALL = 2_000_000, 200_000  # infosets
_ENTRIES = 500  # of a game of the big table
_PUBLISHES = 410  # timed; two complete snapshots of the big table fall due meanwhile
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it maps row numbers to distinct keys


def run(say: Callable[[str], None]) -> Result:
    result = Result()
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
        _measure_intake(result, Path(name), say)
        _measure_publishing(result, Path(name), say)
    return result


def _measure_intake(result: Result, folder: Path, say: Callable[[str], None]) -> None:
    many = system.QUIET | {"method.rollouts": 1, "games": _GAMES}
    default = record(load_config("paper", many))
    large = record(load_config("paper", many | {"batch": _BATCH}))
    for what, recording, take_in in (
        ("", large, _take_in),
        ("default_batch_", default, _take_in),
        ("service_", large, serve),
    ):
        messages = list(recording.messages(_LEASE, seconds=0.1))
        rounds = [
            take_in_recorded(recording, messages, folder / f"{what}{n}", take_in)
            for n in range(_ROUNDS)
        ]
        result.ok &= all(intake.digest == recording.digest for intake in rounds)
        by_clock = statistics.median(intake.by_clock for intake in rounds)
        by_processor = statistics.median(intake.by_processor for intake in rounds)
        result.figures[f"{what}games_per_second"] = by_clock
        result.figures[f"{what}games_per_processor_second"] = by_processor
        say(f"{what}games_per_second: {by_clock:,.0f} ({by_processor:,.0f} a processor second)")
    if not result.ok:
        say("a learner has reached ANOTHER DIGEST than sequential training")


class Intake(NamedTuple):
    """What a learner has made of recorded games."""

    digest: str
    by_clock: float  # games a second
    by_processor: float  # games a second of its processor time
    server_seconds: float  # of processor time


def take_in_recorded(
    recording: Recording, messages: Sequence[bytes], path: Path, take_in: TakeIn, workers: int = 2
) -> Intake:
    """Have a learner that knows so many workers take in a whole run from a server of its own.

    What comes at once, at most 64 messages, must be a whole window or at most a batch: the learner
    refuses games whose time has not come.
    """
    directory = RunDir.create(path, recording.config)
    with EmbeddedServer(path.with_suffix(".log")) as server:
        bus = Bus(connect(server.url), directory.id)
        _put(bus, messages, workers)
        before = server_seconds(bus)
        most = max(1, window(recording.config) * len(messages) // recording.config.games)
        intake = on_a_core_of_its_own(take_in, server, directory.path, most)
        return Intake(*intake, server_seconds(bus) - before)


def window(config: RunConfig) -> int:
    """Games that can be under way."""
    return min((config.lag + 1) * config.batch, MAX_OUTSTANDING)


def server_seconds(bus: Bus) -> float:
    """Processor time that the server has used so far."""
    used = bus.client.info("cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


def _put(bus: Bus, messages: Sequence[bytes], workers: int) -> None:
    for n, message in enumerate(messages):
        bus.deliver([message], f"recorded-{n}")
    with patch("rejoinder.transport.bus.WORKER_TTL", _LASTING):
        for n in range(workers):
            bus.beat(f"worker-{n}", ABOUT)


def on_a_core_of_its_own(
    work: TakeIn, server: EmbeddedServer, path: Path, most: int
) -> tuple[str, float, float]:
    """Run it in a process on one core, with the server on the others."""
    cores = os.sched_getaffinity(0)
    mine = max(cores)
    os.sched_setaffinity(server.pid or 0, (cores - {mine}) or cores)
    digest, by_clock, by_processor = in_a_process(_pinned, mine, work, server.url, path, most)
    return digest, by_clock, by_processor


def _pinned(core: int, work: Callable[..., Any], *arguments: Any) -> Any:
    os.sched_setaffinity(0, {core})
    return work(*arguments)


def in_a_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def serve(url: str, path: Path, most: int) -> tuple[str, float, float]:
    """Digest, games a second and games a processor second of a whole learner."""
    run = RunDir.open(path)
    bus = WindowBus(connect(url), run.id, most)
    result = LearnerService(run, bus).serve()
    return result.digest, result.games_per_second, result.games / bus.processor_seconds


def _take_in(url: str, path: Path, most: int) -> tuple[str, float, float]:
    """The same of the path of a delta alone."""
    run = RunDir.open(path)
    config = run.config
    bus = WindowBus(connect(url), run.id, most)
    warm_up(config)
    learner = Learner(config)
    gc.freeze()  # as the service does
    seconds = take_in(bus, learner)
    return learner.digest(), config.games / seconds, config.games / bus.processor_seconds


def take_in(bus: WindowBus, learner: Learner) -> float:
    """Seconds that a learner takes for what is there, up to the end of its run."""
    config, codec = learner.config, Codec(learner.config)
    assert isinstance(config, RunConfig)
    inbox, publisher = Inbox(config), Publisher(bus, codec)
    inbox.start_again(learner)
    publisher.start_again(learner)
    bus.announce({})
    for name in learner.snapshots():  # as they are when somebody plays
        publisher.publish(name)
    begin = time.perf_counter()
    while learner.units < config.units:
        with bus.in_one_go():
            for data in bus.receive(1.0):
                message = codec.decode(data)
                assert isinstance(message, Deltas)
                inbox.add(message)
            games = inbox.next_units(config.units)
            learner.fold_all([arrived.played for arrived in games])
            inbox.folded(games)
            for name in learner.snapshots():
                publisher.publish(name)
    return time.perf_counter() - begin


class WindowBus(Bus):
    """A bus that brings no more at once than can be under way in a real run."""

    def __init__(self, client: Any, run: str, most: int) -> None:
        super().__init__(client, run)
        self._most = most  # messages
        self._begin: float | None = None

    def receive(self, seconds: float, count: int = 64) -> list[bytes]:
        if self._begin is None:
            self._begin = time.process_time()
        return super().receive(seconds, min(count, self._most))

    @property
    def processor_seconds(self) -> float:
        """Since the first message."""
        return time.process_time() - (self._begin or 0.0)


def _measure_publishing(result: Result, folder: Path, say: Callable[[str], None]) -> None:
    with EmbeddedServer(folder / "server.log") as server:
        big, small, peak = in_a_process(_publish_in_turns, server.url, _BIG, _SMALL)
    result.ratios["publish_time_ratio"] = big / small
    result.figures["publish_milliseconds"] = 1e3 * big
    result.figures["peak_mebibytes"] = peak / 2**20
    say(
        f"publish_time_ratio: {big / small:.2f} ({1e3 * big:.1f} ms with {_BIG:,} infosets, "
        f"{1e3 * small:.1f} ms with {_SMALL:,}); peak memory {peak / 2**20:,.0f} MiB"
    )


def _publish_in_turns(url: str, *sizes: int) -> tuple[float, ...]:
    """Mean seconds a publish for tables of each size, and the peak memory of this process.

    First the tables grow, published all along; then known infosets change, in one table and in the
    other by turns.
    """
    tables = [_PublishedTable(url, infosets) for infosets in sizes]
    turns = [[table.change() for table in tables] for _ in range(_PUBLISHES)]
    return *(statistics.fmean(seconds) for seconds in zip(*turns, strict=True)), system.peak_bytes()


class _PublishedTable:
    """A learner with so many infosets, and its publisher."""

    def __init__(self, url: str, infosets: int) -> None:
        self._config = load_config("leduc-rollout")
        self._bus = Bus(connect(url), f"table-{infosets}")
        self._learner = Learner(self._config)
        self._publisher = Publisher(self._bus, Codec(self._config))
        self._publisher.start_again(self._learner)
        self._infosets, self._random = infosets, np.random.default_rng(1)
        self._batch = self._config.batch * _ENTRIES
        for first in range(0, infosets, self._batch):
            self._fold_and_publish(np.arange(first, min(first + self._batch, infosets)))

    def change(self) -> float:
        """Fold a batch that changes random infosets; returns the seconds to publish that."""
        return self._fold_and_publish(self._random.integers(0, self._infosets, self._batch))

    def _fold_and_publish(self, infosets: Any) -> float:
        learner = self._learner
        learner.fold_all(_games(self._config, learner.games, infosets.astype(np.uint64)))
        begin = time.perf_counter()
        with self._bus.in_one_go():
            self._publisher.publish(learner.games)
        return time.perf_counter() - begin


def _games(config: RunConfig, first: int, keys: Any) -> list[Played]:
    """A batch of games that change the infosets with these keys."""
    actions = len(config.load_abstraction().actions)
    entries = np.zeros(len(keys), entry_dtype(actions))
    entries["key"], entries["legal"], entries["reach"] = keys * _SPREAD, 2**actions - 1, 0.5
    entries["regret"] = np.random.default_rng(first).normal(size=(len(keys), actions))
    return [
        Played(first + n, config.version_for(first + n), delta)
        for n, delta in enumerate(np.array_split(entries, config.batch))
    ]
