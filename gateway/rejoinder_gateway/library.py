"""The runs there are and their policies, read-only; the gateway never touches a learner's table.

A run is a folder of the runs' folder and is named after it; a name that is no such folder is
unknown, so no name leads anywhere else. Everything read is kept until the file behind it changes:
configs and metrics by their time stamps, checkpoints by their number of games. Runs and checkpoints
are looked for at most once a second.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from rejoinder.evaluate.agents import Agent, opponents, trained_agent
from rejoinder.games.base import Game
from rejoinder.rundir import DamagedError, RunDir, RunError, is_run
from rejoinder_gateway.problems import Problem, log
from rejoinder_gateway.snapshots import Snapshot

_LOOK = 1.0  # seconds between two looks for new checkpoints


class Library:
    def __init__(self, folder: Path, cached: int) -> None:
        self.folder = folder
        self._cached = cached
        self._runs: dict[str, Run] = {}
        self._refused: dict[str, int] = {}  # by name: the stamp of a config that cannot be used
        self._snapshots: OrderedDict[tuple[str, str, int], Snapshot] = OrderedDict()
        self._loading: dict[tuple[str, str, int], asyncio.Lock] = {}

    def runs(self) -> list[Run]:
        """All that can be read, by name."""
        try:
            names = sorted(path.name for path in self.folder.iterdir() if path.is_dir())
        except OSError:
            return []
        return [run for name in names if (run := self._open(name)) is not None]

    def run(self, name: str) -> Run:
        """The run of that name; a problem if there is none."""
        run = self._open(name)
        if run is None:
            raise Problem(404, "Unknown run", "no run has this name; GET /api/v1/runs lists them")
        return run

    async def snapshot(self, run: Run, games: int | None = None) -> Snapshot:
        """A checkpoint by its number of games, or the newest one that is whole."""
        if games is not None:
            if games not in run.checkpoints():
                raise Problem(
                    404,
                    "Unknown snapshot",
                    "the run has no such checkpoint",
                    snapshots=run.checkpoints(),
                )
            try:
                return await self._load(run, games)
            except DamagedError as error:
                log.warning("checkpoint %s of %s is not used: %s", games, run.name, error)
                raise Problem(404, "Damaged snapshot", "the checkpoint is damaged") from None
        for newest in reversed(run.checkpoints()):
            try:
                return await self._load(run, newest)
            except DamagedError as error:
                log.warning("checkpoint %s of %s is not used: %s", newest, run.name, error)
        raise Problem(404, "No snapshot yet", "the run has not written a checkpoint yet")

    async def agent(self, run: Run, games: int | None, *, argmax: bool) -> tuple[Agent, Snapshot]:
        """The agent that a run had trained after so many games.

        A checkpoint may have been thinned out since; the next later one is the nearest then.
        """
        if games is not None and games not in run.checkpoints():
            games = next((later for later in run.checkpoints() if later > games), None)
        snapshot = await self.snapshot(run, games)
        return (
            trained_agent(run.name, snapshot.abstraction, snapshot.policy, argmax=argmax),
            snapshot,
        )

    async def _load(self, run: Run, games: int) -> Snapshot:
        key = (run.name, run.directory.id, games)
        if (known := self._snapshots.get(key)) is not None:
            self._snapshots.move_to_end(key)
            return known
        async with self._loading.setdefault(key, asyncio.Lock()):
            if (loaded := self._snapshots.get(key)) is None:
                loaded = await asyncio.to_thread(_read, run.directory, games)
                self._snapshots[key] = loaded
                while len(self._snapshots) > self._cached:
                    self._snapshots.popitem(last=False)
        self._loading.pop(key, None)
        return loaded

    def _open(self, name: str) -> Run | None:
        known, now = self._runs.get(name), time.monotonic()
        if known is not None and now - known.seen < _LOOK:
            return known
        if not name or name.startswith(".") or "/" in name or "\\" in name or "\0" in name:
            return None
        path = self.folder / name
        try:
            stamp = (path / "config.json").stat().st_mtime_ns
        except (OSError, ValueError):
            self._runs.pop(name, None)
            return None
        if known is None or known.stamp != stamp:
            if not is_run(path):
                return None
            try:
                known = self._runs[name] = Run(name, RunDir.open(path), stamp)
            except RunError as error:
                if self._refused.get(name) != stamp:
                    log.warning("%s is not listed: %s", name, error)
                self._refused[name] = stamp
                return None
        known.seen = now
        return known


class Run:
    """One run directory, with what was read from it."""

    def __init__(self, name: str, directory: RunDir, stamp: int) -> None:
        self.name = name
        self.directory = directory
        self.stamp = stamp  # of its config
        self.seen = 0.0  # when it was last found there
        self._checkpoints: list[int] = []
        self._looked = 0.0
        self._digests: dict[int, str] = {}
        self._metrics: tuple[Any, list[dict[str, Any]]] = (None, [])

    @property
    def game(self) -> Game:
        return self.directory.config.load_game()

    def checkpoints(self) -> list[int]:
        """Their numbers of games, oldest first."""
        now = time.monotonic()
        if now - self._looked > _LOOK:
            self._checkpoints, self._looked = self.directory.checkpoint_games(), now
        return self._checkpoints

    def digest_of(self, games: int) -> str | None:
        """What a checkpoint's manifest says; the rows are compared with it when they are read."""
        if games not in self._digests:
            file = self.directory.path / "checkpoints" / f"{games:08d}" / "manifest.json"
            try:
                said = json.loads(file.read_bytes())["digest"]
            except (OSError, ValueError, KeyError, TypeError):
                return None
            self._digests[games] = str(said)
        return self._digests[games]

    def metrics(self) -> list[dict[str, Any]]:
        """The evaluations so far, by game index."""
        try:
            file = (self.directory.path / "metrics.jsonl").stat()
        except OSError:
            return []
        stamp = (file.st_mtime_ns, file.st_size)
        if self._metrics[0] != stamp:
            self._metrics = (stamp, self.directory.metrics())
        return self._metrics[1]


def baseline(game: Game, name: str) -> Agent:
    """A hand-made opponent; a problem if the game has none of that name."""
    found = opponents(game)
    if name not in found:
        raise Problem(
            404, "Unknown baseline", f"{game.name} has {', '.join(found)}", baselines=list(found)
        )
    return found[name]


def _read(directory: RunDir, games: int) -> Snapshot:
    snapshot = Snapshot(directory.config, directory.checkpoint(games))
    snapshot.answer("")  # makes the index
    return snapshot
