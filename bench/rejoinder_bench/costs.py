"""What the parts of the system cost, each measured by itself: the input of the capacity model.

All are processor seconds, which a busy machine hardly changes; only the round trip is by the clock.

- A game: the kernel alone, game by game, for its mean and its spread.
- A lease and a snapshot, for a worker: leases prepared in a real queue, snapshots on a real server,
  a worker that knows the deltas already. Its round trips are counted, and one of them is timed.
- A game, a message and a snapshot, for learner and server: a whole learner takes in recorded runs
  with leases and batches of different sizes; the three costs are the solution of
  games·fold + messages·message + snapshots·publish = seconds.
- A known worker, for learner and server: what the learner asks and tells about each, five times a
  second, and the worker's own sign of life.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from redis.connection import AbstractConnection
from rq.queue import Queue

from rejoinder.actor import Actor
from rejoinder.bus import Bus, Order, Packed, job_name
from rejoinder.bus.connection import connect
from rejoinder.bus.server import EmbeddedServer
from rejoinder.config import RunConfig, load_config
from rejoinder.jit import KERNEL_VERSION
from rejoinder.wire import Codec, Lease
from rejoinder_bench import learner as intake
from rejoinder_bench.recording import Recording, record
from rejoinder_bench.replay import replace_actor
from rejoinder_learner.main import LOOK
from rejoinder_learner.planner import LEASE_SECONDS
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner
from rejoinder_worker.job import Player, SnapshotCache, take_lease

CONFIG = "paper"
GAMES = 6_000  # of a recorded run
_PLAYED, _SETTLED = 500, 100  # games by the kernel; those before are not timed
_DESIGN = ((1_000, 10), (1_000, 2), (20, 10))  # batch and lease of the runs that are taken in
_ROUNDS = 3
_BATCHES = 60  # of leases for the worker
_KNOWN = 500  # workers
_PINGS = 500


@dataclass(frozen=True)
class Costs:
    """Seconds, unless said otherwise."""

    games: tuple[float, ...]  # of the kernel, one game each
    lease: float  # of a worker, for one lease
    load: float  # of a worker, for a new snapshot
    round_trips: float  # to the server in a lease, a number
    round_trip: float  # one of them, on this machine
    fold: float  # of the learner, for a game
    message: float  # of the learner, for a message and the next lease
    publish: float  # of the learner, for a snapshot
    look: float  # of the learner, a second and known worker
    server_game: float  # of the server, by the learner's part of a game, …
    server_message: float  # … of a message
    server_publish: float  # … and of a snapshot
    server_lease: float  # of the server, by a worker's part of a lease, snapshots included
    server_beat: float  # of the server, a second and worker
    delta_bytes: float  # bytes a game on the wire
    snapshot_bytes: float  # bytes of a snapshot, patch or complete, with the default batch

    @property
    def game(self) -> float:
        return statistics.fmean(self.games)


def measure(folder: Path, say: Callable[[str], None]) -> Costs:
    """Measure them all on this machine."""
    recordings = {batch: record(recorded_config(batch)) for batch in {b for b, _ in _DESIGN}}
    learner, server = _learner_costs(recordings, folder)
    default = recordings[load_config(CONFIG).batch]
    found: dict[str, Any] = {
        "games": _play(),
        **dict(zip(("fold", "message", "publish"), learner, strict=True)),
        **dict(zip(("server_game", "server_message", "server_publish"), server, strict=True)),
        **intake.in_a_process(_worker_costs, default, folder / "worker.log"),
        **_costs_of_knowing(folder / "known.log"),
        "delta_bytes": len(next(default.messages(10, 0.1))) / 10,
    }
    costs = Costs(**found)
    for name, value in found.items():
        if name == "games":
            say(f"game: {1e3 * costs.game:.2f} ms")
        elif name.endswith("_bytes") or name == "round_trips":
            say(f"{name}: {value:,.1f}")
        else:
            say(f"{name}: {1e6 * value:,.1f} µs")
    return costs


def recorded_config(batch: int, games: int | None = None) -> RunConfig:
    """The paper's experiment as a learner sees it: one rollout makes deltas of the same size."""
    many = {"rollouts": 1, "games": games or GAMES, "eval_every": 0, "checkpoint_every": 0}
    return load_config(CONFIG, many | {"batch": batch})


def _play() -> tuple[float, ...]:
    """Processor seconds of the kernel's games, with policies that have settled."""
    config = load_config(CONFIG)
    actor, learner, seconds = Actor(config), Learner(config), []
    while learner.games < _PLAYED:
        begin = time.process_time()
        delta = actor.play(learner.games, learner.policy_for(learner.games))
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


def seconds_to_take_in(recording: Recording, lease: int, path: Path) -> tuple[float, float]:
    """Processor seconds of learner and server for a whole recorded run with leases of that size."""
    # The planner makes its leases as big as they are worth, by what workers say they took.
    messages = list(recording.messages(lease, seconds=0.99 * LEASE_SECONDS))
    made = intake.take_in_recorded(recording, messages, path, intake.serve)
    if made.digest != recording.digest:
        raise RuntimeError("a learner has reached another digest than sequential training")
    return recording.config.games / made.by_processor, made.server_seconds


def _worker_costs(recording: Recording, log: Path) -> dict[str, float]:
    """In a process of its own: a worker with leases enough, which need not play."""
    config, lease = recording.config, recording.config.batch // 4
    replace_actor(recording, ())
    loading = _timed(SnapshotCache, "load")
    with EmbeddedServer(log) as server:
        bus = Bus(connect(server.url), "costs")
        leases, sizes = _prepare(bus, recording, lease)
        player = Player(Bus(connect(server.url), "costs"), config, "worker")
        trips = _counted(AbstractConnection, "send_packed_command")
        before, begin = intake.server_seconds(bus), time.process_time()
        trips[0] = 0
        for _ in range(leases):
            found = Queue.dequeue_any([player.bus.queue], 1, player.bus.client, serializer=Packed)
            assert found is not None
            take_lease(player, found[0].id, found[0].args[0])
        seconds, round_trips = time.process_time() - begin, trips[0]
        served = intake.server_seconds(bus) - before
        round_trip = _round_trip(bus)
    return {
        "lease": (seconds - loading[0]) / leases,
        "load": loading[0] / _BATCHES,
        "round_trips": round_trips / leases,
        "round_trip": round_trip,
        "server_lease": served / leases,
        "snapshot_bytes": statistics.fmean(sizes),
    }


def _prepare(bus: Bus, recording: Recording, lease: int) -> tuple[int, list[int]]:
    """Snapshots and leases of some batches; how many leases, and the snapshots' bytes."""
    config, codec = recording.config, Codec(recording.config)
    learner, publisher = Learner(config), Publisher(bus, codec)
    sizes, orders = [], []
    while learner.games < config.games - _BATCHES * config.batch:
        learner.fold(recording.deltas[learner.games])
    publisher.start_again(learner)
    for _ in range(_BATCHES):
        name = publisher.publish(learner.games - learner.games % config.batch)
        sizes.append(sum(map(len, bus.snapshot(name.games))))
        for first in range(learner.games, learner.games + config.batch, lease):
            message = codec.encode(Lease(first, first + lease, name, KERNEL_VERSION))
            orders.append(Order(job_name(bus.run, f"x-{first}"), message, "x"))
        for _ in range(config.batch):
            learner.fold(recording.deltas[learner.games])
    bus.enqueue(orders)
    return len(orders), sizes


def _costs_of_knowing(log: Path) -> dict[str, float]:
    """Of learner and server: a second of knowing one worker."""
    about = {"games": 1234, "leases": 123, "busy_seconds": 12.345, "host": "h" * 12, "pid": 12345}
    with EmbeddedServer(log) as server:
        bus = Bus(connect(server.url), "costs")
        before = intake.server_seconds(bus)
        for n in range(_KNOWN):
            bus.beat(f"worker-{n}", about)
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


def _timed(owner: Any, method: str) -> list[float]:
    """Have the calls of a method timed; the list's only item is their seconds so far."""
    real, seconds = getattr(owner, method), [0.0]

    def timed(*args: Any, **kwargs: Any) -> Any:
        begin = time.process_time()
        try:
            return real(*args, **kwargs)
        finally:
            seconds[0] += time.process_time() - begin

    setattr(owner, method, timed)
    return seconds


def _counted(owner: Any, method: str) -> list[int]:
    """Have the calls of a method counted, in the same way."""
    real, calls = getattr(owner, method), [0]

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return real(*args, **kwargs)

    setattr(owner, method, counted)
    return calls
