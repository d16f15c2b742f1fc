"""A checkpoint that is written beside the folding, by a child that has the memory of this moment.

`fork` gives the child a copy of all memory in which pages are copied when one of the two writes to
them (Redis saves its data in the same way). The learner goes on at once; the child hashes and
writes what was there when it was made, and ends. It does nothing but NumPy, hashing and file I/O:
it closes whatever else was open (the server's sockets, the run's lock), takes no lock of any other
thread, and leaves without any clean-up of the interpreter. A thread with a copy of the changed rows
was the alternative: the digest is over all rows, so it would have to copy the table.

A child does not outlive its learner: the kernel kills it with it (Linux), and elsewhere it looks
for its parent before anything gets its final name. So no next learner meets it at work.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None  # loaded before any fork
_PR_SET_PDEATHSIG = 1
_BUG = 0  # instead of an errno: what follows is a traceback


class Writer:
    """A child at work; `write` gets a function to call before anything becomes final.

    OSError if the system has no process for it.
    """

    def __init__(self, write: Callable[[Callable[[], None]], None]) -> None:
        self._pipe, writing = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python 3.12 warns of locks that other threads hold: the child takes none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                self._pid = os.fork()
            except OSError:
                os.close(self._pipe)
                os.close(writing)
                raise
        if self._pid == 0:
            _work(write, writing, parent)
        os.close(writing)
        self._status: int | None = None

    def has_ended(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def wait(self) -> None:
        """Until it has ended."""
        if self._status is None:
            self._status = os.waitpid(self._pid, 0)[1]

    def check(self) -> None:
        """Once it has ended: OSError if it could not write, RuntimeError if it is a bug."""
        if self._status is None:
            raise ValueError("it is still at work")
        with os.fdopen(self._pipe, "rb") as pipe:
            number, _, text = pipe.read().decode().partition(" ")
        if os.WIFSIGNALED(self._status):
            name = signal.Signals(os.WTERMSIG(self._status)).name
            raise OSError(None, f"its writer was ended by {name}")
        if number == str(_BUG):
            raise RuntimeError(text)
        if number:
            raise OSError(int(number), text)


def _work(write: Callable[[Callable[[], None]], None], pipe: int, parent: int) -> NoReturn:
    """In the child."""
    code, answer = 0, ""
    try:
        gc.disable()  # it would copy pages for nothing
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, and waits
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.closerange(3, pipe)
        os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _check_parent(parent)
        write(lambda: _check_parent(parent))
    except OSError as error:
        code, answer = 1, f"{error.errno} {error.strerror or error}"
    except BaseException:
        code, answer = 1, f"{_BUG} {traceback.format_exc()[-4000:]}"
    try:
        os.write(pipe, answer.encode())
    finally:
        os._exit(code)


def _check_parent(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(1)
