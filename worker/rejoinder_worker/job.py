"""One lease, from the queue to the stream.

take_lease
  decode          a lease of another run or for other kernels is refused
  load snapshot   from the cache, by patches, or complete
  play            every unit of the lease: games with their response phases, or iterations
  deliver         the deltas in one message, and the end of the lease with it

A worker is stateless: what it holds between two leases is memory to write into and snapshots that
it could read again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rejoinder.measure.metrics import evaluation_kernel, play_matches
from rejoinder.methods.base import Delta, Snapshot
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
    SnapshotPart,
    WireError,
)
from rejoinder_worker.telemetry import WorkerMetrics

_HELD = 8  # snapshots of a chain that are kept in memory while the chain is followed


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
        self.between_units: Callable[[], None] = lambda: None
        self._actor = config.actor()
        self._snapshots = SnapshotCache(bus, self.codec, config, self.metrics.received_snapshot)

    def work_on(self, lease: Lease | EvaluationLease) -> Message:
        """Do what a lease asks for."""
        if isinstance(lease, Lease):
            return self._play(lease)
        return self._evaluate(lease)

    def _play(self, lease: Lease) -> Deltas:
        begin = time.perf_counter()
        name, snapshot = self._snapshots.load_for(lease)
        deltas = []
        for unit in range(lease.first, lease.end):
            deltas.append(self.play_unit(unit, snapshot).copy())
            self.between_units()
        seconds = time.perf_counter() - begin
        answer = Deltas(
            first=lease.first,
            snapshot=name,
            worker=self.name,
            seconds=seconds,
            counts=tuple(len(delta) for delta in deltas),
            entries=np.concatenate(deltas, dtype=deltas[0].dtype),
        )
        self.games += len(deltas) * self.config.block
        self.metrics.played(answer)
        return answer

    def play_unit(self, unit: int, snapshot: Snapshot) -> Delta:
        """The delta of a unit; valid until the next call."""
        return self._actor.play(unit, snapshot)

    def _evaluate(self, lease: EvaluationLease) -> Evaluation:
        games = lease.snapshot.games
        config = self.config.model_copy(update={"eval_games": lease.match_games})
        task, method = config.task(), config.load_method()
        policy = method.policy_snapshot(task)
        parts = self.bus.snapshot_for_evaluation(games)
        self._snapshots.assemble(policy, lease.snapshot, None, parts, policies=True)
        try:
            agent = method.policy(task, policy.rows)
        except ValueError as error:
            raise MissingSnapshot(f"the policies after {games} games: {error}") from None
        self.evaluations += 1
        matches: Any = play_matches(config, games, agent)
        return Evaluation(lease.snapshot, self.name, matches)


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
    config = player.config
    ours = config.kernel if isinstance(lease, Lease) else evaluation_kernel(config)
    if lease.kernel != ours:
        raise ForeignLease(
            f"the learner has kernels {lease.kernel} and this worker {ours}; "
            "results could differ, so install the same version of Rejoinder on both"
        )
    return lease


class SnapshotCache:
    """The newest snapshot that was asked for; the next one is usually a patch away."""

    def __init__(
        self,
        bus: Bus,
        codec: Codec,
        config: RunConfig,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._bus = bus
        self._codec = codec
        self._on_bytes = on_bytes  # hears how much was read
        self._method, self._task = config.load_method(), config.task()
        self._name: SnapshotId | None = None
        self._snapshot = self._empty()

    def load(self, wanted: SnapshotId) -> Snapshot:
        """A snapshot; valid until the next call."""
        try:
            return self._load(wanted)
        except MissingSnapshot:  # perhaps its chain was just being replaced
            return self._load(wanted)

    def _load(self, wanted: SnapshotId) -> Snapshot:
        if wanted == self._name:
            return self._snapshot
        # Newest first, with their bases, back to what is here or complete.
        chain: list[tuple[SnapshotId, SnapshotId | None]] = []
        held: dict[SnapshotId, SnapshotPart] = {}  # a few that are whole; others are read again
        at: SnapshotId | None = wanted
        while at is not None and at != self._name:
            data = next(self._bus.snapshot(at.games), b"")
            if not data:
                raise MissingSnapshot(f"snapshot {at.games} is not on the server")
            first = self._decode(at, data)
            if first.parts == 1 and len(held) < _HELD:
                held[at] = first
            chain.append((at, first.base))
            at = first.base
        if at is None:
            self._snapshot = self._empty()
        self._name = None  # a failure may leave it between two snapshots
        for name, base in reversed(chain):
            if name in held:
                self._assemble(self._snapshot, name, base, [held[name]])
            else:
                self.assemble(self._snapshot, name, base, self._bus.snapshot(name.games))
        _complete(self._snapshot, wanted)
        self._name = wanted
        return self._snapshot

    def load_for(self, lease: Lease) -> tuple[SnapshotId, Snapshot]:
        """The snapshot of a lease, or the newest; that may be replaced while it is read."""
        if lease.snapshot is not None:
            return lease.snapshot, self.load(lease.snapshot)
        name = self.newest()
        try:
            return name, self.load(name)
        except MissingSnapshot:
            name = self.newest()
            return name, self.load(name)

    def newest(self) -> SnapshotId:
        name = self._bus.newest()
        if name is None:
            raise MissingSnapshot("no snapshot has been published yet")
        return name

    def assemble(
        self,
        snapshot: Snapshot,
        name: SnapshotId,
        base: SnapshotId | None,  # what `snapshot` holds; another patch may have come meanwhile
        parts: Iterable[bytes],
        policies: bool = False,
    ) -> None:
        """Apply the parts of one snapshot, each before the next one is read: they may be many."""
        decoded = (self._decode(name, data) for data in parts)
        self._assemble(snapshot, name, base, decoded, policies)

    def _assemble(
        self,
        snapshot: Snapshot,
        name: SnapshotId,
        base: SnapshotId | None,
        parts: Iterable[SnapshotPart],
        policies: bool = False,
    ) -> None:
        number = -1
        for number, part in enumerate(parts):
            if part.part != number:
                raise MissingSnapshot(f"snapshot {name.games} is not on the server")
            if number == 0:
                first = part
            if (part.base, part.size, part.parts) != (base, first.size, first.parts):
                raise MissingSnapshot(f"snapshot {name.games} has been replaced by another one")
            if part.policies != policies:
                raise MissingSnapshot(f"the policies after {name.games} games have been replaced")
            try:
                snapshot.apply(part.patch)
            except ValueError as error:
                raise MissingSnapshot(f"snapshot {name.games}: {error}") from None
        if number < 0 or number + 1 != first.parts:
            raise MissingSnapshot(f"snapshot {name.games} is not on the server")
        if len(snapshot.rows) != first.size:
            raise MissingSnapshot(f"snapshot {name.games} is not whole")

    def _decode(self, name: SnapshotId, data: bytes) -> SnapshotPart:
        self._on_bytes(len(data))
        try:
            part = self._codec.decode(data)
        except WireError as error:
            raise MissingSnapshot(f"snapshot {name.games} is damaged: {error}") from None
        if not isinstance(part, SnapshotPart) or part.id != name:
            raise MissingSnapshot(f"snapshot {name.games} has been replaced by another one")
        return part

    def _empty(self) -> Snapshot:
        return self._method.snapshot(self._task)


def _complete(snapshot: Snapshot, name: SnapshotId) -> None:
    try:
        snapshot.complete()
    except ValueError as error:
        raise MissingSnapshot(f"snapshot {name.games}: {error}") from None


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
