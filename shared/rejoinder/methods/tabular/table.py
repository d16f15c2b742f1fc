"""The infoset table: 64-bit keys to rows, rows in order of first use.

`rows` is a structured array with a `key` field, filled from the front in the order in which
infosets were first met; that order is what digests and checkpoints see. `slots` is an
open-addressing index over it (row numbers, linear probing, power-of-two capacity, at most half
full) and can be rebuilt from the rows at any time, so its size never shows in any result.

Hashing is by multiplication: the highest bits of key · spread are the slot. The factor is random
and the table's own, so that nobody can send keys that are known to collide. Few factors do not suit
a pattern of keys; one that does not is drawn again whenever an index is made (`is_crowded`). (A
second multiplication suits any keys, and makes external sampling a fifth slower.)

Dense keys. A game whose keys are all below some n has the identity for a hash (`spread` 1, nothing
shifted out) and a slot for each of them: the same code then neither collides nor probes, and the
index never grows.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from rejoinder.kernel.jit import hot, kernel, rule
from rejoinder.methods.rows import new_rows, opaque, room_for, widened

SLOT = np.dtype("<i4")
EMPTY = -1  # in a slot: no row is here
TWICE = -1  # instead of the slots that were passed by

_CROWDED = 1.0  # slots that a search passes by on average; half full with random keys it is 0.5
_DRAWS = 8  # of a factor for one index


class InfosetTable(NamedTuple):
    """An infoset table as compiled code takes it."""

    slots: Any  # SLOT[capacity]
    rows: Any  # structured with a `key`; all there is room for
    size: Any  # int64[1]: rows in use
    spread: Any  # uint64, odd: multiplies keys; 1 where they are dense
    shift: Any  # uint64: lowest bits of the product that are no part of the slot


def new_table(row_dtype: np.dtype[Any], rows: int, dense: int | None = None) -> InfosetTable:
    """An empty table with room for `rows` rows; `dense`: all keys are below that."""
    room = room_for(rows)
    rows_made, size = new_rows(row_dtype, room), np.zeros(1, np.int64)
    if dense is not None:
        slots = _empty_slots(room_for(dense + 1))
        return InfosetTable(slots, rows_made, size, np.uint64(1), np.uint64(0))
    return _indexing(InfosetTable(None, rows_made, size, _factor(), None), 2 * room)


def with_room(table: InfosetTable, rows: int) -> InfosetTable:
    """The table, or one with more room if so many new rows might not fit.

    Nothing must be added to the old one then.
    """
    needed = int(table.size[0]) + rows
    return table if needed <= len(table.rows) else _with_room_for(table, needed)


def table_of(rows: Any, dense: int | None = None) -> InfosetTable:
    """A table that holds a copy of the given rows."""
    table = new_table(rows.dtype, max(len(rows), 1), dense)
    opaque(table.rows)[: len(rows)] = opaque(rows)
    return indexed(table, table.rows, len(rows))


def index_of(rows: Any, dense: int | None = None) -> InfosetTable:
    """A table over the given rows themselves; nothing can be added to it."""
    return indexed(new_table(rows.dtype, 1, dense), rows, len(rows))


def indexed(table: InfosetTable, rows: Any, used: int) -> InfosetTable:
    """A table over rows that begin with those of `table`.

    ValueError if a key is there twice, or if there are more rows than there are dense keys.
    """
    first, made = int(table.size[0]), table._replace(rows=rows)
    if table.spread != 1 and (first == 0 or 2 * used > len(table.slots)):
        return _indexed_anew(made, max(2 * room_for(used), len(table.slots)), used)
    _check_room(made.slots, used)
    if enter(made, first, used) == TWICE:
        raise ValueError("a key is there twice")
    return made


def is_crowded(table: InfosetTable) -> bool:
    """Whether the factor does not suit the keys; where they are dense, none does better."""
    return bool(table.spread != 1 and _steps(table) > _CROWDED * table.size[0])


def drawn_again(table: InfosetTable) -> InfosetTable:
    """An empty table in the same memory with another factor; the rows must be zero."""
    return _indexing(table._replace(spread=_factor()), len(table.slots))


def _indexed_anew(table: InfosetTable, capacity: int, used: int) -> InfosetTable:
    """The table with a new index; the factor stays as long as it suits the keys."""
    for _ in range(_DRAWS):
        made = _indexing(table, capacity)
        steps = enter(made, 0, used)
        if steps == TWICE:
            raise ValueError("a key is there twice")
        if steps <= _CROWDED * used:
            break
        table = table._replace(spread=_factor())
    return made


def _factor() -> np.uint64:
    return np.uint64(secrets.randbits(64) | 3)


def _check_room(slots: Any, rows: int) -> None:
    """A slot must stay empty, or a search for a key that is not there would never end."""
    if rows >= len(slots):
        raise ValueError(f"{rows} rows are more than there are dense keys")


def _indexing(table: InfosetTable, capacity: int) -> InfosetTable:
    """The table with a new index of that many slots (a power of two), nothing entered."""
    shift = np.uint64(64 - (capacity.bit_length() - 1))
    return table._replace(slots=_empty_slots(capacity), size=np.zeros(1, np.int64), shift=shift)


def _empty_slots(capacity: int) -> Any:
    return np.full(capacity, EMPTY, SLOT)


def _with_room_for(table: InfosetTable, rows: int) -> InfosetTable:
    room, n = room_for(rows), int(table.size[0])
    wider = widened(table.rows, n, room)
    if table.spread == 1:
        return table._replace(rows=wider)
    return _indexed_anew(table._replace(rows=wider), 2 * room, n)


@kernel
def enter(table: Any, first: Any, end: Any) -> Any:
    """Enter the last rows, first … end−1, into the index; returns the slots that were passed by,
    or TWICE if a key is there twice."""
    unique, steps = True, 0
    for r in range(first, end):
        key = table.rows[r].key
        slot = _probe(table, key)
        unique = unique and table.slots[slot] == EMPTY
        table.slots[slot] = r
        steps += _passed(table, key, slot)
    table.size[0] = end
    return steps if unique else TWICE


@kernel
def _steps(table: Any) -> Any:
    """The slots that searches for all the keys pass by."""
    steps = 0
    for r in range(table.size[0]):
        key = table.rows[r].key
        steps += _passed(table, key, _probe(table, key))
    return steps


@hot
def _passed(table: Any, key: Any, slot: Any) -> Any:
    last = np.uint64(len(table.slots) - 1)
    return np.int64((np.uint64(slot) - ((key * table.spread) >> table.shift)) & last)


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
    slot = ((key * table.spread) >> table.shift) & last
    while table.slots[slot] != EMPTY and table.rows[table.slots[slot]].key != key:
        slot = (slot + np.uint64(1)) & last
    return slot
