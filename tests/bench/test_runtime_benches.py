"""The benchmarks of the runtime: they give usable numbers, and see it when something is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from runtime import eventually

from rejoinder.methods import METHODS
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder_bench import (
    BENCHES,
    Result,
    crowd,
    determinism,
    learner,
    run_bench,
    runtime,
    stopwatch,
)
from rejoinder_cli.commands.bench import bench


def quiet(_: str) -> None:
    pass


def test_every_benchmark_is_listed_in_the_help() -> None:
    listed = typer.main.get_command_from_info(
        typer.models.CommandInfo(callback=bench),
        pretty_exceptions_short=True,
        rich_markup_mode=None,
    )
    name = next(p for p in listed.params if p.name == "name")
    assert all(each in getattr(name, "help", "") for each in BENCHES)


def test_a_benchmark_that_finds_something_wrong_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rejoinder_bench.run_bench", lambda *_: Result(ok=False))
    with pytest.raises(typer.Exit) as end:
        bench("determinism")
    assert end.value.exit_code == 1


def test_another_digest_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinism, "_GAMES", 20)
    monkeypatch.setattr(determinism, "_ROLLOUTS", 1)
    digests = iter(["0" * 64] * 100)
    monkeypatch.setattr(determinism, "_train", lambda *_: next(digests))
    heard: list[str] = []
    result = run_bench("determinism", heard.append)
    assert not result.ok
    assert result.figures["equal"] == 0
    assert sum("NOT THE SAME" in line for line in heard) == result.figures["runs"] > 0


@pytest.mark.slow
def test_determinism_holds_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinism, "_GAMES", 80)
    monkeypatch.setattr(determinism, "_ROLLOUTS", 1)
    monkeypatch.setattr(determinism, "_LAGS", (1,))
    monkeypatch.setattr(determinism, "_ITERATIONS", 5)
    monkeypatch.setattr(determinism, "_WORKERS", {0: (3,), 1: (3,)})
    monkeypatch.setattr(determinism, "_DISTURBED_WORKERS", 2)
    monkeypatch.setattr(determinism, "_STOPS", dict.fromkeys((0, 1), ((2, 1), (1, None))))
    result = run_bench("determinism", quiet)
    assert result.ok
    assert result.ratios == {"equal_over_runs": 1.0}
    assert result.figures["runs"] == 3 * len(METHODS)


@pytest.fixture
def small_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in this process and next to nothing of it."""
    for name, value in {
        "_GAMES": 60,
        "_ROUNDS": 1,
        "_BIG": 3_000,
        "_SMALL": 300,
        "_ENTRIES": 5,
        "_PUBLISHES": 4,
    }.items():
        monkeypatch.setattr(learner, name, value)

    def here(core: int, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(learner, "_pinned", here)
    monkeypatch.setattr(learner, "in_a_process", lambda work, *arguments: work(*arguments))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system cannot pin a process")
@pytest.mark.usefixtures("small_learner")
def test_the_learner_takes_in_recorded_games_and_publishes() -> None:
    result = run_bench("learner", quiet)
    assert result.ok
    assert set(result.ratios) == {"publish_time_ratio"}
    assert {"games_per_second", "service_games_per_second", "peak_mebibytes"} <= set(result.figures)
    assert all(math.isfinite(n) and n > 0 for n in result.figures.values())


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system cannot pin a process")
@pytest.mark.usefixtures("small_learner")
def test_a_learner_with_another_digest_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_take_in", lambda *_: ("0" * 64, 1.0, 1.0))
    assert not run_bench("learner", quiet).ok


@pytest.mark.slow
@pytest.mark.parametrize(("config", "counts"), [(None, "games"), ("leduc", "iterations")])
def test_the_system_is_compared_with_its_kernels(
    config: str | None, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"_UNITS": 100, "_SECONDS": 0.1, "_FIRST": 40, "_ROUNDS": 1, "_PAPER_GAMES": 20}
    for name, value in small.items():
        monkeypatch.setattr(runtime, name, value)
    result = run_bench("runtime", quiet, config)
    assert set(result.ratios) == {
        "ordered_over_unordered",
        "ordered_over_unordered_playing",
        "system_over_kernels",
    }
    assert {f"ordered_{counts}_per_second", "worker_play_share"} <= set(result.figures)
    assert ("paper_seconds" in result.figures) == (config is None)
    for number in (*result.ratios.values(), *result.figures.values()):
        assert math.isfinite(number)
        assert number >= 0


def test_a_config_is_refused_where_there_is_no_choice() -> None:
    with pytest.raises(ValueError, match="--config: the benchmark crowd has no choice of config"):
        run_bench("crowd", quiet, "leduc")


def test_a_worker_that_got_no_lease_has_done_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(stopwatch, "_TIMED", {})
    monkeypatch.setattr("rejoinder_worker.main.serve", lambda *_, **__: None)
    stopwatch.serve("redis://nowhere", run="r", name="w0")
    (tmp_path / "w0.log").write_text(f"joined\n{capsys.readouterr().out}")
    assert stopwatch.read(tmp_path / "w0.log") == dict.fromkeys(("total", *stopwatch.PARTS), 0.0)


def learn_once_most_are_there(pipe: Any, url: str, path: Path) -> None:
    """In a process of its own, as `crowd._learn`: else so few games are over before they come."""
    bus = Bus(connect(url), RunDir.open(path).id)
    assert eventually(lambda: len(bus.workers()) > 150, 120), len(bus.workers())
    crowd._learn(pipe, url, path)


@pytest.mark.slow
def test_a_crowd_that_comes_goes_and_dies_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "_GAMES", 6_000)
    monkeypatch.setattr(crowd, "_BATCH", 500)
    monkeypatch.setattr(crowd, "_learn", learn_once_most_are_there)
    heard: list[str] = []
    result = run_bench("crowd", heard.append)
    assert result.ok, heard
    assert result.figures["deaths"] > 0
    assert result.figures["workers_at_once"] > 100
