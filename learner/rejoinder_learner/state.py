"""The learner's state: the history of what was folded, and the model that it was folded into.

Invariant (the determinism contract): after n folds the state is a pure function of (run config, n).
Unit u is played with snapshot version v(u) = max(0, u // B − L); version v is a copy of what actors
read after exactly v·B folds; units are folded strictly by index. Who plays a unit, when and how
often cannot be seen from here.

The history knows units, the ledger, versions and their patches, and no method; the model knows the
method and nothing else. Snapshots cost what has changed, not what there is: the history keeps the
oldest version that a unit to come may need as a whole, and every later version as a patch on the
one before it.

Counts: a *unit* has an index and is folded as a whole; `games` are what people count, the method's
iterations, `config.block` in a unit.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rejoinder.methods.base import Delta, Rows, Snapshot
from rejoinder.methods.patch import Patch, difference, merge
from rejoinder.methods.rows import opaque
from rejoinder.run.checkpoints import Checkpoint, Policies, digest, needed_versions
from rejoinder.run.config import Learning
from rejoinder.run.ledger import SnapshotId, genesis, head_of, record

_BLOCK = 2**16  # rows that are looked at at once
_PIECE = 2**14  # entries that are worth a call of a kernel by themselves


class Played(NamedTuple):
    """A unit as it comes from whoever played it."""

    unit: int
    version: int  # of the snapshot it was played with
    delta: Delta
    digest: bytes | None = None  # its SHA-256, if that is known


class Version(NamedTuple):
    """A snapshot as the changes since the one before."""

    id: SnapshotId
    size: int  # rows of the whole
    patch: Patch


class Learner:
    """Folds deltas by index, and keeps every snapshot as long as a unit may need it."""

    def __init__(self, config: Learning, checkpoint: Checkpoint | None = None) -> None:
        self.config = config
        self._task, self._method = config.task(), config.load_method()
        self.units = 0  # folded so far; also the index of the next unit to fold
        self.head = genesis(config.fingerprint)
        self.oldest = SnapshotId(0, self.head)  # the oldest snapshot that a unit may still need
        self.keep_from: int | None = None  # changes since then are kept too, for a publisher
        self._oldest_snapshot = self._method.snapshot(self._task)
        self._versions: deque[Version] = deque()
        self._records: list[bytes] = []
        self.whole = True  # not in the middle of a fold that an error has ended
        self._unsaved = np.zeros(0, bool)  # by row: written since `take_unsaved`, up to a snapshot
        self._games_per_version = config.batch * config.block
        self._model = self._method.model(self._task, checkpoint.rows if checkpoint else None)
        if checkpoint:
            self._restore(checkpoint)
        elif config.start:
            raise ValueError("the policy that the run starts from is missing")

    @property
    def games(self) -> int:
        """Folded so far, in the method's iterations."""
        return self.units * self.config.block

    def flaw(self, delta: Delta) -> str | None:
        """Why the next unit cannot have given this delta."""
        return self._model.flaw(delta)

    def fold(self, delta: Delta) -> None:
        """Add the delta of unit number `units`."""
        self.fold_all([Played(self.units, self.config.version_for(self.units), delta)])

    def fold_all(self, units: Sequence[Played]) -> None:
        """Add deltas one after the other; by index they must be the next ones."""
        for chunk in self._up_to_snapshots(units):
            self.whole = False
            for some in _in_pieces(chunk):
                entries = _joined([played.delta for played in some])
                self._model.fold(self.units, [len(played.delta) for played in some], entries)
                self.units += len(some)
            for played in chunk:
                self._records.append(record(self.head, *played))
                self.head = head_of(self._records[-1])
            if self.units % self.config.batch == 0:
                self._take_snapshot()
            self.whole = True

    def snapshot_for(self, unit: int) -> Snapshot:
        """The snapshot that `unit` is played with; it must exist by now."""
        return self.snapshot_at(self.config.version_for(unit))

    def snapshot_at(self, version: int) -> Snapshot:
        """A snapshot by version; not a copy if it is the oldest one."""
        wanted = version * self._games_per_version
        if wanted == self.oldest.games:
            return self._oldest_snapshot
        if wanted not in self.snapshots():
            raise ValueError(f"snapshot {version} is not at hand after {self.games} games")
        snapshot = self._oldest_snapshot.copy()
        snapshot.apply(self.changes(self.oldest.games, wanted))
        return snapshot

    def changes(self, old: int, new: int) -> Patch:
        """What makes the snapshot after `old` games the one after `new` games."""
        if not self.remembers(old):
            raise ValueError(f"the changes since game {old} are gone")
        return merge([v.patch for v in self._versions if old < v.id.games <= new])

    def remembers(self, games: int) -> bool:
        """Whether the changes since that snapshot are still at hand."""
        if not self._versions:
            return games >= self.oldest.games  # which is the newest too
        return games >= self._versions[0].id.games - self._games_per_version

    def snapshots(self) -> dict[int, SnapshotId]:
        """The snapshots at hand by their number of games, oldest first."""
        later = [v.id for v in self._versions if v.id.games > self.oldest.games]
        return {name.games: name for name in (self.oldest, *later)}

    def size_at(self, games: int) -> int:
        """Rows of the snapshot after so many games."""
        sizes = {v.id.games: v.size for v in self._versions}
        return sizes.get(games, len(self._oldest_snapshot.rows))

    @property
    def rows(self) -> Rows:
        """The state in order of first use; later folds write into it."""
        return self._model.rows

    @property
    def learned(self) -> Rows:
        """The same as readers take it."""
        return self._method.learned(self._task, self.rows)

    def learned_at(self, index: Any) -> Rows:
        """Some of them, by their numbers."""
        return self._method.learned(self._task, self.rows[index])

    def policy_rows(self) -> Rows:
        """The policies as they are now; later folds may write into them."""
        return self._method.policy_rows(self._task, self.rows)

    def digest(self) -> str:
        return digest(self.config.fingerprint, self.games, self.rows)

    def take_records(self) -> bytes:
        """The ledger's records since this was last asked."""
        taken = b"".join(self._records)
        self._records.clear()
        return taken

    def take_unsaved(self) -> Any:
        """The numbers of the rows written since this was last asked, increasing."""
        self.mark_unsaved(self._model.written())
        index = np.flatnonzero(self._unsaved)
        self._unsaved[:] = False
        return index

    def mark_unsaved(self, index: Any) -> None:
        """These rows, too, are in no checkpoint."""
        if len(self._unsaved) < len(self.rows):
            before, self._unsaved = self._unsaved, np.zeros(2 * len(self.rows), bool)
            self._unsaved[: len(before)] = before
        self._unsaved[index] = True

    def checkpoint(self) -> Checkpoint:
        """A copy of everything that is needed to go on from here."""
        now = self.view()
        rows = opaque(now.rows).copy().view(now.rows.dtype)
        snapshots = {v: Policies(p.head, p.rows.copy()) for v, p in now.snapshots.items()}
        return dataclasses.replace(now, rows=rows, snapshots=snapshots)

    def view(self) -> Checkpoint:
        """The same, to be read before the next fold."""
        names = self.snapshots()

        def policies(version: int) -> Policies:
            name = names[version * self._games_per_version]
            return Policies(name.head, lambda: self.snapshot_at(version).rows)

        versions = needed_versions(self.config, self.units)
        return Checkpoint(
            games=self.games,
            head=self.head,
            rows=self.rows,
            kernel=self.config.kernel,
            snapshots={version: policies(version) for version in versions},
        )

    def _up_to_snapshots(self, units: Sequence[Played]) -> Iterator[Sequence[Played]]:
        """The units in pieces, each of which ends at a snapshot or at the end."""
        if self.config.order == "index":
            for n, played in enumerate(units, start=self.units):
                if (played.unit, played.version) != (n, self.config.version_for(n)):
                    raise ValueError(f"unit {played.unit} cannot be folded as unit {n}")
        start = 0
        while start < len(units):
            end = start + self.config.batch - self.units % self.config.batch
            yield units[start:end]
            start = end

    def _take_snapshot(self) -> None:
        name = SnapshotId(self.games, self.head)
        self._versions.append(Version(name, len(self.rows), self._model.changes()))
        self.mark_unsaved(self._versions[-1].patch.index)
        needed = self.config.version_for(self.units) * self._games_per_version
        for version in self._versions:
            if self.oldest.games < version.id.games <= needed:
                self._oldest_snapshot.apply(version.patch)
                self.oldest = version.id
        kept = self.oldest.games if self.keep_from is None else min(self.keep_from, needed)
        while self._versions and self._versions[0].id.games <= kept:
            self._versions.popleft()

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.units, self.head = checkpoint.games // self.config.block, checkpoint.head
        oldest, *later = needed_versions(self.config, self.units)
        name = SnapshotId(oldest * self._games_per_version, checkpoint.snapshots[oldest].head)
        self.oldest, rows = name, checkpoint.snapshots[oldest].rows
        self._oldest_snapshot.apply(Patch(np.arange(len(rows)), rows))
        for version in later:
            name = SnapshotId(version * self._games_per_version, checkpoint.snapshots[version].head)
            before, rows = rows, checkpoint.snapshots[version].rows
            self._versions.append(Version(name, len(rows), difference(before, rows)))
        for first in range(0, len(self.rows), _BLOCK):
            block = slice(first, first + _BLOCK)
            current = self._method.snapshot_rows(self._task, self.rows[block])
            self._model.mark(difference(rows[block], current).index + first)


def _in_pieces(units: Sequence[Played]) -> Iterator[Sequence[Played]]:
    """Units to be folded at once: many small ones, or a big one, which need not be copied then."""
    first, entries = 0, 0
    for n, played in enumerate(units):
        entries += len(played.delta)
        if entries > _PIECE:
            yield units[first : n + 1]
            first, entries = n + 1, 0
    if first < len(units):
        yield units[first:]


def _joined(deltas: Sequence[Delta]) -> Delta:
    if len(deltas) == 1:
        return deltas[0]
    # As bytes: NumPy would compare the dtypes of all deltas, field by field.
    joined = np.concatenate([delta.view(np.uint8) for delta in deltas])
    return joined.view(deltas[0].dtype)


def warm_up(config: Learning) -> None:
    """Have the learner's kernels compiled or loaded, by folding a unit without entries."""
    learner = Learner(config.model_copy(update={"batch": 1, "start": ""}))
    learner.fold(np.zeros(0, config.load_method().delta_dtype(config.task())))
