"""A real worker with a stopwatch: what it does with its time, between its first and last lease."""

from __future__ import annotations

import functools
import json
import time
from pathlib import Path
from typing import Any

from rejoinder.actor import Actor
from rejoinder.bus import Bus
from rejoinder.wire import Codec
from rejoinder_worker import main
from rejoinder_worker.job import SnapshotCache

_TIMED = {
    "dequeue": (main.LeaseWorker, "dequeue_job_and_maintain_ttl"),
    "decode": (Codec, "decode"),
    "load": (SnapshotCache, "load"),
    "play": (Actor, "play"),
    "encode": (Codec, "encode"),
    "deliver": (Bus, "deliver"),
}
PARTS = tuple(_TIMED)


def serve(url: str, *, run: str, name: str) -> None:
    """What `rejoinder_worker.main.serve` does; then print the seconds of each part as JSON."""
    seconds = dict.fromkeys(PARTS, 0.0)
    leases: list[float] = []  # when each was taken
    for part, (owner, method) in _TIMED.items():
        _time(owner, method, part, seconds, leases if part == "dequeue" else None)
    main.serve(url, run=run, name=name, report=lambda _: None)
    print(json.dumps({"total": leases[-1] - leases[0], **seconds}))


def read(log: Path) -> dict[str, float]:
    """What a worker with this log has printed last."""
    said: dict[str, float] = json.loads(log.read_text().splitlines()[-1])
    return said


def _time(
    owner: Any, method: str, part: str, seconds: dict[str, float], ends: list[float] | None
) -> None:
    """Have every call of a method timed, from the first lease on."""
    real = getattr(owner, method)

    @functools.wraps(real)
    def timed(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return real(*args, **kwargs)
        finally:
            end = time.perf_counter()
            if ends is None or ends:
                seconds[part] += end - begin
            if ends is not None:
                ends.append(end)

    setattr(owner, method, timed)
