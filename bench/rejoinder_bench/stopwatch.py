"""A real worker with a stopwatch: what it does with its time, between its first and last lease."""

from __future__ import annotations

import functools
import json
import time
from pathlib import Path
from typing import Any

from rejoinder.transport.bus import Bus
from rejoinder.transport.wire import Codec
from rejoinder_worker import main
from rejoinder_worker.job import Player, SnapshotCache

_TIMED = {
    "dequeue": (main.LeaseWorker, "dequeue_job_and_maintain_ttl"),
    "decode": (Codec, "decode"),
    "load": (SnapshotCache, "load"),
    "play": (Player, "play_unit"),
    "encode": (Codec, "encode"),
    "deliver": (Bus, "deliver"),
}
PARTS = tuple(_TIMED)


def serve(url: str, *, run: str, name: str) -> None:
    """What `rejoinder_worker.main.serve` does; then print the seconds of each part as JSON."""
    seconds = dict.fromkeys(PARTS, 0.0)
    moments: list[float] = []  # ends of the calls that are counted
    for part, (owner, method) in _TIMED.items():
        _time(owner, method, part, seconds, moments)
    main.serve(url, run=run, name=name, report=lambda _: None)
    total = moments[-1] - moments[0] if moments else 0.0  # none: others took every lease
    print(json.dumps({"total": total, **seconds}))


def read(log: Path) -> dict[str, float]:
    """What a worker with this log has printed last."""
    said: dict[str, float] = json.loads(log.read_text().splitlines()[-1])
    return said


def _time(
    owner: Any, method: str, part: str, seconds: dict[str, float], moments: list[float]
) -> None:
    """Have the calls of a method timed, from the first lease on."""
    real = getattr(owner, method)

    @functools.wraps(real)
    def timed(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        result = real(*args, **kwargs)  # the last wait for a lease ends with an exception
        end = time.perf_counter()
        if moments:
            seconds[part] += end - begin
        if moments or part == "dequeue":
            moments.append(end)
        return result

    setattr(owner, method, timed)
