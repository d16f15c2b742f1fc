"""Benchmarks run, name their ratios as promised, and give usable numbers (not: fast ones)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import pytest

from rejoinder_bench import Result, kernel, measure, openspiel, peers, run_bench, startup

pytest.importorskip(
    "pyspiel", reason="needs OpenSpiel; get it with: pip install 'rejoinder[bench]'"
)
PROMISED = {
    "openspiel": {"leduc_es_mccfr", "leduc_cfr", "kuhn_es_mccfr"},
    "kernel": {"decisions_per_iteration"},
    "startup": {"kernel_ready_over_import_numba"},
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round of next to nothing."""
    monkeypatch.setattr(measure, "ROUNDS", 1)
    monkeypatch.setattr(startup, "_ROUNDS", 1)
    monkeypatch.setattr(startup, "_READY", "import numba")  # the real one may have to compile
    for name in ("_PLAYOUTS", "_PEER_ITERATIONS", "_TRAINING_GAMES"):
        monkeypatch.setattr(kernel, name, 2)
    pairs = openspiel._PAIRS.items()
    monkeypatch.setattr(openspiel, "_PAIRS", {name: (*p[:2], 10, p[3]) for name, p in pairs})
    repeat = peers._repeat
    monkeypatch.setattr(peers, "_repeat", lambda step, _: repeat(step, 2))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", PROMISED)
def test_ratios_have_the_promised_names_and_are_positive(name: str) -> None:
    heard: list[str] = []
    result = run_bench(name, heard.append)
    assert isinstance(result, Result)
    assert set(result.ratios) >= PROMISED[name]
    assert result.figures
    for number in (*result.ratios.values(), *result.figures.values()):
        assert math.isfinite(number)
        assert number > 0
    assert len(heard) == len(result.ratios)


@pytest.mark.usefixtures("tiny")
def test_every_ratio_of_solvers_has_its_two_rates() -> None:
    result = run_bench("openspiel", lambda _: None)
    for name, ratio in result.ratios.items():
        ours = result.figures[f"{name}_ours_per_second"]
        theirs = result.figures[f"{name}_openspiel_per_second"]
        assert ratio == pytest.approx(ours / theirs)  # of a single round


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(
        ValueError, match="no benchmark is called 'gpu'; there are openspiel, kernel, "
    ):
        run_bench("gpu", lambda _: None)


def test_a_rate_is_work_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    assert measure.rate(lambda: 5.0) == 2.0


def test_side_by_side_takes_medians_of_rounds_after_a_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = iter([10.0, 5.0, 30.0, 10.0, 100.0, 1.0])
    calls: list[str] = []

    def work(name: str) -> Callable[[], float]:
        def note() -> float:
            calls.append(name)
            return 1.0

        return note

    monkeypatch.setattr(measure, "ROUNDS", 3)
    monkeypatch.setattr(measure, "rate", lambda work: (work(), next(rates))[1])
    ratio, ours, theirs = measure.side_by_side(work("ours"), work("theirs"))
    assert (ratio, ours, theirs) == (3.0, 30.0, 5.0)
    assert calls == ["ours", "theirs"] * 4


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system cannot pin a process")
def test_one_core_means_one_core_and_only_for_a_while() -> None:
    before = os.sched_getaffinity(0)
    with measure.one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
