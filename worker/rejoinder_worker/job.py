"""One lease, from the queue to the stream.

take_lease
  decode          a lease of another run or for other kernels is refused
  load snapshot   from the cache, by patches, or complete
  play            every game of the lease, response phases included
  deliver         the deltas in one message, and the end of the lease with it

A worker is stateless: what it holds between two leases is memory to write into and snapshots that
it could read again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rejoinder.kernel.jit import KERNEL_VERSION
from rejoinder.measure.metrics import win_rates
from rejoinder.methods.actor import Actor
from rejoinder.methods.tabular.patch import apply_patch
from rejoinder.methods.tabular.policy import policy_dtype
from rejoinder.methods.tabular.table import Table, new_table
from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus
from rejoinder.transport.wire import (
    Codec,
    Deltas,
    Evaluation,
    EvaluationLease,
    ForeignError,
    Lease,
    Message,
    Refusal,
    Snapshot,
    WireError,
)
from rejoinder_worker.telemetry import WorkerMetrics

_FIRST_ROWS = 256


class ForeignLease(Exception):
    """A lease that this worker must not work on; it stops, so that others can."""


class MissingSnapshot(Exception):
    """A snapshot that is not on the server, or not whole."""


class Player:
    """What a worker needs for the leases of one run."""

    def __init__(
        self, bus: Bus, config: RunConfig, name: str, metrics: WorkerMetrics | None = None
    ) -> None:
        self.bus = bus
        self.config = config
        self.name = name
        self.codec = Codec(config)
        self.games = 0  # played so far
        self.evaluations = 0
        self.leases = 0
        self.busy = 0.0  # seconds
        self.metrics = (metrics or WorkerMetrics()).work_on(bus.run, config)
        self.between_games: Callable[[], None] = lambda: None
        self._actor = Actor(config)
        actions = len(config.load_abstraction().actions)
        heard = self.metrics.received_snapshot
        self._snapshots = SnapshotCache(bus, self.codec, actions, heard)

    def work_on(self, lease: Lease | EvaluationLease) -> Message:
        """Do what a lease asks for."""
        if isinstance(lease, Lease):
            return self._play(lease)
        return self._evaluate(lease)

    def _play(self, lease: Lease) -> Deltas:
        begin = time.perf_counter()
        name = lease.snapshot or self._snapshots.newest()
        policy = self._snapshots.load(name)
        deltas = []
        for game in range(lease.first, lease.end):
            deltas.append(self._actor.play(game, policy).copy())
            self.between_games()
        seconds = time.perf_counter() - begin
        answer = Deltas(
            first=lease.first,
            snapshot=name,
            worker=self.name,
            seconds=seconds,
            counts=tuple(len(delta) for delta in deltas),
            entries=np.concatenate(deltas, dtype=deltas[0].dtype),
        )
        self.games += len(deltas)
        self.metrics.played(answer)
        return answer

    def _evaluate(self, lease: EvaluationLease) -> Evaluation:
        games = lease.snapshot.games
        parts = self._snapshots.decode(lease.snapshot, self.bus.snapshot_for_evaluation(games))
        config = self.config.model_copy(update={"eval_games": lease.match_games})
        policy = _assemble(self._snapshots.empty(), [parts])
        self.evaluations += 1
        return Evaluation(lease.snapshot, self.name, win_rates(config, games, policy))


def take_lease(player: Player, job: str, message: bytes) -> None:
    """Work on a lease and deliver the result; a lease that cannot be done is answered as well."""
    begin = time.perf_counter()
    lease: Lease | EvaluationLease | None = None
    player.metrics.received_lease(len(message))
    try:
        lease = _read(player, message)
        answer = player.work_on(lease)
    except WireError as error:
        answer = Refusal(job, player.name, str(error), snapshot_missing=False)
    except MissingSnapshot as error:
        answer = Refusal(job, player.name, str(error), snapshot_missing=True)
    data = player.codec.encode(answer)
    player.bus.deliver([data], job)
    seconds = time.perf_counter() - begin
    player.leases += 1
    player.busy += seconds
    player.metrics.ended(lease, answer, len(data), seconds)


def _read(player: Player, message: bytes) -> Lease | EvaluationLease:
    """The lease in a message, if it is one for this worker."""
    try:
        lease = player.codec.decode(message)
    except ForeignError as error:
        raise ForeignLease(f"this lease is not for this worker: {error}") from None
    if not isinstance(lease, Lease | EvaluationLease):
        raise WireError(f"a {type(lease).__name__} is not a lease")
    if lease.kernel != KERNEL_VERSION:
        raise ForeignLease(
            f"the learner has kernels {lease.kernel} and this worker {KERNEL_VERSION}; "
            "results could differ, so install the same version of Rejoinder on both"
        )
    return lease


class SnapshotCache:
    """The newest snapshot that was asked for; the next one is usually a patch away."""

    def __init__(
        self, bus: Bus, codec: Codec, actions: int, on_bytes: Callable[[int], None] = lambda _: None
    ) -> None:
        self._bus = bus
        self._codec = codec
        self._on_bytes = on_bytes  # hears how much was read
        self._dtype = policy_dtype(actions)
        self._name: SnapshotId | None = None
        self._table = self.empty()

    def load(self, wanted: SnapshotId) -> Table:
        """The policies of a snapshot; valid until the next call."""
        try:
            return self._load(wanted)
        except MissingSnapshot:  # perhaps its chain was just being replaced
            return self._load(wanted)

    def _load(self, wanted: SnapshotId) -> Table:
        if wanted == self._name:
            return self._table
        chain: list[Sequence[Snapshot]] = []  # newest first, back to what is here or complete
        at: SnapshotId | None = wanted
        while at is not None and at != self._name:
            chain.append(self.decode(at, self._bus.snapshot(at.games)))
            at = chain[-1][0].base
        table = self.empty() if at is None else self._table
        self._name = None  # a failure may leave the table between two snapshots
        self._table = _assemble(table, chain[::-1])
        self._name = wanted
        return self._table

    def newest(self) -> SnapshotId:
        name = self._bus.newest()
        if name is None:
            raise MissingSnapshot("no snapshot has been published yet")
        return name

    def decode(self, name: SnapshotId, parts: Sequence[bytes]) -> Sequence[Snapshot]:
        """The parts of one snapshot, all of them."""
        self._on_bytes(sum(map(len, parts)))
        decoded: list[Snapshot] = []
        for part in parts:
            try:
                message = self._codec.decode(part)
            except WireError as error:
                raise MissingSnapshot(f"snapshot {name.games} is damaged: {error}") from None
            if not isinstance(message, Snapshot) or message.id != name:
                raise MissingSnapshot(f"snapshot {name.games} has been replaced by another one")
            decoded.append(message)
        if not decoded or [m.part for m in decoded] != list(range(decoded[0].parts)):
            raise MissingSnapshot(f"snapshot {name.games} is not on the server")
        return decoded

    def empty(self) -> Table:
        return new_table(self._dtype, _FIRST_ROWS)


def _assemble(table: Table, chain: Sequence[Sequence[Snapshot]]) -> Table:
    """The table with the patches of several snapshots in it."""
    for parts in chain:
        for part in parts:
            try:
                table = apply_patch(table, part.patch)
            except ValueError as error:
                raise MissingSnapshot(f"snapshot {part.id.games}: {error}") from None
        if table.size[0] != parts[-1].size:
            raise MissingSnapshot(f"snapshot {parts[-1].id.games} is not whole")
    return table


def about(player: Player, since: float, **more: Any) -> dict[str, Any]:
    """What a worker says of itself."""
    return {
        "games": player.games,
        "leases": player.leases,
        "evaluations": player.evaluations,
        "busy_seconds": round(player.busy, 3),
        "up_seconds": round(time.monotonic() - since, 3),
        **more,
    }
