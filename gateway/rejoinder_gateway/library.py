"""The runs there are and their policies, read-only; the gateway never touches a learner's table.

A run is a folder of the runs' folder and is named after it; a name that is no such folder is
unknown, so no name leads anywhere else. Everything read is kept until the file behind it changes:
configs and metrics by their time stamps, checkpoints by those of their files. Runs and checkpoints
are looked for at most once a second; a checkpoint that turned out to be damaged is not read again
until its files change.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from rejoinder.checkpoints import DamagedError, RunError
from rejoinder.evaluate.agents import Agent, opponents, trained_agent
from rejoinder.games.base import Game
from rejoinder.rundir import RunDir, is_run
from rejoinder_gateway.problems import Problem, log
from rejoinder_gateway.snapshots import Snapshot

_LOOK = 1.0  # seconds between two looks for new checkpoints
_GLANCE = 0.25  # seconds between two looks at what the trainer says
_STARTING = 180.0  # seconds that a trainer may take until its first word: kernels are compiled

_Key = tuple[str, str, int, int]  # run, its id, games of the checkpoint, its mark


class Library:
    def __init__(self, folder: Path, cached: int) -> None:
        self.folder = folder
        self._cached = cached
        self._runs: dict[str, Run] = {}
        self._refused: dict[str, int] = {}  # by name: the stamp of a config that cannot be used
        self._snapshots: OrderedDict[_Key, Snapshot] = OrderedDict()
        self._loading: dict[_Key, asyncio.Lock] = {}

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
            if (named := await self._load(run, games)) is None:
                raise Problem(404, "Damaged snapshot", "the checkpoint is damaged")
            return named
        for newest in reversed(run.checkpoints()):
            if (whole := await self._load(run, newest)) is not None:
                return whole
        raise Problem(404, "No snapshot yet", "the run has no whole checkpoint yet")

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

    async def _load(self, run: Run, games: int) -> Snapshot | None:
        """None if the checkpoint is damaged."""
        key = (run.name, run.directory.id, games, run.mark(games))
        if (known := self._snapshots.get(key)) is not None:
            self._snapshots.move_to_end(key)
            return known
        if games in run.damaged:
            return None
        async with self._loading.setdefault(key, asyncio.Lock()):
            try:
                known = self._snapshots.get(key)  # somebody else may have been faster
                if known is not None or games in run.damaged:
                    return known
                return await self._read(run, games, key)
            finally:
                self._loading.pop(key, None)

    async def _read(self, run: Run, games: int, key: _Key) -> Snapshot | None:
        try:
            snapshot = await asyncio.to_thread(_read_snapshot, run.directory, games)
        except DamagedError as error:
            log.warning("checkpoint %s of %s is not used: %s", games, run.name, error)
            if run.mark(games) == key[-1]:  # it has not been written anew meanwhile
                run.damaged.add(games)
            return None
        self._snapshots[key] = snapshot
        while len(self._snapshots) > self._cached:
            self._snapshots.popitem(last=False)
        return snapshot

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
        self.damaged: set[int] = set()  # checkpoints that are not what was written
        self._marks: dict[int, int] = {}  # of the checkpoints, oldest first
        self._looked = -_LOOK
        self._digests: dict[int, str] = {}
        self._metrics: tuple[Any, list[dict[str, Any]]] = (None, [])
        self._standing: dict[str, Any] = {}
        self._glanced = -_GLANCE

    @property
    def game(self) -> Game:
        return self.directory.config.load_game()

    def checkpoints(self) -> list[int]:
        """Their numbers of games, oldest first."""
        now = time.monotonic()
        if now - self._looked > _LOOK:
            before, self._looked = self._marks, now
            self._marks = {n: _mark(self._folder(n)) for n in self.directory.checkpoint_games()}
            for games in before.keys() - {n for n, m in self._marks.items() if before.get(n) == m}:
                self._digests.pop(games, None)
                self.damaged.discard(games)
        return list(self._marks)

    def mark(self, games: int) -> int:
        """Changes when the checkpoint does."""
        return self._marks.get(games, 0)

    def digest_of(self, games: int) -> str | None:
        """What a checkpoint's manifest says; the rows are compared with it when they are read."""
        if games not in self._digests:
            try:
                said = json.loads((self._folder(games) / "manifest.json").read_bytes())["digest"]
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

    def standing(self) -> dict[str, Any]:
        """What the trainer says, or if it says nothing what it has written. `state` is one of

        new       nobody has trained the run yet
        starting  its trainer is there and has not finished a game yet
        waiting   there are no workers
        running   games are played
        finished  all of them are
        stopped   the trainer has ended before that
        gone      it has ended without a word
        """
        now = time.monotonic()
        if now - self._glanced > _GLANCE:
            said = self.directory.standing()
            said["state"] = self._state(said)
            said["alive"] = said["state"] in ("starting", "waiting", "running")
            self._standing, self._glanced = said, now
        return self._standing

    def _state(self, said: dict[str, Any]) -> str:
        sessions = self.directory.sessions()
        first: int = sessions[-1].get("from_game", 0) if sessions else 0  # of this session
        if said["alive"]:
            if said["state"] == "waiting for workers":
                return "waiting"
            return "running" if said["games"] > first else "starting"
        reached = max(
            [*self.checkpoints()[-1:], *(r["games"] for r in self.metrics()[-1:])], default=0
        )
        if reached < self.directory.config.games and reached <= first:
            began = _changed(self.directory.path / "provenance.json")
            if said.get("time", 0.0) < began and time.time() - began < _STARTING:
                return "starting"
            if not sessions:
                return "new"
        return str(said["state"])

    def _folder(self, games: int) -> Path:
        return self.directory.path / "checkpoints" / f"{games:08d}"


def baseline(game: Game, name: str) -> Agent:
    """A hand-made opponent; a problem if the game has none of that name."""
    found = opponents(game)
    if name not in found:
        raise Problem(
            404, "Unknown baseline", f"{game.name} has {', '.join(found)}", baselines=list(found)
        )
    return found[name]


def _mark(folder: Path) -> int:
    """Of the names, times and sizes of the files in it."""
    try:
        files = [(f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in os.scandir(folder)]
    except OSError:  # it is being thinned out
        return 0
    return hash(tuple(sorted(files)))


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _read_snapshot(directory: RunDir, games: int) -> Snapshot:
    snapshot = Snapshot(directory.config, directory.checkpoint(games))
    snapshot.answer("")  # makes the index
    return snapshot
