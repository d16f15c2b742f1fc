"""A big table at the gateway: what is asked for is made, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from rejoinder.games.base import Abstraction, hexadecimal
from rejoinder.run import checkpoints
from rejoinder.run.checkpoints import Checkpoint, Policies
from rejoinder.run.config import make_config
from rejoinder.run.ledger import genesis
from rejoinder.run.rundir import RunDir
from rejoinder_gateway import library, snapshots
from rejoinder_gateway.snapshots import Query, Snapshot

ROWS = 300_000
CONFIG = make_config({"game": "leduc", "method.name": "external", "batch": 1, "lag": 0})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run whose table has rows in no order of keys."""
    method, task = CONFIG.load_method(), CONFIG.task()
    rows = np.zeros(ROWS, method.state_dtype(task))
    rows["key"] = np.random.default_rng(1).permutation(ROWS).astype(np.uint64) * np.uint64(7919)
    rows["legal"], rows["visits"], rows["weight"] = 0b11, np.arange(ROWS) % 1000, 1.0
    rows["regret"][:, 0] = rows["average"][:, 0] = np.arange(ROWS)
    head = genesis(CONFIG.fingerprint)
    version = CONFIG.block // (CONFIG.batch * CONFIG.block)
    policies = {version: Policies(head, method.snapshot_rows(task, rows))}
    made = RunDir.create(tmp_path_factory.mktemp("big") / "run", CONFIG)
    made.save(Checkpoint(CONFIG.block, head, rows, CONFIG.kernel, policies))
    return made


class Counted:
    """An abstraction that counts how often an infoset is put into words, or is named."""

    def __init__(self, abstraction: Abstraction, *, names_are_keys: bool) -> None:
        self.named = self.described = 0
        self.abstraction = dataclasses.replace(
            abstraction,
            identifier=hexadecimal if names_are_keys else self._identifier,
            describe=self._describe,
        )

    def _identifier(self, key: int) -> str:
        """Not in the order of keys."""
        self.named += 1
        return f"{key:016x}"[::-1]

    def _describe(self, key: int) -> dict[str, Any]:
        self.described += 1
        return {"key": key}


def opened(run: RunDir, *, names_are_keys: bool = True) -> tuple[Snapshot, Counted]:
    snapshot = Snapshot(run.config, run.result())
    counted = Counted(snapshot.abstraction, names_are_keys=names_are_keys)
    snapshot.abstraction = counted.abstraction
    return snapshot, counted


def test_a_policy_by_identifier_puts_one_infoset_into_words(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "MAPPED_BYTES", 0)
    snapshot, counted = opened(run)
    rows = snapshot._state_rows
    while isinstance(rows, np.ndarray) and rows.base is not None:
        rows = rows.base
    assert type(getattr(rows, "obj", rows)).__name__ == "mmap"  # nobody has read the file whole
    for row in (0, 12_345, ROWS - 1):
        key = int(snapshot._state_rows["key"][row])
        answer = snapshot.answer(f"{key:016x}")
        assert answer is not None
        assert f'"visits":{row % 1000},'.encode() in answer
    assert snapshot.answer("0000000000000001") is None
    assert snapshot.answer("no such name") is None
    assert counted.described == 3


def test_names_that_are_no_keys_are_found_by_their_hashes(run: RunDir) -> None:
    snapshot, counted = opened(run, names_are_keys=False)
    for row in (0, 12_345, ROWS - 1):
        assert snapshot.row_of(f"{int(snapshot._state_rows['key'][row]):016x}"[::-1]) == row
    assert snapshot.row_of("no such name") is None
    assert counted.named == ROWS + 3
    assert {array.dtype.kind for array in snapshot._by_identifier} <= {"i", "u"}


@pytest.mark.parametrize("names_are_keys", [True, False])
def test_infosets_are_sorted_by_their_names(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, names_are_keys: bool
) -> None:
    monkeypatch.setattr(snapshots, "SEARCHED", ROWS)
    snapshot, counted = opened(run, names_are_keys=names_are_keys)
    _, page = snapshot.find(Query(sort="identifier", descending=False), offset=0, limit=100)
    assert counted.named == (0 if names_are_keys else ROWS + 100)
    names = sorted(map(snapshot.abstraction.identifier, snapshot._state_rows["key"].tolist()))
    assert [infoset.identifier for infoset in page] == names[:100]


def test_a_loaded_snapshot_has_its_index(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by the thread that reads it, so that no question sorts keys in the event loop."""
    snapshot = library._read_snapshot(run, CONFIG.block)
    key = int(snapshot._state_rows["key"][7])
    monkeypatch.setattr(np, "argsort", pytest.fail)
    assert snapshot.row_of(f"{key:016x}") == 7
    named, _ = opened(run, names_are_keys=False)
    monkeypatch.undo()
    named.make_index()
    monkeypatch.setattr(np, "argsort", pytest.fail)
    assert named.row_of(f"{key:016x}"[::-1]) == named._row_of_key(key) == 7


@pytest.mark.parametrize("sort", ["visits", "regret", "identifier"])
def test_a_page_puts_a_page_into_words(run: RunDir, sort: Any) -> None:
    snapshot, counted = opened(run)
    total, page = snapshot.find(Query(sort=sort, min_visits=500), offset=1000, limit=20)
    assert (total, len(page), counted.described) == (ROWS // 2, 20, 20)
    told: dict[str, list[Any]] = {
        "visits": [infoset.visits for infoset in page],
        "regret": [max(action.regret for action in infoset.actions) for infoset in page],
        "identifier": [infoset.identifier for infoset in page],
    }
    assert told[sort] == sorted(told[sort], reverse=True)


def test_a_search_looks_at_the_first_that_were_met(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SEARCHED", 1000)
    snapshot, counted = opened(run)
    keys = snapshot._state_rows["key"]
    inside, beyond = (f"{int(keys[row]):016x}" for row in (999, 1000))
    assert snapshot.find(Query(search=inside), 0, 10)[0] == 1
    assert snapshot.find(Query(search=beyond), 0, 10)[0] == 0
    assert counted.described <= 1001
