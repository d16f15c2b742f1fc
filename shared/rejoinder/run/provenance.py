"""Where results come from: the versions, the sources and the machine that made them."""

from __future__ import annotations

import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from rejoinder.kernel.jit import toolchain

_PACKAGE = Path(__file__).parent


def provenance(kernel: str) -> dict[str, Any]:
    """Everything that is known about this process, as plain data."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "rejoinder": _version(),
        "kernel": kernel,
        "commit": _commit(),
        "python": platform.python_version(),
        **toolchain(),
        "platform": platform.platform(),
        "cpu": _cpu(),
    }


def _version() -> str:
    try:
        return metadata.version("rejoinder")
    except metadata.PackageNotFoundError:
        return "unknown"


def _commit() -> str | None:
    """The commit of the sources, `-dirty` with changes; None if they are in no repository."""
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=_PACKAGE, capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
