"""The gateway under load, beside a bare FastAPI route.

A real `rejoinder gateway` and the bare route are kept on one core, the load on the others. For
policies by identifier the two take turns under `wrk`, connections always busy. For moves, 50
players sit at their games at once, first thinking for 0.2 to 0.5 s before each move, as somebody
who clicks fast, then not at all. They all sit down at the same moment; that burst of new games is
told by itself and no part of the moves' times. Last come 100,000 requests of both kinds, with the
memory before and after. Limits on rates are off and fewer games are kept in memory; otherwise the
gateway is as it always is, SQLite with synchronous commits included.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import end_with_parent
from rejoinder_bench import Result, bare, players, system
from rejoinder_learner.sequential import train

_TRAINED = 300  # games of the run that is served
_ROUNDS = 5
_SECONDS = 3.0  # of each side in a round
_CONNECTIONS = 32
_PLAYERS = 50
_THINKING = (0.2, 0.5)
_PLAY = 40.0  # seconds of play with thinking
_MOVES = 5_000  # without
_REQUESTS = 100_000  # over which memory is compared
_MOVES_AMONG_THEM = 10_000
_CACHED_GAMES = 100  # that the gateway keeps, so that memory is soon as full as it gets
_LEAST = 0.5  # policy_over_bare
_MOST_MS = 25.0  # move_p99_ms
_MOST_GROWTH = 1.05  # memory_growth
_STARTING = 180.0  # seconds; on a new machine kernels are compiled

_LIMITS = {
    "REJOINDER_GATEWAY_RATE": "0",
    "REJOINDER_GATEWAY_NEW_GAMES": "0",
    "REJOINDER_GATEWAY_CACHED_GAMES": str(_CACHED_GAMES),
}
_WRK = """
local paths, k = {PATHS}, 0
request = function()
  k = k % #paths + 1
  return wrk.format("GET", paths[k])
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("TOLD %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(99), e.status + e.connect + e.read + e.write + e.timeout))
end
"""


def run(say: Callable[[str], None]) -> Result:
    if shutil.which("wrk") is None:
        raise ValueError("wrk is needed; Debian and Homebrew have it under this name")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        raise ValueError("two cores are needed, one to serve and one to ask")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rejoinder-")))
        settings = {"games": _TRAINED, "eval_every": 0}
        train(RunDir.create(folder / "runs" / "paper", load_config("paper", settings)))
        command = ["-m", "rejoinder_cli.main", "gateway", "--port", "0", "--json"]
        served = stack.enter_context(
            _server([*command, "--runs", str(folder / "runs")], cores[-1], folder / "gateway.log")
        )
        peer = stack.enter_context(_server(["-m", bare.__name__], cores[-1], folder / "bare.log"))
        return _measure(Load(folder, served, peer, set(cores[:-1])), say)


def _measure(load: Load, say: Callable[[str], None]) -> Result:
    result = Result()
    figures = result.figures
    for name, value in _policies(load).items():
        (result.ratios if name.endswith("_over_bare") else figures)[name] = value
    say(
        f"policies {figures['policies_per_second']:,.0f}/s, p99 {figures['policy_p99_ms']:.1f} ms; "
        f"bare {figures['bare_per_second']:,.0f}/s, p99 {figures['bare_p99_ms']:.1f} ms; "
        f"policy_over_bare {result.ratios['policy_over_bare']:.2f}"
    )
    figures |= _moves(load, "move", _THINKING, _PLAY, sys.maxsize)
    idle = load.ask_slowly(_THINKING, _PLAY / 4)
    figures["bare_paced_p99_ms"] = 1000 * _percentile(idle.moves, 99)
    say(
        f"{_PLAYERS} players who think: {figures['moves_per_second']:,.0f} moves/s, "
        f"p50 {figures['move_p50_ms']:.1f} ms, p99 {figures['move_p99_ms']:.1f} ms; "
        f"{_PLAYERS} new games at once: {figures['move_first_games_ms']:.0f} ms; "
        f"the bare route at that pace: p99 {figures['bare_paced_p99_ms']:.1f} ms"
    )
    figures |= _moves(load, "busy_move", (0.0, 0.0), sys.maxsize, _MOVES)
    result.ratios["busy_moves_over_bare"] = (
        figures["busy_moves_per_second"] / figures["bare_per_second"]
    )
    say(
        f"without thinking: {figures['busy_moves_per_second']:,.0f} moves/s, "
        f"p99 {figures['busy_move_p99_ms']:.0f} ms"
    )
    figures |= (memory := _memory(load))
    growth = memory["mebibytes_after"] / memory["mebibytes_before"]
    result.ratios["memory_growth"] = growth
    say(
        f"{memory['requests']:,.0f} requests: {memory['mebibytes_before']:.0f} MiB before, "
        f"{memory['mebibytes_after']:.0f} after"
    )
    result.judge(
        {
            f"policy_over_bare is at least {_LEAST}": result.ratios["policy_over_bare"] >= _LEAST,
            f"move_p99_ms is below {_MOST_MS:.0f}": figures["move_p99_ms"] < _MOST_MS,
            "memory is flat": growth < _MOST_GROWTH,
        },
        say,
    )
    return result


def _policies(load: Load) -> dict[str, float]:
    """Policies by identifier and the bare route, in turns."""
    paths = load.policy_paths()
    load.ask(load.served, paths, 1.0), load.ask(load.peer, [bare.PATH], 1.0)  # warm up
    rounds = [
        (load.ask(load.served, paths, _SECONDS), load.ask(load.peer, [bare.PATH], _SECONDS))
        for _ in range(_ROUNDS)
    ]
    median = statistics.median
    return {
        "policy_over_bare": median(ours[0] / theirs[0] for ours, theirs in rounds),
        "policies_per_second": median(ours[0] for ours, _ in rounds),
        "policy_p99_ms": median(ours[1] for ours, _ in rounds),
        "bare_per_second": median(theirs[0] for _, theirs in rounds),
        "bare_p99_ms": median(theirs[1] for _, theirs in rounds),
    }


def _moves(
    load: Load, name: str, thinking: tuple[float, float], seconds: float, moves: int
) -> dict[str, float]:
    seen = load.play(thinking, seconds, moves)
    return {
        f"{name}s_per_second": len(seen.moves) / seen.seconds,
        f"{name}_p50_ms": 1000 * _percentile(seen.moves, 50),
        f"{name}_p99_ms": 1000 * _percentile(seen.moves, 99),
        f"{name}_worst_ms": 1000 * max(seen.moves),
        f"{name}_first_games_ms": 1000 * max(seen.first_games),
    }


def _memory(load: Load) -> dict[str, float]:
    """Memory before and after many requests, once everything that is kept has been."""
    paths = load.policy_paths()
    asked = _REQUESTS - _MOVES_AMONG_THEM
    before = load.mebibytes()
    load.play((0.0, 0.0), sys.maxsize, _MOVES_AMONG_THEM)
    done = 0
    while done < asked:
        done += load.ask(load.served, paths, _SECONDS)[2]
    return {
        "requests": float(_MOVES_AMONG_THEM + done),
        "mebibytes_before": before,
        "mebibytes_after": load.mebibytes(),
    }


class Load:
    """The two servers, and those who ask them, on cores of their own."""

    def __init__(self, folder: Path, served: Server, peer: Server, cores: set[int]) -> None:
        self.served, self.peer = served, peer
        self._folder, self._cores = folder, cores

    def policy_paths(self) -> list[str]:
        """Of the infosets that were met most."""
        start = "/api/v1/runs/paper/policy"
        page = json.loads(_get(f"{self.served.address}{start}?limit=100"))
        return [f"{start}/{infoset['identifier']}" for infoset in page["infosets"]]

    def ask(self, server: Server, paths: list[str], seconds: float) -> tuple[float, float, int]:
        """By wrk: requests a second, the 99th percentile in milliseconds, and how many."""
        script = self._folder / "wrk.lua"
        script.write_text(_WRK.replace("PATHS", ", ".join(json.dumps(path) for path in paths)))
        command = ["wrk", "-t1", f"-c{_CONNECTIONS}", f"-d{max(1, round(seconds))}s"]
        told = re.search(
            r"TOLD (\d+) (\d+) (\d+) (\d+)",
            self._run([*command, "-s", str(script), server.address]),
        )
        assert told is not None, "the script says it"
        count, microseconds, p99, errors = map(int, told.groups())
        if errors:
            raise RuntimeError(f"{errors} of {count} requests failed")
        return count * 1e6 / microseconds, p99 / 1000, count

    def play(self, thinking: tuple[float, float], seconds: float, moves: int) -> players.Seen:
        opponent = {"run": "paper"}
        return self._crowd(
            players.Crowd(self.served.address, opponent, _PLAYERS, thinking, seconds, moves)
        )

    def ask_slowly(self, thinking: tuple[float, float], seconds: float) -> players.Seen:
        """The bare route at the pace of players."""
        return self._crowd(
            players.Crowd(
                self.peer.address, None, _PLAYERS, thinking, seconds, sys.maxsize, bare.PATH
            )
        )

    def _crowd(self, crowd: players.Crowd) -> players.Seen:
        command = [sys.executable, "-m", players.__name__, json.dumps(asdict(crowd))]
        return players.Seen(**json.loads(self._run(command)))

    def mebibytes(self) -> float:
        """What the gateway has in memory."""
        return system.resident_bytes(self.served.pid) / 2**20

    def _run(self, command: list[str]) -> str:
        return subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, self._cores),
        ).stdout


class Server:
    """A process that has said where it listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://[\d.:]+", said)
        if found is None:
            raise RuntimeError(f"a server has not started: {said!r}")
        self.address, self.pid = found[0], process.pid


@contextmanager
def _server(arguments: list[str], core: int, log: Path) -> Iterator[Server]:
    """A Python process on that core, until this is left."""

    def prepare() -> None:
        end_with_parent()
        os.sched_setaffinity(0, {core})

    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=file,
            stdin=subprocess.DEVNULL,
            text=True,
            env=os.environ | _LIMITS,
            preexec_fn=prepare,
        )
    try:
        server = Server(process)
        _wait_until_ready(server)
        yield server
    finally:
        process.terminate()
        process.communicate()


def _wait_until_ready(server: Server) -> None:
    """The gateway says when; a server without that page is ready when it answers."""
    deadline = time.monotonic() + _STARTING
    while True:
        try:
            _get(f"{server.address}/readyz")
            return
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError(f"{server.address} is not ready")
        time.sleep(0.2)


def _get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read()


def _percentile(times: list[float], percent: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]
