"""Leases on the server: what the planner decides, put into the queue."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable

from rejoinder.run.config import RunConfig
from rejoinder.transport.bus import Bus, Order, job_name
from rejoinder.transport.wire import Codec, Deltas, Lease
from rejoinder_learner.planner import Leased, Planner
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner


class Leases:
    """The leases of one learner."""

    def __init__(
        self, bus: Bus, codec: Codec, config: RunConfig, publisher: Publisher, workers: int = 1
    ) -> None:
        self._bus = bus
        self._codec = codec
        self._config = config
        self._publisher = publisher
        self._prefix = ""
        self._planner = Planner(config, config.units)
        self.repeated = 0  # games that were leased more than once
        self.sent_bytes = 0
        self.workers = workers  # how many there are to share the games

    @property
    def outstanding(self) -> int:
        return self._planner.outstanding

    def start_again(self, learner: Learner, start: int, done: set[int]) -> None:
        """Forget what was leased: from `start` on every game is new, but for those `done`."""
        self.repeated += self._planner.outstanding
        self._learner = learner
        self._planner = self._planner.successor(start, done)
        self._prefix = job_name(self._bus.run, f"{secrets.token_hex(4)}-")
        self._bus.withdraw_all()

    def withdraw(self) -> None:
        """Take back whatever no worker has taken."""
        self._bus.withdraw_all()

    def lease_what_can_be_played(self) -> None:
        self._enqueue(self._planner.new_leases(self._learner.units, self.workers))

    def arrived(self, games: list[int], deltas: Deltas) -> None:
        """Games are here, so their leases are done; copies still in the queue are withdrawn."""
        complete = self._planner.arrived(games, deltas.seconds, time.monotonic())
        if copies := [self._job(lease) for lease in complete if lease.again]:
            self._bus.withdraw(copies)

    def lease_late_ones_again(self, waiting: set[str]) -> None:
        numbers = {int(job.removeprefix(self._prefix)) for job in waiting if self._is_ours(job)}
        self._again(self._planner.late(numbers, time.monotonic()))

    def holds(self, job: str) -> bool:
        """Whether the lease is under way."""
        return self._is_ours(job) and int(job.removeprefix(self._prefix)) in self._planner.leases

    def refused(self, job: str) -> None:
        """A worker could not do it: give it to another one."""
        if self.holds(job):
            self._again([self._planner.leases[int(job.removeprefix(self._prefix))]])

    def worthless(self, games: Iterable[int]) -> None:
        """A worker has answered the leases of these games with what cannot be used."""
        self._again(self._planner.holding(games))

    def lease_again(self, games: Iterable[int]) -> None:
        """Games whose deltas turned out to be worthless."""
        made = self._planner.return_games(games, self.workers)
        self.repeated += sum(len(lease.games) for lease in made)
        self._enqueue(made, urgent=True)

    def _again(self, leases: list[Leased]) -> None:
        if leases:
            self._bus.withdraw([self._job(lease) for lease in leases])
            made = self._planner.again(leases)
            self.repeated += sum(len(lease.games) for lease in made)
            self._enqueue(made, urgent=True)

    def _enqueue(self, leases: list[Leased], urgent: bool = False) -> None:
        orders = []
        for lease in leases:
            first, end = lease.games.start, lease.games.stop
            version = self._config.version_for(first)
            if self._config.order == "arrival":
                version = self._learner.units // self._config.batch
            games = version * self._config.batch * self._config.block
            snapshot = self._publisher.publish(games)
            pinned = snapshot if self._config.order == "index" else None
            message = self._codec.encode(Lease(first, end, pinned, self._config.kernel))
            orders.append(Order(self._job(lease), message, f"units {first} to {end - 1}", urgent))
        if orders:
            self.sent_bytes += sum(len(order.message) for order in orders)
            self._bus.enqueue(orders)

    def _job(self, lease: Leased) -> str:
        return f"{self._prefix}{lease.number}"

    def _is_ours(self, job: str) -> bool:
        return job.startswith(self._prefix) and job.removeprefix(self._prefix).isdecimal()
