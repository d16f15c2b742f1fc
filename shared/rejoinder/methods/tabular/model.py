"""What the tabular methods share: a table of rows as the model, a table of rows as the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rejoinder.methods.patch import Patch
from rejoinder.methods.tabular.patch import apply_patch
from rejoinder.methods.tabular.table import Table, new_table, table_of, with_room

_FIRST_ROWS = 256  # room in a new table; it grows by itself

# (table, deltas of the units from `first` on, entries of each, out: the row of each entry)
Fold = Callable[[Table, Any, int, list[int], Any], None]


class TableModel:
    """A table that deltas are folded into."""

    def __init__(
        self,
        dtype: np.dtype[Any],
        fold: Fold,
        snapshot_rows: Callable[[Any], Any],
        rows: Any = None,
    ) -> None:
        self._fold, self._snapshot_rows = fold, snapshot_rows
        self._table = new_table(dtype, _FIRST_ROWS) if rows is None else table_of(rows)
        self._touched: list[Any] = []  # rows written since the newest snapshot

    @property
    def rows(self) -> Any:
        return self._table.rows[: self._table.size[0]]

    def fold(self, first: int, counts: list[int], entries: Any) -> None:
        self._table = with_room(self._table, len(entries))
        touched = np.empty(len(entries), np.int64)
        self._fold(self._table, entries, first, counts, touched)
        self._touched.append(touched)

    def changes(self) -> Patch:
        index = np.unique(np.concatenate(self._touched or [np.empty(0, np.int64)]))
        self._touched.clear()
        return Patch(index, self._snapshot_rows(self._table.rows[index]))

    def mark(self, index: Any) -> None:
        self._touched.append(index)


class TableSnapshot:
    """Rows to be looked up by infoset key."""

    def __init__(self, dtype: np.dtype[Any], rows: Any = None) -> None:
        self.table = new_table(dtype, _FIRST_ROWS) if rows is None else table_of(rows)

    @property
    def rows(self) -> Any:
        return self.table.rows[: self.table.size[0]]

    def apply(self, patch: Patch) -> None:
        self.table = apply_patch(self.table, patch)

    def copy(self) -> TableSnapshot:
        return TableSnapshot(self.table.rows.dtype, self.rows)
