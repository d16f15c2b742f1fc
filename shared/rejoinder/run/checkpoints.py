"""Checkpoints: what one holds, how it is written, and how it is read again, byte by byte.

    manifest.json   what the checkpoint holds, with a checksum of every file and of itself
    table.bin       the learner's rows, in order of first use
    policy-V.bin    a snapshot that games not yet folded are going to use, by version
    evaluation-N.bin  the policies after N games, if their evaluation is still to come

Invariant: a checkpoint whose content is not what was written is never taken; `DamagedError` says
what is wrong with it. Binary files are raw little-endian rows; their dtype follows from the config.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rejoinder.files import sync_directory, write_durably
from rejoinder.methods.base import Rows
from rejoinder.methods.policies import policy_dtype
from rejoinder.run.config import Learning, canonical_json
from rejoinder.run.ledger import genesis

FORMAT = 3  # of the whole run directory; a reader refuses what it does not know
NEWEST_KEPT = 3  # checkpoints that are never thinned out

_MANIFEST, _TABLE, _EVALUATION = "manifest.json", "table.bin", "evaluation-"


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
    kernel: str  # the kernels that made it
    snapshots: Mapping[int, Policies] = field(default_factory=dict)  # by version
    evaluations: Mapping[int, Policies] = field(default_factory=dict)  # still to come, by games


def digest(fingerprint: str, games: int, rows: Rows) -> str:
    """SHA-256 of the learner's state: what two runs must agree on to be the same run."""
    header = canonical_json({"fingerprint": fingerprint, "games": games})
    made = hashlib.sha256(header.encode() + b"\n")
    made.update(np.ascontiguousarray(rows).data if len(rows) else b"")
    return made.hexdigest()


def start_of(rows: Rows) -> str:
    """The config's `start` of a run that begins with these rows."""
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest() if len(rows) else ""


def first_checkpoint(config: Learning, rows: Rows) -> Checkpoint:
    """The state before the first game of a run that begins with these rows."""
    head = genesis(config.fingerprint)
    snapshot = config.load_method().snapshot_rows(config.task(), rows)
    return Checkpoint(0, head, rows, config.kernel, snapshots={0: Policies(head, snapshot)})


def needed_versions(config: Learning, units: int) -> range:
    """Snapshot versions that exist after so many units and that units to come may use."""
    return range(config.version_for(units), units // config.batch + 1)


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


class Manifest(BaseModel):
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


def write_checkpoint(folder: Path, config: Learning, checkpoint: Checkpoint) -> None:
    files = {}
    for name, part in contents_of(checkpoint).items():
        content = np.ascontiguousarray(part.rows).view(np.uint8).data
        write_durably(folder / name, content)
        files[name] = _File(
            rows=len(part.rows),
            row_bytes=part.rows.dtype.itemsize,
            sha256=hashlib.sha256(content).hexdigest(),
            head=part.head.hex(),
        )
    manifest = Manifest(
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
    write_durably(folder / _MANIFEST, manifest.model_dump_json(indent=2).encode())
    sync_directory(folder)


def contents_of(checkpoint: Checkpoint) -> dict[str, Policies]:
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


def read_checkpoint(folder: Path, config: Learning) -> Checkpoint:
    """A checkpoint of this config, checked byte by byte; DamagedError says what is wrong."""
    manifest = _read_manifest(folder)
    method, task = config.load_method(), config.task()
    table_dtype = method.state_dtype(task)
    if manifest.fingerprint != config.fingerprint:
        raise DamagedError("it belongs to a run of another config")
    if manifest.games != int(folder.name):
        raise DamagedError(f"its manifest speaks of {manifest.games} games")
    if manifest.dtype != _plain_dtype(table_dtype):
        raise DamagedError("its rows have another layout than this version of Rejoinder writes")
    if manifest.games % config.block:
        raise DamagedError(f"its manifest speaks of {manifest.games} games, which is no whole unit")
    versions = needed_versions(config, manifest.games // config.block)
    expected = {_TABLE: table_dtype}
    expected |= {_policy_file(version): method.snapshot_dtype(task) for version in versions}
    evaluations = _evaluations(manifest)
    expected |= {name: policy_dtype(task.actions) for name in evaluations.values()}
    if manifest.files.keys() != expected.keys():
        raise DamagedError(f"it lists the files {sorted(manifest.files)}, not {sorted(expected)}")
    read = {
        name: _read_rows(folder / name, manifest.files[name], dtype)
        for name, dtype in expected.items()
    }
    if digest(manifest.fingerprint, manifest.games, read[_TABLE].rows) != manifest.digest:
        raise DamagedError("its digest is not that of its table")
    if manifest.games == 0 and start_of(read[_TABLE].rows) != config.start:
        raise DamagedError("its table is not the one that the run starts from")
    return Checkpoint(
        games=manifest.games,
        head=read[_TABLE].head,
        rows=read[_TABLE].rows,
        snapshots={version: read[_policy_file(version)] for version in versions},
        evaluations={games: read[name] for games, name in evaluations.items()},
        kernel=manifest.kernel,
    )


def _evaluations(manifest: Manifest) -> dict[int, str]:
    """The files of evaluations still to come, by their number of games."""
    names = {
        name: name.removeprefix(_EVALUATION).removesuffix(".bin")
        for name in manifest.files
        if name.startswith(_EVALUATION)
    }
    if not all(number.isdecimal() and int(number) <= manifest.games for number in names.values()):
        raise DamagedError(f"it lists the files {sorted(manifest.files)}")
    return {int(number): name for name, number in names.items()}


def _read_manifest(folder: Path) -> Manifest:
    try:
        content = json.loads((folder / _MANIFEST).read_bytes())
        manifest = Manifest.model_validate(content)
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
