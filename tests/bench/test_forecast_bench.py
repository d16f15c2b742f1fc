"""The benchmark of forecasts counts what is known, and fails where too few intervals held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rejoinder.measure.forecast import Fan, Forecast, Series
from rejoinder.run.config import RunConfig, load_config
from rejoinder_bench import Result, forecast, run_bench


def test_cases_are_those_whose_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    games: Any = np.arange(1, 21) * 50.0
    series = Series("MER", games, 1000 / games, games, sign=1, least=0.0, most=np.inf)
    said = {
        1.5: (650.0, 700.0),  # reached after 700: inside
        1.25: (600.0, 750.0),  # after 800: outside
        1.1: (600.0, np.inf),  # after 950: inside, without an end
        0.9: (700.0, 800.0),  # never, and the interval is over
        0.8: (700.0, 2_000.0),  # nobody knows
        3.0: (0.0, 1.0),  # reached before
    }

    def reaches(_: Fan, target: float) -> Forecast:
        low, high = said[target]
        return Forecast(target, low, low, high, 1.0, (0.0, 0.0, 0.0))

    monkeypatch.setattr(Fan, "reaches", reaches)
    monkeypatch.setattr(forecast, "_KNOWN", (500,))
    found = list(forecast._cases(series, tuple(said)))
    assert found == [(True, False), (False, False), (True, True), (False, False)]


@pytest.mark.parametrize(("enough", "ok"), [(0.0, True), (1.1, False)])
def test_shares_have_the_promised_names_and_are_judged(
    monkeypatch: pytest.MonkeyPatch, enough: float, ok: bool
) -> None:
    monkeypatch.setattr(forecast, "_SEEDS", (1,))
    monkeypatch.setattr(forecast, "_GAMES", 40)
    monkeypatch.setattr(forecast, "_KNOWN", (30,))
    monkeypatch.setattr(forecast, "_ENOUGH", enough)
    monkeypatch.setattr(forecast, "_config", lambda _: _little())
    heard: list[str] = []
    result = run_bench("forecast", heard.append)
    assert result.ok is ok
    names = {f"{what}_held_over_cases" for what in ("mer", "risk-aware", "random")}
    assert set(result.ratios) == names
    assert all(0 <= share <= 1 for share in result.ratios.values())
    assert result.figures["runs"] == 1
    assert any(line.startswith("mer: ") and "that have an end" in line for line in heard)


@pytest.mark.parametrize(("bounded_held", "ok"), [(90, True), (80, False)])
def test_intervals_without_an_end_hide_no_others(bounded_held: int, ok: bool) -> None:
    cases = [forecast.Case(True, True)] * 900
    cases += [forecast.Case(k < bounded_held, False) for k in range(100)]
    result = Result()
    forecast._report("mer", cases, result, lambda _: None)
    assert result.ratios["mer_held_over_cases"] > 0.95
    assert (result.figures["mer_with_end"], result.figures["mer_with_end_held"]) == (
        100,
        bounded_held,
    )
    assert result.ok is ok


def _little() -> RunConfig:
    changed = {"games": 40, "method.rollouts": 1, "eval_every": 2, "eval_games": 4}
    return load_config("paper", changed)
