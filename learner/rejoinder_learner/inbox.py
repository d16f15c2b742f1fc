"""The inbox: deltas that have arrived and wait for their turn.

Whatever may be folded is here exactly once. In order, a delta is taken only if it was made with the
very snapshot that its unit asks for, so one that comes late, twice, or from before a learner's fall
is harmless; what cannot be a delta of this run at all is an error of the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import head_after
from rejoinder.transport.wire import Deltas, WireError
from rejoinder_learner.state import Learner, Played


class Arrived(NamedTuple):
    """A delta and who brought it."""

    played: Played
    worker: str


class Inbox:
    """Deltas by unit."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._in_order = config.order == "index"
        self._one_at_a_time = (config.lag + 1) * config.batch == 1  # unit under way
        self.first_from: dict[str, int] = {}  # worker → units folded before its first one
        self.duplicates = 0  # units that came once more than needed
        self.stale = 0  # units played with a snapshot that is not, or no longer, the right one

    def start_again(self, learner: Learner, ledger: Any = None) -> None:
        """Forget everything that waits; out of order, the ledger says which units are folded."""
        self._learner = learner
        self._first_missing = learner.units if self._in_order else 0  # all units before are folded
        self._beyond: set[int] = set()  # units after that one that are folded too
        # Out of order any snapshot will do that there was in this history, so all are remembered.
        self._heads: dict[int, bytes] = dict(learner.snapshots().values())
        if ledger is not None:
            self._beyond.update(ledger["unit"][: learner.units].tolist())
            for units in range(0, learner.units + 1, self._config.batch):
                games = units * self._config.block
                self._heads[games] = head_after(ledger, units, self._config.fingerprint)
        self._close_gap()
        self.waiting: dict[int, Arrived] = {}
        # If the learner has gone back: what is still folded was brought by somebody all the same.
        self.first_from = {w: n for w, n in self.first_from.items() if n < learner.units}

    def add(self, deltas: Deltas) -> list[int]:
        """Take what is new; returns those units. `WireError` if no worker could have sent this."""
        if not self._fits(deltas):
            self.stale += len(deltas.counts)
            return []
        arrived = self.arrivals(deltas)
        new = [unit for unit in arrived if self.is_missing(unit)]
        self.duplicates += len(arrived) - len(new)
        self.waiting.update({unit: arrived[unit] for unit in new})
        return new

    def arrivals(self, deltas: Deltas) -> dict[int, Arrived]:
        """The units of a message, one by one."""
        version = deltas.snapshot.games // (self._config.batch * self._config.block)
        units = deltas.by_unit().items()
        digests = deltas.digests or [None] * len(units)  # of a message that was not decoded
        return {
            unit: Arrived(Played(unit, version, delta, digest), deltas.worker)
            for (unit, delta), digest in zip(units, digests, strict=True)
        }

    def is_missing(self, unit: int) -> bool:
        return unit >= self._first_missing and unit not in self._beyond and unit not in self.waiting

    def next_units(self, stop: int) -> list[Arrived]:
        """The units to fold now: until a gap, or until `stop` units are folded."""
        room = stop - self._learner.units
        if not self._in_order:
            return list(self.waiting.values())[:room]
        units: list[Arrived] = []
        while len(units) < room and self._learner.units + len(units) in self.waiting:
            units.append(self.waiting[self._learner.units + len(units)])
        return units

    def folded(self, units: Sequence[Arrived]) -> None:
        """The learner has these now."""
        for n, arrived in enumerate(units, start=self._learner.units - len(units)):
            del self.waiting[arrived.played.unit]
            self._beyond.add(arrived.played.unit)
            self.first_from.setdefault(arrived.worker, n)
        if not self._in_order:
            self._heads.update(self._learner.snapshots().values())
        self._close_gap()

    def accounted_for(self) -> tuple[int, set[int]]:
        """Every unit before the first number is folded; those of the set need no lease either."""
        return self._first_missing, self._beyond | set(self.waiting)

    def contradiction(self, deltas: Deltas) -> list[Arrived]:
        """Two deltas of one unit that are not the same: at least one of them is wrong."""
        if self.waiting.keys().isdisjoint(deltas.units) or not self._fits(deltas):
            return []
        for unit, arrived in self.arrivals(deltas).items():
            there = self.waiting.get(unit)
            if there is None or there.played.version != arrived.played.version:
                continue
            if there.played.delta.tobytes() != arrived.played.delta.tobytes():
                return [there, arrived]
        return []

    def drop(self, worker: str) -> list[int]:
        """Remove what a worker has brought; returns those units."""
        units = [unit for unit, arrived in self.waiting.items() if arrived.worker == worker]
        for unit in units:
            del self.waiting[unit]
        return units

    def _fits(self, deltas: Deltas) -> bool:
        """Whether they belong to this history, as far as it is known; `WireError` as in `add`."""
        first, last = deltas.units[0], deltas.units[-1]
        if deltas.snapshot.games > self._learner.games:
            return False  # from before a fall, or a lie: that snapshot has not been taken yet
        if last >= min(self._config.units, self._config.playable_before(self._learner.units)):
            raise WireError(f"deltas: unit {last} has not been leased yet")
        if last < self._first_missing:
            return True  # duplicates, whatever they were made with
        if not self._in_order and self._one_at_a_time:
            return deltas.snapshot == self._learner.snapshots().get(self._learner.games)
        if not self._in_order:  # any snapshot will do
            return self._heads.get(deltas.snapshot.games) == deltas.snapshot.head
        versions = {self._config.version_for(unit) for unit in (first, last)}
        games = min(versions) * self._config.batch * self._config.block
        wanted = self._learner.snapshots().get(games)
        return len(versions) == 1 and deltas.snapshot == wanted

    def _close_gap(self) -> None:
        while self._first_missing in self._beyond:
            self._beyond.remove(self._first_missing)
            self._first_missing += 1
