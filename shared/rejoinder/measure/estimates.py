"""Means and shares with 95 % intervals, from observations that come in groups.

Games of one deal, and response phases of one game, have luck in common, so a deal is the one
observation. A mean per phase is a ratio of two sums over deals; its error is linearised, as in
survey sampling. Shares get Wilson's interval for as many independent observations as tell as much.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.measure.match import Z_95, wilson

# An error below this is none: with n units a true one is 1/n² at least, and rounding makes 1e-16.
_ROUNDING = 1e-13


class Estimate(BaseModel):
    """A mean or a share; no interval where there are too few observations for one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float | None
    high: float | None


def around(value: float, error: float) -> Estimate:
    """With an interval of that half-width, if it is one."""
    if not math.isfinite(error):
        return Estimate(value=value, low=None, high=None)
    return Estimate(value=value, low=value - error, high=value + error)


def mean(values: Any) -> Estimate:
    """Of one value a deal, of at least one deal."""
    found = ratio(values, np.ones(len(values)))
    assert found is not None, "there are deals"
    return found


def ratio(parts: Any, wholes: Any) -> Estimate | None:
    """The sum of `parts` over that of `wholes`, both by deal; None of nothing."""
    total = float(wholes.sum())
    if total == 0.0:
        return None
    value = float(parts.sum()) / total
    return around(value, Z_95 * _error(value, parts, wholes))


def share(parts: Any, wholes: Any) -> Estimate | None:
    """A ratio in which each unit of a whole either counts or does not."""
    total = float(wholes.sum())
    if total == 0.0:
        return None
    value = float(parts.sum()) / total
    error = _error(value, parts, wholes)
    # Where all deals are alike nothing is known of their spread; each then counts as one.
    alike = error < _ROUNDING or not math.isfinite(error)
    units = float((wholes > 0).sum()) if alike else value * (1.0 - value) / error**2
    low, high = wilson(value, units)
    return Estimate(value=value, low=low, high=high)


def _error(value: float, parts: Any, wholes: Any) -> float:
    """Standard error of a ratio."""
    deals = len(parts)
    if deals < 2:
        return math.inf
    spread = float(((parts - value * wholes) ** 2).sum()) * deals / (deals - 1)
    return math.sqrt(spread) / float(wholes.sum())
