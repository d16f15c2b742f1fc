"""The planner: which games to lease, to how big a piece, and when to lease them again.

Invariants. A game is leased only once the snapshot it needs exists. The games that are leased or
waiting to be folded never exceed the contract's own window, (L + 1)·B, nor `MAX_OUTSTANDING`: that
is the back-pressure, and it bounds the learner's memory. A game that is neither folded nor here is
under lease, or is leased again as soon as its lease is *late*: taken by a worker longer ago than
leases have been taking. Nothing here can influence what is learned; only how soon.

Time is an argument, so that tests can do without a clock.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from rejoinder.run.config import Learning

MAX_OUTSTANDING = 20_000  # games
LEASE_SECONDS = 0.2  # of play that a lease is worth, where the window allows it
SHORTEST_DEADLINE = 1.0  # seconds; a lease is not late before that
PATIENCE = 3.0  # a lease is late after so many times the slowest of the recent ones
LEASES_PER_WORKER = 2  # one under way, one waiting

_REMEMBERED = 64  # durations from which deadlines are taken
_FIRST_DEADLINE = 4.0  # seconds, before anything has been measured
_FIRST_LEASE = 4  # games in a lease until then
_SLACK = 0.5  # seconds that a message may be on its way


@dataclass
class Leased:
    """A lease under way."""

    number: int
    games: range
    missing: set[int]
    taken: float | None = None  # when it was first seen to be no longer in the queue
    again: bool = False  # it repeats games that were leased before


@dataclass
class Planner:
    """Keeps account of the leases of one run, from game `start` on."""

    config: Learning
    target: int  # games in all
    start: int = 0
    done: set[int] = field(default_factory=set)  # games beyond `start` that need no lease
    leases: dict[int, Leased] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._next = self.start
        self._numbers = itertools.count()
        self._under_lease: dict[int, set[int]] = {}  # game → numbers of its leases
        self._durations: deque[float] = deque(maxlen=_REMEMBERED)
        self._seconds_per_game = 0.0  # 0: not known yet
        self._first_deadline = _FIRST_DEADLINE

    def successor(self, start: int, done: set[int]) -> Planner:
        """A planner without leases that knows what this one has measured."""
        made = Planner(self.config, self.target, start, done)
        made._durations, made._seconds_per_game = self._durations, self._seconds_per_game
        return made

    def new_leases(self, folded: int, workers: int) -> list[Leased]:
        """Leases for every game that may be played by now and is not leased yet."""
        end = min(self.target, self.config.playable_before(folded), folded + MAX_OUTSTANDING)
        made = []
        for stretch in self._stretches(end):
            made += [self._lease(piece) for piece in _pieces(stretch, self.lease_size(workers))]
        self._next = max(self._next, end)
        self.done = {game for game in self.done if game >= self._next}
        return made

    def lease_size(self, workers: int) -> int:
        """Games in a lease: as many as are worth it, but so that every worker gets some."""
        window = min((self.config.lag + 1) * self.config.batch, MAX_OUTSTANDING)
        fair = window // (LEASES_PER_WORKER * max(workers, 1))
        worth: float = _FIRST_LEASE
        if self._seconds_per_game > 0:
            worth = LEASE_SECONDS / self._seconds_per_game
        return max(int(min(fair, worth)), 1)

    def arrived(self, games: Iterable[int], seconds: float, now: float) -> list[Leased]:
        """Deltas are here; returns the leases that are now complete."""
        games = list(games)
        if games:
            latest = seconds / len(games)
            self._seconds_per_game += (latest - self._seconds_per_game) * (
                0.1 if self._seconds_per_game else 1.0
            )
        # What comes before it is leased (by the lease of a learner before this one) needs no lease.
        self.done.update(game for game in games if game >= self._next)
        complete = []
        for game in games:
            for number in self._under_lease.pop(game, ()):
                lease = self.leases[number]
                lease.missing.discard(game)
                if not lease.missing:
                    complete.append(self.leases.pop(number))
                    self._durations.append(_duration(lease, seconds, now))
        return complete

    def late(self, waiting: Collection[int], now: float) -> list[Leased]:
        """Leases that are taken and overdue; `waiting` are those still in the queue."""
        overdue = []
        for number, lease in self.leases.items():
            if number in waiting:
                lease.taken = None
            elif lease.taken is None:
                lease.taken = now
            elif now - lease.taken > self.deadline:
                overdue.append(lease)
        if overdue and not self._durations:
            self._first_deadline *= 2  # perhaps nobody is dead, and games are just long
        return overdue

    @property
    def deadline(self) -> float:
        """Seconds that a worker may take for a lease, by what leases have been taking."""
        if not self._durations:
            return self._first_deadline
        return max(SHORTEST_DEADLINE, PATIENCE * max(self._durations))

    def again(self, leases: Iterable[Leased]) -> list[Leased]:
        """New leases, no bigger, for what is missing of the given ones, which are given up."""
        missing: set[int] = set()
        size = 1
        for lease in list(leases):
            size = max(size, len(lease.games))
            if self.leases.pop(lease.number, None) is None:
                continue
            for game in lease.missing:
                numbers = self._under_lease.get(game, set())
                numbers.discard(lease.number)
                if not numbers:
                    self._under_lease.pop(game, None)
                    missing.add(game)
        return self._repeat(missing, size)

    def return_games(self, games: Iterable[int], workers: int) -> list[Leased]:
        """New leases for games whose deltas turned out to be worthless."""
        wanted = {game for game in games if game not in self._under_lease}
        self.done -= wanted  # those that were never leased will be, in their turn
        leased = {game for game in wanted if game < self._next}
        return self._repeat(leased, self.lease_size(workers))

    def holding(self, games: Iterable[int]) -> list[Leased]:
        """The leases under which any of these games is missing."""
        numbers = {number for game in games for number in self._under_lease.get(game, ())}
        return [self.leases[number] for number in sorted(numbers)]

    @property
    def outstanding(self) -> int:
        """Games under lease."""
        return len(self._under_lease)

    def _repeat(self, games: set[int], size: int) -> list[Leased]:
        made = []
        for stretch in self._by_batch(sorted(games)):
            made += [self._lease(piece) for piece in _pieces(stretch, size)]
        for lease in made:
            lease.again = True
        return made

    def _lease(self, games: range) -> Leased:
        lease = Leased(next(self._numbers), games, set(games))
        self.leases[lease.number] = lease
        for game in games:
            self._under_lease.setdefault(game, set()).add(lease.number)
        return lease

    def _stretches(self, end: int) -> Iterator[range]:
        """What is to be leased up to `end`, cut where the snapshot changes and at games done."""
        wanted = [game for game in range(self._next, end) if game not in self.done]
        yield from self._by_batch(wanted)

    def _by_batch(self, games: list[int]) -> Iterator[range]:
        first = 0
        for i in range(1, len(games) + 1):
            if i == len(games) or games[i] != games[i - 1] + 1 or games[i] % self.config.batch == 0:
                yield range(games[first], games[i - 1] + 1)
                first = i


def _duration(lease: Leased, seconds: float, now: float) -> float:
    """How long a worker had the lease: by our clock, but without the pauses of our own.

    What the worker says, `seconds`, can only make it shorter: deadlines are not for it to stretch.
    """
    if lease.taken is None:  # done before it was seen to have left the queue
        return min(seconds, SHORTEST_DEADLINE)
    return min(now - lease.taken, seconds + _SLACK)


def _pieces(games: range, size: int) -> Iterator[range]:
    """The stretch in equal pieces of at most about `size`."""
    count = -(-len(games) // size)
    for i in range(count):
        first = games.start + len(games) * i // count
        yield range(first, games.start + len(games) * (i + 1) // count)
