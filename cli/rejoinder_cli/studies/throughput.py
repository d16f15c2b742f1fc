"""Games (iterations) a second of a config with so many workers: measured here, predicted, or both.

Measured are a learner, a server and real workers on this machine, without evaluations and
checkpoints; with each figure goes how many cores other programs used just before. Predictions are
the capacity model's: all on this machine where the workers fit on its cores, a data centre with a
core for each part where they do not.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from rejoinder.files import append_line, read_json, read_lines, write_json
from rejoinder.run.config import RunConfig
from rejoinder_bench import costs as costing
from rejoinder_bench import runtime, system
from rejoinder_bench.capacity import DATACENTER, Site, predict
from rejoinder_bench.costs import Costs
from rejoinder_bench.system import TooShort

BUSY = 0.25  # cores used by others: what is measured beside so much is to be taken with care

# The least units of a timed run, but for the last ones, which need no new snapshot. The first 200
# are not timed.
_GAMES = 600  # where a unit is a game
_BLOCKS = 300  # where it is a block of iterations, which takes longer
_BATCHES = 3  # more units if these are more
_LOOKING = 0.5  # seconds, for what others do


@dataclass(frozen=True)
class Timing:
    """A run to be timed."""

    config: RunConfig
    workers: int

    @property
    def key(self) -> str:
        return f"{self.config.fingerprint}/{self.workers}/{self.config.kernel}"


class Measured(NamedTuple):
    rate: float  # games (iterations) a second
    others: float  # cores that other programs used just before


class Speed(NamedTuple):
    """What is known of a config with so many workers; games (iterations) a second."""

    measured: float | None
    others: float | None  # cores that other programs used then
    predicted: float | None
    bottleneck: str | None  # of the prediction


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fits_here(workers: int) -> bool:
    return workers <= cores()


def time_all(
    timings: Sequence[Timing], path: Path, again: bool, update: Callable[[int], None]
) -> dict[str, Measured]:
    """All of them, by key; those in the file are not timed again unless that is asked for."""
    wanted = {timing.key: timing for timing in timings}
    kept = [] if again else read_lines(path)
    found = {
        line["key"]: Measured(line["rate"], line["others"])
        for line in kept
        if line["key"] in wanted
    }
    update(len(found))
    for key, timing in wanted.items():
        if key not in found:
            found[key] = measured = _time(timing)
            append_line(path, json.dumps({"key": key, **measured._asdict()}))
            update(len(found))
    return found


def _time(timing: Timing) -> Measured:
    config = timing.config
    config = config.model_copy(update=system.QUIET | {"games": games_to_time(config)})
    others = _cores_in_use()
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
        try:
            return Measured(runtime.System(Path(folder), config, timing.workers).rate, others)
        except TooShort as error:
            raise ValueError(
                f"timing: batch={config.batch} lag={config.lag}: {error}; "
                "leave such batches out of --batches, or speeds by --no-timing"
            ) from None


def games_to_time(config: RunConfig) -> int:
    """The clock runs from snapshot to snapshot, and the last window of units needs no new one."""
    least = _GAMES if config.block == 1 else _BLOCKS
    units = max(least, _BATCHES * config.batch) + (config.lag + 1) * config.batch
    return units * config.block


def _cores_in_use() -> float:
    """Over a moment in which this process does nothing (Linux)."""
    busy, began = _busy_seconds(), time.perf_counter()
    time.sleep(_LOOKING)
    return (_busy_seconds() - busy) / (time.perf_counter() - began)


def _busy_seconds() -> float:
    """Processor seconds of all programs so far."""
    user, nice, in_kernel = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(in_kernel)) / os.sysconf("SC_CLK_TCK")


def known_costs(path: Path, config: RunConfig, again: bool, say: Callable[[str], None]) -> Costs:
    """Those in the file if they are of this config and these kernels; else they are measured."""
    key = f"{config.fingerprint}/{config.kernel}"
    kept = read_json(path)
    if kept.get("key") == key and not again:
        return Costs(**kept["costs"] | {"games": tuple(kept["costs"]["games"])})
    say("measuring the costs of all parts, for predictions")
    others = _cores_in_use()
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
        measured = costing.measure(Path(folder), lambda _: None, config)
    write_json(path, {"key": key, "others": others, "costs": asdict(measured)})
    return measured


def speed(
    config: RunConfig, workers: int, measured: dict[str, Measured], costs: Costs | None
) -> Speed:
    """All that is known."""
    timed = measured.get(Timing(config, workers).key)
    rate, others = timed or (None, None)
    if costs is None:
        return Speed(rate, others, None, None)
    site = Site(costs.round_trip, cores=cores()) if fits_here(workers) else DATACENTER
    predicted = predict(costs, config, workers, site)
    return Speed(rate, others, predicted.rate, predicted.bottleneck)
