"""What the parts of the system cost, each measured by itself: the input of the capacity model.

All are processor seconds, which a busy machine hardly changes; only the round trip is by the clock.

- A game: the kernel alone, game by game, for its mean and its spread.
- A lease, and the reading of a snapshot, for a worker and the server: snapshots on a real server,
  leases in a real queue, a worker that knows the deltas already. Its round trips are counted, and
  one of them is timed. Snapshots are read with a small and a large batch: a patch grows with the
  games in it, though not as fast, because many change the same infosets.
- A game, a message and a snapshot, for learner and server: a whole learner takes in recorded runs
  with leases and batches of different sizes; the three costs are the solution of
  games·fold + messages·message + snapshots·publish = seconds.
- A known worker, for learner and server: what the learner asks and tells about each, five times a
  second, and the worker's own sign of life.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from redis.connection import AbstractConnection

from rejoinder.run.config import RunConfig, load_config
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus, Order, job_name
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec, Lease
from rejoinder_bench import learner as intake
from rejoinder_bench import system
from rejoinder_bench.recording import Recording, record
from rejoinder_bench.replay import replace_actor
from rejoinder_learner.main import LOOK
from rejoinder_learner.planner import LEASE_SECONDS
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner
from rejoinder_worker.job import Player, take_lease

CONFIG = "paper"
GAMES = 6_000  # of a recorded run
_PLAYED, _SETTLED = 500, 100  # games by the kernel; those before are not timed
SMALL, LARGE = 20, 1_000  # batches: the default one, and that of a hundred workers
_DESIGN = ((LARGE, 10), (LARGE, 2), (SMALL, 10))  # batch and lease of the runs that are taken in
_ROUNDS = 3
_BATCHES = 60  # that a worker has leases of, at most
_LEASES = 4  # of each
_KNOWN = 500  # workers
_PINGS = 500


@dataclass(frozen=True)
class Costs:
    """Seconds, unless said otherwise."""

    games: tuple[float, ...]  # of the kernel, one game each
    lease: float  # of a worker, for one lease, without its snapshot
    round_trips: float  # to the server in a lease, a number
    round_trip: float  # one of them, on this machine
    load: float  # of a worker, to read a snapshot of a small batch
    load_large: float  # … of a large one
    load_trips: float  # to the server for that, a number
    fold: float  # of the learner, for a game
    message: float  # of the learner, for a message and the next lease
    publish: float  # of the learner, for a snapshot
    look: float  # of the learner, a second and known worker
    server_game: float  # of the server, by the learner's part of a game, …
    server_message: float  # … of a message
    server_publish: float  # … and of a snapshot
    server_lease: float  # of the server, by a worker's part of a lease
    server_load: float  # of the server, for a worker that reads a snapshot of a small batch
    server_load_large: float  # … of a large one
    server_beat: float  # of the server, a second and worker
    delta_bytes: float  # bytes a game on the wire
    snapshot_bytes: float  # bytes of a snapshot, patch or complete, of a small batch
    snapshot_bytes_large: float  # … of a large one

    @property
    def game(self) -> float:
        return statistics.fmean(self.games)

    def reading(self, batch: int) -> Reading:
        """What a snapshot costs its reader, by a power of the batch through the two measured."""
        share = math.log(batch / SMALL) / math.log(LARGE / SMALL)

        def between(small: float, large: float) -> float:
            return small * (large / small) ** share if small and large else small

        return Reading(
            between(self.load, self.load_large),
            between(self.server_load, self.server_load_large),
            between(self.snapshot_bytes, self.snapshot_bytes_large),
        )


class Reading(NamedTuple):
    """One snapshot, read by one worker."""

    load: float  # seconds of the worker
    server: float  # seconds of the server
    bytes: float


def measure(folder: Path, say: Callable[[str], None], config: RunConfig | None = None) -> Costs:
    """Measure them all on this machine, for the paper's experiment or another one."""
    config = config or load_config(CONFIG)
    recordings = {
        batch: record(recorded_config(batch, config=config)) for batch in {b for b, _ in _DESIGN}
    }
    learner, server = _learner_costs(recordings, folder)
    small, large = (
        intake.in_a_process(_worker_costs, recordings[batch], folder / f"worker-{batch}.log")
        for batch in (min(recordings), max(recordings))
    )
    changing = ("load", "server_load", "snapshot_bytes")
    found: dict[str, Any] = {
        "games": _play(config),
        **dict(zip(("fold", "message", "publish"), learner, strict=True)),
        **dict(zip(("server_game", "server_message", "server_publish"), server, strict=True)),
        **small,
        **{f"{name}_large": large[name] for name in changing},
        **_costs_of_knowing(folder / "known.log"),
        "delta_bytes": len(next(recordings[min(recordings)].messages(10, 0.1))) / 10,
    }
    costs = Costs(**found)
    for name, value in found.items():
        if name == "games":
            say(f"game: {1e3 * costs.game:.2f} ms")
        elif "bytes" in name or name.endswith("_trips"):
            say(f"{name}: {value:,.1f}")
        else:
            say(f"{name}: {1e6 * value:,.1f} µs")
    return costs


def recorded_config(
    batch: int, games: int | None = None, config: RunConfig | None = None
) -> RunConfig:
    """An experiment as a learner sees it: one rollout makes deltas of the same size."""
    config = config or load_config(CONFIG)
    quick = config.load_method().quick(config.method)
    many = {"method": quick, "games": games or GAMES, "batch": batch}
    return config.model_copy(update=system.QUIET | many)


def _play(config: RunConfig) -> tuple[float, ...]:
    """Processor seconds of the kernel's games, with policies that have settled."""
    actor, learner, seconds = config.actor(), Learner(config), []
    while learner.games < _PLAYED:
        begin = time.process_time()
        delta = actor.play(learner.units, learner.snapshot_for(learner.units))
        seconds.append(time.process_time() - begin)
        learner.fold(delta)
    return tuple(seconds[_SETTLED:])


def _learner_costs(recordings: dict[int, Recording], folder: Path) -> tuple[Any, Any]:
    """Of learner and server: seconds a game, a message and a snapshot."""
    amounts, seconds = [], []
    for batch, lease in _DESIGN:
        rounds = [
            seconds_to_take_in(recordings[batch], lease, folder / f"intake-{batch}-{lease}-{n}")
            for n in range(_ROUNDS)
        ]
        amounts.append((GAMES, GAMES / lease, GAMES / batch))
        seconds.append([statistics.median(column) for column in zip(*rounds, strict=True)])
    solved = np.linalg.solve(np.array(amounts), np.array(seconds))
    learner, server = np.maximum(solved, 0.0).T  # a small one may drown in noise
    return learner.tolist(), server.tolist()


def seconds_to_take_in(
    recording: Recording, lease: int, path: Path, workers: int = 2
) -> tuple[float, float]:
    """Processor seconds of learner and server for a whole recorded run with leases of that size."""
    # The planner makes its leases as big as they are worth, by what workers say they took.
    messages = list(recording.messages(lease, seconds=0.99 * LEASE_SECONDS))
    made = intake.take_in_recorded(recording, messages, path, intake.serve, workers)
    if made.digest != recording.digest:
        raise RuntimeError("a learner has reached another digest than sequential training")
    return recording.config.games / made.by_processor, made.server_seconds


def _worker_costs(recording: Recording, log: Path) -> dict[str, float]:
    """In a process of its own: a worker with leases enough, which need not play."""
    config = recording.config
    replace_actor(recording, ())
    trips = _counted(AbstractConnection, "send_packed_command")
    with EmbeddedServer(log) as server:
        bus = Bus(connect(server.url), "costs")
        player = Player(Bus(connect(server.url), "costs"), config, "worker")
        loading, leasing = _Meter(bus, trips), _Meter(bus, trips)
        sizes = []
        for name in _prepare(bus, recording):
            sizes.append(sum(map(len, bus.snapshot(name.games))))
            with loading.running():
                player._snapshots.load(name)
            with leasing.running():
                for _ in range(_LEASES):
                    found = system.next_lease(player.bus)
                    assert found is not None
                    take_lease(player, *found)
        round_trip = _round_trip(bus)
    leases = _LEASES * len(sizes)
    if player.games != len(sizes) * config.batch:
        raise RuntimeError("a worker has refused what it was to be measured with")
    return {
        "lease": leasing.seconds / leases,
        "round_trips": leasing.trips / leases,
        "round_trip": round_trip,
        "server_lease": leasing.server / leases,
        "load": loading.seconds / len(sizes),
        "load_trips": loading.trips / len(sizes),
        "server_load": loading.server / len(sizes),
        "snapshot_bytes": statistics.fmean(sizes),
    }


def _prepare(bus: Bus, recording: Recording) -> Iterator[SnapshotId]:
    """The snapshots of the last batches, one after the other, each with leases in the queue.

    The first one is complete and counts like the others, as for a worker that comes new.
    """
    config, codec = recording.config, Codec(recording.config)
    learner, publisher = Learner(config), Publisher(bus, codec)
    batches = max(1, min(_BATCHES, config.games // config.batch // 2))
    while learner.games < config.games - batches * config.batch:
        learner.fold(recording.deltas[learner.games])
    publisher.start_again(learner)
    size = config.batch // _LEASES
    for start in range(learner.games, config.games, config.batch):
        name = publisher.publish(start)
        bus.enqueue(
            [
                Order(
                    job_name(bus.run, f"x-{first}"),
                    codec.encode(Lease(first, first + size, name, config.kernel)),
                    "x",
                )
                for first in range(start, start + config.batch, size)
            ]
        )
        yield name
        for _ in range(config.batch):
            learner.fold(recording.deltas[learner.games])


class _Meter:
    """Processor seconds of this process and of the server, and round trips between them."""

    def __init__(self, bus: Bus, trips: list[int]) -> None:
        self._bus, self._counter = bus, trips
        asked = [intake.server_seconds(bus) for _ in range(_PINGS)]
        self._asking = (asked[-1] - asked[0]) / (len(asked) - 1)  # what asking itself costs
        self.seconds = self._served = 0.0
        self.trips = 0

    @property
    def server(self) -> float:
        return max(0.0, self._served)  # a small one may drown in noise

    @contextmanager
    def running(self) -> Iterator[None]:
        served, trips = intake.server_seconds(self._bus), self._counter[0]
        begin = time.process_time()
        yield
        self.seconds += time.process_time() - begin
        self.trips += self._counter[0] - trips
        self._served += intake.server_seconds(self._bus) - served - self._asking


def _costs_of_knowing(log: Path) -> dict[str, float]:
    """Of learner and server: a second of knowing one worker."""
    with EmbeddedServer(log) as server:
        bus = Bus(connect(server.url), "costs")
        before = intake.server_seconds(bus)
        for n in range(_KNOWN):
            bus.beat(f"worker-{n}", intake.ABOUT)
            bus.has_learner()
            bus.info()
        beats = intake.server_seconds(bus) - before
        begin = time.process_time()
        for _ in range(_ROUNDS):
            status = {"workers": bus.workers()}
            bus.write_status(status)
            json.dumps(status)  # for the run directory
        looks = time.process_time() - begin
    return {"look": looks / _ROUNDS / _KNOWN / LOOK, "server_beat": beats / _KNOWN}


def _round_trip(bus: Bus) -> float:
    seconds = []
    for _ in range(_PINGS):
        begin = time.perf_counter()
        bus.client.ping()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def _counted(owner: Any, method: str) -> list[int]:
    """Have the calls of a method counted; the list's only item is their number so far."""
    real, calls = getattr(owner, method), [0]

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return real(*args, **kwargs)

    setattr(owner, method, counted)
    return calls
