"""Five million infosets over the real runtime: memory, pauses for checkpoints, folding, answers.

A synthetic game (see `table_game`) is trained by external sampling until nearly all of its infosets
were met: a learner, two workers and an embedded server, each a process of its own. Then a gateway
serves the run and is asked for policies by identifier. Last, further deltas are recorded and put on
a server, and a learner that has the whole table takes them in, as in `rejoinder bench learner`.

    learner_mib, worker_mib, gateway_mib   peak resident memory
    checkpoint_pause_ms   the longest time that the learner did not fold because of a checkpoint
    policy_ms             a policy by identifier over HTTP: the median
    entries_per_second    received, decoded, checked, folded, recorded and published

All of it twice: with dense keys, and with keys that are any words (`mixed_keys_…`), whose index has
to be hashed and grown.
"""

from __future__ import annotations

import gc
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rejoinder.games import GAMES
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer, end_with_parent
from rejoinder.transport.wire import Codec, Deltas
from rejoinder_bench import Result, system, table_game
from rejoinder_bench.learner import WindowBus, in_a_process, on_a_core_of_its_own, take_in
from rejoinder_cli.main import app
from rejoinder_gateway.kernels import Kernels
from rejoinder_learner.main import LearnerService
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner, Played
from rejoinder_worker.main import serve

__all__ = ["run", "serve"]  # `serve` is what a worker process runs, with the game at hand

_ITERATIONS = 10_000  # in a unit: 40,000 infosets of the game
_BATCH = 20
_MEETINGS = 6  # of an infoset, on average: 1 in 400 is still unknown then
_CHECKPOINTS = 3
_WORKERS = 2
_RECORDED = 200  # units
_ASKED = 500  # policies
_STARTING = 180.0  # seconds

_MOST = (
    ("learner_mib", 1024),
    ("worker_mib", 600),
    ("gateway_mib", 1024),
    ("checkpoint_pause_ms", 500),
    ("policy_ms", 5),
)
_LEAST = (("entries_per_second", 2_000_000),)


def run(say: Callable[[str], None]) -> Result:
    result = Result()
    try:
        with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
            _measure(result, Path(name), say)
    finally:
        del GAMES[table_game.GAME.name]
    return result


def _measure(result: Result, folder: Path, say: Callable[[str], None]) -> None:
    in_a_process(_warm_up, folder / "small")
    for prefix in ("", "mixed_keys_"):
        config = table_config(table_game.INFOSETS, mixed_keys=bool(prefix))
        directory = RunDir.create(folder / f"{prefix}runs" / "table", config)
        figures: dict[str, float] = {}
        for measure in (_train, _ask, _take_in):
            figures |= (found := measure(directory, folder))
            say(", ".join(f"{prefix}{name}: {value:,.1f}" for name, value in found.items()))
        result.figures |= {f"{prefix}{name}": value for name, value in figures.items()}
        most = {f"{prefix}{n} is at most {limit:,}": figures[n] <= limit for n, limit in _MOST}
        least = {f"{prefix}{n} is at least {limit:,}": figures[n] >= limit for n, limit in _LEAST}
        result.judge(most | least, say)


def table_config(infosets: int, mixed_keys: bool = False) -> RunConfig:
    units = -(-_MEETINGS * infosets // (4 * _ITERATIONS))
    units += -units % _BATCH
    games = units * _ITERATIONS
    return make_config(
        {
            "game": table_game.GAME.name,
            "rules": {"infosets": infosets, "mixed_keys": mixed_keys},
            "method.name": "external",
            "method.iterations": _ITERATIONS,
            "batch": _BATCH,
            "games": games,
            "checkpoint_every": games // _CHECKPOINTS,
            "eval_every": 0,
        }
    )


def _warm_up(path: Path) -> None:
    """In a process of its own: have all kernels compiled, which takes memory too."""
    small = table_config(1_000).model_copy(update={"games": 2 * _BATCH * _ITERATIONS})
    train(RunDir.create(path, small))
    _only_this_game()
    kernels = Kernels()
    kernels.load()


def _train(directory: RunDir, folder: Path) -> dict[str, float]:
    """The real run."""
    peak = 0
    with EmbeddedServer(folder / "server.log") as server:
        learner = _process("learn", server.url, str(directory.path))
        with system.workers(_WORKERS, server.url, directory.id, folder, __name__) as workers:
            while learner.poll() is None:
                peak = max(peak, *(_peak_bytes(worker.pid) for worker in workers))
                if system.any_died(workers):
                    learner.terminate()
                    raise RuntimeError(f"a worker died: {system.last_words(folder, _WORKERS)}")
                time.sleep(0.1)
        figures = _last_output(learner)
    return {"worker_mib": peak / 2**20, **figures}


def learn(url: str, path: str) -> dict[str, float]:
    """The learner's process."""
    run = RunDir.open(Path(path))
    service = LearnerService(run, Bus(connect(url), run.id), workers=_WORKERS, report=_complain)
    result = service.serve()
    return {
        "learner_mib": system.peak_bytes() / 2**20,
        "checkpoint_pause_ms": 1e3 * service.longest_pause,
        "infosets": service.infosets,
        "training_seconds": result.seconds,
    }


def _ask(directory: RunDir, _: Path) -> dict[str, float]:
    """A gateway of the run, and somebody who asks it for policies, one after the other."""
    gateway = _process("serve_gateway", str(directory.path.parent))
    assert gateway.stdout is not None
    try:
        address = urlsplit(json.loads(gateway.stdout.readline())["address"])
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=300)
        rules = directory.config.rules
        chosen = random.Random(1).sample(range(table_game.INFOSETS), _ASKED)
        keys = [table_game.key_of(*divmod(number, 2), rules) for number in chosen]
        times = [_answer(connection, f"{key:016x}") for key in keys]
        peak = _peak_bytes(gateway.pid)
    finally:
        gateway.terminate()
        gateway.communicate()
    return {
        "gateway_mib": peak / 2**20,
        "first_policy_ms": 1e3 * times[0],
        "policy_ms": 1e3 * statistics.median(times[1:]),
        "policy_p99_ms": 1e3 * sorted(times[1:])[_ASKED * 99 // 100 - 1],
    }


def _answer(connection: http.client.HTTPConnection, identifier: str) -> float:
    begin = time.perf_counter()
    connection.request("GET", f"/api/v1/runs/table/policy/{identifier}")
    answer = connection.getresponse()
    content = json.loads(answer.read())
    seconds = time.perf_counter() - begin
    if answer.status not in (200, 404) or (answer.status == 200 and len(content["actions"]) != 3):
        raise RuntimeError(f"the gateway has answered {answer.status}: {content}")
    return seconds


def serve_gateway(runs: str) -> None:
    """The gateway's process: it loads the kernels of all games that it knows, so only of this."""
    _only_this_game()
    app(["gateway", "--port", "0", "--json", "--runs", runs], standalone_mode=False)


def _only_this_game() -> None:
    for name in [name for name in GAMES if name != table_game.GAME.name]:
        del GAMES[name]


def _take_in(directory: RunDir, folder: Path) -> dict[str, float]:
    """Recorded deltas, folded into the whole table by a learner that has a core of its own."""
    with EmbeddedServer(folder / "recorded.log") as server:
        entries = in_a_process(_record, server.url, directory.path)
        window = (directory.config.lag + 1) * directory.config.batch
        _, by_clock, by_processor = on_a_core_of_its_own(_fold, server, directory.path, window)
    return {
        "entries_per_second": entries * by_clock,
        "entries_per_processor_second": entries * by_processor,
    }


def _longer(run: RunDir) -> RunConfig:
    return run.config.model_copy(update={"games": run.config.games + _RECORDED * _ITERATIONS})


def _record(url: str, path: Path) -> int:
    """In a process of its own: play on from the run's end, and put the deltas on the server."""
    run = RunDir.open(path)
    config, bus = _longer(run), Bus(connect(url), run.id)
    codec, actor, learner = Codec(config), config.actor(), Learner(config, run.result())
    entries = 0
    while learner.units < config.units:
        unit, version = learner.units, config.version_for(learner.units)
        snapshot, name = learner.snapshot_at(version), _named(learner, version)
        deltas = []
        for n in range(unit, min(unit + _BATCH - unit % _BATCH, config.units)):
            deltas.append(Played(n, version, actor.play(n, snapshot).copy()))
            counts = (len(deltas[-1].delta),)
            message = Deltas(n, name, "recorded", 0.1, counts, deltas[-1].delta)
            bus.deliver([codec.encode(message)], f"recorded-{n}")
            entries += counts[0]
        learner.fold_all(deltas)
    return entries


def _named(learner: Learner, version: int) -> Any:
    return learner.snapshots()[version * learner.config.batch * learner.config.block]


def _fold(url: str, path: Path, most: int) -> tuple[str, float, float]:
    """Digest, and how often a second all of it could be taken in."""
    run = RunDir.open(path)
    config = _longer(run)
    learner = Learner(config, run.result())
    gc.freeze()  # as the service does
    bus = WindowBus(connect(url), run.id, most)
    seconds = take_in(bus, learner)
    return learner.digest(), 1 / seconds, 1 / bus.processor_seconds


def _process(function: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", __name__, function, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"REJOINDER_GATEWAY_RATE": "0"},  # one who asks may ask often
        preexec_fn=end_with_parent,
    )


def _last_output(process: subprocess.Popen[str]) -> dict[str, float]:
    content = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"the learner has ended with {process.returncode}")
    figures: dict[str, float] = json.loads(content)
    return figures


def _peak_bytes(pid: int) -> int:
    try:
        return system.peak_bytes(pid)
    except OSError:  # it has just ended
        return 0


def _complain(text: str) -> None:
    print(text, file=sys.stderr)


def main(arguments: Sequence[str]) -> None:
    """One of the processes."""
    if arguments[0] == "learn":
        print(json.dumps(learn(*arguments[1:])))
    else:
        serve_gateway(*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
