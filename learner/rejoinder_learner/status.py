"""What a learner says of itself: to the run directory, to the server, and to whoever watches."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

WINDOW = 10.0  # seconds over which the rate is measured


class Rate:
    """Games per second over the last few seconds.

    The clock starts when the first game is here: before that workers are starting, not slow.
    """

    def __init__(self) -> None:
        self._before: int | None = None  # the games there were when nobody had played yet
        self._points: deque[tuple[float, int]] = deque()  # since the first game

    def update(self, games: int, now: float) -> float:
        latest = self._points[-1][1] if self._points else self._before
        if latest is None or games < latest:  # this is the beginning, or the learner has gone back
            self._before = games
            self._points.clear()
        if games == self._before:
            return 0.0
        self._points.append((now, games))
        while len(self._points) > 2 and now - self._points[0][0] > WINDOW:
            self._points.popleft()
        (then, before), (_, latest) = self._points[0], self._points[-1]
        return (latest - before) / (now - then) if now > then else 0.0


def describe(
    *,
    games: int,
    target: int,
    rate: float,
    figures: Mapping[str, Any],
    metrics: Mapping[str, Any],
    workers: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """One status, as plain data."""
    return {
        "time": time.time(),
        "pid": os.getpid(),
        "games": games,
        "target": target,
        "games_per_second": round(rate, 2),
        "seconds_left": round((target - games) / rate, 1) if rate > 0 else None,
        **figures,
        "mer": metrics.get("mer"),
        "exploitability": metrics.get("exploitability"),
        "matches": metrics.get("matches", {}),
        "workers": dict(workers),
    }
