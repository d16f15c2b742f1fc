"""Patches of infoset tables."""

from __future__ import annotations

import numpy as np

from rejoinder.methods.patch import Patch
from rejoinder.methods.tabular.table import Table, enter, with_room


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
