"""The benchmark of thinking ahead names what it promises, and sees it when it takes too long."""

from __future__ import annotations

import pytest

from rejoinder_bench import run_bench, search


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_GAMES", 1)
    monkeypatch.setattr(search, "_GAMES_BEFORE", 2)
    monkeypatch.setattr(search, "SAMPLES", 10)


@pytest.mark.parametrize(("limit", "enough"), [(1e9, True), (0.0001, False)])
def test_times_have_the_promised_names_and_are_judged(
    monkeypatch: pytest.MonkeyPatch, limit: float, enough: bool
) -> None:
    monkeypatch.setattr(search, "_LIMIT_MS", limit)
    result = run_bench("search", lambda _: None)
    assert result.ok is enough
    assert set(result.ratios) == {"move_p99_over_100_ms"}
    assert result.figures["samples"] == 10
    assert result.figures["moves"] > 2
    for clock in ("processor", "wall"):
        assert 0 <= result.figures[f"{clock}_ms_median"] <= result.figures[f"{clock}_ms_p99"]
