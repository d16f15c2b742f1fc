"""A mean over seeds, and how sure we are of it."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

# Student's t, by degrees of freedom: what a two-sided 95 % interval takes. Between two entries the
# one before counts, which is on the safe side.
_T_95 = dict(
    zip(
        (*range(1, 11), 12, 15, 20, 30, 60, 120),
        (
            *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
            *(2.179, 2.131, 2.086, 2.042, 2.000, 1.980),
        ),
        strict=True,
    )
)


class Estimate(NamedTuple):
    mean: float
    half_width: float | None  # of the 95 % interval over seeds; None: one seed tells nothing of it


def estimate(values: Sequence[float]) -> Estimate:
    """By Student's t: the seeds are independent, and few."""
    mean = statistics.fmean(values)
    freedom = len(values) - 1
    if freedom == 0:
        return Estimate(mean, None)
    known = list(_T_95)
    times = _T_95[known[bisect.bisect_right(known, freedom) - 1]]
    return Estimate(mean, times * statistics.stdev(values) / math.sqrt(len(values)))
