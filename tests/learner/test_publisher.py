"""What a worker loads is, bit by bit, what the learner has published."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime import kuhn, leduc

from rejoinder.methods.base import Actor, Snapshot
from rejoinder.methods.tabular.rollout import entry_dtype
from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec
from rejoinder_learner import publisher as module
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner
from rejoinder_worker.job import MissingSnapshot, SnapshotCache

_numbers = itertools.count()


@pytest.fixture
def bus(server: EmbeddedServer) -> Iterator[Bus]:
    client = connect(server.url)
    made = Bus(client, f"publisher-{next(_numbers)}")
    yield made
    made.clean()
    client.close()


def cache(bus: Bus, config: RunConfig) -> SnapshotCache:
    return SnapshotCache(bus, Codec(config), config)


def content(snapshot: Snapshot) -> bytes:
    return bytes(snapshot.rows.tobytes())


def publishing(bus: Bus, config: RunConfig) -> tuple[Publisher, Learner]:
    publisher, learner = Publisher(bus, Codec(config)), Learner(config)
    publisher.start_again(learner)
    return publisher, learner


def play(learner: Learner, games: int, actor: Actor) -> None:
    for _ in range(games):
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["play", "play", "publish", "publish", "load", "again", "flush", "back", "mend"]
        ),
        st.integers(0, 6),
    ),
    max_size=40,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lag=st.integers(0, 3),
    batch=st.integers(1, 3),
    part_rows=st.sampled_from([1, 3, 1000]),
    altogether=st.sampled_from([0.0, 0.9, 2.0]),
    steps=STEPS,
)
def test_workers_load_what_the_learner_has(
    bus: Bus,
    lag: int,
    batch: int,
    part_rows: int,
    altogether: float,
    steps: list[tuple[str, int]],
) -> None:
    """Versions are skipped, published in any order, lost, and begun anew from an older learner."""
    config = leduc(lag=lag, batch=batch)
    publisher, learner = publishing(bus, config)
    actor, saved = config.actor(), learner.checkpoint()
    caches = [cache(bus, config), cache(bus, config)]  # one is asked more often than the other
    named: dict[int, SnapshotId] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_ROWS", part_rows)
        patch.setattr(module, "_ALTOGETHER", altogether)
        for kind, n in steps:
            if kind == "play":
                play(learner, n, actor)
            elif kind == "publish":
                games = list(learner.snapshots())[n % len(learner.snapshots())]
                named[games] = publisher.publish(games)
                newest = bus.newest()
                assert newest is not None
                assert newest.games >= games
            elif kind == "load" and (known := sorted(named.keys() & learner.snapshots().keys())):
                name = named[known[n % len(known)]]
                policy = content(learner.snapshot_at(name.games // batch))
                for worker in [*caches[: 1 + n % 2], cache(bus, config)]:  # also one that is new
                    assert content(worker.load(name)) == policy
            elif kind == "again":
                publisher.send_again()
            elif kind == "flush":
                bus.clean()
                publisher.start_again(learner)
                named.clear()
            elif kind == "back":
                learner, saved = Learner(config, saved), learner.checkpoint()
                publisher.start_again(learner)
                named.clear()
            elif kind == "mend":
                publisher.start_again(learner)
                named.clear()
        for games in learner.snapshots():
            name = publisher.publish(games)
            for worker in caches:
                assert content(worker.load(name)) == content(learner.snapshot_at(games // batch))


def synthetic(config: RunConfig, first: int, count: int) -> Any:
    """A delta with entries for many infosets, as no game of Kuhn poker has."""
    delta = np.zeros(count, entry_dtype(len(config.load_abstraction().actions)))
    delta["key"] = np.arange(first + 1, first + count + 1)
    delta["legal"] = 3
    delta["reach"] = 1.0
    delta["regret"][:, 0] = 1.0
    return delta


def test_the_cost_follows_what_has_changed(bus: Bus) -> None:
    config = kuhn(batch=1, lag=0)
    publisher, learner = publishing(bus, config)
    learner.fold(synthetic(config, 0, 20_000))
    publisher.publish(1)
    learner.fold(synthetic(config, 5_000, 50))
    name = publisher.publish(2)
    whole, patch = (sum(map(len, bus.snapshot(games))) for games in (1, 2))
    assert patch < whole / 100
    assert content(cache(bus, config).load(name)) == content(learner.snapshot_at(2))


def test_old_snapshots_are_gone_after_a_new_chain(bus: Bus) -> None:
    config = kuhn(batch=1, lag=0)
    publisher, learner = publishing(bus, config)
    worker, most = cache(bus, config), 0
    complete = 0
    for games in range(40):
        learner.fold(synthetic(config, 100 * (games % 3), 100))
        name = publisher.publish(games + 1)
        stored = _snapshots(bus)
        most = max(most, len(stored))
        complete += len(stored) == 1
        assert content(worker.load(name)) == content(learner.snapshot_at(games + 1))
        assert content(cache(bus, config).load(name)) == content(learner.snapshot_at(games + 1))
    assert complete > 5
    assert most <= 6


def test_a_chain_begun_anew_leaves_nothing_of_the_old_one(bus: Bus) -> None:
    config = kuhn(batch=1, lag=0)
    publisher, learner = publishing(bus, config)
    learner.fold(synthetic(config, 0, 1000))
    for games in range(1, 4):
        publisher.publish(games)
        learner.fold(synthetic(config, games, 5))
    assert _snapshots(bus) == {1, 2, 3}
    publisher.start_again(learner)
    publisher.publish(4)
    assert _snapshots(bus) == {4}


def _snapshots(bus: Bus) -> set[int]:
    keys = bus.client.keys(f"rejoinder:{bus.run}:snapshot:*")
    return {int(key.rpartition(b":")[2]) for key in keys}


def test_a_snapshot_in_several_parts(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_ROWS", 7)
    config = kuhn(batch=1, lag=0)
    publisher, learner = publishing(bus, config)
    learner.fold(synthetic(config, 0, 50))
    name = publisher.publish(1)
    assert len(list(bus.snapshot(1))) == 8
    assert content(cache(bus, config).load(name)) == content(learner.snapshot_at(1))
    bus.client.rpop(f"rejoinder:{bus.run}:snapshot:1")
    with pytest.raises(MissingSnapshot, match="not on the server"):
        cache(bus, config).load(name)


def test_a_snapshot_of_another_history_is_refused(bus: Bus) -> None:
    config = kuhn(batch=1, lag=0)
    publisher, learner = publishing(bus, config)
    learner.fold(synthetic(config, 0, 5))
    name = publisher.publish(1)
    worker = cache(bus, config)
    with pytest.raises(MissingSnapshot, match="replaced"):
        worker.load(SnapshotId(1, bytes(32)))
    with pytest.raises(MissingSnapshot, match="not on the server"):
        worker.load(SnapshotId(2, bytes(32)))
    assert content(worker.load(name)) == content(learner.snapshot_at(1))


def test_a_patch_on_another_base_than_the_one_first_seen_is_refused(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain that is begun anew while a worker follows it, with no row added in between."""
    monkeypatch.setattr(module, "PART_ROWS", 2)  # parts are read again when they are applied
    config = kuhn(batch=1, lag=2)
    publisher, learner = publishing(bus, config)
    for rows in ((0, 5), (0, 3), (3, 2)):
        learner.fold(synthetic(config, *rows))
    first = publisher.publish(1)
    worker = cache(bus, config)
    worker.load(first)
    third = publisher.publish(3)  # a patch on the first
    read = bus.snapshot

    def begun_anew_meanwhile(games: int) -> Iterator[bytes]:
        parts = list(read(games))
        monkeypatch.setattr(bus, "snapshot", read)
        publisher.start_again(learner)
        for later in (1, 2, 3):
            publisher.publish(later)  # the third is a patch on the second now
        return iter(parts)

    monkeypatch.setattr(bus, "snapshot", begun_anew_meanwhile)
    assert content(worker.load(third)) == content(learner.snapshot_at(3))


def test_a_damaged_snapshot_is_refused_and_the_next_load_is_right(bus: Bus) -> None:
    config = kuhn(batch=1, lag=1)
    publisher, learner = publishing(bus, config)
    learner.fold(synthetic(config, 0, 5))
    learner.fold(synthetic(config, 3, 5))
    first, second = publisher.publish(1), publisher.publish(2)
    worker = cache(bus, config)
    worker.load(first)
    key = f"rejoinder:{bus.run}:snapshot:2"
    good = bus.client.lindex(key, 0)
    bus.client.lset(key, 0, good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(MissingSnapshot, match="damaged"):
        worker.load(second)
    assert content(worker.load(first)) == content(learner.snapshot_at(1))
    bus.client.lset(key, 0, good)
    assert content(worker.load(second)) == content(learner.snapshot_at(2))
