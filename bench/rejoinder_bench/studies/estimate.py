"""A mean over seeds, and how sure we are of it."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

# Student's t, by degrees of freedom: what a two-sided 95 % interval takes. Between two entries the
# one before counts, which is on the safe side.
_T_95 = {
    **{1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306},
    **{9: 2.262, 10: 2.228, 12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000, 120: 1.980},
}


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
