"""How many workers a learner can feed: a small model, its costs measured, its predictions checked.

Leases of n games go round: queue, worker, stream, learner, queue. With W workers, batch B and lag L
there are never more than (L + 1)·B games under way, and a batch is not over before its slowest
lease is. Games a second are at most

    workers   W / (game + (lease + trips·round trip) / n + R·load / B)
    window    (L + 1)·B / (slowest lease of a batch + lease + trips·round trip + load
                           + B/n·(message + the server's message and lease) + R·the server's load
                           + n·fold + publish)
    learner   (1 − W·look) / (fold + message / n + publish / B)
    server    (1 − W·beat) / (game + (message + lease) / n + (publish + R·load) / B)
    network   bytes a second / (delta + R·snapshot / B)

where the names are those of `Costs`, and n is what the planner would choose. R = min(W, B / n) are
the workers that read a snapshot: each at most once, and only if it gets a lease of that batch. What
reading costs (load, with its round trips, and snapshot, its bytes) depends on B. The least of the
limits is the prediction, and its name the bottleneck. If all share one machine there is a sixth:
its cores, over the processor seconds that a game needs altogether. Evaluations and checkpoints are
in none of them.

Checked are: one and two real workers on this machine; crowds of simulated ones (see `replay`) with
the default batch, where the window is the limit, and with a batch for so many workers; and the
learner's ceiling, with a batch and a lease that its costs were not measured with, and with ten
times as many known workers as they were. A ratio is measured over predicted.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rejoinder.run.config import RunConfig, load_config
from rejoinder_bench import Result, costs, replay, runtime
from rejoinder_bench.costs import Costs
from rejoinder_bench.learner import window
from rejoinder_bench.recording import record
from rejoinder_learner.planner import Planner

TOLERANCE = 0.25  # of a prediction
GAMES_PER_WORKER = 10  # of a batch that is made for so many workers

_REAL = (1, 2)  # workers
# Workers, the batch if it is not the default one, games.
_SIMULATED = ((8, None, 400), (32, None, 800), (32, 320, 3_200))
# Times as long as real games do simulated ones last, because their workers, who are not free
# either, share a core or two.
_DILATED = 16
# Batch, lease and known workers; the planner's lease for so many workers is one game.
_CEILINGS = {"ceiling": (500, 5, 2), "ceiling_5000_known": (1_000, 1, 5_000)}
_TABLE = tuple(2**n for n in range(11))  # workers
_ROUNDS = 3
_DRAWS = 200  # batches drawn for the slowest lease


def run(say: Callable[[str], None]) -> Result:
    result = Result()
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
        measured = costs.measure(Path(name), say)
        for what, rate, predicted in _check(measured, Path(name)):
            ratio = result.ratios[what] = rate / predicted.rate
            result.figures[f"{what}_games_per_second"] = rate
            holds = abs(ratio - 1) <= TOLERANCE
            result.ok &= holds
            say(
                f"{what}: {rate:,.0f} games/s, predicted {predicted.rate:,.0f} "
                f"({predicted.bottleneck}): {ratio:.2f}{'' if holds else ', which is OFF'}"
            )
    result.figures |= {name: value for name, value in vars(measured).items() if name != "games"}
    result.figures["game"] = measured.game
    _report_table(measured, result, say)
    return result


def _check(measured: Costs, folder: Path) -> Iterator[tuple[str, float, Prediction]]:
    """What is predicted and can be had here, by name."""
    for workers in _REAL:
        yield f"real_{workers}", *_real(measured, workers, folder)
    apart, longer = Site(measured.round_trip), _slower(measured, _DILATED)
    for workers, batch, games in _SIMULATED:
        config = costs.recorded_config(batch or load_config(costs.CONFIG).batch, games)
        what = f"simulated_{workers}" + ("" if batch else "_default_batch")
        rate = replay.rate(record(config), longer.games, workers, 2 * window(config), folder / what)
        yield what, rate, predict(longer, config, workers, apart)
    for what, (batch, lease, known) in _CEILINGS.items():
        recording = record(costs.recorded_config(batch))
        seconds = statistics.median(
            costs.seconds_to_take_in(recording, lease, folder / f"{what}-{n}", known)[0]
            for n in range(_ROUNDS)
        )
        limit = learner_limit(measured, batch, lease, known)
        yield what, costs.GAMES / seconds, Prediction({"learner": limit})


def _real(measured: Costs, workers: int, folder: Path) -> tuple[float, Prediction]:
    """Real workers, in turns with bare kernels that tell how long a game takes at this moment."""
    config = runtime.timed_config("index")
    here = Site(measured.round_trip, cores=len(os.sched_getaffinity(0)))
    rounds = []
    with runtime.Kernels(config, workers) as kernels:
        for n in range(_ROUNDS):
            rate = runtime.System(folder / f"real-{workers}-{n}", config, workers).rate
            now = _slower(measured, workers / kernels.rate() / measured.game)
            rounds.append((rate, predict(now, config, workers, here)))
    return sorted(rounds, key=lambda one: one[0] / one[1].rate)[len(rounds) // 2]


def _slower(measured: Costs, times: float) -> Costs:
    """The same with games that last so many times as long."""
    return replace(measured, games=tuple(times * seconds for seconds in measured.games))


def _report_table(measured: Costs, result: Result, say: Callable[[str], None]) -> None:
    """Predictions for a data centre: the default batch, and one that grows with the workers."""
    for workers in _TABLE:
        told = []
        for what, batch in (("default_batch", None), ("grown_batch", GAMES_PER_WORKER * workers)):
            changed = {} if batch is None else {"batch": batch}
            predicted = predict(measured, load_config(costs.CONFIG, changed), workers, DATACENTER)
            result.figures[f"predicted_{workers}_{what}"] = predicted.rate
            told.append(f"{predicted.rate:,.0f} ({predicted.bottleneck})")
        say(f"{workers} workers: {told[0]}; with B = {GAMES_PER_WORKER}·W {told[1]}")


@dataclass(frozen=True)
class Site:
    """Where the parts run."""

    round_trip: float  # seconds from a worker to the server and back
    bytes_per_second: float = 1.25e9  # of the server's network: ten gigabits a second
    cores: int | None = None  # of the one machine that all share; None: a core for each part


DATACENTER = Site(round_trip=0.5e-3)


@dataclass(frozen=True)
class Prediction:
    limits: dict[str, float]  # games a second, by what limits them

    @property
    def rate(self) -> float:
        return min(self.limits.values())

    @property
    def bottleneck(self) -> str:
        return min(self.limits, key=self.limits.__getitem__)


def predict(costs: Costs, config: RunConfig, workers: int, site: Site) -> Prediction:
    """Games a second of a run with so many workers, by each limit."""
    batch, lease = config.batch, lease_size(costs, config, workers)
    leases = batch / lease  # of a batch
    readers, reading = min(float(workers), leases), costs.reading(batch)  # of a snapshot
    overhead = costs.lease + costs.round_trips * site.round_trip  # of a lease, for the worker
    load = reading.load + costs.load_trips * site.round_trip
    worker = costs.game + overhead / lease + readers * load / batch
    server = (
        costs.server_game
        + (costs.server_message + costs.server_lease) / lease
        + (costs.server_publish + readers * reading.server) / batch
    )
    cycle = (
        slowest_lease(costs, lease, round(leases))
        + overhead
        + load
        + leases * (costs.message + costs.server_message + costs.server_lease)
        + readers * reading.server
        + lease * costs.fold
        + costs.publish
    )
    limits = {
        "workers": workers / worker,
        "window": window(config) / cycle,
        "learner": learner_limit(costs, batch, lease, workers),
        "server": max(0.0, 1 - workers * costs.server_beat) / server,
        "network": site.bytes_per_second / (costs.delta_bytes + readers * reading.bytes / batch),
    }
    if site.cores is not None:
        limits["cores"] = site.cores / (worker + learner_seconds(costs, batch, lease) + server)
    return Prediction(limits)


def lease_size(costs: Costs, config: RunConfig, workers: int) -> int:
    """What the planner makes of so many workers once it knows how long games take."""
    planner = Planner(config, config.games)
    planner.arrived([0], costs.game, now=0.0)
    return min(planner.lease_size(workers), config.batch)


def learner_limit(costs: Costs, batch: int, lease: int, workers: int) -> float:
    """Games a second of a learner that knows so many workers."""
    return max(0.0, 1 - workers * costs.look) / learner_seconds(costs, batch, lease)


def learner_seconds(costs: Costs, batch: int, lease: int) -> float:
    """Of the learner's processor, for a game."""
    return costs.fold + costs.message / lease + costs.publish / batch


def slowest_lease(costs: Costs, lease: int, leases: int) -> float:
    """Seconds that the slowest of the leases of a batch plays, on average."""
    random = np.random.default_rng(1)
    drawn = random.choice(np.array(costs.games), (_DRAWS, max(leases, 1), lease))
    return float(drawn.sum(axis=2).max(axis=1).mean())
