"""The inbox takes what may be folded, once, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime import kuhn

from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import RECORD, SnapshotId
from rejoinder.transport.wire import Deltas, WireError
from rejoinder_learner.inbox import Inbox
from rejoinder_learner.state import Learner


class Desk:
    """A learner and its inbox."""

    def __init__(self, **fields: Any) -> None:
        self.config: RunConfig = kuhn(**fields)
        self.learner, self.inbox = Learner(self.config), Inbox(self.config)
        self.actor = self.config.actor()
        self.inbox.start_again(self.learner)

    def deltas(self, *games: int, worker: str = "honest", version: int | None = None) -> Deltas:
        """Those of consecutive games."""
        if version is None:
            version = self.config.version_for(games[0])
        name = self.learner.snapshots()[version * self.config.batch]
        policy = self.learner.snapshot_at(version)
        made = [self.actor.play(game, policy).copy() for game in games]
        counts = tuple(len(delta) for delta in made)
        entries = np.concatenate(made)
        return Deltas(games[0], name, worker, 0.1, counts, entries)

    def fold(self, stop: int = 1000) -> list[int]:
        games = self.inbox.next_units(stop)
        self.learner.fold_all([arrived.played for arrived in games])
        self.inbox.folded(games)
        return [arrived.played.unit for arrived in games]


def wrong(deltas: Deltas, worker: str = "forger") -> Deltas:
    entries = deltas.entries.copy()
    entries["reach"] /= 2
    return dataclasses.replace(deltas, worker=worker, entries=entries)


def test_games_are_folded_in_order_whatever_they_come_in() -> None:
    desk = Desk(batch=5, lag=1)
    assert desk.inbox.add(desk.deltas(3, 4)) == [3, 4]
    assert desk.fold() == []
    assert desk.inbox.add(desk.deltas(5, 6)) == [5, 6]
    assert desk.inbox.add(desk.deltas(0, 1, 2)) == [0, 1, 2]
    assert desk.fold(stop=4) == [0, 1, 2, 3]
    assert desk.fold() == [4, 5, 6]
    assert desk.inbox.waiting == {}
    assert desk.inbox.accounted_for() == (7, set())


def test_duplicates_are_dropped_waiting_or_folded() -> None:
    desk = Desk(batch=5, lag=1)
    first, both = desk.deltas(0, 1), desk.deltas(0, 1, 2)
    assert desk.inbox.add(first) == [0, 1]
    assert desk.inbox.add(first) == []
    assert desk.inbox.add(both) == [2]
    desk.fold()
    assert desk.inbox.add(both) == []
    assert desk.inbox.duplicates == 2 + 2 + 3
    assert desk.fold() == []


def test_a_delta_by_another_history_is_stale() -> None:
    desk = Desk(batch=5, lag=0)
    good = desk.deltas(0, 1)
    stale = dataclasses.replace(good, snapshot=SnapshotId(0, bytes(32)))
    assert desk.inbox.add(stale) == []
    assert desk.inbox.stale == 2
    assert desk.inbox.add(good) == [0, 1]


def test_a_delta_made_with_another_version_is_stale() -> None:
    desk = Desk(batch=2, lag=1)
    desk.inbox.add(desk.deltas(0, 1))
    desk.fold()
    assert desk.inbox.add(desk.deltas(2, 3, version=1)) == []  # version 0 is asked for
    assert desk.inbox.add(desk.deltas(2, 3)) == [2, 3]


def test_games_of_two_batches_in_one_message_are_stale() -> None:
    desk = Desk(batch=5, lag=0)
    desk.inbox.add(desk.deltas(0, 1, 2, 3))
    desk.fold()
    desk.inbox.add(desk.deltas(4))
    desk.fold()
    assert desk.inbox.add(desk.deltas(4, 5, version=1)) == []


@pytest.mark.parametrize("first", [5, 55, 60, 10**9])
def test_a_game_that_was_never_leased_is_refused(first: int) -> None:
    desk = Desk(batch=5, lag=0, games=60)
    strange = dataclasses.replace(desk.deltas(0, 1), first=first)
    with pytest.raises(WireError, match=f"unit {first + 1} has not been leased yet"):
        desk.inbox.add(strange)
    with pytest.raises(WireError):
        desk.inbox.add(dataclasses.replace(desk.deltas(0, 1), first=4))
    assert desk.inbox.waiting == {}


def test_what_a_learner_had_leased_before_it_fell_is_stale_and_no_error() -> None:
    before, after = Desk(batch=5, lag=0), Desk(batch=5, lag=0)
    before.inbox.add(before.deltas(0, 1, 2, 3, 4))
    before.fold()
    late = before.deltas(5, 6)
    assert after.inbox.add(late) == []
    assert after.inbox.stale == 2


def test_two_workers_that_contradict_each_other() -> None:
    desk = Desk(batch=5, lag=1)
    good = desk.deltas(2, 3)
    desk.inbox.add(good)
    assert desk.inbox.contradiction(dataclasses.replace(good, worker="other")) == []
    there, arrived = desk.inbox.contradiction(wrong(good))
    assert (there.worker, arrived.worker) == ("honest", "forger")
    assert there.played.unit == arrived.played.unit == 2
    assert desk.inbox.contradiction(wrong(desk.deltas(4))) == []


def test_a_stale_delta_contradicts_nobody() -> None:
    """It was made with other policies, so of course it differs: its worker has not lied."""
    desk = Desk(batch=5, lag=1)
    good = desk.deltas(2, 3)
    desk.inbox.add(good)
    stale = dataclasses.replace(wrong(good), snapshot=SnapshotId(0, bytes(32)))
    assert desk.inbox.contradiction(stale) == []


def test_what_a_worker_has_brought() -> None:
    desk = Desk(batch=5, lag=1)
    desk.inbox.add(desk.deltas(0, 1, worker="a"))
    desk.inbox.add(desk.deltas(2, 3, worker="b"))
    desk.fold()
    desk.inbox.add(desk.deltas(5, 6, worker="a"))
    assert desk.inbox.first_from == {"a": 0, "b": 2}
    assert desk.inbox.drop("a") == [5, 6]
    assert desk.inbox.drop("a") == []
    assert desk.inbox.is_missing(5)


def test_going_back_forgets_only_what_is_undone() -> None:
    desk = Desk(batch=5, lag=1)
    desk.inbox.add(desk.deltas(0, 1, 2, 3, 4, worker="a"))
    desk.inbox.add(desk.deltas(5, 6, worker="b"))
    desk.fold()
    earlier = Learner(desk.config)
    for game in range(5):
        earlier.fold(desk.actor.play(game, earlier.snapshot_for(game)))
    desk.inbox.start_again(earlier)
    assert desk.inbox.first_from == {"a": 0}
    assert desk.inbox.accounted_for() == (5, set())


@settings(max_examples=40)
@given(order=st.permutations(range(20)), twice=st.sets(st.integers(0, 19)), stop=st.integers(1, 20))
def test_unordered_folds_each_game_once(order: list[int], twice: set[int], stop: int) -> None:
    desk = Desk(order="arrival", batch=10, lag=1, games=20)
    folded: list[int] = []
    for n, game in enumerate(order):
        assert desk.inbox.add(desk.deltas(game, version=0 if n < 10 else None)) == [game]
        if game in twice:
            assert desk.inbox.add(desk.deltas(game, version=0 if n < 10 else None)) == []
        folded += desk.fold(stop=max(stop, len(folded)))
    folded += desk.fold()
    assert folded == order[: len(folded)] == order
    assert desk.inbox.accounted_for() == (20, set())


def test_unordered_accounts_for_what_is_folded_and_what_waits() -> None:
    desk = Desk(order="arrival", batch=10, lag=1, games=20)
    for game in (0, 1, 5, 7):
        desk.inbox.add(desk.deltas(game))
    desk.fold()
    desk.inbox.add(desk.deltas(9))
    assert desk.inbox.accounted_for() == (2, {5, 7, 9})
    resumed = Inbox(desk.config)
    resumed.start_again(desk.learner, np.frombuffer(desk.learner.take_records(), RECORD))
    assert resumed.accounted_for() == (2, {5, 7})
    assert [resumed.is_missing(game) for game in (1, 2, 5, 6)] == [False, True, False, True]


def test_unordered_takes_old_snapshots_but_not_those_of_another_history() -> None:
    desk = Desk(order="arrival", batch=2, lag=1, games=20)
    for game in (0, 1):
        desk.inbox.add(desk.deltas(game))
    desk.fold()
    old, new = desk.deltas(2, version=0), desk.deltas(3, version=1)
    assert desk.inbox.add(dataclasses.replace(new, snapshot=SnapshotId(2, bytes(32)))) == []
    assert desk.inbox.add(dataclasses.replace(new, snapshot=SnapshotId(4, bytes(32)))) == []
    assert desk.inbox.stale == 2
    assert desk.inbox.add(old) == [2]
    assert desk.inbox.add(new) == [3]
    assert [a.played.version for a in desk.inbox.waiting.values()] == [0, 1]
