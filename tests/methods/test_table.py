"""The infoset table against a dictionary."""

from __future__ import annotations

import itertools
import mmap
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernel.jit import kernel
from rejoinder.methods.tabular.table import (
    EMPTY,
    InfosetTable,
    find,
    find_or_add,
    index_of,
    is_crowded,
    new_table,
    table_of,
    with_room,
)

ROW = np.dtype([("key", "<u8"), ("mark", "<i8")], align=True)
WORD = 2**64
SPREAD = 0x9E3779B97F4A7C15


def grown(table: InfosetTable) -> InfosetTable:
    """One with twice the room."""
    return with_room(table, 2 * len(table.rows) - int(table.size[0]))


@kernel
def look_up(table: Any, key: Any) -> Any:
    return find(table, key)


@kernel
def enter(table: Any, key: Any) -> Any:
    return find_or_add(table, key)


def home(key: int, capacity: int) -> int:
    """The slot where the search for a key begins in a table of `known_table`."""
    return (key * SPREAD % WORD) >> (64 - capacity.bit_length() + 1)


def known_table(rows: int) -> InfosetTable:
    """A table whose factor is known, so that keys that collide can be chosen."""
    return new_table(ROW, rows)._replace(spread=np.uint64(SPREAD))


def keys_at_home_in(slot: int, capacity: int, count: int) -> list[int]:
    found = (key for key in itertools.count() if home(key, capacity) == slot)
    return list(itertools.islice(found, count))


def used(table: InfosetTable) -> Any:
    return table.rows[: table.size[0]]


def test_rows_are_numbered_by_first_use() -> None:
    table = new_table(ROW, 8)
    keys = np.array([5, 0, 5, WORD - 1, 0, 7], np.uint64)
    assert [int(enter(table, key)) for key in keys] == [0, 1, 0, 2, 1, 3]
    assert used(table)["key"].tolist() == [5, 0, WORD - 1, 7]
    assert [int(look_up(table, key)) for key in keys] == [0, 1, 0, 2, 1, 3]


def test_an_unknown_key_is_not_found_and_not_added() -> None:
    table = new_table(ROW, 8)
    assert look_up(table, np.uint64(0)) == EMPTY  # not mistaken for the zeros of an empty slot
    enter(table, np.uint64(1))
    assert look_up(table, np.uint64(0)) == EMPTY
    assert table.size[0] == 1


def test_room_is_at_least_what_was_asked_for_and_half_the_index() -> None:
    for rows in (0, 1, 8, 9, 100, 1024, 1025):
        table = new_table(ROW, rows)
        assert len(table.rows) >= rows
        assert len(table.slots) == 2 * len(table.rows)
        assert len(table.slots) & (len(table.slots) - 1) == 0


def test_keys_that_collide_at_the_last_slot_wrap_around() -> None:
    table = known_table(8)
    keys = keys_at_home_in(15, capacity=16, count=8)
    absent = keys_at_home_in(15, capacity=16, count=9)[8]
    for n, key in enumerate(keys):
        assert enter(table, np.uint64(key)) == n
    assert [int(look_up(table, np.uint64(key))) for key in keys] == list(range(8))
    assert look_up(table, np.uint64(absent)) == EMPTY
    assert np.flatnonzero(table.slots != EMPTY).tolist() == [*range(7), 15]


def test_keys_that_collide_in_one_table_do_not_in_another() -> None:
    colliding = keys_at_home_in(3, capacity=1024, count=200)
    assert longest_search(known_table(512), colliding) == 200
    searches = [longest_search(new_table(ROW, 512), colliding) for _ in range(9)]
    assert statistics.median(searches) < 100


KEYS = np.arange(2**14, dtype=np.uint64)
PATTERNS = {
    "consecutive": KEYS,
    "multiples of 2¹⁶": KEYS << np.uint64(16),
    "multiples of 2³²": KEYS << np.uint64(32),
    "multiples of 2⁵⁰": KEYS << np.uint64(50),
    "bit fields": (KEYS & np.uint64(7)) | (KEYS >> np.uint64(3)) << np.uint64(9),
    "bit fields far apart": (KEYS & np.uint64(63)) << np.uint64(3)
    | (KEYS >> np.uint64(6)) << np.uint64(50),
    "multiples of a power of three": KEYS * np.uint64(3**20),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_factor_that_does_not_suit_the_keys_is_drawn_again(pattern: str) -> None:
    """Some factors in a hundred leave most keys of a pattern in a few stretches of the slots."""
    rows = np.zeros(len(KEYS), ROW)
    rows["key"] = PATTERNS[pattern]
    for _ in range(200):
        table = index_of(rows)
        assert len(table.slots) == 2 * len(rows)
        assert not is_crowded(table)
    half, table = len(rows) // 2, new_table(ROW, 8)
    for n in range(half + 1):
        table = with_room(table, 1)
        enter(table, rows["key"][n])
    assert not is_crowded(table)  # it has just grown


def longest_search(table: InfosetTable, keys: list[int]) -> int:
    """The longest run of slots that are taken, once the keys are entered."""
    for key in keys:
        enter(table, np.uint64(key))
    taken = "".join("x" if row != EMPTY else " " for row in table.slots)
    return max(len(run) for run in taken.split())


def test_a_full_table_refuses_a_new_key_and_stays_as_it_was() -> None:
    table = new_table(ROW, 8)
    for key in range(8):
        enter(table, np.uint64(key))
    before = [array.tobytes() for array in table]
    assert enter(table, np.uint64(3)) == 3
    with pytest.raises(MemoryError, match="the infoset table is full"):
        enter(table, np.uint64(99))
    assert [array.tobytes() for array in table] == before


def test_growth_keeps_rows_and_their_order_and_leaves_the_old_table_alone() -> None:
    table = known_table(8)
    keys = keys_at_home_in(3, capacity=16, count=8)
    for key in keys:
        table.rows[enter(table, np.uint64(key))]["mark"] = 10 * key
    before = [array.tobytes() for array in table]
    bigger = grown(table)
    assert len(bigger.rows) == 2 * len(table.rows)
    assert used(bigger).tolist() == [(key, 10 * key) for key in keys]
    assert [int(look_up(bigger, np.uint64(key))) for key in keys] == list(range(8))
    assert enter(bigger, np.uint64(123_456)) == 8
    bigger.rows["mark"] = 0
    assert [array.tobytes() for array in table] == before


def test_a_table_of_rows_holds_a_copy_with_an_index_of_its_own() -> None:
    rows = np.array([(9, 1), (0, 2), (WORD - 1, 3)], ROW)
    table = table_of(rows)
    rows["mark"] = 0
    assert used(table).tolist() == [(9, 1), (0, 2), (WORD - 1, 3)]
    assert [int(look_up(table, np.uint64(key))) for key in (9, 0, WORD - 1)] == [0, 1, 2]
    assert look_up(table, np.uint64(1)) == EMPTY


def test_a_table_of_no_rows_is_empty_and_usable() -> None:
    table = table_of(np.zeros(0, ROW))
    assert table.size[0] == 0
    assert look_up(table, np.uint64(0)) == EMPTY
    assert enter(table, np.uint64(0)) == 0


crowded = st.sampled_from([*keys_at_home_in(15, 16, 6), *keys_at_home_in(0, 16, 6), 0, WORD - 1])
keys_of_all_kinds = st.one_of(crowded, st.integers(0, 40), st.integers(0, WORD - 1))


@given(
    added=st.lists(keys_of_all_kinds, max_size=120), asked=st.lists(keys_of_all_kinds, max_size=20)
)
def test_a_table_behaves_like_a_dictionary(added: list[int], asked: list[int]) -> None:
    table = known_table(1)
    model: dict[int, int] = {}
    for key in added:
        if table.size[0] == len(table.rows):
            table = grown(table)
        row = enter(table, np.uint64(key))
        assert row == model.setdefault(key, len(model))
        table.rows[row]["mark"] += 1
    assert used(table)["key"].tolist() == list(model)
    assert used(table)["mark"].tolist() == [added.count(key) for key in model]
    for key in added + asked:
        assert look_up(table, np.uint64(key)) == model.get(key, EMPTY)
    assert sorted(table.slots[table.slots != EMPTY]) == list(range(len(model)))


@given(keys=st.lists(st.integers(0, 99), max_size=300), asked=st.lists(st.integers(0, 99)))
def test_dense_keys_give_the_rows_that_hashed_ones_give(keys: list[int], asked: list[int]) -> None:
    hashed, dense = new_table(ROW, 1), new_table(ROW, 1, dense=100)
    slots = dense.slots
    for key in keys:
        hashed, dense = with_room(hashed, 1), with_room(dense, 1)
        assert enter(hashed, np.uint64(key)) == enter(dense, np.uint64(key))
    assert used(hashed).tobytes() == used(dense).tobytes()
    assert dense.slots is slots  # it never grows, and every key is in its own place
    assert all(dense.rows[dense.slots[key]]["key"] == key for key in keys)
    for table in (dense, index_of(used(hashed), dense=100), index_of(used(hashed))):
        assert [look_up(table, np.uint64(key)) for key in asked] == [
            look_up(hashed, np.uint64(key)) for key in asked
        ]


@pytest.mark.parametrize("make", [index_of, table_of])
def test_more_rows_than_dense_keys_are_refused(make: Any) -> None:
    """An index without an empty slot would be searched for ever."""
    rows = np.zeros(16, ROW)
    rows["key"] = np.arange(16) * 5
    assert look_up(make(rows[:15], dense=12), np.uint64(3)) == EMPTY
    with pytest.raises(ValueError, match="16 rows are more than there are dense keys"):
        make(rows, dense=12)


def test_rows_of_a_big_table_stay_where_they_are_when_it_grows() -> None:
    table = new_table(ROW, 2**17)
    table.rows[enter(table, np.uint64(7))]["mark"] = 11
    place = table.rows.ctypes.data
    for _ in range(8):
        table = grown(table)
    assert len(table.rows) == 2**25  # half a gibibyte of address space, a page of memory
    assert table.rows.ctypes.data == place
    assert table.rows[look_up(table, np.uint64(7))]["mark"] == 11
    assert table.rows[-1] == np.zeros(1, ROW)[0]


def test_a_kernel_without_huge_pages_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", -1, raising=False)  # refused with EINVAL
    table = new_table(ROW, 2**17)
    assert enter(table, np.uint64(7)) == 0
    assert isinstance(table.rows.base.base, memoryview)  # reserved all the same


def test_where_no_memory_can_be_reserved_growing_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    table = new_table(ROW, 2**17)
    table.rows[enter(table, np.uint64(7))]["mark"] = 11
    bigger = grown(table)
    assert bigger.rows.ctypes.data != table.rows.ctypes.data
    assert bigger.rows[look_up(bigger, np.uint64(7))]["mark"] == 11
