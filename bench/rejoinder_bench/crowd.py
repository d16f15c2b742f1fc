"""A crowd: 200 workers that come, go and die all the time, and one learner.

The workers are simulated only in that many share a process: each has its own connection, takes its
leases from the real queue, reads the real snapshots and pushes to the real stream. The games are
small (Kuhn poker, one rollout). After a few leases a worker leaves, or dies with a lease in hand,
and another one comes in its place. In the end nothing may be missing: the digest is that of
sequential training, the queue is empty, and neither learner, server nor stream has ever held more
than the planner's window allows.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rejoinder.run.config import RunConfig, load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder_bench import Result, system
from rejoinder_learner.main import LearnerService
from rejoinder_learner.sequential import train
from rejoinder_worker.job import Player, take_lease

_WORKERS = 200
_PROCESSES = 2  # that they share
_GAMES = 30_000
_BATCH = 1_000
_LEASES = 8  # that a worker takes at most before it goes
_DYING = 0.1  # share of the workers that go by dying
_MEBIBYTES = 512  # that neither learner nor server may need
_LOOK = 0.02  # seconds between two looks at the stream
_LEAVING = 10.0  # seconds until all workers have seen the end


def run(say: Callable[[str], None]) -> Result:
    config = load_config(
        "kuhn-rollout",
        system.QUIET | {"games": _GAMES, "method.rollouts": 1, "batch": _BATCH, "lag": 2},
    )
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
        wanted = train(RunDir.create(Path(name) / "sequential", config)).digest
        directory = RunDir.create(Path(name) / "run", config)
        with EmbeddedServer(Path(name) / "server.log") as server:
            found = _train(server, directory)
    window = (config.lag + 1) * config.batch
    truths = {
        "the digest is that of sequential training": found["digest"] == wanted,
        f"at most the window of {window:,} games was ever outstanding": (
            found["outstanding"] <= window
        ),
        "the stream never held more messages than that": found["stream"] <= window,
        "the queue drains: nothing waits once every game is folded": found["queued"] == 0,
        f"learner and server stay below {_MEBIBYTES} MiB": (
            max(found["learner_peak_mebibytes"], found["server_peak_mebibytes"]) < _MEBIBYTES
        ),
        "some workers died": found["deaths"] > 0,
    }
    figures = {name: float(value) for name, value in found.items() if name != "digest"}
    result = Result({"truths_that_hold": sum(truths.values()) / len(truths)}, figures)
    result.judge(truths, say)
    say(", ".join(f"{name} {value:,.0f}" for name, value in figures.items()))
    return result


def _train(server: EmbeddedServer, directory: RunDir) -> dict[str, Any]:
    """Train with the crowd; what came out, and the most that there ever was of everything."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    counts = [context.Array("q", 3) for _ in range(_PROCESSES)]  # lives, deaths, leases
    crowds = [
        context.Process(
            target=_crowd, args=(n, server.url, directory.id, directory.config, counts[n])
        )
        for n in range(_PROCESSES)
    ]
    learner = context.Process(target=_learn, args=(there, server.url, directory.path))
    for process in (*crowds, learner):
        process.start()
    bus = Bus(connect(server.url), directory.id)
    stream = 0
    while not here.poll(_LOOK):
        stream = max(stream, bus.undelivered())
        if not learner.is_alive() and not here.poll():
            raise RuntimeError("the learner died")
    found: dict[str, Any] = here.recv()
    for process in (*crowds, learner):
        process.join(_LEAVING)
        process.kill()
    lives, deaths, leases = (sum(values) for values in zip(*counts, strict=True))
    memory = bus.client.info("memory")
    return found | {
        "lives": lives,
        "deaths": deaths,
        "leases": leases,
        "stream": stream,
        "server_peak_mebibytes": memory["used_memory_peak"] / 2**20,
    }


def _learn(pipe: Any, url: str, path: Path) -> None:
    """In a process of its own: the learner."""
    run = RunDir.open(path)
    outstanding, workers, queued = [0], [0], [0]

    def look(status: dict[str, Any]) -> None:
        outstanding.append(status["outstanding"] + status["unfolded"])
        workers.append(len(status["workers"]))
        if status["games"] == run.config.games and status["state"] != "finished":
            queued.append(status["queued"])  # before the learner takes back what is left

    result = LearnerService(
        run, Bus(connect(url), run.id), on_status=look, workers=_WORKERS
    ).serve()
    pipe.send(
        {
            "digest": result.digest,
            "games_per_second": result.games_per_second,
            "outstanding": max(outstanding),
            "queued": queued[-1],
            "workers_at_once": max(workers),
            "learner_peak_mebibytes": system.peak_bytes() / 2**20,
        }
    )


def _crowd(number: int, url: str, run: str, config: RunConfig, counts: Any) -> None:
    """In a process of its own: a share of the workers, each in a thread."""
    lock = threading.Lock()
    places = range(number, _WORKERS, _PROCESSES)
    system.in_threads(_place, ((place, url, run, config, counts, lock) for place in places))


def _place(place: int, url: str, run: str, config: RunConfig, counts: Any, lock: Any) -> None:
    """One worker after the other, until the run is finished."""
    chance = random.Random(place)
    life = 0
    while True:
        life += 1
        leases = chance.randint(1, _LEASES)
        dies = chance.random() < _DYING
        bus = Bus(connect(url), run)
        finished, taken = _live(Player(bus, config, f"w{place}-{life}"), leases, dies)
        bus.client.close()
        with lock:
            for n, more in enumerate((1, int(dies and not finished), taken)):
                counts[n] += more
        if finished:
            return


def _live(player: Player, leases: int, dies: bool) -> tuple[bool, int]:
    """A worker's life: some leases, then leave, or die with one in hand.

    Returns whether the run was finished before that, and the leases taken.
    """
    bus = player.bus
    bus.beat(player.name, {})
    while player.leases < leases:
        found = system.next_lease(bus)
        if found is None:
            bus.beat(player.name, {})
            if (bus.info() or {}).get("finished"):
                bus.leave(player.name)
                return True, player.leases
            continue
        if dies and player.leases == leases - 1:
            return False, leases
        take_lease(player, *found)
    bus.leave(player.name)
    return False, leases
