"""Processes to measure: real workers, functions in a process of their own, and what they used."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rejoinder.bus.server import end_with_parent

_WORKER = "import sys; from rejoinder_worker.main import serve; serve(*sys.argv[1:2], run=sys.argv[2], name=sys.argv[3])"
_PATIENCE = 20.0  # seconds for a worker to leave by itself


def start_worker(url: str, run: str, name: str, log: Path) -> subprocess.Popen[bytes]:
    """A real worker process; it ends with its run."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", _WORKER, url, run, name],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
