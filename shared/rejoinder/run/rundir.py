"""The run directory: everything that a run leaves behind, and how it is read again.

    config.json         the run config, its fingerprint, and the run's id
    provenance.json     what ran it: one entry for the start and for each resume
    metrics.jsonl       statistics and matches by game index, one JSON object a line
    ledger.bin          a record for every folded game, hash-chained (see `ledger`)
    checkpoints/N/      the learner's state after N games, in eight digits (see `checkpoints`);
                        at 0 what the run starts from, if that is not nothing
    quarantine.jsonl    messages that were refused, with the reason (see `add_to_quarantine`)
    workers.json        which workers have brought units since when, and which are banned
    status.json         what the trainer last said of itself
    stop                there: somebody has asked the trainer to stop
    report.html         written by `rejoinder report`, with figures/ beside it
    tracking/           what `rejoinder track` has handed over, and the trackers' own files

Invariant: a reader sees a file or a checkpoint whole or not at all, whenever the writer is killed
(see `files`), and never takes a checkpoint whose content is not what was written: a damaged one is
reported with the reason and the newest one that is whole is used. That may be some checkpoints
back: those of a big table share files, and what damages a shared file damages all of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.files import (
    TEMPORARY,
    append_line,
    json_object,
    read_json,
    read_lines,
    remove,
    sync_directory,
    write_atomically,
    write_json,
)
from rejoinder.methods.base import Rows
from rejoinder.run.checkpoints import (
    FORMAT,
    Checkpoint,
    DamagedError,
    Increment,
    RunError,
    contents_of,
    first_checkpoint,
    read_checkpoint,
    start_of,
    thinned,
    write_checkpoint,
)
from rejoinder.run.config import (
    ConfigError,
    RunConfig,
    canonical_json,
    describe_difference,
    make_config,
)
from rejoinder.run.ledger import RECORD, head_after
from rejoinder.run.provenance import provenance

FRESH = 5.0  # seconds after which a trainer that says nothing is taken for gone
QUARANTINE_BYTES = 16 * 2**20  # of messages kept in the quarantine's file

_CONFIG, _PROVENANCE, _METRICS = "config.json", "provenance.json", "metrics.jsonl"
_LEDGER, _QUARANTINE, _STATUS = "ledger.bin", "quarantine.jsonl", "status.json"
_WORKERS, _CHECKPOINTS = "workers.json", "checkpoints"
_MARKS = {"format", "fingerprint", "config"}  # what the config of any run has, of any version
_LOCK = ".lock"  # held by the trainer; its content means nothing
_STOP = "stop"  # there: somebody has asked the trainer to stop
REPORT = "report.html"
FIGURES = "figures"  # of the report, as pictures
LOGS = "logs"  # of the processes that a trainer starts
TARGETS = "targets"  # where those say that they can be scraped
PROMETHEUS = "prometheus"  # settings and data of a Prometheus that is one of them
TRACKING = "tracking"  # of experiment trackers


class RunDir:
    """One run directory. Make it by `create` or `open`."""

    def __init__(self, path: Path, config: RunConfig, name: str) -> None:
        self.path = path
        self.config = config
        self.id = name  # what its keys on a server are called; no other run has it

    @classmethod
    def create(cls, path: Path, config: RunConfig, start: Rows | None = None) -> RunDir:
        """A new run in a directory that is empty or not there yet; `start`: what it begins with."""
        if config.start != ("" if start is None else start_of(start)):
            raise RunError("start: the policy that the config names has to be given, by --from")
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; a run needs a directory")
        if path.exists() and any(path.iterdir()):
            what = "holds a run already" if is_run(path) else "is not empty and not a run"
            raise RunError(f"{path} {what}")
        (path / _CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        name = re.sub("[^A-Za-z0-9]+", "-", path.resolve().name).strip("-")[:40]
        run = cls(path, config, f"{name}-{secrets.token_hex(4)}".lstrip("-"))
        if start is not None and config.start:
            run.save(first_checkpoint(config, start))
        run._write_config()  # last: this is what makes it a run
        return run

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """A run that is there."""
        return cls(path, *_read_config(path))

    @classmethod
    def open_or_create(cls, path: Path, config: RunConfig) -> RunDir:
        """Go on with the run that is there, or make it."""
        if not is_run(path):
            return cls.create(path, config)
        run = cls.open(path)
        run.continue_with(config)
        return run

    def continue_with(self, config: RunConfig) -> None:
        """Take over another length and other reporting; everything else must be the same.

        A config that does not say what the run starts from leaves that as it is.
        """
        if not config.start:
            config = config.model_copy(update={"start": self.config.start})
        if config.fingerprint != self.config.fingerprint:
            difference = describe_difference(self.config, config)
            raise RunError(f"{self.path} is a run of another config: {difference}")
        there = max(self.checkpoint_games(), default=0)
        if there > config.target:
            raise RunError(
                f"games: {self.path} has {there} {config.counts} already; {config.target} are fewer"
            )
        if config != self.config:
            with self.locked():
                self.config = config
                self._write_config()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other trainers out of the run as long as this one is at work."""
        with _locked(self.path):
            yield

    def begin_session(self, from_game: int) -> None:
        """Note in the provenance what runs from game `from_game` on; clear what a crash left."""
        for folder in (self.path, self.path / _CHECKPOINTS):
            for leftover in folder.glob(f"{TEMPORARY}*"):
                remove(leftover)
        self.withdraw_stop()
        sessions = [*self.sessions(), {"from_game": from_game, **provenance(self.config.kernel)}]
        write_json(self.path / _PROVENANCE, {"sessions": sessions})

    def sessions(self) -> list[dict[str, Any]]:
        """The provenance of the start and of each resume."""
        sessions = read_json(self.path / _PROVENANCE).get("sessions")
        return [s for s in sessions if isinstance(s, dict)] if isinstance(sessions, list) else []

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        append_line(self.path / _METRICS, canonical_json(record))

    def metrics(self) -> list[dict[str, Any]]:
        """The evaluations so far, by game index."""
        by_games: dict[int, dict[str, Any]] = {}
        for record in read_lines(self.path / _METRICS):
            if isinstance(record.get("games"), int):  # the matches come later than the rest
                by_games.setdefault(record["games"], {}).update(record)
        return [by_games[games] for games in sorted(by_games)]

    def drop_metrics_after(self, games: int) -> None:
        """Forget evaluations of games that are going to be played again."""
        records = self.metrics()
        kept = [r for r in records if r["games"] <= games]
        text = "".join(canonical_json(record) + "\n" for record in kept)
        if kept or (self.path / _METRICS).exists():
            write_atomically(self.path / _METRICS, text.encode())

    def extend_ledger(self, games: int, records: bytes, *, sync: bool = True) -> None:
        """Add the records of the units after `games` games; those that were there give way.

        Without `sync` they may be lost with the power until `sync_ledger` has returned.
        """
        before = games // self.config.block * RECORD.itemsize
        with (self.path / _LEDGER).open("ab") as file:
            if file.tell() < before:
                raise RunError(f"{self.path / _LEDGER} is shorter than the {games} games before")
            file.truncate(before)
            file.write(records)
            file.flush()
            if sync:
                os.fsync(file.fileno())

    def sync_ledger(self) -> None:
        with (self.path / _LEDGER).open("rb") as file:
            os.fsync(file.fileno())

    def go_back(self, games: int) -> None:
        """Forget what came after so many games; the ledger first, which vouches for the rest."""
        self.extend_ledger(games, b"")
        for later in self.checkpoint_games():
            if later > games:
                remove(self._folder_of(later))

    def ledger(self) -> Any:
        """Its whole records so far."""
        try:
            content = (self.path / _LEDGER).read_bytes()
        except FileNotFoundError:
            content = b""
        return np.frombuffer(content, RECORD, count=len(content) // RECORD.itemsize)

    def add_to_quarantine(self, record: Mapping[str, Any]) -> None:
        """Keep a refused message; once the file is big only what is said about it."""
        path = self.path / _QUARANTINE
        full = path.exists() and path.stat().st_size > QUARANTINE_BYTES
        kept = {name: value for name, value in record.items() if name != "message" or not full}
        append_line(path, canonical_json(kept))

    def quarantine(self) -> list[dict[str, Any]]:
        """What was refused, oldest first."""
        return read_lines(self.path / _QUARANTINE)

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace what the trainer says of itself; not worth an fsync."""
        temporary = self.path / f"{TEMPORARY}{os.getpid()}-{_STATUS}"
        temporary.write_text(json.dumps(status), "utf-8")
        os.replace(temporary, self.path / _STATUS)

    def status(self) -> dict[str, Any]:
        """What the trainer last said; empty if it never did."""
        return read_json(self.path / _STATUS)

    def standing(self) -> dict[str, Any]:
        """The trainer's last word and whether it is `alive`; without one what checkpoints say."""
        said = self.status()
        if {"state", "time", "games", "target"} <= said.keys():
            ended = said["state"] in ("finished", "stopped")
            alive = not ended and time.time() - said["time"] < FRESH
            return said | {"alive": alive, "state": said["state"] if ended or alive else "gone"}
        games, target = max(self.checkpoint_games(), default=0), self.config.target
        state = "finished" if games >= target else "stopped"
        told = {"games": games, "target": target, "counts": self.config.counts}
        return told | {"state": state, "alive": False, "workers": {}}

    def request_stop(self) -> None:
        """Ask whoever trains the run to write a checkpoint and stop."""
        (self.path / _STOP).touch()

    def stop_requested(self) -> bool:
        return (self.path / _STOP).exists()

    def withdraw_stop(self) -> None:
        """Forget a request; whoever begins to train does that."""
        (self.path / _STOP).unlink(missing_ok=True)

    def write_workers(self, known: Mapping[str, Any]) -> None:
        """Keep who has brought units since when, and who may bring no more."""
        write_json(self.path / _WORKERS, known)

    def workers(self) -> dict[str, Any]:
        """What `write_workers` has kept: `first_unit` by name, and `banned`."""
        known = read_json(self.path / _WORKERS)
        first, banned = known.get("first_unit"), known.get("banned")
        return {
            "first_unit": first if isinstance(first, dict) else {},
            "banned": banned if isinstance(banned, list) else [],
        }

    def save(
        self,
        checkpoint: Checkpoint,
        increment: Increment | None = None,
        before_rename: Callable[[], None] = lambda: None,
    ) -> None:
        """Write a checkpoint and thin out the old ones. The ledger must have got there before.

        With an increment only what it names is written, if the checkpoint before it is there.
        """
        folder = self.path / _CHECKPOINTS
        target = self._folder_of(checkpoint.games)
        if self._holds(target, checkpoint):
            return
        temporary, before = (
            folder / f"{TEMPORARY}{os.getpid()}-{kind}-{target.name}" for kind in ("new", "old")
        )
        remove(temporary)
        try:
            folder.mkdir(exist_ok=True)
            temporary.mkdir()
            shared = (
                () if increment is None else (self._folder_of(increment.since), increment.index)
            )
            write_checkpoint(temporary, self.config, checkpoint, *shared)
            before_rename()
            if target.exists():  # damaged, by other kernels, or with evaluations that are here now
                os.rename(target, before)
            os.rename(temporary, target)
            sync_directory(folder)
        finally:
            remove(temporary)
            remove(before)
        there = [n for n in self.checkpoint_games() if n > 0 or not self.config.start]
        for games in thinned(there, self.config.checkpoints_kept):
            remove(self._folder_of(games))

    def _holds(self, folder: Path, checkpoint: Checkpoint) -> bool:
        """Whether this very checkpoint is there already, whole."""
        try:
            there = read_checkpoint(folder, self.config)
        except DamagedError:
            return False
        old, new = contents_of(there), contents_of(checkpoint)
        return (
            there.kernel == checkpoint.kernel
            and old.keys() == new.keys()
            and all(old[name].head == new[name].head for name in new)
            and all(np.array_equal(old[name].rows, new[name].rows) for name in new)
        )

    def newest_checkpoint(
        self, report: Callable[[str], None] = lambda _: None
    ) -> Checkpoint | None:
        """The newest checkpoint that is whole, or None; `report` is told of those that are not."""
        for games in reversed(self.checkpoint_games()):
            try:
                return self.checkpoint(games)
            except DamagedError as error:
                folder = self._folder_of(games)
                report(f"checkpoint {folder} is damaged and not used: {error}")
        return None

    def checkpoint(self, games: int) -> Checkpoint:
        """The checkpoint after so many games; DamagedError if it is not what was written."""
        return read_checkpoint(self._folder_of(games), self.config)

    def supported_checkpoint(
        self, report: Callable[[str], None] = lambda _: None, most: int | None = None
    ) -> Checkpoint | None:
        """The newest whole checkpoint that the ledger leads to, of at most so many games."""
        records = self.ledger()
        found, refused = None, 0
        for games in reversed(self.checkpoint_games()):
            if most is not None and games > most:
                continue
            try:
                checkpoint = self.checkpoint(games)
                units = games // self.config.block
                if len(records) < units:
                    ends = len(records) * self.config.block
                    raise DamagedError(f"the ledger ends at game {ends}")
                if head_after(records, units, self.config.fingerprint) != checkpoint.head:
                    raise DamagedError("the ledger tells of another history")
            except DamagedError as error:
                refused += games > 0
                report(f"the checkpoint at game {games:,} of {self.path} is not used: {error}")
            else:
                found = checkpoint
                break
        if refused and len(records) == 0:
            raise RunError(
                f"{self.path / _LEDGER} is missing, so no checkpoint can be continued; "
                "put it back, or start again with --overwrite"
            )
        if found is None and self.config.start:
            raise RunError(
                f"{self._folder_of(0)}, the policy that the run starts from, is not whole; "
                "put it back, or start again with --overwrite"
            )
        return found

    def result(self, report: Callable[[str], None] = lambda _: None) -> Checkpoint:
        """The newest whole checkpoint; it is an error if there is none."""
        checkpoint = self.newest_checkpoint(report)
        if checkpoint is None:
            raise RunError(f"{self.path} has no usable checkpoint yet")
        return checkpoint

    def learned(self, rows: Rows) -> Rows:
        """Rows of a checkpoint as readers take them (see `methods.base.Method`)."""
        return self.config.load_method().learned(self.config.task(), rows)

    def policy_rows(self, checkpoint: Checkpoint) -> Rows:
        """What is played by a checkpoint; its own rows, where agents read those."""
        return self.config.load_method().policy_rows(self.config.task(), checkpoint.rows)

    def checkpoint_games(self) -> list[int]:
        """The checkpoints there are, whole or not, by their number of games."""
        try:
            names = [p.name for p in (self.path / _CHECKPOINTS).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdecimal())

    def _folder_of(self, games: int) -> Path:
        """Where the checkpoint after so many games is, if it is."""
        return self.path / _CHECKPOINTS / f"{games:08d}"

    def _write_config(self) -> None:
        content = {
            "format": FORMAT,
            "id": self.id,
            "fingerprint": self.config.fingerprint,
            "config": self.config.model_dump(mode="json"),
        }
        write_json(self.path / _CONFIG, content)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with (path / _LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{path} is being trained by another process") from None
        yield


def is_run(path: Path) -> bool:
    """Whether the directory was made by `RunDir.create` (its config may still be damaged)."""
    try:
        return read_json(path / _CONFIG).keys() >= _MARKS
    except OSError:
        return False


def remove_run(path: Path) -> None:
    """Delete what a run has written, and the directory if nothing else is in it."""
    if not is_run(path):
        raise RunError(f"{path} is not a run directory, so it is not deleted")
    with _locked(path):
        # The mark of a run goes last.
        for name in (
            *(_CHECKPOINTS, _METRICS, _LEDGER, _QUARANTINE, _STATUS, _PROVENANCE, REPORT, LOGS),
            *(FIGURES, TARGETS, PROMETHEUS, TRACKING, _WORKERS, _STOP, _LOCK, _CONFIG),
        ):
            remove(path / name)
        for leftover in path.glob(f"{TEMPORARY}*"):
            remove(leftover)
        if not any(path.iterdir()):
            path.rmdir()


def _read_config(path: Path) -> tuple[RunConfig, str]:
    file = path / _CONFIG
    try:
        content = json_object(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        what = f"there is no {_CONFIG} in it" if path.is_dir() else "there is no such directory"
        if path.is_file():
            what = "it is a file (`rejoinder import` makes runs of the paper's checkpoints)"
        raise RunError(f"no run at {path}: {what}; `rejoinder train` makes one") from None
    except UnicodeDecodeError:
        content = {}
    if not content.keys() >= _MARKS:
        raise RunError(f"{file} is not the config of a run")
    if content["format"] != FORMAT:
        raise RunError(
            f"{path}: its format is {content['format']!r}, of another version of Rejoinder; "
            f"this one reads {FORMAT} only"
        )
    if not isinstance(content["config"], dict):
        raise RunError(f"{file} is not the config of a run")
    try:
        config = make_config(content["config"], source=str(file))
    except ConfigError as error:
        raise RunError(str(error)) from None
    if content["fingerprint"] != config.fingerprint:
        raise RunError(f"{file} was changed: its fingerprint is not that of its fields")
    if not re.fullmatch("[A-Za-z0-9-]{8,60}", str(content.get("id"))):
        raise RunError(f"{file} was changed: its id is not one that a run gets")
    return config, content["id"]
