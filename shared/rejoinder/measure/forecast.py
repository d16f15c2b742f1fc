"""Forecasts: after how many games a run's figure reaches a target, and how sure that is.

The curve is a + b·n^(−c): a level, and a distance to it that shrinks by a power of the games n, as
the bounds of CFR do. For a given c it is linear in a and b, so the fit is weighted least squares
for every c of a grid. A curve that does not go towards `a` from the side it should is fitted as a
constant. `a` itself is free: near the end of a run a level below zero fits as well as one above.

The error is that of refits to curves that might as well have been measured: the fitted one with
blocks of its own residuals in another order (a block bootstrap, since neighbours err alike). Each
refit leaves out a share of the beginning, because the law holds in the long run only. What the
refits disagree about is what the forecast does not know; `backtest` shows what that was worth.

When a target is reached is a matter of evaluations, not of the curve: they come now and then, and
may be lucky. So each refit goes on with evaluations of its own, with residuals around it, and what
counts is when they have reached the target by the rule that holds for measured ones.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

MER, EXPLOITABILITY = "mer", "exploitability"
REGRETS = {MER: "MER", EXPLOITABILITY: "exploitability"}  # figures that fall, and their names

FEWEST = 8  # evaluations that a forecast needs
MOST = 1_000  # that it looks at; of more it takes every second, third, …
COVERAGE = 0.9  # of the intervals
HORIZON = 1e9  # games; what comes later is never

_POWERS = np.geomspace(0.1, 3.0, 200)
_CUTS = (0.0, 0.2, 0.4, 0.6)  # shares of the beginning that refits leave out
_REFITS = 100  # for each of them
_LEFT = 6  # evaluations that they leave at least
_AHEAD = 100  # evaluations to come that may be lucky; later ones are where the curve is
_TAILS = ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)

Array = np.ndarray[Any, np.dtype[np.float64]]


class ForecastError(ValueError):
    """A forecast that cannot be made; the message is one line that says why."""


@dataclass(frozen=True)
class Series:
    """A figure as it was measured, at numbers of games that grow."""

    name: str
    games: Array
    values: Array
    weights: Array  # inverse variances, up to a common factor
    sign: int  # +1: it falls towards its level; −1: it rises
    least: float  # what it can be
    most: float

    def up_to(self, games: float) -> Series:
        """What was known after so many games."""
        return self._only(self.games <= games)

    def thinned(self) -> Series:
        """Evenly, the last one included, so that a fit takes no more time than it may."""
        step = math.ceil(len(self.games) / MOST)
        return self._only(slice((len(self.games) - 1) % step, None, step)) if step > 1 else self

    def _only(self, which: Any) -> Series:
        games, values, weights = (part[which] for part in (self.games, self.values, self.weights))
        return replace(self, games=games, values=values, weights=weights)

    def mark(self) -> bytes:
        """Changes when what was measured does."""
        parts = (self.games, self.values, self.weights)
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).digest()

    def reached(self, target: float) -> float:
        """The games of the first evaluation that is there with the next one; infinite: none is.

        One alone may be luck, at the ends of a series as in its middle.
        """
        there = self.sign * self.values <= self.sign * target
        pairs = np.flatnonzero(there[:-1] & there[1:])
        return float(self.games[pairs[0]]) if len(pairs) else math.inf


def regret_series(records: Iterable[Mapping[str, Any]], what: str = MER) -> Series:
    """MER or exploitability as a run's metrics have it. Both come from means over what was played,
    so they steady as games grow."""
    games, values = _columns([(r["games"], r) for r in records], what)
    return Series(REGRETS[what], games, values, games, sign=1, least=0.0, most=math.inf)


def win_rate_series(records: Iterable[Mapping[str, Any]], opponent: str) -> Series:
    """A win rate as a run's metrics have it, weighted by the intervals there."""
    found = _against(records, opponent)
    games, values, low, high = _columns(found, "win_rate", "low", "high")
    weights = 1 / np.maximum(high - low, 1e-6) ** 2
    name = f"win rate against {opponent}"
    return Series(name, games, values, weights, sign=-1, least=0.0, most=1.0)


def utility_series(records: Iterable[Mapping[str, Any]], opponent: str) -> Series:
    """A mean utility as a run's metrics have it, weighted by the intervals there."""
    found = _against(records, opponent)
    games, values, errors = _columns(found, "mean_utility", "utility_error")
    weights = 1 / np.maximum(2 * errors, 1e-6) ** 2
    name = f"mean utility against {opponent}"
    return Series(name, games, values, weights, sign=-1, least=-math.inf, most=math.inf)


def _against(records: Iterable[Mapping[str, Any]], opponent: str) -> list[tuple[int, Any]]:
    """Games and matches against one opponent."""
    played = [(r["games"], r["matches"]) for r in records if r.get("matches")]
    names = sorted({name for _, matches in played for name in matches})
    if played and opponent not in names:
        raise ForecastError(
            f"no match against {opponent!r} is played; there are {', '.join(names)}"
        )
    return [(games, matches.get(opponent)) for games, matches in played]


def _columns(measured: list[tuple[int, Any]], *names: str) -> Array:
    """Games and figures; evaluations without figures that can be fitted are left out."""
    rows = [
        (games, *(figures[name] for name in names))
        for games, figures in measured
        if games > 0
        and isinstance(figures, Mapping)
        and all(_is_finite(figures.get(name)) for name in names)
    ]
    return np.array(rows, float).reshape(-1, 1 + len(names)).T


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


@dataclass(frozen=True)
class Forecast:
    """When a target is reached. Games are infinite where they are never enough."""

    target: float
    games: float  # the median of the refits
    low: float
    high: float
    chance: float  # share of the refits that get there
    level: tuple[float, float, float]  # low, median and high of where the curve ends


@dataclass(frozen=True)
class Outlook:
    """What a figure will be after so many games."""

    games: float
    value: float
    low: float  # what one evaluation may show, not only the curve
    high: float


@dataclass(frozen=True)
class Backtest:
    """What would have been said early in a run, and what then was."""

    known: float  # games that the forecast knew
    outlook: Outlook  # for the end of the run
    actual: float
    forecast: Forecast | None  # of a target that was reached later
    reached: float | None

    @property
    def outlook_held(self) -> bool:
        return self.outlook.low <= self.actual <= self.outlook.high

    @property
    def forecast_held(self) -> bool | None:
        if self.forecast is None or self.reached is None:
            return None
        return self.forecast.low <= self.reached <= self.forecast.high


@dataclass(frozen=True)
class Fan:
    """Curves that the measured figures allow: `level` + `scale`·(n / `unit`)^(−`power`)."""

    series: Series
    unit: float
    level: Array
    scale: Array
    power: Array
    noise: Array  # of evaluations after the series, a row for each curve

    def at(self, games: float) -> Outlook:
        curves = self._curves(np.array([games]))[:, 0]
        shown = np.clip(curves + self.noise[:, 0], self.series.least, self.series.most)
        low, _, high = np.quantile(shown, _TAILS)
        return Outlook(games, float(np.median(curves)), float(low), float(high))

    def band(self, games: Array) -> Array:
        """Low, median and high of the curves themselves, at each of the games."""
        made: Array = np.quantile(self._curves(games), _TAILS, axis=0)
        return made

    def reaches(self, target: float) -> Forecast:
        games = self._reached(target)
        low, middle, high = _quantiles_with_infinity(games)
        ends = np.clip(np.quantile(self.level, _TAILS), self.series.least, self.series.most)
        return Forecast(
            target,
            middle,
            low,
            high,
            chance=float(np.isfinite(games).mean()),
            level=(float(ends[0]), float(ends[1]), float(ends[2])),
        )

    def _curves(self, games: Array) -> Array:
        """A row for each curve."""
        powers = (games / self.unit) ** -self.power[:, None]
        made: Array = self.level[:, None] + self.scale[:, None] * powers
        return made

    def _reached(self, target: float) -> Array:
        """What `Series.reached` will say, by each curve; the target is not reached yet.

        A curve that was there before the last evaluation stays, and gets there with the next ones:
        evaluations scatter around it, so that they have not shown it yet does not refute it. To
        drop it would be to wait for later ones only, and to be too late on average.
        """
        series = self.series
        last, spacing = series.games[-1], np.median(np.diff(series.games))
        ahead = last + spacing * np.arange(_AHEAD + 1)
        shown = self._curves(ahead[1:]) + self.noise
        shown = np.column_stack([np.full(len(shown), series.values[-1]), shown])
        there = series.sign * shown <= series.sign * target
        pairs = there[:, :-1] & there[:, 1:]
        crossing = np.maximum(self._crossing(target), ahead[-1])
        later = last + spacing * np.ceil((crossing - last) / spacing)
        later[later > HORIZON] = np.inf
        made: Array = np.where(pairs.any(axis=1), ahead[pairs.argmax(axis=1)], later)
        return made

    def _crossing(self, target: float) -> Array:
        """Where the curves themselves get there; 0 if they are there all along."""
        sign = self.series.sign
        left, scale = sign * (target - self.level), sign * self.scale
        possible = (left > 0) & (scale > 0)
        games = np.where((scale == 0) & (left >= 0), 0.0, np.inf)
        exponent = np.log(scale[possible] / left[possible]) / self.power[possible]
        games[possible] = self.unit * np.exp(np.minimum(exponent, math.log(HORIZON)))
        return games


def fan(series: Series) -> Fan:
    """Fit a series, and fit it again and again to learn how sure that is."""
    if len(series.games) < FEWEST:
        raise ForecastError(
            f"{series.name}: a forecast needs {FEWEST} evaluations, and there are "
            f"{len(series.games)} (`eval_every` of a run's config: how many games apart they are)"
        )
    rng = np.random.default_rng(len(series.games))
    fitted = series.thinned()
    n = len(fitted.games)
    parts = [_refits(fitted, min(int(cut * n), n - _LEFT), rng) for cut in _CUTS]
    level, scale, power, noise = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Fan(series, float(series.games[-1]), level, scale, power, noise)


def forecast(series: Series, target: float) -> Forecast:
    """When the series reaches the target."""
    return fan(series).reaches(target)


def backtest(series: Series, target: float | None = None, share: float = 1 / 3) -> Backtest | None:
    """A forecast from the first `share` of the games against what happened; None: too little."""
    known = series.up_to(series.games[-1] * share) if len(series.games) else series
    if len(known.games) < FEWEST:
        known = series.up_to(series.games[FEWEST - 1]) if len(series.games) > FEWEST else series
    if not FEWEST <= len(known.games) < len(series.games):
        return None
    curves = fan(known)
    reached = math.inf if target is None else series.reached(target)
    later = target is not None and known.games[-1] < reached < math.inf
    return Backtest(
        known=float(known.games[-1]),
        outlook=curves.at(float(series.games[-1])),
        actual=float(series.values[-1]),
        forecast=curves.reaches(target) if later and target is not None else None,
        reached=reached if later else None,
    )


def _refits(
    series: Series, cut: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Level, scale and power of refits that leave out the first `cut` evaluations; what follows."""
    unit = series.games[-1]
    games, values, weights = (
        part[cut:] for part in (series.games / unit, series.values, series.weights)
    )
    level, scale, power = _fit(series, games, values[None, :], weights)
    fitted = level[0] + scale[0] * games ** -power[0]
    freedom = math.sqrt(len(games) / (len(games) - 3))
    even = (values - fitted) * np.sqrt(weights) * freedom  # residuals, all of one size
    drawn = _blocks(even, len(even), rng) * (1 + _likeness(even))
    refitted = _fit(series, games, fitted + drawn / np.sqrt(weights), weights)
    return (*refitted, _blocks(even, _AHEAD, rng) / math.sqrt(weights[-1]))


def _likeness(residuals: Array) -> float:
    """How alike neighbours err, from 0 to 1: their correlation, which a fit makes look smaller."""
    total = float(residuals @ residuals)
    found = float(residuals[1:] @ residuals[:-1]) / total if total > 0 else 0.0
    return min(1.0, max(0.0, found + 3 / len(residuals)))


def _blocks(residuals: Array, count: int, rng: np.random.Generator) -> Array:
    """So many residuals in other orders: runs of neighbours, from anywhere, with either sign."""
    length = math.ceil(math.sqrt(len(residuals)))
    size = (_REFITS, math.ceil(count / length), 1)
    begins = rng.integers(len(residuals), size=size)
    signs = rng.choice((-1.0, 1.0), size=size)
    chosen: Array = signs * residuals[(begins + np.arange(length)) % len(residuals)]
    return chosen.reshape(_REFITS, -1)[:, :count]


def _fit(series: Series, games: Array, values: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Level, scale and power of the best curve for each row of `values`."""
    x = games[None, :] ** -_POWERS[:, None]
    w = weights / weights.sum()
    x1, x2 = x @ w, x**2 @ w  # by power
    y1 = (values @ w)[:, None]  # by row
    xy = (values * w) @ x.T
    scale = (xy - x1 * y1) / np.maximum(x2 - x1**2, 1e-300)
    level = y1 - scale * x1
    wrong = series.sign * scale < 0
    scale, level = np.where(wrong, 0.0, scale), np.where(wrong, y1, level)
    # The squares of the errors, less those of the values, which are the same for all powers.
    errors = level**2 + scale**2 * x2 + 2 * level * scale * x1 - 2 * level * y1 - 2 * scale * xy
    best = errors.argmin(axis=1)
    rows = np.arange(len(values))
    return level[rows, best], scale[rows, best], _POWERS[best]


def _quantiles_with_infinity(games: Array) -> tuple[float, float, float]:
    ordered = np.sort(games)
    places = [min(int(share * len(ordered)), len(ordered) - 1) for share in _TAILS]
    low, middle, high = (float(ordered[place]) for place in places)
    return low, middle, high
