"""The runs there are and their policies, read-only; the gateway never touches a learner's table.

A run is a folder of the runs' folder and is named after it; a name that is no such folder is
unknown, so no name leads anywhere else. Everything read is kept until the file behind it changes:
configs and metrics by their time stamps, checkpoints by those of their files. Runs and checkpoints
are looked for at most once a second; a checkpoint that turned out to be damaged is not read again
until its files change. What is not as a trainer writes it is logged once and left out, so that one
bad file hides neither its run nor any other.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rejoinder.games.base import Game
from rejoinder.measure.agents import Agent, opponents, trained_agent
from rejoinder.run.checkpoints import DamagedError, RunError
from rejoinder.run.rundir import RunDir, is_run
from rejoinder_gateway.problems import Problem, log
from rejoinder_gateway.schemas import LARGEST
from rejoinder_gateway.snapshots import Snapshot
from rejoinder_gateway.untrusted import Session, TrainerStatus, record

_LOOK = 1.0  # seconds between two looks for new checkpoints
_GLANCE = 0.25  # seconds between two looks at what the trainer says
_STARTING = 180.0  # seconds that a trainer may take until its first word: kernels are compiled

_T = TypeVar("_T")
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

    def run(self, name: str, *, at_once: bool = False) -> Run:
        """The run of that name; a problem if there is none, as of the last second or `at_once`."""
        run = self._open(name, at_once=at_once)
        if run is None:
            raise Problem(404, "Unknown run", "no run has this name; GET /api/v1/runs lists them")
        return run

    async def snapshot(self, run: Run, games: int | None = None) -> Snapshot:
        """A checkpoint by its number of games, or the newest one that is whole."""
        if games is not None:
            if games in run.checkpoints() and (named := await self._load(run, games)) is not None:
                return named
            there = run.checkpoints()  # it may have turned out to be gone
            if games in there:
                raise Problem(404, "Damaged snapshot", "the checkpoint is damaged")
            raise Problem(
                404, "Unknown snapshot", "the run has no such checkpoint", snapshots=there
            )
        for newest in reversed(run.checkpoints()):
            if (whole := await self._load(run, newest)) is not None:
                return whole
        raise Problem(404, "No snapshot yet", "the run has no whole checkpoint yet")

    async def agent(self, run: Run, games: int | None, *, argmax: bool) -> tuple[Agent, Snapshot]:
        """The agent that a run had trained after so many games.

        A checkpoint may have been thinned out since, or be damaged; the next later one that is
        whole is the nearest then.
        """
        snapshot = await self._from(run, games) if games is not None else None
        if snapshot is None:
            snapshot = await self.snapshot(run)
        policy = await asyncio.to_thread(getattr, snapshot, "policy")  # made when first needed
        return trained_agent(run.name, snapshot.abstraction, policy, argmax=argmax), snapshot

    async def _from(self, run: Run, games: int) -> Snapshot | None:
        """The first whole checkpoint of so many games or more."""
        for later in run.checkpoints():
            if later >= games and (whole := await self._load(run, later)) is not None:
                return whole
        return None

    async def _load(self, run: Run, games: int) -> Snapshot | None:
        """None if the checkpoint is damaged, or gone."""
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
            if run.is_gone(games):  # thinned out since the last look
                return None
            log.warning("checkpoint %s of %s is not used: %s", games, run.name, error)
            if run.mark(games) == key[-1]:  # it has not been written anew meanwhile
                run.damaged.add(games)
            return None
        self._snapshots[key] = snapshot
        while len(self._snapshots) > self._cached:
            self._snapshots.popitem(last=False)
        return snapshot

    def _open(self, name: str, *, at_once: bool = False) -> Run | None:
        known, now = self._runs.get(name), time.monotonic()
        if known is not None and now - known.seen < _LOOK and not at_once:
            return known
        if not name or name.startswith(".") or "/" in name or "\\" in name or "\0" in name:
            return None
        if not _is_text(name):  # nobody could be told of it, nor ask for it
            self._refuse(name, 0, "its name is not UTF-8")
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
                self._refuse(name, stamp, str(error))
                return None
        known.seen = now
        return known

    def _refuse(self, name: str, stamp: int, why: str) -> None:
        if self._refused.get(name) != stamp:
            log.warning("%r is not listed: %s", name, why)
        self._refused[name] = stamp


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
        self._standing: TrainerStatus | None = None
        self._glanced = -_GLANCE
        self._doubted: set[str] = set()  # what was found wrong and logged

    @property
    def game(self) -> Game:
        return self.directory.config.load_game()

    def checkpoints(self) -> list[int]:
        """Their numbers of games, oldest first."""
        now = time.monotonic()
        if now - self._looked > _LOOK:
            before, self._looked = self._marks, now
            there = self.read("checkpoints", self.directory.checkpoint_games) or []
            self._marks = {n: _mark(self._folder(n)) for n in there if n <= LARGEST}
            for games in before.keys() - {n for n, m in self._marks.items() if before.get(n) == m}:
                self._digests.pop(games, None)
                self.damaged.discard(games)
        return list(self._marks)

    def is_gone(self, games: int) -> bool:
        """Whether a checkpoint that was there is there no more."""
        if self._folder(games).exists():
            return False
        self._looked = -_LOOK
        return True

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
            self._metrics = (stamp, self._read_metrics())
        return self._metrics[1]

    def _read_metrics(self) -> list[dict[str, Any]]:
        written = self.read("metrics.jsonl", self.directory.metrics) or []
        read = (self.read(f"evaluation {line['games']}", record, line) for line in written)
        return [told for told in read if told is not None]

    def sessions(self) -> list[Session]:
        """The start and each resume."""
        written = self.read("provenance.json", self.directory.sessions) or []
        read = (
            self.read(f"session {k}", Session.model_validate, session)
            for k, session in enumerate(written)
        )
        return [session for session in read if session is not None]

    def standing(self) -> TrainerStatus:
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
        if self._standing is None or now - self._glanced > _GLANCE:
            said = self._trainer_status()
            state = self._state(said)
            alive = state in ("starting", "waiting", "running")
            self._standing = said.model_copy(update={"state": state, "alive": alive})
            self._glanced = now
        return self._standing

    def _trainer_status(self) -> TrainerStatus:
        said = self.read(
            "status.json", lambda: TrainerStatus.model_validate(self.directory.standing())
        )
        if said is not None:
            return said
        games, target = max(self.checkpoints(), default=0), self.directory.config.target
        state = "finished" if games >= target else "stopped"
        return TrainerStatus(games=games, target=target, state=state, alive=False)

    def _state(self, said: TrainerStatus) -> str:
        sessions = self.sessions()
        first = sessions[-1].from_game if sessions else 0  # of this session
        if said.alive:
            if said.state == "waiting for workers":
                return "waiting"
            return "running" if said.games > first else "starting"
        reached = max(
            [*self.checkpoints()[-1:], *(r["games"] for r in self.metrics()[-1:])], default=0
        )
        if reached < self.directory.config.target and reached <= first:
            began = _changed(self.directory.path / "provenance.json")
            if said.time < began and time.time() - began < _STARTING:
                return "starting"
            if not sessions:
                return "new"
        return said.state

    def read(self, what: str, read: Callable[..., _T], *given: Any) -> _T | None:
        """What was written; None where it is not as it should be, which is logged once."""
        try:
            return read(*given)
        except (OSError, ArithmeticError, RecursionError, TypeError, ValueError) as error:
            if what not in self._doubted:
                why = " ".join(str(error).split())[:300]
                log.warning("%s: %s cannot be used: %s", self.name, what, why)
            self._doubted.add(what)
            return None

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


def _is_text(name: str) -> bool:
    """Whether it can be encoded; Python reads bytes of file names that are no UTF-8 as halves."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


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
    snapshot.make_index()  # here, in a thread: nobody's first question is to wait for it
    return snapshot
