"""Measuring two things fairly on a noisy machine: one core, in turns, the median of the rounds."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ROUNDS = 7


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one of its cores, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def rate(work: Callable[[], float]) -> float:
    """Units of work a second; `work` does some and says how much."""
    begin = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - begin)


def side_by_side(
    ours: Callable[[], float], theirs: Callable[[], float]
) -> tuple[float, float, float]:
    """Median ratio of the rounds, and the median rates of ours and theirs."""
    ours(), theirs()  # warm up: compile, fill caches
    rounds = [(rate(ours), rate(theirs)) for _ in range(ROUNDS)]
    return (
        statistics.median(a / b for a, b in rounds),
        statistics.median(a for a, _ in rounds),
        statistics.median(b for _, b in rounds),
    )
