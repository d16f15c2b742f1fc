"""Patches: how one snapshot of the policies becomes a later one.

Rows keep their place for ever (order of first use), so a patch is row numbers and what to write
there; numbers beyond the end are new rows. Its size follows what has changed, not the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rejoinder.methods.tabular.table import Table, indexed, opaque, widened

_BLOCK = 2**16  # rows that are compared at once


class Patch(NamedTuple):
    """Rows that have changed."""

    index: Any  # int64[n], increasing: where the rows belong
    rows: Any  # n rows of a snapshot


def apply_patch(table: Table, patch: Patch) -> Table:
    """The table with the patch in it; `ValueError` if the patch belongs to another table."""
    rows, used = write_patch(table.rows, int(table.size[0]), patch)
    try:
        return indexed(table, rows, used)
    except ValueError:
        raise ValueError("the patch belongs to another table: it adds a key twice") from None


def write_patch(rows: Any, used: int, patch: Patch) -> tuple[Any, int]:
    """Rows of a table with the patch in them, and how many are used then."""
    index, known = patch.index, int(np.searchsorted(patch.index, used))
    added = len(index) - known
    if (rows["key"][index[:known]] != patch.rows["key"][:known]).any():
        raise ValueError("the patch belongs to another table: its keys are not the rows' keys")
    if (index[known:] != np.arange(used, used + added)).any():
        raise ValueError("the patch belongs to another table: it leaves a gap behind the last row")
    if used + added > len(rows):
        rows = widened(rows, used, used + added)
    opaque(rows)[index] = opaque(patch.rows)
    return rows, used + added


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
