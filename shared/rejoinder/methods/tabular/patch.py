"""Patches: how one snapshot of the policies becomes a later one.

Rows keep their place for ever (order of first use), so a patch is row numbers and what to write
there; numbers beyond the end are new rows. Its size follows what has changed, not the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rejoinder.methods.tabular.table import Table, enter, with_room


class Patch(NamedTuple):
    """Rows that have changed."""

    index: Any  # int64[n], increasing: where the rows belong
    rows: Any  # n rows of a snapshot


def apply_patch(table: Table, patch: Patch) -> Table:
    """The table with the patch in it; `ValueError` if the patch belongs to another table."""
    size, index = int(table.size[0]), patch.index
    known = int(np.searchsorted(index, size))
    added = len(index) - known
    if (table.rows["key"][index[:known]] != patch.rows["key"][:known]).any():
        raise ValueError("the patch belongs to another table: its keys are not the rows' keys")
    if (index[known:] != np.arange(size, size + added)).any():
        raise ValueError("the patch belongs to another table: it leaves a gap behind the last row")
    table = with_room(table, added)
    table.rows[index] = patch.rows
    if not enter(table, size, size + added):
        raise ValueError("the patch belongs to another table: it adds a key twice")
    return table


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
