"""The infoset table: 64-bit keys to rows, rows in order of first use.

Two arrays. `rows` is a structured array with a `key` field, filled from the front in the order in
which infosets were first met; that order is what digests and checkpoints see. `slots` is an
open-addressing index over it (linear probing, power-of-two capacity, at most half full) and can be
rebuilt from the rows at any time, so its size never shows in any result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rejoinder.kernel.jit import hot, kernel, rule

SLOT = np.dtype([("key", "<u8"), ("row", "<i8")], align=True)
EMPTY = -1  # in `row`: nothing here

_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)


class Table(NamedTuple):
    """An infoset table as compiled code takes it."""

    slots: Any  # SLOT[capacity]
    rows: Any  # structured with a `key`; at most capacity / 2 of them
    size: Any  # int64[1]: rows in use


def without_gaps(fields: list[Any]) -> np.dtype[Any]:
    """An aligned record dtype whose bytes all belong to a field.

    Rows are hashed as bytes, and NumPy leaves in gaps whatever was there before.
    """
    dtype = np.dtype(fields, align=True)
    used = sum(dtype[name].itemsize for name in dtype.names or ())
    if used < dtype.itemsize:
        dtype = np.dtype([*fields, ("spare", "u1", (dtype.itemsize - used,))], align=True)
    if sum(dtype[name].itemsize for name in dtype.names or ()) != dtype.itemsize:
        raise ValueError(f"fields must be ordered by size, the largest first: {fields}")
    return dtype


def new_table(row_dtype: np.dtype[Any], rows: int) -> Table:
    """An empty table with room for `rows` rows."""
    capacity = 16
    while capacity < 2 * rows:
        capacity *= 2
    slots = np.zeros(capacity, SLOT)
    slots["row"] = EMPTY
    return Table(slots, np.zeros(capacity // 2, row_dtype), np.zeros(1, np.int64))


def grown(table: Table) -> Table:
    """The same rows in a table with twice the room."""
    bigger = new_table(table.rows.dtype, 2 * len(table.rows))
    n = table.size[0]
    bigger.rows[:n] = table.rows[:n]
    enter(bigger, 0, int(n))
    return bigger


def with_room(table: Table, rows: int) -> Table:
    """The table, grown if so many new rows might not fit."""
    while table.size[0] + rows > len(table.rows):
        table = grown(table)
    return table


def table_of(rows: Any) -> Table:
    """A table that holds a copy of the given rows."""
    table = new_table(rows.dtype, max(len(rows), 1))
    table.rows[: len(rows)] = rows
    enter(table, 0, len(rows))
    return table


@kernel
def enter(table: Any, first: Any, end: Any) -> Any:
    """Enter the last rows, first … end−1, into the index; False if a key is there twice."""
    unique = True
    for r in range(first, end):
        key = table.rows[r].key
        slot = _probe(table.slots, key)
        unique = unique and table.slots[slot].row == EMPTY
        table.slots[slot].key = key
        table.slots[slot].row = r
    table.size[0] = end
    return unique


@hot
def find(table: Any, key: Any) -> Any:
    """The row of `key`, or EMPTY."""
    return table.slots[_probe(table.slots, key)].row


@rule
def find_or_add(table: Any, key: Any) -> Any:
    """The row of `key`, added if it is new. Whoever adds rows sees to it that there is room."""
    slot = _probe(table.slots, key)
    row = table.slots[slot].row
    if row == EMPTY:
        row = table.size[0]
        if row == len(table.rows):
            raise MemoryError("the infoset table is full")
        table.size[0] = row + 1
        table.slots[slot].key = key
        table.slots[slot].row = row
        table.rows[row].key = key
    return row


@hot
def _probe(slots: Any, key: Any) -> Any:
    """The slot of `key`, or the empty one where it belongs."""
    last = np.uint64(len(slots) - 1)
    h = key * _FIBONACCI
    slot = (h ^ (h >> np.uint64(32))) & last
    while slots[slot].row != EMPTY and slots[slot].key != key:
        slot = (slot + np.uint64(1)) & last
    return slot
