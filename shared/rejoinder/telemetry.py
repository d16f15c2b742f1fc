"""What a process tells Prometheus: a registry of its own, a port that serves it, a file that says
where.

Nothing listens unless somebody asks for it, and then on loopback unless he names another address.
The file is a document of Prometheus's file-based service discovery, so that processes of one
machine, with whatever ports are free, find their way into its list of targets and out again. Out:
at an end that was meant. What ends by an error, and is to be missed, stays in the list.
"""

from __future__ import annotations

import json
import os
import socket
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)

LOOPBACK = "127.0.0.1"
LEARNER_JOB, WORKER_JOB, GATEWAY_JOB = "rejoinder-learner", "rejoinder-worker", "rejoinder-gateway"

_MISSED = (LEARNER_JOB, GATEWAY_JOB)  # jobs whose processes are looked for after an error
_CALL = 1.0  # seconds that a process may take to answer
_ANYWHERE = ("0.0.0.0", "::")  # addresses to listen at, not to call

# Not a second series for each counter, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


def new_registry() -> CollectorRegistry:
    """A registry with what any process says of itself: processor, memory, start, version."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


@dataclass(frozen=True)
class Exposure:
    """Where a process is to be scraped: nowhere, without a port and a folder of targets."""

    port: int | None = None  # 0: any that is free
    host: str = LOOPBACK
    targets: Path | None = None  # the folder that Prometheus looks for targets in

    @property
    def wanted(self) -> bool:
        return self.port is not None or self.targets is not None

    def check(self) -> None:
        """Refuse a port that cannot be had, before anything is done that would be in vain."""
        if self.wanted:
            with naming_the_option(self):
                family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
                socket.create_server((self.host, self.port or 0), family=family).close()


NOWHERE = Exposure()


@contextmanager
def naming_the_option(where: Exposure) -> Iterator[None]:
    """Around what listens: say which option is to blame."""
    try:
        yield
    except socket.gaierror as error:
        raise ValueError(f"--metrics-host: {where.host}: {error.strerror}") from None
    except OSError as error:
        why = f"{where.port or 0} of {where.host} cannot be had: {error.strerror}"
        raise ValueError(f"--metrics-port: {why}") from None


@contextmanager
def exposed(registry: CollectorRegistry, where: Exposure, job: str, name: str) -> Iterator[None]:
    """Serve a registry as `where` says, from a thread that does not outlive the process."""
    if not where.wanted:
        yield
        return
    with naming_the_option(where):
        server, thread = start_http_server(where.port or 0, where.host, registry)
    try:
        with announced(where.targets, job, name, address(where.host, server.server_port)):
            yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def announced(folder: Path | None, job: str, name: str, target: str) -> Iterator[None]:
    """Have Prometheus find a target in a folder until it ends; see `_MISSED` for an end by error.

    The name may be another process's as well, by mistake: the file goes back to that one, if it
    still lives, and is not touched if it has that one's text by now.
    """
    if folder is None:
        yield
        return
    file = target_file(folder, job, name)
    group = {"targets": [target], "labels": {"job": job, "instance": name}}
    document, before = json.dumps([group]) + "\n", _text(file)
    folder.mkdir(parents=True, exist_ok=True)
    _put(file, document)
    failed = False
    try:
        yield
    except Exception:
        failed = True
        raise
    finally:
        if _text(file) == document:
            if before not in ("", document) and _lives(before):
                _put(file, before)
            elif not (failed and job in _MISSED):
                file.unlink(missing_ok=True)


def target_file(folder: Path, job: str, name: str) -> Path:
    """Two names never make one file, and none leads out of the folder."""
    return folder / f"{job}-{urllib.parse.quote(name, safe='')}.json"


def forget_targets(folder: Path) -> None:
    """Remove what processes that were killed have left behind."""
    for file in folder.glob("rejoinder-*"):
        if file.suffix != ".json" or not _lives(_text(file)):
            file.unlink(missing_ok=True)


def _text(file: Path) -> str:
    """Nothing, if there is no such file."""
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""


def _put(file: Path, text: str) -> None:
    # Prometheus must not see it half written, nor under a name that ends like a document's.
    temporary = file.with_suffix(f".{os.getpid()}")
    temporary.write_text(text, "utf-8")
    os.replace(temporary, file)


def _lives(document: str) -> bool:
    """Whether somebody listens where the document says."""
    try:
        ((target,),) = (group["targets"] for group in json.loads(document))
        host, _, port = target.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _CALL).close()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def address(host: str, port: int) -> str:
    """Where to call what listens there."""
    if host in _ANYWHERE:
        host = LOOPBACK if host == "0.0.0.0" else "::1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
