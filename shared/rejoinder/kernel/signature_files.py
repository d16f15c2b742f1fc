"""Where compiled kernels are kept: safe for several processes that compile at the same time.

numba numbers the files of a kernel's signatures and keeps an index of them. Two processes that
compile different signatures at once take the same number, and the index then leads from one to the
other's code. Here a signature's file is named after the signature and the version of the code that
is compiled for it, and a file that is damaged or another's counts for nothing.

Of several processes that need a signature which nobody has saved yet one compiles it, and the
others wait for what it saves.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from numba.core.serialize import dumps

from rejoinder.files import write_atomically

_POLL = 0.05  # seconds between two looks whether another process has compiled
_DIGEST = hashlib.sha256().digest_size


class CompileLock:
    """Who compiles what: locks of a file in which nothing is written.

    They belong to the process, and end with it. One that hangs is waited for no longer than
    `patience` seconds; then both compile, which is only slower. So it is where locks cannot be had.
    """

    def __init__(self, path: Path, patience: float = 120.0) -> None:
        self._path, self._patience = path, patience

    def take(self, what: str) -> bool:
        """Wait for other processes; whether it is this one's turn."""
        until = time.monotonic() + self._patience
        while self._file is not None:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(what))
                return True
            except (BlockingIOError, PermissionError):  # POSIX allows for either
                if time.monotonic() > until:
                    return False
                time.sleep(_POLL)
            except OSError:  # a file system without locks
                self._file = None
        return False

    def end(self, what: str) -> None:
        """Nothing happens if it was nobody's, or another's turn."""
        if self._file is not None:
            with suppress(OSError):  # then it ends with the process
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(what))

    @cached_property
    def _file(self) -> int | None:
        """Never closed: with any file of the process's that is, its locks would be gone."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:  # it is another user's
            return None


def _place(what: str) -> int:
    """A byte for each; two that share one wait for each other in vain, which does no harm."""
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:7], "little")


class SignatureFiles:
    """The cache of one kernel, in the place of numba's own."""

    def __init__(
        self, folder: Path, kernel: str, version_of: Callable[[Any], str], turns: CompileLock
    ) -> None:
        self._folder, self._kernel = folder, kernel
        self._version_of = version_of  # key → version of the code that is compiled for it
        self._turns = turns
        self._taken: list[str] = []

    def load(self, key: Any) -> Any:
        """What was saved; None if the caller is to compile it, to save it and to end its turn."""
        found = self._read(key)
        if found is None:
            turn = str(self._file(key))
            if self._turns.take(turn):
                self._taken.append(turn)
                found = self._read(key)  # saved by who had the turn before?
        return found

    def save(self, key: Any, data: Any) -> None:
        content = dumps((self._version_of(key), key, data))  # type: ignore[no-untyped-call]
        try:
            write_atomically(self._file(key), hashlib.sha256(content).digest() + content)
        except OSError as error:  # what is compiled can be used all the same
            warnings.warn(f"a kernel is not kept: {error}", stacklevel=2)

    def end_turns(self) -> None:
        """It is compiled, or cannot be."""
        while self._taken:
            self._turns.end(self._taken.pop())

    def _read(self, key: Any) -> Any:
        try:
            content = self._file(key).read_bytes()
        except OSError:  # most often there is none
            return None
        digest, content = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(content).digest() != digest:
            return None  # damaged; it will be replaced
        version, saved, data = pickle.loads(content)  # as numba does: one's own files, on no wire
        return data if (version, saved) == (self._version_of(key), key) else None

    def _file(self, key: Any) -> Path:
        """`key` has the types of the arguments, the processor and the function's own code."""
        name = hashlib.sha256(f"{self._version_of(key)} {key!r}".encode()).hexdigest()[:16]
        return self._folder / f"{self._kernel}.{name}.nbc"


def keep(dispatcher: Any, turns: CompileLock, version_of: Callable[[Any], str]) -> None:
    """Have the compiled code of a function that numba caches kept so.

    `version_of` tells the version of the code that is compiled for some types of arguments.
    """
    cache, compile_one = dispatcher._cache, dispatcher.compile
    function = dispatcher.py_func
    files = SignatureFiles(
        Path(cache.cache_path),
        f"{function.__qualname__}.py{sys.version_info.major}{sys.version_info.minor}",
        lambda key: version_of(key[0]),
        turns,
    )

    def compile_in_turn(signature: Any) -> Any:
        try:
            return compile_one(signature)
        finally:
            files.end_turns()

    cache._cache_file = files
    dispatcher.compile = compile_in_turn
