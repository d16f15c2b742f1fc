"""What the tabular methods share: a table of rows as the model, a table of rows as the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rejoinder.kernel.jit import kernel
from rejoinder.methods.base import Rows, Task
from rejoinder.methods.patch import Patch
from rejoinder.methods.rows import as_words, new_rows, opaque, widened
from rejoinder.methods.tabular.table import (
    InfosetTable,
    index_of,
    indexed,
    new_table,
    table_of,
    with_room,
)

_FIRST_ROWS = 256  # room in a new table; it grows by itself
_MANY = 16  # one row in so many is too many to be sorted

# (table, deltas of the units from `first` on, entries of each, out: the row of each entry)
Fold = Callable[[InfosetTable, Any, int, list[int], Any], None]
# (rows, delta of the next unit) → why it cannot follow
Flaw = Callable[[Any, Any], str | None]


def table_policy(task: Task, rows: Rows) -> InfosetTable:
    """Policy rows with an index of their keys."""
    return index_of(rows, task.dense)


class TableModel:
    """A table that deltas are folded into."""

    def __init__(
        self,
        dtype: np.dtype[Any],
        fold: Fold,
        snapshot_rows: Callable[[Any, Any], Any],  # of the rows with these numbers
        rows: Any = None,
        dense: int | None = None,
        flaw: Flaw = lambda _rows, _delta: None,
    ) -> None:
        self._fold, self._snapshot_rows, self._flaw = fold, snapshot_rows, flaw
        empty = rows is None
        self._table = new_table(dtype, _FIRST_ROWS, dense) if empty else table_of(rows, dense)
        self._touched: list[Any] = []  # rows written since the newest snapshot

    @property
    def rows(self) -> Any:
        return self._table.rows[: self._table.size[0]]

    def flaw(self, delta: Any) -> str | None:
        return self._flaw(self.rows, delta)

    def fold(self, first: int, counts: list[int], entries: Any) -> None:
        self._table = with_room(self._table, len(entries))
        touched = np.empty(len(entries), np.int64)
        self._fold(self._table, entries, first, counts, touched)
        self._touched.append(touched)

    def written(self) -> Any:
        if sum(map(len, self._touched)) < len(self.rows) // _MANY:
            return np.unique(np.concatenate(self._touched or [np.empty(0, np.int64)]))
        marks = np.zeros(len(self.rows), bool)  # faster than sorting
        for touched in self._touched:
            marks[touched] = True
        return np.flatnonzero(marks)

    def changes(self) -> Patch:
        index = self.written()
        self._touched.clear()
        return Patch(index, self._snapshot_rows(self._table.rows, index))

    def mark(self, index: Any) -> None:
        self._touched.append(index)


class TableSnapshot:
    """Rows to be looked up by infoset key; the index is made when it is first needed."""

    def __init__(self, dtype: np.dtype[Any], rows: Any = None, dense: int | None = None) -> None:
        self._dense, self._used = dense, 0 if rows is None else len(rows)
        self._rows = new_rows(dtype, max(self._used, _FIRST_ROWS))
        if rows is not None:
            opaque(self._rows)[: self._used] = opaque(rows)
        self._table: InfosetTable | None = None

    @property
    def rows(self) -> Any:
        return self._rows[: self._used]

    @property
    def table(self) -> InfosetTable:
        """As actors take it; `ValueError` if a key is there twice, or is no dense one."""
        if self._table is None:
            self._table = new_table(self._rows.dtype, 1, self._dense)
        if self._table.size[0] < self._used or len(self._table.rows) < len(self._rows):
            self._table = indexed(self._table, self._rows, self._used)
        return self._table

    def apply(self, patch: Patch) -> None:
        self._rows, self._used = _write_patch(self._rows, self._used, patch)

    def complete(self) -> None:
        try:
            _ = self.table
        except ValueError as error:
            raise ValueError(f"it belongs to another table: {error}") from None

    def copy(self) -> TableSnapshot:
        return TableSnapshot(self._rows.dtype, self.rows, self._dense)


def _write_patch(rows: Any, used: int, patch: Patch) -> tuple[Any, int]:
    """Rows of a table with the patch in them, and how many are used then."""
    index, known = patch.index, int(np.searchsorted(patch.index, used))
    added = len(index) - known
    if (index[known:] != np.arange(used, used + added)).any():
        raise ValueError("the patch belongs to another table: it leaves a gap behind the last row")
    if used + added > len(rows):
        rows = widened(rows, used, used + added)
    if not write_words(as_words(rows), index, as_words(patch.rows), known):
        raise ValueError("the patch belongs to another table: its keys are not the rows' keys")
    return rows, used + added


@kernel
def write_words(words: Any, index: Any, new: Any, known: Any) -> Any:
    """Write rows that begin with their key; False, and nothing, if one of the first `known` is
    not the row of its key."""
    for n in range(known):
        if words[index[n], 0] != new[n, 0]:
            return False
    for n in range(len(index)):
        for k in range(words.shape[1]):
            words[index[n], k] = new[n, k]
    return True
