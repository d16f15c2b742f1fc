"""Patches: how one snapshot becomes a later one.

Rows keep their place for ever (order of first use), so a patch is row numbers and what to write
there; numbers beyond the end are new rows. Its size follows what has changed, not the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rejoinder.methods.rows import opaque

_BLOCK = 2**16  # rows that are compared at once


class Patch(NamedTuple):
    """Rows that have changed."""

    index: Any  # int64[n], increasing: where the rows belong
    rows: Any  # n rows of a snapshot


def merge(patches: Sequence[Patch]) -> Patch:
    """One patch with the effect of several in a row."""
    if len(patches) == 1:
        return patches[0]
    index = np.concatenate([p.index for p in patches])[::-1]
    rows = np.concatenate([opaque(p.rows) for p in patches])[::-1]
    index, last = np.unique(index, return_index=True)
    return Patch(index, rows[last].view(patches[0].rows.dtype))


def difference(old: Any, new: Any) -> Patch:
    """The patch that makes the rows of an earlier snapshot those of a later one."""
    known = min(len(old), len(new))
    differs = np.zeros(len(new), bool)
    differs[known:] = True
    width = old.dtype.itemsize
    for first in range(0, known, _BLOCK):
        block = slice(first, min(first + _BLOCK, known))
        there, here = (
            np.ascontiguousarray(opaque(rows[block])).view(np.uint8).reshape(-1, width)
            for rows in (old, new)
        )
        differs[block] = (there != here).any(axis=1)
    index = np.flatnonzero(differs)
    return Patch(index, opaque(new)[index].view(new.dtype))
