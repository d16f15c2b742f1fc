"""Patches of infoset tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.methods.patch import Patch
from rejoinder.methods.rows import opaque, widened
from rejoinder.methods.tabular.table import Table, indexed


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
