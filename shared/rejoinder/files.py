"""Files that a crash cannot spoil: replaced whole or not at all, and lines of JSON.

A reader sees a file as it was or as it is now, whenever the writer is killed (temporary name,
fsync, rename, fsync of the directory). What a killed writer leaves begins with `TEMPORARY`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEMPORARY = ".temporary-"  # how names begin that mean nothing to a reader


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def write_atomically(path: Path, content: bytes | Iterator[bytes]) -> None:
    """Put the content, whole or in pieces, in the place of what is there, for good."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        write_durably(temporary, content)
        os.replace(temporary, path)
    except OSError as error:
        if error.filename == str(temporary):
            error.filename, error.filename2 = str(path), None  # the one that was asked for
        raise
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def write_durably(
    path: Path, content: bytes | memoryview | Iterator[bytes] | Iterator[memoryview]
) -> None:
    """Write a file that is still there after a power cut; until then it may be seen half."""
    try:
        with path.open("wb") as file:
            file.writelines(content if isinstance(content, Iterator) else [content])
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say where
        raise


def link_or_copy(source: Path, target: Path) -> None:
    """Have a file under a second name; where the system cannot do that, a copy of it."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # no hard links here, or too many
        with source.open("rb") as file:
            write_durably(target, iter(lambda: file.read(2**20), b""))


def sync_directory(path: Path) -> None:
    """Make a rename last; systems that cannot open a directory do without."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file or a directory; a directory loses its name first, so no half of it is seen."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path
    if not path.name.startswith(TEMPORARY):
        doomed = path.with_name(f"{TEMPORARY}{os.getpid()}-{time.monotonic_ns()}")
        os.rename(path, doomed)
    shutil.rmtree(doomed)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is none, or something else is in it."""
    try:
        return json_object(path.read_text("utf-8"))
    except (FileNotFoundError, UnicodeDecodeError):
        return {}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file; a line cut short by a crash is left out."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [record for line in lines if (record := json_object(line))]


def append_line(path: Path, line: str) -> None:
    """Add a line of its own, also behind one that a full disk or a crash has cut short."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else f"\n{line}"
        file.write(f"{line}\n".encode())


def json_object(text: str) -> dict[str, Any]:
    """The object, or an empty one where the text is something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
