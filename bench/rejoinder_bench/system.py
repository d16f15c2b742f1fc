"""A whole system on this machine, to be measured: the server and the workers are processes of their
own, the learner is whoever calls."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rejoinder.bus.server import end_with_parent

REAL = "rejoinder_worker.main"  # the module whose `serve` a worker runs
_LEAVING = 10.0  # seconds that a worker may take to end


@contextmanager
def workers(
    count: int, url: str, run: str, folder: Path, module: str = REAL
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes; they are ended when this is left."""
    started = [_worker(f"w{i}", url, run, folder, module) for i in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(_LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()


def _worker(name: str, url: str, run: str, folder: Path, module: str) -> subprocess.Popen[bytes]:
    code = f"from {module} import serve; serve({url!r}, run={run!r}, name={name!r})"
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int | str = "self") -> int:
    """The most memory that a process has had resident so far (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the system does not tell the peak memory of process {pid}")
