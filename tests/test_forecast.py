"""Forecasts: on curves whose answer is known, with noise whose size is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.measure.forecast import (
    FEWEST,
    MOST,
    Forecast,
    ForecastError,
    Series,
    backtest,
    fan,
    forecast,
    regret_series,
    utility_series,
    win_rate_series,
)

GAMES: Any = np.arange(1, 41) * 50.0


def curve(level: float, scale: float, power: float, games: Any = GAMES) -> Any:
    return level + scale * (games / 50) ** -power


def falling(values: Any, games: Any = GAMES) -> Series:
    return Series("MER", games, values, games, sign=1, least=0.0, most=math.inf)


def when(target: float, level: float, scale: float, power: float) -> float:
    return float(50 * ((target - level) / scale) ** (-1 / power))


@pytest.mark.parametrize(("power", "target"), [(0.5, 0.04), (0.7, 0.02), (1.0, 0.015)])
def test_a_curve_without_noise_is_followed(power: float, target: float) -> None:
    level, scale = 0.01, 0.3
    found = forecast(falling(curve(level, scale, power)), target)
    assert found.games == pytest.approx(when(target, level, scale, power), rel=0.05)
    assert found.low <= found.games <= found.high
    assert found.chance == 1
    assert found.level[1] == pytest.approx(level, abs=0.001)


def test_a_rising_figure() -> None:
    values = 1 - curve(0.1, 0.3, 0.8)
    series = Series("win rate", GAMES, values, np.ones(len(GAMES)), sign=-1, least=0.0, most=1.0)
    found = forecast(series, 0.895)
    assert found.games == pytest.approx(when(0.105, 0.1, 0.3, 0.8), rel=0.05)
    assert forecast(series, 0.95).games == math.inf
    assert found.level[1] == pytest.approx(0.9, abs=0.005)


def test_what_lies_beyond_the_level_is_never_reached() -> None:
    found = forecast(falling(curve(0.05, 0.3, 1.0)), 0.03)
    assert found.games == found.low == math.inf
    assert found.chance == 0
    assert found.level[0] > 0.04


def test_a_figure_that_does_not_change_gets_nowhere() -> None:
    found = forecast(falling(np.full(len(GAMES), 0.2)), 0.1)
    assert found.games == math.inf
    assert found.level == pytest.approx((0.2, 0.2, 0.2))


@pytest.mark.parametrize("likeness", [0.0, 0.7])
@pytest.mark.parametrize(("level", "power", "target"), [(0.02, 0.7, 0.04), (0.0, 0.5, 0.03)])
def test_intervals_hold_as_often_as_they_say(
    likeness: float, level: float, power: float, target: float
) -> None:
    """Independent noise, and noise in which neighbours are alike, as they are in MER."""
    rng = np.random.default_rng(5)
    future: Any = np.arange(1, 601) * 50.0
    held: list[bool] = []
    shown: list[bool] = []
    while len(held) < 60:
        noise = rng.normal(size=len(future))
        for k in range(1, len(future)):
            noise[k] = likeness * noise[k - 1] + math.sqrt(1 - likeness**2) * noise[k]
        true = curve(level, 0.3, power, future)
        series = falling(true + 0.002 * noise * np.sqrt(GAMES[-1] / future), future)
        known = series.up_to(GAMES[-1])
        if known.reached(target) < math.inf:
            continue
        curves = fan(known)
        found, later = curves.reaches(target), curves.at(4_000)
        held.append(found.low <= series.reached(target) <= found.high)
        shown.append(later.low <= true[79] + 0.002 * rng.normal() <= later.high)
    assert np.mean(held) >= 0.85
    assert np.mean(shown) >= 0.85


def test_the_luck_of_evaluations_counts() -> None:
    """A win rate that has levelled off below its target, with the noise of a few hundred games."""
    rng = np.random.default_rng(3)
    games: Any = np.arange(1, 401) * 50.0
    held: list[bool] = []
    while len(held) < 60:
        values = curve(0.87, -0.1, 1.0, games) + 0.017 * rng.normal(size=len(games))
        series = Series("win rate", games, values, np.ones(len(games)), -1, 0.0, 1.0)
        known = series.up_to(3_000)
        if known.reached(0.89) < math.inf:
            continue
        found = forecast(known, 0.89)
        held.append(found.low <= series.reached(0.89) <= found.high)
    assert np.mean(held) >= 0.85


def test_what_is_expected_lies_ahead_and_where_evaluations_are() -> None:
    """Curves that were there before, hidden by noise, included."""
    rng = np.random.default_rng(2)
    for target in (0.0315, 0.033, 0.036):
        for _ in range(20):
            values = curve(0.02, 0.3, 0.85) + 0.004 * rng.normal(size=len(GAMES))
            series = falling(values)
            if series.reached(target) < math.inf:
                continue
            found = forecast(series, target)
            ends = [n for n in (found.low, found.games, found.high) if n < math.inf]
            assert all(n >= GAMES[-1] and n % 50 == 0 for n in ends)
            assert found.low > GAMES[-1] or values[-1] <= target


def test_more_noise_is_said_to_be_less_sure() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=len(GAMES)) * np.sqrt(GAMES[-1] / GAMES)
    widths = []
    for size in (0.0002, 0.002):
        found = forecast(falling(curve(0.02, 0.3, 0.7) + size * noise), 0.04)
        widths.append(found.high - found.low)
    assert widths[0] < widths[1]


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=FEWEST, max_size=40), st.floats(0.001, 1), st.booleans())
def test_any_figures_give_an_answer_in_order_and_always_the_same(
    values: list[float], target: float, rises: bool
) -> None:
    games: Any = 50.0 * np.arange(1, len(values) + 1)
    series = Series("x", games, np.array(values), games, -1 if rises else 1, 0.0, 1.0)
    found = forecast(series, target)
    assert games[-1] <= found.low <= found.games <= found.high
    assert 0 <= found.chance <= 1
    assert 0 <= found.level[0] <= found.level[1] <= found.level[2] <= 1
    assert found == forecast(series, target)


@pytest.mark.parametrize("lucky", [[0], [5], [19], [0, 19], [5, 7]])
def test_one_lucky_evaluation_has_not_reached_a_target(lucky: list[int]) -> None:
    values = np.full(20, 0.5)
    values[12:] = 0.2
    values[lucky] = 0.1
    series = falling(values, GAMES[:20])
    assert series.reached(0.2) == GAMES[12]
    assert series.reached(0.1) == math.inf


@pytest.mark.parametrize("first", [0, 5, 18])
def test_two_neighbours_have(first: int) -> None:
    values = np.full(20, 0.5)
    values[first : first + 2] = 0.1
    assert falling(values, GAMES[:20]).reached(0.1) == GAMES[first]
    assert falling(np.array([]), np.array([])).reached(0.1) == math.inf


def test_a_backtest_knows_only_the_beginning() -> None:
    series = falling(curve(0.01, 0.3, 0.7))
    tested = backtest(series, 0.04)
    assert tested is not None
    assert tested.known == 650
    assert tested.outlook.games == 2_000
    assert tested.actual == series.values[-1]
    assert tested.outlook.value == pytest.approx(tested.actual, rel=0.1)
    assert tested.reached == series.reached(0.04)
    assert isinstance(tested.forecast, Forecast)
    assert tested.forecast.games == pytest.approx(tested.reached, rel=0.1)
    other = falling(np.where(GAMES <= 650, series.values, 0.9))
    changed = backtest(other)
    assert changed is not None
    assert changed.outlook == tested.outlook
    assert not changed.outlook_held
    assert changed.forecast is None


def test_a_target_reached_early_has_no_backtest_of_when() -> None:
    tested = backtest(falling(curve(0.01, 0.3, 0.7)), 0.2)
    assert tested is not None
    assert tested.forecast is None
    assert tested.forecast_held is None


def test_of_very_many_evaluations_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    games: Any = np.arange(1, 2 * MOST + 100) * 50.0
    noise = np.random.default_rng(1).normal(0, 0.0005, len(games))
    series = falling(curve(0.001, 0.3, 0.4, games) + noise, games)
    some = series.thinned()
    assert MOST / 2 < len(some.games) <= MOST
    assert set(np.diff(some.games)) == {150.0}
    assert (some.games[-1], some.values[-1]) == (series.games[-1], series.values[-1])
    assert falling(curve(0.0, 0.3, 0.7)).thinned().mark() == falling(curve(0.0, 0.3, 0.7)).mark()
    quick = forecast(series, 0.012)
    monkeypatch.setattr("rejoinder.measure.forecast.MOST", len(games))
    slow = forecast(series, 0.012)
    assert quick != slow
    assert quick.games == pytest.approx(slow.games, rel=0.1)


def test_few_evaluations() -> None:
    few = falling(curve(0.01, 0.3, 0.7)[: FEWEST - 1], GAMES[: FEWEST - 1])
    with pytest.raises(ForecastError, match=f"needs {FEWEST} evaluations, and there are 7"):
        forecast(few, 0.1)
    assert backtest(few) is None
    assert backtest(regret_series([])) is None


def test_series_of_a_runs_metrics() -> None:
    rate = {"win_rate": 0.8, "low": 0.7, "high": 0.9}
    surer = {"win_rate": 0.9, "low": 0.89, "high": 0.91}
    records: list[dict[str, Any]] = [
        {"games": 50, "mer": 0.2, "matches": {"random": rate}},
        {"games": 100, "mer": 0.1},
        {"games": 150, "matches": {"random": surer}},
    ]
    assert regret_series(records).games.tolist() == [50, 100]
    series = win_rate_series(records, "random")
    assert series.values.tolist() == [0.8, 0.9]
    assert series.weights[1] == pytest.approx(100 * series.weights[0])
    with pytest.raises(ForecastError, match="'nobody' is played; there are random"):
        win_rate_series(records, "nobody")
    assert len(win_rate_series([], "anybody").games) == 0


def test_series_of_utility_and_exploitability() -> None:
    matches = [
        {"mean_utility": -0.5, "utility_error": 0.5},
        {"mean_utility": 0.25, "utility_error": 0.05},
        {"mean_utility": 0.3},  # of one deal
    ]
    records: list[dict[str, Any]] = [
        {"games": 50 * (k + 1), "exploitability": 0.3 - k / 10, "matches": {"random": match}}
        for k, match in enumerate(matches)
    ]
    series = utility_series(records, "random")
    assert series.values.tolist() == [-0.5, 0.25]
    assert series.weights[1] == pytest.approx(100 * series.weights[0])
    assert (series.sign, series.least) == (-1, -math.inf)
    exact = regret_series(records, "exploitability")
    assert (exact.name, exact.values.tolist()) == ("exploitability", pytest.approx([0.3, 0.2, 0.1]))


def test_what_no_trainer_writes_is_left_out() -> None:
    rate = {"win_rate": 0.8, "low": 0.7, "high": 0.9}
    records: list[dict[str, Any]] = [
        {"games": 0, "mer": 1.0, "matches": {"random": rate}},
        {"games": 10, "mer": None, "matches": {"random": 7}},
        {"games": 20, "mer": math.inf, "matches": {"random": rate | {"low": math.nan}}},
        {"games": 30, "mer": 10**400, "matches": {"random": {"win_rate": 0.8}}},
        {"games": 40, "mer": "0.1", "matches": None},
        {"games": 50, "mer": 0.2, "matches": {"random": rate}},
    ]
    for series in (regret_series(records), win_rate_series(records, "random")):
        assert series.games.tolist() == [50]
