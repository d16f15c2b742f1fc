"""Medians of the average policy by action: as the paper takes them, and over real choices."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.games.base import concrete
from rejoinder.games.deal.experiment import target_policy
from rejoinder.measure.metrics import table_statistics
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.rollout import row_dtype

GIVE, KEEP, LEAVE = range(3)
LOOK = concrete(("give", "keep", "leave"), describe=lambda key: {"player": key % 2})


def test_forced_infosets_count_for_the_papers_median_and_avoided_ones_for_ours() -> None:
    rows = np.zeros(5, row_dtype(3, 1))
    rows["key"] = [2, 4, 6, 8, 3]  # the last one is of the other seat
    for row, policy in enumerate(({GIVE: 1.0}, {GIVE: 0.0, KEEP: 1.0}, {GIVE: 0.2, KEEP: 0.8})):
        rows["legal"][row] = sum(1 << action for action in policy)
        for action, probability in policy.items():
            rows["policy"][row, AVERAGE, action] = probability
    rows["legal"][3] = rows["legal"][1]
    rows["policy"][3] = rows["policy"][1]
    rows["legal"][4] = 1 << GIVE | 1 << KEEP
    rows["policy"][4, AVERAGE] = (0.5, 0.5, 0.0)

    papers = target_policy(rows, LOOK)
    assert papers == {"give": pytest.approx(0.6), "keep": pytest.approx(1.0)}
    ours = table_statistics(rows, LOOK)["policy"]
    assert ours == {"give": pytest.approx(0.1), "keep": pytest.approx(0.9)}
    assert target_policy(rows[:0], LOOK) == {}
