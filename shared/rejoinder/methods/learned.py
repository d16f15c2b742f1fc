"""What is read off learned rows, whichever method has learned them.

A method gives its state as such rows (`Method.learned`): for each infoset its `key`, the mask of
its `legal` actions, its number of `updates` and its `reach`; by action the sum of its `regret` and
the `count` that makes a mean of it; and the latest and average `policy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def max_expected_regret(rows: Any) -> float:
    """MER (Wolf, 2025, section 2): the reach-weighted mean of infosets' largest mean regrets."""
    reach = rows["reach"].sum()
    return float((largest_mean_regrets(rows) * rows["reach"]).sum() / reach) if reach > 0 else 0.0


def largest_mean_regrets(rows: Any) -> Any:
    """Of each infoset: the mean regret of the action that one should have played more."""
    legal = (rows["legal"][:, None] >> np.arange(rows["regret"].shape[1], dtype=np.uint64)) & 1
    count = np.where(rows["count"] > 0, rows["count"], 1.0)
    return np.where(legal == 1, rows["regret"] / count, -np.inf).max(axis=1, initial=-np.inf)
