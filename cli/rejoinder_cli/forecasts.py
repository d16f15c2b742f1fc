"""Forecasts in words: when a run reaches a target, and how such a forecast has done so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rejoinder.config import RunConfig
    from rejoinder.forecast import Backtest, Forecast, Series
    from rejoinder.rundir import RunDir

MER = "mer"

Status = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """What is to be reached: `what` is MER or the name of an opponent to win against."""

    what: str
    value: float

    @classmethod
    def parse(cls, option: str, text: str) -> Target:
        """From `mer=0.05` or `risk-aware=0.88`."""
        what, equals, number = text.rpartition("=")
        if not equals or not what:
            raise ValueError(f"{option}: write it as mer=0.05 or risk-aware=0.88, not {text!r}")
        return cls.of(option, what, number)

    @classmethod
    def of(cls, option: str, what: str, number: str | float) -> Target:
        try:
            value = float(number)
        except ValueError:
            raise ValueError(f"{option}: {number!r} is not a number") from None
        if not 0 < value < (math.inf if what == MER else 1):
            bounds = "above 0" if what == MER else "between 0 and 1"
            raise ValueError(f"{option}: the target must be {bounds}, not {value:g}")
        return cls(what, value)

    def check(self, option: str, config: RunConfig) -> None:
        """Runs are tested against random play and the game's hand-made opponent."""
        known = [MER, "random", *filter(None, [config.load_game().baseline])]
        if self.what not in known:
            raise ValueError(f"{option}: no {self.what!r} here; there are {', '.join(known)}")

    def __str__(self) -> str:
        if self.what == MER:
            return f"MER {self.value:g}"
        return f"a win rate of {self.value:.1%} against {self.what}"

    def figure(self, value: float) -> str:
        """A value of the same kind."""
        return f"{value:.4f}" if self.what == MER else f"{value:.1%}"

    def series(self, records: list[dict[str, Any]]) -> Series:
        from rejoinder.forecast import mer_series, win_rate_series

        return mer_series(records) if self.what == MER else win_rate_series(records, self.what)


@dataclass(frozen=True)
class Told:
    """A forecast for a run: when, or since when."""

    target: Target
    reached: float  # games; infinite: not yet
    forecast: Forecast | None  # None: it is reached
    seconds: float | None  # from now until then; None: nobody knows how fast
    backtest: Backtest | None

    def text(self) -> str:
        if self.forecast is None:
            return f"{self.target} was reached after {self.reached:,.0f} games"
        found = self.forecast
        if math.isinf(found.games):
            low, middle, high = (self.target.figure(level) for level in found.level)
            few = f"; {found.chance:.0%} of the refits get there" if found.chance else ""
            return (
                f"{self.target} is not expected, however long it trains: the fitted curve levels "
                f"off at {middle} ({low} to {high}){few}"
            )
        end = "no end" if math.isinf(found.high) else _games(found.high)
        when = "" if self.seconds is None else f", {_time(self.seconds)} from now"
        return (
            f"{self.target} is expected after {_games(found.games)} games "
            f"({_games(found.low)} to {end}){when}"
        )

    def backtest_text(self) -> str:
        tested = self.backtest
        if tested is None:
            return "too few evaluations for a backtest"
        figure = self.target.figure
        at = tested.outlook
        told = [
            f"backtest, from the first {tested.known:,.0f} games: after {at.games:,.0f} games it "
            f"would be {figure(at.value)} ({figure(at.low)} to {figure(at.high)}); it was "
            f"{figure(tested.actual)}, {_held(tested.outlook_held)}"
        ]
        if tested.forecast is not None and tested.reached is not None:
            said = tested.forecast
            told.append(
                f"backtest, when: after {_games(said.games)} games ({_games(said.low)} to "
                f"{_games(said.high)}); it was {tested.reached:,.0f}, "
                f"{_held(bool(tested.forecast_held))}"
            )
        return "\n".join(told)

    def plain(self) -> dict[str, Any]:
        """As JSON has it; what is never is null."""
        found, tested = self.forecast, self.backtest
        return {
            "what": self.target.what,
            "target": self.target.value,
            "reached": _finite(self.reached),
            "games": _finite(found.games) if found else None,
            "low": _finite(found.low) if found else None,
            "high": _finite(found.high) if found else None,
            "chance": found.chance if found else None,
            "level": list(found.level) if found else None,
            "seconds": self.seconds,
            "backtest": tested
            and {
                "known": tested.known,
                "games": tested.outlook.games,
                "said": [tested.outlook.low, tested.outlook.value, tested.outlook.high],
                "was": tested.actual,
                "held": tested.outlook_held,
                "when_said": tested.forecast and [_finite(n) for n in _when(tested.forecast)],
                "when_was": tested.reached,
                "when_held": tested.forecast_held,
            },
        }


def tell(records: list[dict[str, Any]], target: Target, status: Status) -> Told:
    """The forecast of a run that stands as `status` says."""
    from rejoinder.forecast import backtest, forecast

    series = target.series(records)
    reached = series.reached(target.value)
    found, seconds = None, None
    if math.isinf(reached):
        found = forecast(series, target.value)
        rate = status.get("games_per_second") or 0.0
        left = found.games - status["games"]
        if status.get("alive", True) and rate > 0 and math.isfinite(left):
            seconds = max(0.0, left) / rate
    return Told(target, reached, found, seconds, backtest(series, target.value))


def watcher(run: RunDir, target: Target | None) -> Callable[[Status], str]:
    """Tells the forecast of a run under way in a line, anew when there is a new evaluation."""
    known, told = -1, ""

    def look(status: Status) -> str:
        nonlocal known, told
        if target is None:
            return ""
        records = run.metrics()
        if len(records) != known:
            known = len(records)
            told = _line(records, target, status)
        return told

    return look


def _line(records: list[dict[str, Any]], target: Target, status: Status) -> str:
    from rejoinder.forecast import ForecastError

    try:
        return tell(records, target, status).text()
    except ForecastError as error:
        return f"no forecast yet: {error}"


def _when(found: Forecast) -> tuple[float, float, float]:
    return found.low, found.games, found.high


def _finite(games: float) -> float | None:
    return None if math.isinf(games) else games


def _games(games: float) -> str:
    """To two digits or three: more would be make-believe."""
    if math.isinf(games):
        return "never"
    unit = 10 ** max(0, math.floor(math.log10(max(games, 1))) - 2)
    return f"{round(games / unit) * unit:,}"


def _held(held: bool) -> str:
    return "inside" if held else "outside"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"
