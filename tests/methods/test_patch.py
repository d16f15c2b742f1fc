"""Patches against a dictionary: snapshots are tables of keys and policies, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernel.jit import kernel
from rejoinder.methods.patch import Patch, difference, merge
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.model import TableSnapshot
from rejoinder.methods.tabular.rollout import policy_rows, row_dtype
from rejoinder.methods.tabular.table import EMPTY, InfosetTable, find

ACTIONS = 2
Model = dict[int, float]  # key → what its policy says, in order of first use


@kernel
def look_up(table: Any, key: Any) -> Any:
    return find(table, key)


def rows_of(model: Model) -> Any:
    rows = np.zeros(len(model), policy_dtype(ACTIONS))
    rows["key"] = np.array(list(model), np.uint64)
    rows["policy"] = np.array(list(model.values()), float)[:, None, None]
    return rows


def snapshot_of(model: Model) -> TableSnapshot:
    return TableSnapshot(policy_dtype(ACTIONS), rows_of(model))


def patched(snapshot: TableSnapshot, patch: Patch) -> InfosetTable:
    snapshot.apply(patch)
    snapshot.complete()
    return snapshot.table


def model_of(table: InfosetTable) -> Model:
    rows = table.rows[: table.size[0]]
    assert (rows["policy"] == rows["policy"][:, :1, :1]).all()
    return dict(zip(rows["key"].tolist(), rows["policy"][:, 0, 0].tolist(), strict=True))


def patch_of(model: Model, written: Model) -> Patch:
    """The patch that writes some of a model's rows."""
    index = np.array([n for n, key in enumerate(model) if key in written], np.int64)
    return Patch(index, rows_of(model)[index])


def assert_same(table: InfosetTable, model: Model) -> None:
    assert list(model_of(table).items()) == list(model.items())
    for row, key in enumerate(model):
        assert look_up(table, np.uint64(key)) == row
    assert look_up(table, np.uint64(2**64 - 2)) == EMPTY


keys = st.integers(0, 30) | st.just(2**64 - 1)
writings = st.dictionaries(keys, st.floats(0, 1), max_size=25)
histories = st.lists(writings, min_size=1, max_size=6)


def stages(history: list[Model]) -> list[Model]:
    """The snapshots that a history goes through; the first is empty."""
    made: list[Model] = [{}]
    for written in history:
        made.append(made[-1] | written)
    return made


@given(histories)
def test_patches_one_after_the_other(history: list[Model]) -> None:
    snapshot = snapshot_of({})
    for written, model in zip(history, stages(history)[1:], strict=True):
        assert_same(patched(snapshot, patch_of(model, written)), model)


@given(histories, st.data())
def test_merged_patches_have_the_effect_of_all(history: list[Model], data: st.DataObject) -> None:
    models = stages(history)
    patches = [patch_of(m, w) for w, m in zip(history, models[1:], strict=True)]
    start = data.draw(st.integers(0, len(patches) - 1))
    end = data.draw(st.integers(start + 1, len(patches)))
    merged = merge(patches[start:end])
    assert (np.diff(merged.index) > 0).all()
    touched = set().union(*history[start:end])
    assert set(merged.rows["key"].tolist()) == touched  # nothing that did not change
    assert_same(patched(snapshot_of(models[start]), merged), models[end])


@given(histories)
def test_a_difference_leads_from_one_snapshot_to_a_later_one(history: list[Model]) -> None:
    models = stages(history)
    for old in models:
        patch = difference(rows_of(old), rows_of(models[-1]))
        assert_same(patched(snapshot_of(old), patch), models[-1])
        changed = {key for key, value in models[-1].items() if old.get(key) != value}
        assert set(patch.rows["key"].tolist()) == changed


def test_nothing_changed() -> None:
    model = {5: 0.5, 6: 0.25}
    patch = difference(rows_of(model), rows_of(model))
    assert len(patch.index) == len(patch.rows) == 0
    assert_same(patched(snapshot_of(model), patch), model)


def test_a_patch_grows_the_table_as_far_as_it_must() -> None:
    model = {key: key / 10_000 for key in range(5_000)}
    assert_same(patched(snapshot_of({}), patch_of(model, model)), model)


def test_policies_are_a_copy_of_what_rows_say_now() -> None:
    rows = np.zeros(6, row_dtype(ACTIONS, 3))
    rows["key"] = np.arange(6) + 10
    rows["policy"] = np.arange(24).reshape(6, 2, 2)
    rows["regret"] = 99
    taken, expected = policy_rows(rows), rows["policy"].tolist()
    rows["policy"] = 0
    assert taken["key"].tolist() == rows["key"].tolist()
    assert taken["policy"].tolist() == expected


THREE = {10: 0.1, 11: 0.2, 12: 0.3}


@pytest.mark.parametrize(
    ("index", "added", "reason"),
    [
        ([1], [12], "its keys are not the rows' keys"),
        ([0, 1, 2], [10, 12, 11], "its keys are not the rows' keys"),
        ([2, 3], [99, 13], "its keys are not the rows' keys"),
        ([4], [13], "it leaves a gap behind the last row"),
        ([3, 5], [13, 14], "it leaves a gap behind the last row"),
        ([0, 2**40], [10, 13], "it leaves a gap behind the last row"),
        ([3], [11], "a key is there twice"),
        ([3, 4], [13, 13], "a key is there twice"),
    ],
)
def test_a_patch_of_another_table_is_refused(
    index: list[int], added: list[int], reason: str
) -> None:
    rows = np.zeros(len(index), policy_dtype(ACTIONS))
    rows["key"] = added
    with pytest.raises(ValueError, match=f"belongs to another table: {reason}"):
        patched(snapshot_of(THREE), Patch(np.array(index), rows))


def test_a_patch_whose_keys_are_foreign_leaves_the_table_alone() -> None:
    snapshot = snapshot_of(THREE)
    for index, key in (([1], 12), ([4], 13)):
        rows = np.zeros(1, policy_dtype(ACTIONS))
        rows["key"] = key
        with pytest.raises(ValueError, match="another table"):
            snapshot.apply(Patch(np.array(index), rows))
    assert_same(snapshot.table, THREE)
