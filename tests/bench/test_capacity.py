"""The capacity model: each limit where it must be, costs that can be measured, honest checks."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.connection import AbstractConnection
from runtime import kuhn

from rejoinder.run.config import RunConfig, load_config
from rejoinder_bench import capacity, costs, learner, replay, run_bench
from rejoinder_bench.capacity import Prediction, Site, lease_size, predict, slowest_lease
from rejoinder_bench.costs import Costs
from rejoinder_bench.recording import record
from rejoinder_learner.planner import LEASE_SECONDS

COSTS = Costs(
    games=(0.005, 0.015),
    lease=0.5e-3,
    round_trips=5.0,
    round_trip=50e-6,
    load=0.5e-3,
    load_large=2e-3,
    load_trips=1.0,
    fold=50e-6,
    message=100e-6,
    publish=1e-3,
    look=100e-6,
    server_game=10e-6,
    server_message=20e-6,
    server_publish=150e-6,
    server_lease=150e-6,
    server_load=40e-6,
    server_load_large=160e-6,
    server_beat=50e-6,
    delta_bytes=5_000,
    snapshot_bytes=25_000,
    snapshot_bytes_large=100_000,
)
NEAR = Site(COSTS.round_trip)


def paper(batch: int = 20) -> RunConfig:
    return load_config("paper", {"batch": batch})


def test_a_few_workers_are_their_own_limit() -> None:
    one, two = (predict(COSTS, paper(), workers, NEAR) for workers in (1, 2))
    assert one.bottleneck == two.bottleneck == "workers"
    assert 0.95 / COSTS.game < one.rate < 1 / COSTS.game
    assert 1.95 * one.rate < two.rate < 2 * one.rate


def test_many_workers_wait_for_the_window_unless_the_batch_grows() -> None:
    small = predict(COSTS, paper(), 100, NEAR)
    assert small.bottleneck == "window"
    assert small.rate < 40 / 0.015  # the slowest of twenty games is the longest there is
    grown = predict(COSTS, paper(1_000), 100, NEAR)
    assert grown.bottleneck == "workers"
    assert grown.rate > 3 * small.rate


def test_the_learner_is_the_limit_of_a_crowd() -> None:
    crowd = predict(COSTS, paper(5_000), 500, NEAR)
    assert crowd.bottleneck == "learner"
    assert crowd.rate == pytest.approx(0.95 / 60.2e-6, rel=0.01)  # 50 + 100/10 + 1000/5000
    assert predict(COSTS, paper(10_000), 10_000, NEAR).rate == 0  # it only looks around


def test_a_slow_network_is_the_limit() -> None:
    slow = predict(COSTS, paper(1_000), 100, replace(NEAR, bytes_per_second=1e6))
    assert slow.bottleneck == "network"
    assert slow.rate == pytest.approx(1e6 / (5_000 + 100 * 100_000 / 1_000))


def test_a_snapshot_is_what_was_measured_and_between_what_is_between() -> None:
    assert COSTS.reading(20) == pytest.approx((0.5e-3, 40e-6, 25_000))
    assert COSTS.reading(1_000) == pytest.approx((2e-3, 160e-6, 100_000))
    middle = round(math.sqrt(20 * 1_000))
    assert COSTS.reading(middle) == pytest.approx((1e-3, 80e-6, 50_000), rel=0.01)


def test_every_worker_reads_every_snapshot_from_the_server() -> None:
    """With the default batch a lease is a game for twenty workers and more, a read for each."""
    slow = replace(COSTS, server_load=10e-3, games=(1e-4,))
    limits = {w: predict(slow, paper(), w, NEAR).limits["server"] for w in (1, 10, 20, 40)}
    reads = {w: (1 - w * 50e-6) / limit * 20 for w, limit in limits.items()}  # seconds a batch
    assert reads[10] - reads[1] > 0.08
    assert reads[20] - reads[10] > 0.09
    assert reads[40] == pytest.approx(reads[20], rel=0.01)  # only twenty have something to play


def test_cores_that_all_share_are_a_limit() -> None:
    shared = predict(COSTS, paper(), 4, replace(NEAR, cores=2))
    assert shared.bottleneck == "cores"
    assert shared.rate < 2 / COSTS.game


def test_leases_are_those_of_the_planner() -> None:
    assert lease_size(COSTS, paper(), 2) == 10  # half of a worker's share of forty games
    assert lease_size(COSTS, paper(1_000), 2) == LEASE_SECONDS / COSTS.game
    assert lease_size(COSTS, paper(), 1_000) == 1


def test_the_slowest_lease() -> None:
    assert slowest_lease(replace(COSTS, games=(0.01,)), 3, 7) == pytest.approx(0.03)
    assert slowest_lease(COSTS, 1, 50) == pytest.approx(0.015)
    assert 0.01 < slowest_lease(COSTS, 1, 1) + 0.001 < 0.012


def test_a_prediction_that_does_not_hold_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = [("good", 80.0, Prediction({"x": 100.0})), ("bad", 70.0, Prediction({"x": 100.0}))]
    monkeypatch.setattr(costs, "measure", lambda *_: COSTS)
    for some, ok in ((checked[:1], True), (checked, False)):
        monkeypatch.setattr(capacity, "_check", lambda *_, some=some: iter(some))
        result = run_bench("capacity", lambda _: None)
        assert result.ok is ok
        assert result.ratios["good"] == 0.8
    assert result.figures["predicted_1_default_batch"] > 0


@pytest.mark.slow
def test_simulated_workers_bring_the_recorded_games(tmp_path: Path) -> None:
    recording = record(kuhn(games=400, batch=40))
    found = replay.rate(recording, (0.005,), 4, 80, tmp_path / "run")  # checks the digest, too
    assert 0 < found < 4 / 0.005


@pytest.mark.slow
def test_costs_can_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GAMES": 200,
        "_PLAYED": 12,
        "_SETTLED": 2,
        "_DESIGN": ((100, 10), (100, 2), (20, 10)),
        "_ROUNDS": 1,
        "_BATCHES": 3,
        "_KNOWN": 5,
        "_PINGS": 3,
    }.items():
        monkeypatch.setattr(costs, name, value)
    monkeypatch.setattr(learner, "in_a_process", _here)
    patched: list[tuple[Any, str]] = [  # by what is otherwise a process of its own
        (RunConfig, "actor"),
        (AbstractConnection, "send_packed_command"),
    ]
    for owner, name in patched:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    heard: list[str] = []
    found = costs.measure(tmp_path, heard.append)
    assert len(heard) == len(vars(found))
    assert len(found.games) == 10
    assert found.game > 0
    assert 3 <= found.round_trips <= 8
    assert 1 <= found.load_trips <= 3
    assert 1_000 < found.delta_bytes < found.snapshot_bytes
    assert all(math.isfinite(v) and v >= 0 for n, v in vars(found).items() if n != "games")


def _here(work: Any, *arguments: Any) -> Any:
    """What a process of its own would do, without pinning this one."""
    if work is learner._pinned:
        _, work, *rest = arguments
        return work(*rest)
    return work(*arguments)
