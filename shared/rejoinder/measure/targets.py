"""Targets of a run: when a figure gets there, by the fitted curve and the run's speed.

`tell` is the whole of it, and what `rejoinder forecast` and the gateway both say. The curve alone
is `foresee`, a function of what was measured; `Told.at_speed` makes seconds of its games.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rejoinder.measure.agents import opponents
from rejoinder.measure.forecast import (
    EXPLOITABILITY,
    MER,
    REGRETS,
    Backtest,
    Forecast,
    Series,
    backtest,
    forecast,
    regret_series,
    utility_series,
    win_rate_series,
)

if TYPE_CHECKING:
    from rejoinder.run.config import RunConfig

Records = Iterable[Mapping[str, Any]]  # a run's metrics
Status = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """What is to be reached: a regret to get down to, or a result of matches to get up to."""

    what: str  # MER, EXPLOITABILITY or the name of an opponent
    value: float
    unit: str | None = None  # of mean utility against an opponent; None: a win rate

    @classmethod
    def parse(cls, option: str, text: str, config: RunConfig) -> Target:
        """From `mer=0.05`, `exploitability=0.01` or `risk-aware=0.88`, for a run of that config."""
        what, equals, number = text.rpartition("=")
        if not equals or not what:
            raise ValueError(f"{option}: write it as mer=0.05 or random=0.88, not {text!r}")
        return cls.of(option, what, number, config)

    @classmethod
    def of(cls, option: str, what: str, number: str | float, config: RunConfig) -> Target:
        known = measured(config)
        if what not in known:
            raise ValueError(f"{option}: no {what!r} here; there are {', '.join(known)}")
        game = config.load_game()
        counts_utility = what not in REGRETS and not game.counts_wins
        try:
            made = cls(what, float(number), game.utility_unit if counts_utility else None)
        except ValueError:
            raise ValueError(f"{option}: {number!r} is not a number") from None
        low, high, bounds = made._bounds()
        if not low < made.value < high:
            raise ValueError(f"{option}: the target must be {bounds}, not {made.value:g}")
        return made

    def _bounds(self) -> tuple[float, float, str]:
        if self.what in REGRETS:
            return 0.0, math.inf, "above 0"
        if self.unit is None:
            return 0.0, 1.0, "between 0 and 1, a win rate"
        return -math.inf, math.inf, f"a number of {self.unit} a game"

    def __str__(self) -> str:
        if self.what in REGRETS:
            return f"{REGRETS[self.what]} {self.value:g}"
        if self.unit is None:
            return f"a win rate of {self.value:.1%} against {self.what}"
        return f"a mean of {self.value:+g} {self.unit} a game against {self.what}"

    def figure(self, value: float) -> str:
        """A value of the same kind."""
        if self.what in REGRETS:
            return f"{value:.4f}"
        return f"{value:.1%}" if self.unit is None else f"{value:+.3f}"

    def series(self, records: Records) -> Series:
        if self.what in REGRETS:
            return regret_series(records, self.what)
        read = win_rate_series if self.unit is None else utility_series
        return read(records, self.what)


def measured(config: RunConfig) -> list[str]:
    """What may be a target of a run: MER, exploitability where it is exact, and the opponents."""
    game = config.load_game()
    exact = [EXPLOITABILITY] if game.is_enumerable(config.rules) else []
    return [MER, *exact, *opponents(game)]


@dataclass(frozen=True)
class Told:
    """A forecast for a run: when, or since when."""

    target: Target
    reached: float  # games; infinite: not yet
    forecast: Forecast | None  # None: it is reached
    backtest: Backtest | None
    # Low, median and high from now until then; infinite: never; None: nobody knows how fast.
    seconds: tuple[float, float, float] | None = None

    def at_speed(self, status: Status) -> Told:
        """The same for a run that stands as `status` says."""
        rate = status.get("games_per_second") or 0.0
        if self.forecast is None or not status.get("alive", True) or rate <= 0:
            return replace(self, seconds=None)
        low, middle, high = (max(0.0, n - status["games"]) / rate for n in _when(self.forecast))
        return replace(self, seconds=(low, middle, high))

    def plain(self) -> dict[str, Any]:
        """As JSON has it; what is never is null."""
        found, tested = self.forecast, self.backtest
        low, middle, high = self.seconds or (math.inf,) * 3
        return {
            "what": self.target.what,
            "target": self.target.value,
            "reached": _finite(self.reached),
            "games": _finite(found.games) if found else None,
            "low": _finite(found.low) if found else None,
            "high": _finite(found.high) if found else None,
            "chance": found.chance if found else None,
            "level": list(found.level) if found else None,
            "seconds": _finite(middle),
            "seconds_low": _finite(low),
            "seconds_high": _finite(high),
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


def tell(records: Records, target: Target, status: Status) -> Told:
    """The forecast of a run that stands as `status` says."""
    return foresee(target.series(records), target).at_speed(status)


def foresee(series: Series, target: Target) -> Told:
    """When the series of a target reaches it, or did."""
    reached = series.reached(target.value)
    found = forecast(series, target.value) if math.isinf(reached) else None
    return Told(target, reached, found, backtest(series, target.value))


def _when(found: Forecast) -> tuple[float, float, float]:
    return found.low, found.games, found.high


def _finite(games: float) -> float | None:
    return None if math.isinf(games) else games
