"""Memory for rows of one dtype.

Growth. The rows of a big table lie at the front of address space that is reserved once, as much as
the machine has memory; a page takes memory when its first row is written. So growing never copies
rows: only the index, four bytes a slot, is made anew. Where the system refuses the reservation
(a limit on address space), and for small tables, rows are copied into twice the room.
"""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress
from typing import Any

import numpy as np

MAX_ROWS = 2**31 - 1
SPARE = "spare"  # the field of bytes that mean nothing and are zero

_SMALL = 2**20  # bytes of rows that are not worth a reservation


def without_gaps(fields: list[Any]) -> np.dtype[Any]:
    """An aligned record dtype whose bytes all belong to a field.

    Rows are hashed as bytes, and NumPy leaves in gaps whatever was there before.
    """
    dtype = np.dtype(fields, align=True)
    used = sum(dtype[name].itemsize for name in dtype.names or ())
    if used < dtype.itemsize:
        dtype = np.dtype([*fields, (SPARE, "u1", (dtype.itemsize - used,))], align=True)
    if sum(dtype[name].itemsize for name in dtype.names or ()) != dtype.itemsize:
        raise ValueError(f"fields must be ordered by size, the largest first: {fields}")
    return dtype


def opaque(rows: Any) -> Any:
    """The same rows as plain bytes, to be copied as such: NumPy copies records field by field."""
    return rows.view(np.dtype((np.void, rows.dtype.itemsize)))


def as_words(rows: Any) -> Any:
    """The same rows as 64-bit words, of which the first is the key: uint64[rows, words].

    Kernels on these are compiled once for all dtypes.
    """
    return rows.view(np.uint64).reshape(len(rows), rows.dtype.itemsize // 8)


def spare_is_zero(rows: Any) -> bool:
    """Whether the bytes of rows that mean nothing are zero."""
    if SPARE not in (rows.dtype.names or ()):
        return True
    last, bits = as_words(rows)[:, -1], 8 * rows.dtype[SPARE].itemsize  # they come last
    return not (last >> np.uint64(64 - bits)).any()


def widened(rows: Any, used: int, room: int) -> Any:
    """Rows of a table with more room: where they are if that was reserved, else a copy."""
    memory, needed = rows.base, room_for(room) * rows.dtype.itemsize
    if memory is not None and len(memory) >= needed:
        return memory[:needed].view(rows.dtype)
    wider = new_rows(rows.dtype, room)
    opaque(wider)[:used] = opaque(rows)[:used]
    return wider


def new_rows(dtype: np.dtype[Any], room: int) -> Any:
    """Empty rows with room for so many, and for more if they are many."""
    needed = room_for(room) * dtype.itemsize
    memory = _reserve(needed) if needed > _SMALL else np.zeros(needed, np.uint8)
    return memory[:needed].view(dtype)


def _reserve(needed: int) -> Any:
    """Bytes of zeros, with as many behind them as the machine has memory, if that can be had."""
    if os.name != "posix":
        return np.zeros(needed, np.uint8)
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    no_reserve = 0x4000 if sys.platform == "linux" else 0  # Python has no name for it before 3.13
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    try:
        memory = mmap.mmap(-1, max(needed, whole), flags=flags)
    except (OSError, ValueError):
        return np.zeros(needed, np.uint8)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # rows are read all over the place
        with suppress(OSError):  # a kernel without huge pages; it is only advice
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def room_for(rows: int) -> int:
    """The next power of two, at least 8."""
    if rows > MAX_ROWS:
        raise MemoryError(f"an infoset table has at most {MAX_ROWS:,} rows")
    return max(8, 1 << (rows - 1).bit_length())
