"""Intervals: the textbook's where observations are independent, wider where they are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rejoinder.measure.estimates import Estimate, around, mean, ratio, share
from rejoinder.measure.match import Z_95, wilson

COUNTS = arrays(np.int64, st.integers(2, 30), elements=st.integers(0, 5))


def ends(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_of_independent_observations_they_are_the_textbooks() -> None:
    values = np.random.default_rng(1).normal(size=200)
    error = Z_95 * values.std(ddof=1) / math.sqrt(200)
    low, high = ends(mean(values))
    assert (low, high) == pytest.approx((values.mean() - error, values.mean() + error))
    hits = (values > 0.5).astype(float)
    # The sample variance has n − 1 where a proportion's has n.
    assert ends(share(hits, np.ones(200))) == pytest.approx(wilson(hits.mean(), 199), abs=1e-12)


def test_observations_that_come_together_tell_less() -> None:
    alone = share(np.tile([0.0, 1.0], 100), np.ones(200))
    by_tens = share(np.repeat([0.0, 10.0], 10), np.full(20, 10.0))
    (low, high), (wide_low, wide_high) = ends(alone), ends(by_tens)
    assert wide_low < low < 0.5 < high < wide_high


def test_what_never_happened_may_still_happen() -> None:
    never = share(np.zeros(50), np.ones(50))
    assert ends(never) == pytest.approx(wilson(0.0, 50))
    assert ends(never)[1] > 0.05


@pytest.mark.parametrize("of", [3, 7, 49, 93])
def test_deals_that_are_all_alike_tell_no_more_for_being_rounded(of: int) -> None:
    alike = share(np.ones(50), np.full(50, float(of)))
    assert ends(alike) == pytest.approx(wilson(1 / of, 50))


def test_the_smallest_spread_there_is_counts() -> None:
    """One deal of thousands differs, by one of its units."""
    wholes = np.full(2000, 50.0)
    parts = np.ones(2000)
    parts[0] = 2.0
    low, high = ends(share(parts, wholes))
    alike_low, alike_high = ends(share(np.ones(2000), wholes))
    assert high - low < (alike_high - alike_low) / 10


def test_without_observations_there_is_nothing_to_tell() -> None:
    assert ratio(np.zeros(3), np.zeros(3)) is None
    assert share(np.zeros(3), np.zeros(3)) is None
    assert ratio(np.ones(1), np.ones(1)) == Estimate(value=1.0, low=None, high=None)
    assert around(0.5, math.inf).low is None


@given(COUNTS, st.randoms(use_true_random=False))
def test_a_share_is_inside_its_interval_and_both_inside_one(wholes: Any, chance: Any) -> None:
    parts = np.array([chance.randint(0, int(n)) for n in wholes])
    found = share(parts, wholes)
    if found is None:
        assert wholes.sum() == 0
    else:
        low, high = ends(found)
        assert 0 <= low <= found.value + 1e-12
        assert found.value - 1e-12 <= high <= 1
