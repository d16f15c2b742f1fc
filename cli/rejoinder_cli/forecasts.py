"""Forecasts in words: when a run reaches a target, and how such a forecast has done so far.

`counts` is the word for what the run's method counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoinder.measure.targets import Status, Target, Told
    from rejoinder.run.rundir import RunDir


def in_words(told: Told, counts: str = "games") -> str:
    """When, or since when, in a line."""
    found, target = told.forecast, told.target
    if found is None:
        return f"{target} was reached after {told.reached:,.0f} {counts}"
    if math.isinf(found.games):
        low, middle, high = (target.figure(level) for level in found.level)
        ends = f"the fitted curve levels off at {middle} ({low} to {high})"
        share = f"{found.chance:.0%} of the refits get there"
        if math.isfinite(found.low):
            return f"{target} is unlikely by this curve: {share}; {ends}"
        few = f"; {share}" if found.chance else ""
        return f"{target} is not expected, however long it trains: {ends}{few}"
    when = ""
    if told.seconds is not None:
        low, middle, high = (_time(seconds) for seconds in told.seconds)
        when = f", {middle} from now ({low} to {high})"
    return (
        f"{target} is expected after {_games(found.games)} {counts} "
        f"({_games(found.low)} to {_games(found.high)}){when}"
    )


def backtest_in_words(told: Told, counts: str = "games") -> str:
    tested = told.backtest
    if tested is None:
        return "too few evaluations for a backtest"
    figure = told.target.figure
    at = tested.outlook
    lines = [
        f"backtest, from the first {tested.known:,.0f} {counts}: "
        f"after {at.games:,.0f} {counts} it would be {figure(at.value)} "
        f"({figure(at.low)} to {figure(at.high)}); it was {figure(tested.actual)}, "
        f"{_held(tested.outlook_held)}"
    ]
    if tested.forecast is not None and tested.reached is not None:
        said = tested.forecast
        games = "never" if math.isinf(said.games) else f"after {_games(said.games)} {counts}"
        lines.append(
            f"backtest, when: {games} ({_games(said.low)} to "
            f"{_games(said.high)}); it was {tested.reached:,.0f}, "
            f"{_held(bool(tested.forecast_held))}"
        )
    return "\n".join(lines)


def watcher(run: RunDir, target: Target | None) -> Callable[[Status], str]:
    """Tells the forecast of a run under way in a line: fitted when more was measured, timed now."""
    from rejoinder.measure.forecast import ForecastError
    from rejoinder.measure.targets import foresee

    counts = run.config.counts
    fitted: dict[bytes, Told] = {}  # by what was measured; only the newest

    def look(status: Status) -> str:
        if target is None:
            return ""
        try:
            series = target.series(run.metrics())
            if (mark := series.mark()) not in fitted:
                told = foresee(series, target)
                fitted.clear()
                fitted[mark] = told
            return in_words(fitted[mark].at_speed(status), counts)
        except ForecastError as error:
            return f"no forecast yet: {error}"

    return look


def _games(games: float) -> str:
    """To two digits or three: more would be make-believe."""
    if math.isinf(games):
        return "no end"
    unit = 10 ** max(0, math.floor(math.log10(max(games, 1))) - 2)
    return f"{round(games / unit) * unit:,}"


def _held(held: bool) -> str:
    return "inside" if held else "outside"


def _time(seconds: float) -> str:
    if math.isinf(seconds):
        return "no end"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"
