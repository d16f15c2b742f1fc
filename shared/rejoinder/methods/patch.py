"""Patches: how one snapshot becomes a later one.

Rows keep their place for ever (order of first use), so a patch is row numbers and what to write
there; numbers beyond the end are new rows. Its size follows what has changed, not the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Patch(NamedTuple):
    """Rows that have changed."""

    index: Any  # int64[n], increasing: where the rows belong
    rows: Any  # n rows of a snapshot


def merge(patches: Sequence[Patch]) -> Patch:
    """One patch with the effect of several in a row."""
    if len(patches) == 1:
        return patches[0]
    index = np.concatenate([p.index for p in patches])[::-1]
    rows = np.concatenate([p.rows for p in patches])[::-1]
    index, last = np.unique(index, return_index=True)
    return Patch(index, rows[last])


def difference(old: Any, new: Any) -> Patch:
    """The patch that makes the rows of an earlier snapshot those of a later one."""
    width = old.dtype.itemsize
    there, here = (np.ascontiguousarray(rows[: len(old)]).view(np.uint8) for rows in (old, new))
    same = (there.reshape(-1, width) == here.reshape(-1, width)).all(axis=1)
    index = np.concatenate([np.flatnonzero(~same), np.arange(len(old), len(new))])
    return Patch(index.astype(np.int64), new[index])
