"""How many workers a learner can feed: a small model, its costs measured, its predictions checked.

Leases of n games go round: queue, worker, stream, learner, queue. With W workers, batch B and lag L
there are never more than (L + 1)·B games under way, and a batch is not over before its slowest
lease is. Games a second are at most

    workers   W / (game + (lease + trips·round trip + loads·load) / n)
    window    (L + 1)·B / (slowest lease of a batch + lease + trips·round trip + load
                           + B/n·(message + the server's message and lease) + n·fold + publish)
    learner   (1 − W·look) / (fold + message / n + publish / B)
    server    (1 − W·beat) / (game + (message + lease) / n + publish / B)
    network   bytes a second / (delta + W·snapshot / B)

where the names are those of `Costs`, n is what the planner would choose, and each worker loads
each snapshot at most once, and only if it gets a lease of that batch. The least of them is the
prediction, and its name the bottleneck. If all share one machine there is a sixth: its cores, over
the processor seconds that a game needs altogether.

Checked are: one and two real workers on this machine; crowds of simulated ones (see `replay`) with
the default batch, where the window is the limit, and with a batch for so many workers; and the
learner's ceiling with a batch and a lease that its costs were not measured with. A ratio is
measured over predicted.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rejoinder.config import RunConfig, load_config
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
_CEILING = (500, 5)  # batch and lease
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
    _tell_table(measured, result, say)
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
    batch, lease = _CEILING
    recording = record(costs.recorded_config(batch))
    seconds = statistics.median(
        costs.seconds_to_take_in(recording, lease, folder / f"ceiling-{n}")[0]
        for n in range(_ROUNDS)
    )
    yield (
        "ceiling",
        costs.GAMES / seconds,
        Prediction({"learner": 1 / learner_seconds(measured, batch, lease)}),
    )


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


def _tell_table(measured: Costs, result: Result, say: Callable[[str], None]) -> None:
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
    loads = min(1.0, workers / leases)  # new snapshots in a lease
    overhead = costs.lease + costs.round_trips * site.round_trip  # of a lease, for the worker
    worker = costs.game + (overhead + loads * costs.load) / lease
    learner = learner_seconds(costs, batch, lease)
    server = (
        costs.server_game
        + (costs.server_message + costs.server_lease) / lease
        + costs.server_publish / batch
    )
    cycle = (
        slowest_lease(costs, lease, round(leases))
        + overhead
        + costs.load
        + leases * (costs.message + costs.server_message + costs.server_lease)
        + lease * costs.fold
        + costs.publish
    )
    limits = {
        "workers": workers / worker,
        "window": window(config) / cycle,
        "learner": max(0.0, 1 - workers * costs.look) / learner,
        "server": max(0.0, 1 - workers * costs.server_beat) / server,
        "network": site.bytes_per_second
        / (costs.delta_bytes + min(workers, leases) * costs.snapshot_bytes / batch),
    }
    if site.cores is not None:
        limits["cores"] = site.cores / (worker + learner + server)
    return Prediction(limits)


def lease_size(costs: Costs, config: RunConfig, workers: int) -> int:
    """What the planner makes of so many workers once it knows how long games take."""
    planner = Planner(config, config.games)
    planner.arrived([0], costs.game, now=0.0)
    return min(planner.lease_size(workers), config.batch)


def learner_seconds(costs: Costs, batch: int, lease: int) -> float:
    """Of the learner's processor, for a game."""
    return costs.fold + costs.message / lease + costs.publish / batch


def slowest_lease(costs: Costs, lease: int, leases: int) -> float:
    """Seconds that the slowest of the leases of a batch plays, on average."""
    random = np.random.default_rng(1)
    drawn = random.choice(np.array(costs.games), (_DRAWS, max(leases, 1), lease))
    return float(drawn.sum(axis=2).max(axis=1).mean())
