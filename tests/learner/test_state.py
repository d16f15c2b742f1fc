"""The learner's state is a function of the config and the number of games, however they come."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.methods.base import Snapshot
from rejoinder.methods.tabular.model import TableModel, TableSnapshot
from rejoinder.run.checkpoints import needed_versions
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.ledger import SnapshotId, genesis
from rejoinder_learner.state import Learner, Played

GAMES = 40


@cache
def kuhn(batch: int, lag: int) -> RunConfig:
    return make_config({"game": "kuhn", "method.rollouts": 1, "batch": batch, "lag": lag})


class History:
    """One run, with a full copy of everything at every moment: what the learner must agree with."""

    def __init__(self, config: RunConfig) -> None:
        learner, actor = Learner(config), config.actor()
        self.played: list[Played] = []
        self.copies = {0: learner.policy_rows()}  # the policies after each number of games
        self.names = {0: SnapshotId(0, genesis(config.fingerprint))}
        self.digests = {0: learner.digest()}
        for game in range(GAMES):
            version = max(0, game // config.batch - config.lag)
            rows = self.copies[version * config.batch]
            policy = TableSnapshot(rows.dtype, rows)
            self.played.append(Played(game, version, actor.play(game, policy).copy()))
            learner.fold(self.played[-1].delta)
            self.copies[learner.games] = learner.policy_rows()
            self.names[learner.games] = SnapshotId(learner.games, learner.head)
            self.digests[learner.games] = learner.digest()


@cache
def history(config: RunConfig) -> History:
    return History(config)


def content(snapshot: Snapshot) -> bytes:
    return bytes(snapshot.rows.tobytes())


def assert_as_in_history(learner: Learner) -> None:
    """Digest, head and every snapshot at hand are those of the run that kept everything."""
    config, then = learner.config, history(kuhn(learner.config.batch, learner.config.lag))
    games = learner.games
    assert learner.digest() == then.digests[games]
    assert learner.head == then.names[games].head
    needed = {version * config.batch for version in needed_versions(config, games)}
    assert learner.snapshots() == {n: then.names[n] for n in sorted(needed)}
    assert list(learner.snapshots()) == sorted(needed)
    assert learner.oldest == then.names[min(needed)]
    for n in needed:
        assert content(learner.snapshot_at(n // config.batch)) == then.copies[n].tobytes()
        assert learner.size_at(n) == len(then.copies[n])


batches, lags = st.integers(1, 9), st.integers(0, 4)
cuts = st.lists(st.integers(0, GAMES), max_size=8)


@settings(max_examples=60)
@given(batch=batches, lag=lags, ends=cuts)
def test_games_may_be_folded_in_any_pieces(batch: int, lag: int, ends: list[int]) -> None:
    config = kuhn(batch, lag)
    learner, played = Learner(config), history(config).played
    for end in [*sorted(ends), GAMES]:
        learner.fold_all(played[learner.games : end])
        assert learner.games == end
        assert_as_in_history(learner)


@settings(max_examples=60)
@given(batch=batches, lag=lags, stops=cuts)
def test_a_restored_learner_makes_the_same_snapshots(
    batch: int, lag: int, stops: list[int]
) -> None:
    config = kuhn(batch, lag)
    learner, played = Learner(config), history(config).played
    for stop in [*sorted(stops), GAMES]:
        while learner.games < stop:
            learner.fold_all(played[learner.games : learner.games + 1])
            assert_as_in_history(learner)
        saved = learner.checkpoint()
        learner = Learner(config, saved)
        assert_as_in_history(learner)
        again = learner.checkpoint()
        assert (again.games, again.head) == (saved.games, saved.head)
        assert again.rows.tobytes() == saved.rows.tobytes()
        assert plain(again.snapshots) == plain(saved.snapshots)


def plain(snapshots: Any) -> dict[int, tuple[bytes, bytes]]:
    return {version: (s.head, s.rows.tobytes()) for version, s in snapshots.items()}


@settings(max_examples=60)
@given(
    batch=st.integers(1, 6),
    lag=lags,
    start=st.integers(0, GAMES // 2),
    delay=st.integers(0, 4),
    restored=st.booleans(),
)
def test_changes_lead_from_any_snapshot_that_is_remembered_to_any_later_one(
    batch: int, lag: int, start: int, delay: int, restored: bool
) -> None:
    """A publisher that is some snapshots behind says so by `keep_from`, and finds what it needs."""
    config = kuhn(batch, lag)
    learner, then = Learner(config), history(config)
    learner.fold_all(then.played[:start])
    if restored:
        learner = Learner(config, learner.checkpoint())
    learner.keep_from = learner.oldest.games
    while learner.games < GAMES:
        learner.fold_all(then.played[learner.games : learner.games + batch])
        newest = learner.games // batch * batch
        assert learner.remembers(newest)
        assert learner.remembers(learner.keep_from)
        for old in range(learner.keep_from, newest, batch):
            for new in range(old + batch, newest + 1, batch):
                patched = TableSnapshot(then.copies[old].dtype, then.copies[old])
                patched.apply(learner.changes(old, new))
                assert content(patched) == then.copies[new].tobytes()
                assert learner.size_at(new) == len(then.copies[new])
        assert_as_in_history(learner)
        learner.keep_from = max(learner.keep_from, newest - delay * batch)


@settings(max_examples=60)
@given(batch=st.integers(1, 6), lag=lags, games=st.integers(0, GAMES))
def test_what_is_remembered_can_be_had_and_nothing_else(batch: int, lag: int, games: int) -> None:
    config = kuhn(batch, lag)
    learner, then = Learner(config), history(config)
    learner.fold_all(then.played[:games])
    newest = games // batch * batch
    for old in range(0, newest, batch):
        if learner.remembers(old):
            patched = TableSnapshot(then.copies[old].dtype, then.copies[old])
            patched.apply(learner.changes(old, newest))
            assert content(patched) == then.copies[newest].tobytes()
        else:
            with pytest.raises(ValueError, match=f"the changes since game {old} are gone"):
                learner.changes(old, newest)
    assert learner.remembers(newest)
    assert learner.remembers(learner.oldest.games)


def test_a_snapshot_that_is_not_at_hand_is_refused() -> None:
    """Neither one that is gone nor one to come is answered with another one."""
    config = kuhn(5, 1)
    learner = Learner(config)
    learner.fold_all(history(config).played[:23])
    assert list(learner.snapshots()) == [15, 20]
    for version in (0, 2, 5, 99):
        with pytest.raises(ValueError, match=f"snapshot {version} is not at hand after 23 games"):
            learner.snapshot_at(version)


def test_snapshots_cost_what_has_changed() -> None:
    """A later version is kept as the rows that its batch has written, not as a table."""
    config = kuhn(1, 4)
    learner = Learner(config)
    learner.fold_all(history(config).played)
    for new in range(GAMES - 3, GAMES + 1):
        keys = set(history(config).played[new - 1].delta["key"].tolist())
        assert set(learner.changes(new - 1, new).rows["key"].tolist()) == keys


@pytest.mark.parametrize(
    "wrong",
    [
        lambda played: [played[1]],
        lambda played: [played[0], played[0]],
        lambda played: [played[0], played[2]],
        lambda played: [*played[:9], played[9]._replace(version=0)],
    ],
    ids=["not the next", "twice", "a gap", "another version"],
)
def test_games_out_of_order_are_refused_before_any_is_folded(wrong: Any) -> None:
    config = kuhn(4, 1)
    learner, played = Learner(config), history(config).played
    with pytest.raises(ValueError, match="cannot be folded as unit"):
        learner.fold_all(wrong(played))
    assert learner.games == 0
    assert learner.take_records() == b""
    learner.fold_all(played)
    assert_as_in_history(learner)


@given(seed=st.integers(0, 50), ends=cuts)
def test_by_arrival_the_state_follows_from_the_order_of_the_games(
    seed: int, ends: list[int]
) -> None:
    config = make_config({"game": "kuhn", "method.rollouts": 1, "batch": 4, "order": "arrival"})
    arrived = list(history(kuhn(4, 1)).played)
    random.Random(seed).shuffle(arrived)
    whole, pieces = Learner(config), Learner(config)
    whole.fold_all(arrived)
    for end in [*sorted(ends), GAMES]:
        pieces.fold_all(arrived[pieces.games : end])
        if end % 2:
            pieces = Learner(config, pieces.checkpoint())
    assert pieces.digest() == whole.digest()
    assert pieces.head == whole.head
    assert pieces.snapshots() == whole.snapshots()
    for games in whole.snapshots():
        assert content(pieces.snapshot_at(games // 4)) == content(whole.snapshot_at(games // 4))


def test_a_checkpoint_is_a_copy() -> None:
    config = kuhn(5, 1)
    learner, then = Learner(config), history(config)
    learner.fold_all(then.played[:13])
    saved = learner.checkpoint()
    before = (saved.rows.tobytes(), plain(saved.snapshots))
    learner.fold_all(then.played[13:])
    assert (saved.rows.tobytes(), plain(saved.snapshots)) == before
    resumed = Learner(config, saved)
    resumed.fold_all(then.played[13:])
    assert resumed.digest() == then.digests[GAMES]
    assert (saved.rows.tobytes(), plain(saved.snapshots)) == before


def test_the_delta_may_be_overwritten_after_it_is_folded() -> None:
    """Actors play every game into the same memory."""
    config = kuhn(4, 1)
    learner, then = Learner(config), history(config)
    scratch = np.zeros(100, then.played[0].delta.dtype)
    for played in then.played:
        part = scratch[: len(played.delta)]
        part[:] = played.delta
        learner.fold(part)
        scratch["regret"] = 1e6
    assert_as_in_history(learner)


@pytest.mark.parametrize("piece", [0, 20])
def test_units_may_be_big(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Big ones are folded one by one, where they are; weights by unit show that it is so."""
    config = make_config(
        {"game": "kuhn", "method": {"name": "external", "iterations": 5, "weighting": "linear"}}
    )
    one_by_one, actor, played = Learner(config), config.actor(), []
    for unit in range(60):
        delta = actor.play(unit, one_by_one.snapshot_for(unit)).copy()
        played.append(Played(unit, config.version_for(unit), delta))
        one_by_one.fold(delta)
    monkeypatch.setattr("rejoinder_learner.state._PIECE", piece)
    learner = Learner(config)
    learner.fold_all(played)
    assert (learner.units, learner.head) == (60, one_by_one.head)
    assert learner.digest() == one_by_one.digest()


@pytest.mark.parametrize("method", ["fold", "changes"])
def test_a_fold_that_an_error_has_ended_leaves_no_whole_state(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, played = Learner(kuhn(3, 1)), history(kuhn(3, 1)).played
    learner.fold_all(played[:4])
    assert learner.whole

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(TableModel, method, fail)
        with pytest.raises(MemoryError):
            learner.fold_all(played[4:8])
    assert not learner.whole
