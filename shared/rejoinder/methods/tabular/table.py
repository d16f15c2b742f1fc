"""The infoset table: 64-bit keys to rows, rows in order of first use.

`rows` is a structured array with a `key` field, filled from the front in the order in which
infosets were first met; that order is what digests and checkpoints see. `slots` is an
open-addressing index over it (row numbers, linear probing, power-of-two capacity, at most half
full) and can be rebuilt from the rows at any time, so its size never shows in any result.

Dense keys. A game whose keys are all below some n has the identity for a hash (`spread` 1) and a
slot for each of them: the same code then neither collides nor probes, and the index never grows.

Growth. The rows of a big table lie at the front of address space that is reserved once, as much as
the machine has memory; a page takes memory when its first row is written. So growing never copies
rows: only the index, four bytes a slot, is made anew. Where the system refuses the reservation
(a limit on address space), and for small tables, rows are copied into twice the room.
"""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from rejoinder.kernel.jit import hot, kernel, rule

SLOT = np.dtype("<i4")
EMPTY = -1  # in a slot: no row is here
MAX_ROWS = 2**31 - 1

_FIBONACCI = 0x9E3779B97F4A7C15
_SMALL = 2**20  # bytes of rows that are not worth a reservation
_NORESERVE = 0x4000 if sys.platform == "linux" else 0  # Python has no name for it before 3.13


class Table(NamedTuple):
    """An infoset table as compiled code takes it."""

    slots: Any  # SLOT[capacity]
    rows: Any  # structured with a `key`; all there is room for
    size: Any  # int64[1]: rows in use
    spread: Any  # uint64: multiplies keys; 1 where they are dense


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


def opaque(rows: Any) -> Any:
    """The same rows as plain bytes, to be copied as such: NumPy copies records field by field."""
    return rows.view(np.dtype((np.void, rows.dtype.itemsize)))


def new_table(row_dtype: np.dtype[Any], rows: int, dense: int | None = None) -> Table:
    """An empty table with room for `rows` rows; `dense`: all keys are below that."""
    room = _room(rows)
    spread = np.uint64(_FIBONACCI if dense is None else 1)
    slots = _empty_slots(2 * room if dense is None else _room(dense + 1))
    return Table(slots, new_rows(row_dtype, room), np.zeros(1, np.int64), spread)


def grown(table: Table) -> Table:
    """The same rows in a table with twice the room; the old one must not be added to."""
    return _with_room_for(table, 2 * len(table.rows))


def with_room(table: Table, rows: int) -> Table:
    """The table, grown if so many new rows might not fit."""
    needed = int(table.size[0]) + rows
    return table if needed <= len(table.rows) else _with_room_for(table, needed)


def table_of(rows: Any, dense: int | None = None) -> Table:
    """A table that holds a copy of the given rows."""
    table = new_table(rows.dtype, max(len(rows), 1), dense)
    opaque(table.rows)[: len(rows)] = opaque(rows)
    enter(table, 0, len(rows))
    return table


def index_of(rows: Any, dense: int | None = None) -> Table:
    """A table over the given rows themselves; nothing can be added to it."""
    return indexed(new_table(rows.dtype, 1, dense), rows, len(rows))


def indexed(table: Table, rows: Any, used: int) -> Table:
    """A table over rows that begin with those of `table`; ValueError if a key is there twice."""
    first, slots, size = int(table.size[0]), table.slots, table.size
    if table.spread != 1 and 2 * used > len(slots):
        first, slots, size = 0, _empty_slots(2 * _room(used)), np.zeros(1, np.int64)
    made = Table(slots, rows, size, table.spread)
    if not enter(made, first, used):
        raise ValueError("a key is there twice")
    return made


def _room(rows: int) -> int:
    """The next power of two, at least 8."""
    if rows > MAX_ROWS:
        raise MemoryError(f"an infoset table has at most {MAX_ROWS:,} rows")
    return max(8, 1 << (rows - 1).bit_length())


def _empty_slots(capacity: int) -> Any:
    return np.full(capacity, EMPTY, SLOT)


def _with_room_for(table: Table, rows: int) -> Table:
    room, n = _room(rows), int(table.size[0])
    wider = widened(table.rows, n, room)
    if table.spread == 1:
        return table._replace(rows=wider)
    bigger = Table(_empty_slots(2 * room), wider, np.zeros(1, np.int64), table.spread)
    enter(bigger, 0, n)
    return bigger


def widened(rows: Any, used: int, room: int) -> Any:
    """Rows of a table with more room: where they are if that was reserved, else a copy."""
    memory, needed = rows.base, _room(room) * rows.dtype.itemsize
    if memory is not None and len(memory) >= needed:
        return memory[:needed].view(rows.dtype)
    wider = new_rows(rows.dtype, room)
    opaque(wider)[:used] = opaque(rows)[:used]
    return wider


def new_rows(dtype: np.dtype[Any], room: int) -> Any:
    """Empty rows with room for so many, and for more if they are many."""
    needed = _room(room) * dtype.itemsize
    memory = _reserve(needed) if needed > _SMALL else np.zeros(needed, np.uint8)
    return memory[:needed].view(dtype)


def _reserve(needed: int) -> Any:
    """Bytes of zeros, with as many behind them as the machine has memory, if that can be had."""
    if os.name != "posix":
        return np.zeros(needed, np.uint8)
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    try:
        memory = mmap.mmap(-1, max(needed, whole), flags=flags)
    except (OSError, ValueError):
        return np.zeros(needed, np.uint8)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # rows are read all over the place
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


@kernel
def enter(table: Any, first: Any, end: Any) -> Any:
    """Enter the last rows, first … end−1, into the index; False if a key is there twice."""
    unique = True
    for r in range(first, end):
        slot = _probe(table, table.rows[r].key)
        unique = unique and table.slots[slot] == EMPTY
        table.slots[slot] = r
    table.size[0] = end
    return unique


@hot
def find(table: Any, key: Any) -> Any:
    """The row of `key`, or EMPTY."""
    return np.int64(table.slots[_probe(table, key)])


@rule
def find_or_add(table: Any, key: Any) -> Any:
    """The row of `key`, added if it is new. Whoever adds rows sees to it that there is room."""
    slot = _probe(table, key)
    row = np.int64(table.slots[slot])
    if row == EMPTY:
        row = table.size[0]
        if row == len(table.rows):
            raise MemoryError("the infoset table is full")
        table.size[0] = row + 1
        table.slots[slot] = row
        table.rows[row].key = key
    return row


@hot
def _probe(table: Any, key: Any) -> Any:
    """The slot of `key`, or the empty one where it belongs."""
    last = np.uint64(len(table.slots) - 1)
    h = key * table.spread
    slot = (h ^ (h >> np.uint64(32))) & last
    while table.slots[slot] != EMPTY and table.rows[table.slots[slot]].key != key:
        slot = (slot + np.uint64(1)) & last
    return slot
