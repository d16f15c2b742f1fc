"""How fast a run is said to be, and for how long it is going to last."""

from __future__ import annotations

import pytest

from rejoinder_learner.status import WINDOW, Rate, describe


def test_the_clock_starts_with_the_first_game() -> None:
    """However long the workers take to come: a resumed run has games from before."""
    rate = Rate()
    assert [rate.update(500, now) for now in (0.0, 1.0, 60.0)] == [0.0, 0.0, 0.0]
    assert rate.update(520, 60.2) == 0.0  # when they were begun is not known
    assert rate.update(540, 60.4) == pytest.approx(100)
    assert rate.update(620, 61.2) == pytest.approx(100)


def test_only_the_last_seconds_count() -> None:
    rate = Rate()
    rate.update(0, 0.0)
    for second in range(1, 101):  # 10 games a second, then 50
        measured = rate.update(10 * second + 40 * max(0, second - 50), float(second))
        if second in range(2, 51):
            assert measured == pytest.approx(10)
        elif second > 50 + WINDOW:
            assert measured == pytest.approx(50)


def test_a_run_that_has_stopped_comes_to_nothing() -> None:
    rate = Rate()
    rates = [rate.update(min(games, 30), games / 10) for games in range(200)]
    assert rates[30] == pytest.approx(10)
    assert 0 < rates[100] < 10 / 3
    assert rates[-1] == 0.0


def test_after_going_back_the_clock_starts_anew() -> None:
    rate = Rate()
    for games, now in ((0, 0.0), (50, 1.0), (100, 2.0)):
        rate.update(games, now)
    assert rate.update(40, 3.0) == 0.0
    assert rate.update(40, 8.0) == 0.0
    assert rate.update(45, 9.0) == 0.0
    assert rate.update(50, 10.0) == pytest.approx(5)


@pytest.mark.parametrize(("rate", "left"), [(20.0, 2.5), (0.0, None)])
def test_the_time_that_is_left(rate: float, left: float | None) -> None:
    status = describe(games=50, target=100, rate=rate, figures={}, metrics={}, workers={})
    assert status["seconds_left"] == left
