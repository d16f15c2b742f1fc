"""From process start to a training game played, with a warm kernel cache.

The peer is the same interpreter importing numba and nothing else: what no program on top of it can
go below.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from rejoinder_bench import Result

_ROUNDS = 5
_READY = """
from rejoinder.run.config import load_config
from rejoinder_learner.state import Learner
config = load_config("paper", ["method.rollouts=1"])
config.actor().play(0, Learner(config).snapshot_for(0))
"""
_PEER = "import numba"


def run(say: Callable[[str], None]) -> Result:
    _seconds(_READY), _seconds(_PEER)  # compile, fill the file cache
    rounds = [(_seconds(_READY), _seconds(_PEER)) for _ in range(_ROUNDS)]
    ready = statistics.median(a for a, _ in rounds)
    peer = statistics.median(b for _, b in rounds)
    ratio = statistics.median(a / b for a, b in rounds)
    say(f"kernel ready {ready:.2f} s after process start, {ratio:.1f} times `import numba`")
    return Result(
        ratios={"kernel_ready_over_import_numba": ratio},
        figures={"kernel_ready_seconds": ready, "import_numba_seconds": peer},
    )


def _seconds(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin
