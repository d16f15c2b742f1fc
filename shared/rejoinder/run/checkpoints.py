"""Checkpoints: what one holds, how it is written, and how it is read again, byte by byte.

    manifest.json   what the checkpoint holds, with a checksum of every file and of itself
    table.bin       the learner's rows, in order of first use
    table-N.bin     the rows that were written since the file before this one, up to game N
    policy-V.bin    a snapshot that games not yet folded are going to use, by version: the rows in
                    which it differs from what actors would read of the table now
    evaluation-N.bin  the policies after N games, if their evaluation is still to come

A checkpoint costs what has changed since the one before: it shares that one's files of the table by
hard links and adds one (`Increment`). When those weigh as much as `table.bin`, or `MOST_SHARING`
checkpoints have it, the table is written whole again. Every checkpoint is complete by itself, so
any of them can be removed. A shared file that is damaged damages all that share it; so it is read
before it is shared once more, and if it is damaged the table is written whole.

Invariant: a checkpoint whose content is not what was written is never taken; `DamagedError` says
what is wrong with it. Binary files are raw little-endian rows; their dtype follows from the config.
Files are compared with their checksums when a checkpoint is opened, piece by piece; big ones are
then mapped into memory, so what nobody looks at takes no room.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rejoinder.files import link_or_copy, sync_directory, write_durably
from rejoinder.methods.base import Rows
from rejoinder.methods.patch import Patch, difference
from rejoinder.methods.rows import MAX_ROWS, new_rows, opaque
from rejoinder.run.config import Learning, canonical_json
from rejoinder.run.ledger import genesis

FORMAT = 3  # of the whole run directory; a reader refuses what it does not know
NEWEST_KEPT = 3  # checkpoints that are never thinned out
MOST_SHARING = 8  # checkpoints in a row that share one `table.bin`: they are damaged together

_BLOCK = 2**16  # rows that are made at once
MAPPED_BYTES = 2**24  # files that are bigger are mapped, not read

_MANIFEST, _TABLE, _INCREMENT = "manifest.json", "table.bin", "table-"
_EVALUATION = "evaluation-"


class RunError(ValueError):
    """A run directory that cannot be used; the message is one line that says why."""


class DamagedError(RunError):
    """A checkpoint that is not what was written."""


class Policies:
    """The policies at some point of a run; what is read from files is made when asked for."""

    def __init__(self, head: bytes, rows: Rows | Callable[[], Rows]) -> None:
        self.head = head  # of the ledger at that point
        self._rows = rows

    @property
    def rows(self) -> Rows:
        return self._rows() if callable(self._rows) else self._rows


class Increment(NamedTuple):
    """Which rows of the table were written since an earlier checkpoint."""

    since: int  # games of that checkpoint
    index: Any  # numbers of the rows, increasing


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
    made.update(np.ascontiguousarray(opaque(rows)).data if len(rows) else b"")
    return made.hexdigest()


def start_of(rows: Rows) -> str:
    """The config's `start` of a run that begins with these rows."""
    return hashlib.sha256(np.ascontiguousarray(opaque(rows)).data).hexdigest() if len(rows) else ""


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
    size: int = Field(ge=0, le=MAX_ROWS)  # rows of what they are part of
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


def write_checkpoint(
    folder: Path,
    config: Learning,
    checkpoint: Checkpoint,
    before: Path | None = None,
    index: Any = None,
) -> None:
    """Write all files; where `before` is a checkpoint since which only `index` was written, so."""
    method, task = config.load_method(), config.task()
    rows = checkpoint.rows
    name = f"{_INCREMENT}{checkpoint.games}.bin"
    files = None if before is None else _share(folder, before, config, checkpoint, index)
    if files is None:
        files = {_TABLE: _write(folder / _TABLE, [rows], len(rows), checkpoint.head)}
    else:
        changed = (Patch(part, opaque(rows)[part].view(rows.dtype)) for part in _blocks(index))
        files[name] = _write(folder / name, map(_records, changed), len(rows), checkpoint.head)
    for version, part in checkpoint.snapshots.items():
        name, then = _policy_file(version), part.rows
        differing = _differences(lambda some: method.snapshot_rows(task, some), rows, then)
        files[name] = _write(folder / name, map(_records, differing), len(then), part.head)
    for games, part in checkpoint.evaluations.items():
        name = f"{_EVALUATION}{games}.bin"
        shared = None if before is None else _share_evaluation(folder, before, config, name, part)
        files[name] = shared or _write(folder / name, [part.rows], len(part.rows), part.head)
    manifest = Manifest(
        format=FORMAT,
        fingerprint=config.fingerprint,
        kernel=checkpoint.kernel,
        games=checkpoint.games,
        digest=digest(config.fingerprint, checkpoint.games, rows),
        dtype=_plain_dtype(rows.dtype),
        files=files,
        checksum="",
    )
    manifest.checksum = manifest.checksum_of_the_rest()
    write_durably(folder / _MANIFEST, manifest.model_dump_json(indent=2).encode())
    sync_directory(folder)


def _share(
    folder: Path, before: Path, config: Learning, checkpoint: Checkpoint, index: Any
) -> dict[str, _File] | None:
    """The files of an earlier checkpoint's table, here too; None if it has to be written whole."""
    try:
        manifest = _read_manifest(before)
        names = _table_files(manifest)
        files = {name: manifest.files[name] for name in names}
        weight = len(index) + sum(files[name].rows for name in names[1:])
        ours = (config.fingerprint, _plain_dtype(checkpoint.rows.dtype))
        if (manifest.fingerprint, manifest.dtype) != ours or manifest.games >= checkpoint.games:
            return None
        if weight >= files[_TABLE].rows or len(names) >= MOST_SHARING:
            return None
        for name in names:  # before any of them is linked: a new file must never be a shared one
            _verify(before / name, files[name])
    except DamagedError:
        return None
    for name in names:
        link_or_copy(before / name, folder / name)
    return files


def _share_evaluation(
    folder: Path, before: Path, config: Learning, name: str, part: Policies
) -> _File | None:
    """The file of an evaluation that an earlier checkpoint waits for, too, if it is there."""
    try:
        manifest = _read_manifest(before)
        file = manifest.files.get(name)
        if manifest.fingerprint != config.fingerprint or file is None:
            return None
        if file.head != part.head.hex():
            return None
        _verify(before / name, file)
        link_or_copy(before / name, folder / name)
    except (DamagedError, FileNotFoundError):
        return None
    return file


def _differences(read: Callable[[Rows], Rows], rows: Rows, then: Rows) -> Iterator[Patch]:
    """What makes snapshot rows as they would be read now those of then, some at a time."""
    for first in range(0, max(len(then), 1), _BLOCK):
        block = slice(first, first + _BLOCK)
        patch = difference(read(rows[: len(then)][block]), then[block])
        yield Patch(patch.index + first, patch.rows)


def _blocks(index: Any) -> Iterator[Any]:
    for first in range(0, max(len(index), 1), _BLOCK):
        yield index[first : first + _BLOCK]


def _write(path: Path, blocks: Iterable[Rows], size: int, head: bytes) -> _File:
    """A file of rows that come in blocks, of which there is at least one."""
    checksum, rows, width = hashlib.sha256(), 0, 0

    def pieces() -> Iterator[memoryview]:
        nonlocal rows, width
        for block in blocks:
            content = np.ascontiguousarray(opaque(block)).view(np.uint8).data
            checksum.update(content)
            rows, width = rows + len(block), block.dtype.itemsize
            yield content

    write_durably(path, pieces())
    return _File(
        rows=rows, row_bytes=width, size=size, sha256=checksum.hexdigest(), head=head.hex()
    )


def _patch_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A row with its number, as files have them."""
    return np.dtype([("number", "<u8"), ("row", np.void, dtype.itemsize)])


def _records(patch: Patch) -> Rows:
    made = np.empty(len(patch.index), _patch_dtype(patch.rows.dtype))
    made["number"], made["row"] = patch.index, opaque(patch.rows)
    return made


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
    snapshot_dtype = method.snapshot_dtype(task)
    increments, evaluations = _table_files(manifest)[1:], _numbered_files(manifest, _EVALUATION)
    expected = {_TABLE: table_dtype}
    expected |= dict.fromkeys(increments, _patch_dtype(table_dtype))
    expected |= {_policy_file(version): _patch_dtype(snapshot_dtype) for version in versions}
    expected |= dict.fromkeys(evaluations.values(), method.policy_dtype(task))
    if manifest.files.keys() != expected.keys():
        raise DamagedError(f"it lists the files {sorted(manifest.files)}, not {sorted(expected)}")
    for name, dtype in expected.items():
        if (width := manifest.files[name].row_bytes) != dtype.itemsize:
            raise DamagedError(f"{name} has rows of {width} bytes, not {dtype.itemsize}")
    tables = [_TABLE, *increments]
    rows = _read_table([(folder / name, manifest.files[name]) for name in tables], table_dtype)
    read = {
        name: _read_rows(folder / name, manifest.files[name], dtype)
        for name, dtype in expected.items()
        if name not in tables
    }
    last = manifest.files[tables[-1]]
    if digest(manifest.fingerprint, manifest.games, rows) != manifest.digest:
        raise DamagedError("its digest is not that of its table")
    if manifest.games == 0 and start_of(rows) != config.start:
        raise DamagedError("its table is not the one that the run starts from")

    def policies(version: int) -> Policies:
        file, patch = manifest.files[_policy_file(version)], read[_policy_file(version)]

        def make() -> Rows:
            made: Rows = new_rows(snapshot_dtype, file.size)[: file.size]
            for first in range(0, min(file.size, len(rows)), _BLOCK):
                block = slice(first, min(first + _BLOCK, file.size))
                some = method.snapshot_rows(task, rows[block])
                opaque(made)[first : first + len(some)] = opaque(some)
            _write_over(made, [patch])
            return made

        return Policies(bytes.fromhex(file.head), make)

    return Checkpoint(
        games=manifest.games,
        head=bytes.fromhex(last.head),
        rows=rows,
        snapshots={version: policies(version) for version in versions},
        evaluations={
            games: Policies(bytes.fromhex(manifest.files[name].head), read[name])
            for games, name in evaluations.items()
        },
        kernel=manifest.kernel,
    )


def _table_files(manifest: Manifest) -> list[str]:
    """Those that make the table, in the order of writing."""
    increments = _numbered_files(manifest, _INCREMENT)
    return [_TABLE, *(increments[games] for games in sorted(increments))]


def _numbered_files(manifest: Manifest, kind: str) -> dict[int, str]:
    """The files of one kind by the number of games in their names."""
    found = {}
    for name in manifest.files:
        if not name.startswith(kind):
            continue
        number = re.fullmatch(rf"{kind}(\d{{1,18}})\.bin", name, re.ASCII)
        if number is None or int(number[1]) > manifest.games:
            raise DamagedError(f"it lists the file {reprlib.repr(name)}")
        found[int(number[1])] = name
    return found


def _read_table(files: Sequence[tuple[Path, _File]], dtype: np.dtype[Any]) -> Rows:
    """The table with the increments written over it: mapped, unless they have new rows.

    The pages of a mapping are private, so only those that are written over take memory.
    """
    (path, file), *increments = files
    size = files[-1][1].size
    if file.rows > size:
        raise DamagedError(f"{path.name} has {file.rows} rows, not at most {size}")
    made: Rows
    if file.rows == size:
        made = _read_rows(path, file, dtype)
    else:
        made, at = new_rows(dtype, size)[:size], 0
        for block in _read_blocks(path, file, dtype):
            opaque(made)[at : at + len(block)] = opaque(block)
            at += len(block)
    for path, file in increments:
        _write_over(made, _read_blocks(path, file, _patch_dtype(dtype)))
    return made


def _write_over(rows: Rows, blocks: Iterable[Rows]) -> None:
    for block in blocks:
        if len(block) and int(block["number"].max()) >= len(rows):
            raise DamagedError(f"it has a row {block['number'].max()} of {len(rows)}")
        opaque(rows)[block["number"].astype(np.int64)] = block["row"]


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
    if _TABLE not in manifest.files:
        raise DamagedError(f"{_MANIFEST} lists no {_TABLE}")
    return manifest


def _read_rows(path: Path, file: _File, dtype: np.dtype[Any]) -> Rows:
    """The rows of one file, mapped if it is a big one."""
    with _opened(path, file) as opened:
        size = file.rows * file.row_bytes
        if size > MAPPED_BYTES:
            found = hashlib.file_digest(opened, "sha256")
            # Private pages: what is written over them stays in memory.
            content: Any = mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_COPY)
        else:
            content = bytearray(opened.read())
            found = hashlib.sha256(content)
    _check(path, file, found)
    return np.frombuffer(content, dtype)


def _read_blocks(path: Path, file: _File, dtype: np.dtype[Any]) -> Iterator[Rows]:
    """The same rows, some at a time; whether they are what was written is known at the end."""
    found = hashlib.sha256()
    with _opened(path, file) as opened:
        while content := opened.read(_BLOCK * dtype.itemsize):
            found.update(content)
            yield np.frombuffer(content, dtype)
    _check(path, file, found)


def _verify(path: Path, file: _File) -> None:
    """DamagedError if the file is not what was written."""
    with _opened(path, file) as opened:
        _check(path, file, hashlib.file_digest(opened, "sha256"))


@contextmanager
def _opened(path: Path, file: _File) -> Iterator[BufferedReader]:
    """A file whose size is compared before a byte is read."""
    try:
        with path.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if size != file.rows * file.row_bytes:
                raise DamagedError(
                    f"{path.name} has {size} bytes, not {file.rows} rows of {file.row_bytes}"
                )
            yield opened
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read: {error.strerror}") from None


def _check(path: Path, file: _File, found: Any) -> None:
    if found.hexdigest() != file.sha256:
        raise DamagedError(f"{path.name} does not match its checksum")
