"""The run directory: everything that a run leaves behind, and how it is read again.

    config.json         the run config, its fingerprint, and the run's id
    provenance.json     what ran it: one entry for the start and for each resume
    metrics.jsonl       statistics and win rates by game index, one JSON object a line
    ledger.bin          a record for every folded game, hash-chained (see `ledger`)
    checkpoints/NNNNNNNN/
        manifest.json   what the checkpoint holds, with a checksum of every file and of itself
        table.bin       the learner's rows, in order of first use
        policy-V.bin    a snapshot that games not yet folded are going to use, by version
        evaluation-N.bin  the policies after N games, if their evaluation is still to come
    quarantine.jsonl    messages that were refused, with the reason (see `add_to_quarantine`)
    workers.json        which workers have brought games since when, and which are banned
    status.json         what the trainer last said of itself
    stop                there: somebody has asked the trainer to stop
    report.html         written by `rejoinder report`

Invariant: a reader sees a file or a checkpoint whole or not at all, whenever the writer is killed
(temporary name, fsync, rename, fsync of the directory), and never takes one whose content is not
what was written: a damaged checkpoint is reported with the reason and the one before it is used.
Binary files are raw little-endian rows; their dtype follows from the config.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rejoinder.cfr.policy import policy_dtype
from rejoinder.cfr.rollout import row_dtype
from rejoinder.config import (
    ConfigError,
    Learning,
    RunConfig,
    canonical_json,
    describe_difference,
    make_config,
)
from rejoinder.jit import KERNEL_VERSION
from rejoinder.ledger import RECORD, head_after
from rejoinder.provenance import provenance

Rows: TypeAlias = np.ndarray[Any, np.dtype[Any]]

FORMAT = 2  # of the whole directory; a reader refuses what it does not know
NEWEST_KEPT = 3  # checkpoints that are never thinned out
FRESH = 5.0  # seconds after which a trainer that says nothing is taken for gone
QUARANTINE_BYTES = 16 * 2**20  # of messages kept in the quarantine's file

_CONFIG, _PROVENANCE, _METRICS = "config.json", "provenance.json", "metrics.jsonl"
_LEDGER, _QUARANTINE, _STATUS = "ledger.bin", "quarantine.jsonl", "status.json"
_WORKERS = "workers.json"
_CHECKPOINTS, _MANIFEST, _TABLE = "checkpoints", "manifest.json", "table.bin"
_EVALUATION = "evaluation-"
_LOCK = ".lock"  # held by the trainer; its content means nothing
_STOP = "stop"  # there: somebody has asked the trainer to stop
_TEMPORARY = ".temporary-"
REPORT = "report.html"
LOGS = "logs"  # of the processes that a trainer starts


class RunError(ValueError):
    """A run directory that cannot be used; the message is one line that says why."""


class DamagedError(RunError):
    """A checkpoint that is not what was written."""


@dataclass(frozen=True)
class Policies:
    """The policies at some point of a run."""

    head: bytes  # of the ledger at that point
    rows: Rows


@dataclass(frozen=True)
class Checkpoint:
    """The learner's state after `games` games, and the policies that are needed to go on."""

    games: int
    head: bytes  # of the ledger
    rows: Rows
    snapshots: Mapping[int, Policies] = field(default_factory=dict)  # by version
    evaluations: Mapping[int, Policies] = field(default_factory=dict)  # still to come, by games
    kernel: str = KERNEL_VERSION  # the kernels that made it


def digest(fingerprint: str, games: int, rows: Rows) -> str:
    """SHA-256 of the learner's state: what two runs must agree on to be the same run."""
    header = canonical_json({"fingerprint": fingerprint, "games": games})
    made = hashlib.sha256(header.encode() + b"\n")
    made.update(np.ascontiguousarray(rows).data if len(rows) else b"")
    return made.hexdigest()


def needed_versions(config: Learning, games: int) -> range:
    """Snapshot versions that exist after `games` games and that games to come may use."""
    return range(config.version_for(games), games // config.batch + 1)


class RunDir:
    """One run directory. Make it by `create` or `open`."""

    def __init__(self, path: Path, config: RunConfig, name: str) -> None:
        self.path = path
        self.config = config
        self.id = name  # what its keys on a server are called; no other run has it

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> RunDir:
        """A new run in a directory that is empty or not there yet."""
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; a run needs a directory")
        if path.exists() and any(path.iterdir()):
            what = "holds a run already" if is_run(path) else "is not empty and not a run"
            raise RunError(f"{path} {what}")
        (path / _CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        name = re.sub("[^A-Za-z0-9]+", "-", path.resolve().name).strip("-")[:40]
        run = cls(path, config, f"{name}-{secrets.token_hex(4)}".lstrip("-"))
        run._write_config()
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
        """Take over another length and other reporting; everything else must be the same."""
        if config.fingerprint != self.config.fingerprint:
            difference = describe_difference(self.config, config)
            raise RunError(f"{self.path} is a run of another config: {difference}")
        there = max(self.checkpoint_games(), default=0)
        if there > config.games:
            raise RunError(
                f"games: {self.path} has {there} games already; {config.games} are fewer"
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
            for leftover in folder.glob(f"{_TEMPORARY}*"):
                _remove(leftover)
        self.withdraw_stop()
        sessions = [*self.sessions(), {"from_game": from_game, **provenance()}]
        _write_json(self.path / _PROVENANCE, {"sessions": sessions})

    def sessions(self) -> list[dict[str, Any]]:
        """The provenance of the start and of each resume."""
        try:
            sessions = json.loads((self.path / _PROVENANCE).read_text("utf-8"))["sessions"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return []
        return [s for s in sessions if isinstance(s, dict)] if isinstance(sessions, list) else []

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        _append_line(self.path / _METRICS, canonical_json(record))

    def metrics(self) -> list[dict[str, Any]]:
        """The evaluations so far, by game index."""
        by_games: dict[int, dict[str, Any]] = {}
        for record in _read_lines(self.path / _METRICS):
            if isinstance(record.get("games"), int):  # the win rates come later than the rest
                by_games.setdefault(record["games"], {}).update(record)
        return [by_games[games] for games in sorted(by_games)]

    def drop_metrics_after(self, games: int) -> None:
        """Forget evaluations of games that are going to be played again."""
        records = self.metrics()
        kept = [r for r in records if r["games"] <= games]
        text = "".join(canonical_json(record) + "\n" for record in kept)
        if kept or (self.path / _METRICS).exists():
            _write_atomically(self.path / _METRICS, text.encode())

    def extend_ledger(self, games: int, records: bytes) -> None:
        """Add the records of the games from number `games` on; those that were there give way."""
        with (self.path / _LEDGER).open("ab") as file:
            if file.tell() < games * RECORD.itemsize:
                raise RunError(f"{self.path / _LEDGER} is shorter than the {games} games before")
            file.truncate(games * RECORD.itemsize)
            file.write(records)
            file.flush()
            os.fsync(file.fileno())

    def go_back(self, games: int) -> None:
        """Forget what came after so many games; the ledger first, which vouches for the rest."""
        self.extend_ledger(games, b"")
        for later in self.checkpoint_games():
            if later > games:
                _remove(self.path / _CHECKPOINTS / f"{later:08d}")

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
        _append_line(path, canonical_json(kept))

    def quarantine(self) -> list[dict[str, Any]]:
        """What was refused, oldest first."""
        return _read_lines(self.path / _QUARANTINE)

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace what the trainer says of itself; not worth an fsync."""
        temporary = self.path / f"{_TEMPORARY}{os.getpid()}-{_STATUS}"
        temporary.write_text(json.dumps(status), "utf-8")
        os.replace(temporary, self.path / _STATUS)

    def status(self) -> dict[str, Any]:
        """What the trainer last said; empty if it never did."""
        try:
            return _json_object((self.path / _STATUS).read_text("utf-8"))
        except (FileNotFoundError, UnicodeDecodeError):
            return {}

    def standing(self) -> dict[str, Any]:
        """The trainer's last word and whether it is `alive`; without one what checkpoints say."""
        said = self.status()
        if {"state", "time", "games", "target"} <= said.keys():
            ended = said["state"] in ("finished", "stopped")
            alive = not ended and time.time() - said["time"] < FRESH
            return said | {"alive": alive, "state": said["state"] if ended or alive else "gone"}
        games, target = max(self.checkpoint_games(), default=0), self.config.games
        state = "finished" if games >= target else "stopped"
        return {"games": games, "target": target, "state": state, "alive": False, "workers": {}}

    def request_stop(self) -> None:
        """Ask whoever trains the run to write a checkpoint and stop."""
        (self.path / _STOP).touch()

    def stop_requested(self) -> bool:
        return (self.path / _STOP).exists()

    def withdraw_stop(self) -> None:
        """Forget a request; whoever begins to train does that."""
        (self.path / _STOP).unlink(missing_ok=True)

    def write_workers(self, known: Mapping[str, Any]) -> None:
        """Keep who has brought games since when, and who may bring no more."""
        _write_json(self.path / _WORKERS, known)

    def workers(self) -> dict[str, Any]:
        """What `write_workers` has kept: `first_game` by name, and `banned`."""
        try:
            known = _json_object((self.path / _WORKERS).read_text("utf-8"))
        except (FileNotFoundError, UnicodeDecodeError):
            known = {}
        first, banned = known.get("first_game"), known.get("banned")
        return {
            "first_game": first if isinstance(first, dict) else {},
            "banned": banned if isinstance(banned, list) else [],
        }

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and thin out the old ones. The ledger must have got there before."""
        folder = self.path / _CHECKPOINTS
        target = folder / f"{checkpoint.games:08d}"
        if self._holds(target, checkpoint):
            return
        temporary, before = (
            folder / f"{_TEMPORARY}{os.getpid()}-{kind}-{target.name}" for kind in ("new", "old")
        )
        _remove(temporary)
        try:
            temporary.mkdir()
            _write_checkpoint(temporary, self.config, checkpoint)
            if target.exists():  # damaged, by other kernels, or with evaluations that are here now
                os.rename(target, before)
            os.rename(temporary, target)
            _sync_directory(folder)
        finally:
            _remove(temporary)
            _remove(before)
        for games in thinned(self.checkpoint_games(), self.config.checkpoints_kept):
            _remove(folder / f"{games:08d}")

    def _holds(self, folder: Path, checkpoint: Checkpoint) -> bool:
        """Whether this very checkpoint is there already, whole."""
        try:
            there = _read_checkpoint(folder, self.config)
        except DamagedError:
            return False
        old, new = _contents(there), _contents(checkpoint)
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
                folder = self.path / _CHECKPOINTS / f"{games:08d}"
                report(f"checkpoint {folder} is damaged and not used: {error}")
        return None

    def checkpoint(self, games: int) -> Checkpoint:
        """The checkpoint after so many games; DamagedError if it is not what was written."""
        return _read_checkpoint(self.path / _CHECKPOINTS / f"{games:08d}", self.config)

    def supported_checkpoint(
        self, report: Callable[[str], None] = lambda _: None, most: int | None = None
    ) -> Checkpoint | None:
        """The newest whole checkpoint that the ledger leads to, of at most so many games."""
        records = self.ledger()
        refused = 0
        for games in reversed(self.checkpoint_games()):
            if most is not None and games > most:
                continue
            try:
                checkpoint = self.checkpoint(games)
                if len(records) < games:
                    raise DamagedError(f"the ledger ends at game {len(records)}")
                if head_after(records, games, self.config.fingerprint) != checkpoint.head:
                    raise DamagedError("the ledger tells of another history")
            except DamagedError as error:
                refused += 1
                report(f"the checkpoint at game {games:,} of {self.path} is not used: {error}")
            else:
                return checkpoint
        if refused and len(records) == 0:
            raise RunError(
                f"{self.path / _LEDGER} is missing, so no checkpoint can be continued; "
                "put it back, or start again with --overwrite"
            )
        return None

    def result(self, report: Callable[[str], None] = lambda _: None) -> Checkpoint:
        """The newest whole checkpoint; it is an error if there is none."""
        checkpoint = self.newest_checkpoint(report)
        if checkpoint is None:
            raise RunError(f"{self.path} has no usable checkpoint yet")
        return checkpoint

    def checkpoint_games(self) -> list[int]:
        """The checkpoints there are, whole or not, by their number of games."""
        try:
            names = [p.name for p in (self.path / _CHECKPOINTS).iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdecimal())

    def _write_config(self) -> None:
        content = {
            "format": FORMAT,
            "id": self.id,
            "fingerprint": self.config.fingerprint,
            "config": self.config.model_dump(mode="json"),
        }
        _write_json(self.path / _CONFIG, content)


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
        content = _json_object((path / _CONFIG).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return False
    return {"format", "fingerprint", "config"} <= content.keys()


def remove_run(path: Path) -> None:
    """Delete what a run has written, and the directory if nothing else is in it."""
    if not is_run(path):
        raise RunError(f"{path} is not a run directory, so it is not deleted")
    with _locked(path):
        # The mark of a run goes last.
        for name in (
            *(_CHECKPOINTS, _METRICS, _LEDGER, _QUARANTINE, _STATUS, _PROVENANCE, REPORT, LOGS),
            *(_WORKERS, _STOP, _LOCK, _CONFIG),
        ):
            _remove(path / name)
        for leftover in path.glob(f"{_TEMPORARY}*"):
            _remove(leftover)
        if not any(path.iterdir()):
            path.rmdir()


def thinned(games: list[int], kept: int) -> list[int]:
    """Which checkpoints to drop: the newest stay, the others get sparse but evenly spread."""
    old, dropped = [0, *games[:-NEWEST_KEPT]], []
    while len(old) - 1 > max(0, kept - NEWEST_KEPT):
        following = [*old[1:], games[-NEWEST_KEPT]]
        gaps = [following[i] - old[i - 1] for i in range(1, len(old))]
        dropped.append(old.pop(1 + gaps.index(min(gaps))))
    return dropped


_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    rows: int = Field(ge=0)
    row_bytes: int = Field(ge=1)
    sha256: _Sha256
    head: _Sha256  # of the ledger when these rows were current


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    fingerprint: str
    kernel: str
    games: int = Field(ge=0)
    digest: str
    dtype: dict[str, str]  # of a row of the table, for readers that are not Rejoinder
    files: dict[str, _File]
    checksum: str  # of the rest of the manifest

    def checksum_of_the_rest(self) -> str:
        rest = self.model_dump(mode="json", exclude={"checksum"})
        return hashlib.sha256(canonical_json(rest).encode()).hexdigest()


def _write_checkpoint(folder: Path, config: Learning, checkpoint: Checkpoint) -> None:
    files = {}
    for name, part in _contents(checkpoint).items():
        content = np.ascontiguousarray(part.rows).view(np.uint8).data
        _write_durably(folder / name, content)
        files[name] = _File(
            rows=len(part.rows),
            row_bytes=part.rows.dtype.itemsize,
            sha256=hashlib.sha256(content).hexdigest(),
            head=part.head.hex(),
        )
    manifest = _Manifest(
        format=FORMAT,
        fingerprint=config.fingerprint,
        kernel=checkpoint.kernel,
        games=checkpoint.games,
        digest=digest(config.fingerprint, checkpoint.games, checkpoint.rows),
        dtype=_plain_dtype(checkpoint.rows.dtype),
        files=files,
        checksum="",
    )
    manifest.checksum = manifest.checksum_of_the_rest()
    _write_durably(folder / _MANIFEST, manifest.model_dump_json(indent=2).encode())
    _sync_directory(folder)


def _contents(checkpoint: Checkpoint) -> dict[str, Policies]:
    snapshots, evaluations = checkpoint.snapshots, checkpoint.evaluations
    return (
        {_TABLE: Policies(checkpoint.head, checkpoint.rows)}
        | {_policy_file(version): snapshots[version] for version in snapshots}
        | {f"{_EVALUATION}{games}.bin": evaluations[games] for games in evaluations}
    )


def _policy_file(version: int) -> str:
    return f"policy-{version}.bin"


def _plain_dtype(dtype: np.dtype[Any]) -> dict[str, str]:
    """The fields of a row in order, as text: type and shape."""
    parts = {name: dtype[name] for name in dtype.names or ()}
    return {name: f"{part.base.str}{list(part.shape) or ''}" for name, part in parts.items()}


def _read_checkpoint(folder: Path, config: Learning) -> Checkpoint:
    """A checkpoint of this config, checked byte by byte; DamagedError says what is wrong."""
    manifest = _read_manifest(folder)
    actions = len(config.load_abstraction().actions)
    table_dtype = row_dtype(actions, config.kept_policies)
    if manifest.fingerprint != config.fingerprint:
        raise DamagedError("it belongs to a run of another config")
    if manifest.games != int(folder.name):
        raise DamagedError(f"its manifest speaks of {manifest.games} games")
    if manifest.dtype != _plain_dtype(table_dtype):
        raise DamagedError("its rows have another layout than this version of Rejoinder writes")
    versions = needed_versions(config, manifest.games)
    expected = {_TABLE: table_dtype}
    expected |= {_policy_file(version): policy_dtype(actions) for version in versions}
    evaluations = _evaluations(manifest)
    expected |= {name: policy_dtype(actions) for name in evaluations.values()}
    if manifest.files.keys() != expected.keys():
        raise DamagedError(f"it lists the files {sorted(manifest.files)}, not {sorted(expected)}")
    read = {
        name: _read_rows(folder / name, manifest.files[name], dtype)
        for name, dtype in expected.items()
    }
    if digest(manifest.fingerprint, manifest.games, read[_TABLE].rows) != manifest.digest:
        raise DamagedError("its digest is not that of its table")
    return Checkpoint(
        games=manifest.games,
        head=read[_TABLE].head,
        rows=read[_TABLE].rows,
        snapshots={version: read[_policy_file(version)] for version in versions},
        evaluations={games: read[name] for games, name in evaluations.items()},
        kernel=manifest.kernel,
    )


def _evaluations(manifest: _Manifest) -> dict[int, str]:
    """The files of evaluations still to come, by their number of games."""
    names = {
        name: name.removeprefix(_EVALUATION).removesuffix(".bin")
        for name in manifest.files
        if name.startswith(_EVALUATION)
    }
    if not all(number.isdecimal() and int(number) <= manifest.games for number in names.values()):
        raise DamagedError(f"it lists the files {sorted(manifest.files)}")
    return {int(number): name for name, number in names.items()}


def _read_manifest(folder: Path) -> _Manifest:
    try:
        content = json.loads((folder / _MANIFEST).read_bytes())
        manifest = _Manifest.model_validate(content)
    except OSError as error:
        raise DamagedError(f"{_MANIFEST} cannot be read: {error.strerror}") from None
    except (ValidationError, ValueError, RecursionError):
        raise DamagedError(f"{_MANIFEST} is not the manifest of a checkpoint") from None
    if manifest.format != FORMAT:
        raise DamagedError(f"format {manifest.format} is unknown; this version reads {FORMAT}")
    if manifest.checksum != manifest.checksum_of_the_rest():
        raise DamagedError(f"{_MANIFEST} does not match its own checksum")
    return manifest


def _read_rows(path: Path, file: _File, dtype: np.dtype[Any]) -> Policies:
    """The rows of one file. Its size is compared before a byte is read."""
    if file.row_bytes != dtype.itemsize:
        raise DamagedError(f"{path.name} has rows of {file.row_bytes} bytes, not {dtype.itemsize}")
    try:
        size = path.stat().st_size
        if size != file.rows * file.row_bytes:
            raise DamagedError(
                f"{path.name} has {size} bytes, not {file.rows} rows of {file.row_bytes}"
            )
        content = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise DamagedError(f"{path.name} does not match its checksum")
    return Policies(bytes.fromhex(file.head), np.frombuffer(content, dtype))


def _read_config(path: Path) -> tuple[RunConfig, str]:
    file = path / _CONFIG
    try:
        content = _json_object(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        what = f"there is no {_CONFIG} in it" if path.is_dir() else "there is no such directory"
        raise RunError(f"no run at {path}: {what}; `rejoinder train` makes one") from None
    except UnicodeDecodeError:
        content = {}
    if not {"format", "fingerprint", "config"} <= content.keys():
        raise RunError(f"{file} is not the config of a run")
    if content["format"] != FORMAT:
        raise RunError(f"{path}: format {content['format']!r} is unknown; this reads {FORMAT}")
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


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file; a line cut short by a crash is left out."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [record for line in lines if (record := _json_object(line))]


def _append_line(path: Path, line: str) -> None:
    """Add a line of its own, also behind one that a full disk or a crash has cut short."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else f"\n{line}"
        file.write(f"{line}\n".encode())


def _json_object(text: str) -> dict[str, Any]:
    """The object, or an empty one where the text is something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_json(path: Path, value: Any) -> None:
    _write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def _write_atomically(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{_TEMPORARY}{os.getpid()}-{path.name}")
    try:
        _write_durably(temporary, content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _write_durably(path: Path, content: bytes | memoryview) -> None:
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say where
        raise


def _sync_directory(path: Path) -> None:
    """Make a rename last; systems that cannot open a directory do without."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Delete a file or a directory; a directory loses its name first, so no half of it is seen."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path
    if not path.name.startswith(_TEMPORARY):
        doomed = path.with_name(f"{_TEMPORARY}{os.getpid()}-{time.monotonic_ns()}")
        os.rename(path, doomed)
    shutil.rmtree(doomed)
