"""What is read off learned rows, whichever method has learned them.

A method gives its state as such rows (`Method.learned`): for each infoset its `key`, the mask of
its `legal` actions, its number of `updates` and its `reach`; by action the sum of its `regret` and
the `count` that makes a mean of it; and the latest and average `policy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.kernel.masks import mask_field, mask_table
from rejoinder.methods.base import Rows


def learned_rows(rows: Rows, updates: Any, reach: Any, policy: Any) -> Rows:
    """Such rows of a method's own that have a key, legal actions, regrets and their weight."""
    actions = rows.dtype["regret"].shape[0]
    made = np.zeros(
        len(rows),
        [
            *(("key", "<u8"), mask_field("legal", actions), ("updates", "<i8"), ("reach", "<f8")),
            *(("regret", "<f8", (actions,)), ("count", "<f8", (actions,))),
            ("policy", "<f8", (2, actions)),
        ],
    )
    for name in ("key", "legal", "regret"):
        made[name] = rows[name]
    made["updates"], made["reach"], made["policy"] = updates, reach, policy
    made["count"] = rows["weight"][:, None]
    return made


def max_expected_regret(rows: Any) -> float:
    """MER (Wolf, 2025, section 2): the reach-weighted mean of infosets' largest mean regrets."""
    reach = rows["reach"].sum()
    return float((largest_mean_regrets(rows) * rows["reach"]).sum() / reach) if reach > 0 else 0.0


def largest_mean_regrets(rows: Any) -> Any:
    """Of each infoset: the mean regret of the action that one should have played more."""
    legal = mask_table(rows["legal"], rows["regret"].shape[1])
    count = np.where(rows["count"] > 0, rows["count"], 1.0)
    return np.where(legal, rows["regret"] / count, -np.inf).max(axis=1, initial=-np.inf)
