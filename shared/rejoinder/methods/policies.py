"""Policy rows: what is played in matches and shown to people, whichever method has learned it."""

from __future__ import annotations

from typing import Any

import numpy as np

# Columns of a policy row.
LATEST, AVERAGE = 0, 1


def policy_dtype(num_actions: int) -> np.dtype[Any]:
    """An infoset as a player needs it."""
    return np.dtype([("key", "<u8"), ("policy", "<f8", (2, num_actions))], align=True)


def check_policies(rows: Any, dense: int | None) -> str | None:
    """Why these cannot be rows of policies, if they cannot; `dense`: all keys are below that."""
    policy = rows["policy"]
    if not ((policy >= 0) & (policy <= 1)).all():  # NaN fails too
        return "probabilities must lie between 0 and 1"
    if not (np.abs(policy.sum(axis=2) - 1) < 1e-6).all():
        return "probabilities must sum to 1"
    return check_keys(dense, rows)


def check_keys(dense: int | None, rows: Any) -> str | None:
    """Why these keys cannot be: a table has room for dense ones, and for no others."""
    if dense is not None and (rows["key"] >= np.uint64(dense)).any():
        return f"keys must be below {dense}"
    return None
