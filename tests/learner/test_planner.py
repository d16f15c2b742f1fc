"""The planner, without a clock and without a server: its invariants under any course of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.run.config import make_config
from rejoinder_learner import planner as module
from rejoinder_learner.main import LOOK
from rejoinder_learner.planner import Leased, Planner


def planner(batch: int, lag: int, target: int, **fields: Any) -> Planner:
    config = make_config({"game": "kuhn", "batch": batch, "lag": lag, "games": target})
    return Planner(config, target, **fields)


@dataclass
class World:
    """A learner that folds in order, and workers that may lose whatever they take."""

    plan: Planner
    workers: int
    now: float = 0.0
    folded: int = 0
    here: set[int] = field(default_factory=set)  # arrived, not yet folded
    queue: list[Leased] = field(default_factory=list)
    taken: list[Leased] = field(default_factory=list)
    lost: dict[int, float] = field(default_factory=dict)  # lease → when it was seen as taken

    def lease(self) -> None:
        self.add(self.plan.new_leases(self.folded, self.workers))

    def add(self, leases: list[Leased]) -> None:
        config = self.plan.config
        for lease in leases:
            assert len(lease.games) > 0
            versions = {config.version_for(game) for game in lease.games}
            batches = {game // config.batch for game in lease.games}
            assert len(batches) == len(versions) == 1, "a lease never crosses a batch"
            assert versions.pop() * config.batch <= self.folded, "its snapshot exists"
            assert lease.games.stop <= self.plan.target
        self.queue += leases

    def take(self, n: int) -> None:
        if self.queue:
            self.taken.append(self.queue.pop(n % len(self.queue)))

    def arrive(self, n: int, share: int) -> None:
        """A worker delivers a lease, or (an old one) a part of it."""
        if self.taken:
            lease = self.taken.pop(n % len(self.taken))
            self.deliver([game for game in lease.games if share != 1 or game % 2])

    def deliver(self, games: list[int]) -> None:
        new = [game for game in games if game >= self.folded and game not in self.here]
        done = {lease.number for lease in self.plan.arrived(new, 0.01 * len(new), self.now)}
        self.queue = [lease for lease in self.queue if not (lease.again and lease.number in done)]
        self.here |= set(new)
        while self.folded in self.here:
            self.here.remove(self.folded)
            self.folded += 1

    def lose(self, n: int) -> None:
        if self.taken:
            self.taken.pop(n % len(self.taken))

    def look(self, seconds: float) -> None:
        self.now += seconds
        waiting = {lease.number for lease in self.queue}
        late = self.plan.late(waiting, self.now)
        assert not waiting & {lease.number for lease in late}, "what waits is never late"
        self.add(self.plan.again(late))

    def drop(self, n: int) -> None:
        """Deltas that are here turn out to be worthless."""
        games = [game for game in self.here if game % 3 == n % 3]
        self.here -= set(games)
        self.add(self.plan.return_games(games, self.workers))

    def check(self) -> None:
        config = self.plan.config
        window = (config.lag + 1) * config.batch
        assert self.plan.outstanding + len(self.here) <= min(window, module.MAX_OUTSTANDING)
        end = min(self.plan.target, config.playable_before(self.folded))
        end = min(end, self.folded + module.MAX_OUTSTANDING)
        under = {game for lease in self.plan.leases.values() for game in lease.missing}
        assert under == set(range(self.folded, end)) - self.here, "what is not here is leased"
        assert self.plan.outstanding == len(under)


EVENTS = st.tuples(
    st.sampled_from(["take", "take", "arrive", "arrive", "lose", "look", "drop", "strange"]),
    st.integers(0, 20),
    st.integers(0, 3),
)


@settings(max_examples=150)
@given(
    batch=st.integers(1, 9),
    lag=st.integers(0, 3),
    target=st.integers(1, 40),
    workers=st.integers(0, 9),
    outstanding=st.sampled_from([3, 20_000]),
    events=st.lists(EVENTS, max_size=60),
)
def test_any_course_of_events(
    batch: int, lag: int, target: int, workers: int, outstanding: int, events: list[Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_OUTSTANDING", outstanding)
        world = World(planner(batch, lag, target), workers)
        world.lease()
        for kind, n, share in events:
            if kind == "take":
                world.take(n)
            elif kind == "arrive":
                world.arrive(n, share)
            elif kind == "lose":
                world.lose(n)
            elif kind == "drop":
                world.drop(n)
            elif kind == "strange":  # a duplicate of anything that was ever leased
                world.deliver(list(range(max(0, world.folded - n), world.folded)))
            else:
                world.look(n / 4)
            world.lease()
            world.check()
        for _ in range(1000):  # from now on everybody behaves
            if world.folded == target:
                break
            world.take(0)
            world.arrive(0, 0)
            world.look(1.0)
            world.lease()
            world.check()
        assert world.folded == target, "every game is leased in the end"
        assert world.plan.outstanding == 0


@settings(max_examples=60)
@given(
    start=st.integers(0, 20),
    done=st.sets(st.integers(0, 30)),
    early=st.sets(st.integers(0, 30)),
    batch=st.integers(1, 6),
)
def test_games_that_are_here_before_they_are_leased_are_not_leased(
    start: int, done: set[int], early: set[int], batch: int
) -> None:
    plan = planner(batch, 2, 30, start=start, done=set(done))
    plan.arrived([game for game in early if game >= start], 0.1, 0.0)
    leased = [game for lease in plan.new_leases(start, 2) for game in lease.games]
    end = min(30, plan.config.playable_before(start))
    assert sorted(leased) == [g for g in range(start, end) if g not in done | early]


def test_a_taken_lease_is_leased_again_within_five_seconds() -> None:
    plan = planner(10, 0, 100)
    (first, *others) = plan.new_leases(0, 1)
    waiting = {lease.number for lease in others}
    now, seen = 0.0, list[Leased]()
    while not seen:
        now += LOOK
        seen = plan.late(waiting, now)
        assert now < 5.0
    assert seen == [first]
    (again,) = plan.again(seen)
    assert again.games == first.games
    assert again.again


def test_a_lease_that_waits_is_never_late() -> None:
    plan = planner(10, 0, 100)
    numbers = {lease.number for lease in plan.new_leases(0, 3)}
    for hours in range(1, 50):
        assert plan.late(numbers, 3600.0 * hours) == []


def test_a_lease_that_was_put_back_is_not_late() -> None:
    plan = planner(1, 0, 1)
    (lease,) = plan.new_leases(0, 1)
    assert plan.late([], 0.0) == []
    assert plan.late([lease.number], 3.0) == []  # given back by a worker that could not do it
    assert plan.late([], 5.0) == []
    assert lease in plan.late([], 5.0 + module._FIRST_DEADLINE + 0.1)


def test_slow_games_are_not_late() -> None:
    """What leases have been taking is the measure, not a constant."""
    plan = planner(4, 5, 400)
    leases = plan.new_leases(0, 1)
    plan.late([], 0.0)
    plan.arrived(leases[0].games, 20.0, 20.0)
    assert plan.deadline == pytest.approx(60.0)
    assert plan.late([], 59.0) == []
    assert plan.late([], 61.0)


def test_late_leases_are_not_joined_into_a_bigger_one() -> None:
    plan = planner(40, 0, 40)
    leases = plan.new_leases(0, 4)
    plan.late([], 0.0)
    again = plan.again(plan.late([], 100.0))
    assert max(len(lease.games) for lease in again) <= max(len(lease.games) for lease in leases)
    assert sorted(g for lease in again for g in lease.games) == list(range(40))


@given(workers=st.integers(1, 64), batch=st.integers(1, 300), lag=st.integers(0, 3))
def test_every_worker_gets_its_share(workers: int, batch: int, lag: int) -> None:
    plan = planner(batch, lag, 10**6)
    leases = plan.new_leases(0, workers)
    sizes = [len(lease.games) for lease in leases]
    assert sum(sizes) == (lag + 1) * batch
    assert len(leases) >= min(workers, (lag + 1) * batch)
    fair = max(1, sum(sizes) // (module.LEASES_PER_WORKER * workers))
    assert max(sizes) <= fair


@pytest.mark.parametrize("seconds", [0.0, 5e-324, 1e9])
def test_whatever_a_worker_says_about_its_time(seconds: float) -> None:
    plan = planner(10, 0, 100)
    plan.new_leases(0, 2)
    plan.arrived(range(10), seconds, 1.0)
    assert 1 <= plan.lease_size(2) <= 5
    assert plan.deadline < 5.0
    assert plan.new_leases(10, 2)


def test_a_lease_is_worth_its_time() -> None:
    plan = planner(1000, 0, 10_000)
    plan.new_leases(0, 1)
    plan.arrived(range(1000), 50.0, 1.0)  # 50 ms a game
    assert plan.lease_size(1) == int(module.LEASE_SECONDS / 0.05)


def test_the_leases_that_hold_a_game() -> None:
    plan = planner(10, 0, 100)
    leases = plan.new_leases(0, 5)
    assert plan.holding([0, 9, 50]) == [leases[0], leases[-1]]
    plan.arrived(leases[0].games, 0.1, 0.0)
    assert plan.holding([0]) == []
