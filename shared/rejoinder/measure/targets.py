"""Targets of a run: when MER or a win rate gets there, by the fitted curve and the run's speed.

`tell` is the whole of it, and what `rejoinder forecast` and the gateway both say. The curve alone
is `foresee`, a function of what was measured; `Told.at_speed` makes seconds of its games.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rejoinder.measure.forecast import (
    Backtest,
    Forecast,
    Series,
    backtest,
    forecast,
    mer_series,
    win_rate_series,
)

if TYPE_CHECKING:
    from rejoinder.run.config import RunConfig

MER = "mer"

Records = Iterable[Mapping[str, Any]]  # a run's metrics
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

    def check(self, option: str, config: RunConfig, *, mer: bool = True) -> None:
        """Refuse what the run does not measure, or MER where only an opponent will do."""
        known = [*([MER] if mer else []), *measured_against(config)]
        if self.what not in known:
            raise ValueError(f"{option}: no {self.what!r} here; there are {', '.join(known)}")

    def __str__(self) -> str:
        if self.what == MER:
            return f"MER {self.value:g}"
        return f"a win rate of {self.value:.1%} against {self.what}"

    def figure(self, value: float) -> str:
        """A value of the same kind."""
        return f"{value:.4f}" if self.what == MER else f"{value:.1%}"

    def series(self, records: Records) -> Series:
        return mer_series(records) if self.what == MER else win_rate_series(records, self.what)


def measured_against(config: RunConfig) -> list[str]:
    """Runs are tested against random play and the game's hand-made opponent."""
    return ["random", *config.load_game().baselines]


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
