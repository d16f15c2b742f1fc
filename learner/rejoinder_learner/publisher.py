"""The publisher: keeps on the server the snapshots that workers are going to ask for.

The chain. The first snapshot goes out complete, every later one as a patch on the one published
before it. When the patches since the last complete one weigh as much as the table, the chain begins
anew: the oldest snapshot still needed goes out complete, the later ones as patches, and everything
older is dropped. So the cost of publishing follows what has changed, and a worker that comes new
reads at most about twice the table. A small snapshot of which nearly all rows have changed goes out
complete by itself; older ones are dropped when nobody needs them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from rejoinder.methods.base import Rows
from rejoinder.methods.patch import Patch
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus
from rejoinder.transport.wire import Codec, SnapshotPart
from rejoinder_learner.state import Learner
from rejoinder_learner.telemetry import LearnerMetrics

_ALTOGETHER = 0.9  # of the rows
PART_ROWS = 2**15  # rows in one message at most: memory for it is found again and again


class Publisher:
    """Publishes one learner's snapshots."""

    def __init__(self, bus: Bus, codec: Codec, telemetry: LearnerMetrics | None = None) -> None:
        self._bus = bus
        self._codec = codec
        self._telemetry = telemetry or LearnerMetrics(bus.run)
        self.sent_bytes = 0
        self._published: list[SnapshotId] = []  # the chain, oldest first
        self._complete: set[SnapshotId] = set()  # those of them that are no patches
        self._abandoned: set[int] = set()  # games of the snapshots of chains before
        self._damaged = False  # what was published is perhaps no longer there
        self._patched = 0  # rows in the patches since the last complete one

    def start_again(self, learner: Learner) -> None:
        """The server may have lost everything, or the learner has gone back: begin a new chain."""
        self._learner = learner
        self._abandoned |= self._bus.snapshots()  # those of a learner before this one, too
        self._published.clear()
        self._complete.clear()

    def send_again(self) -> None:
        """Something is gone, or damaged: all that is still needed goes out again."""
        self._damaged = True

    def publish(self, games: int) -> SnapshotId:
        """See to it that the snapshot after so many games is on the server; returns its name."""
        wanted = self._learner.snapshots()[games]
        if wanted in self._published and not self._damaged:
            return wanted
        begin = time.perf_counter()
        base = max((name for name in self._published if name.games < games), default=None)
        is_newest = base is not None and base == self._published[-1]
        if base is None or self._damaged or not (is_newest and self._learner.remembers(base.games)):
            self._begin_chain(wanted)
        elif self._has_changed_altogether(base, wanted):
            self._send_complete(wanted)
            self._drop_outdated()
        elif self._patched > len(self._learner.rows):
            self._begin_chain(wanted)
        else:
            self._send_patch(wanted, base)
        newest = self._published[-1]
        self._learner.keep_from = newest.games
        self._bus.name_newest(newest)
        config = self._learner.config
        version = newest.games // (config.batch * config.block)
        self._telemetry.published(version, time.perf_counter() - begin)
        return wanted

    def publish_for_evaluation(self, name: SnapshotId, rows: Rows) -> None:
        """Put policies on the server that are in nobody's chain."""
        parts = self._parts(name, None, _all(rows), policies=True)
        self._bus.publish_for_evaluation(name.games, parts)

    def _begin_chain(self, wanted: SnapshotId) -> None:
        """The oldest snapshot that is still needed, complete; the later ones as patches on it."""
        oldest = self._learner.oldest
        needed = {name for name in self._published if name.games >= oldest.games} | {wanted}
        self._abandoned |= {name.games for name in self._published}
        self._published, self._complete, self._damaged = [], set(), False
        self._send_complete(oldest)
        for name in sorted(needed - {oldest}):
            self._send_patch(name, self._published[-1])
        self._drop_outdated()

    def _has_changed_altogether(self, base: SnapshotId, name: SnapshotId) -> bool:
        """Whether nearly all rows differ from those of the one before, and all of it is small."""
        size = self._learner.size_at(name.games)
        if size > PART_ROWS:
            return False
        return len(self._learner.changes(base.games, name.games).index) > _ALTOGETHER * size

    def _send_complete(self, name: SnapshotId) -> None:
        config = self._learner.config
        snapshot = self._learner.snapshot_at(name.games // (config.batch * config.block))
        self._bus.publish(name, self._parts(name, None, _all(snapshot.rows)))
        self._published = sorted([*self._published, name])
        self._complete.add(name)
        self._patched = 0

    def _drop_outdated(self) -> None:
        """What is older than the newest complete snapshot that is as old as one still needed."""
        oldest = self._learner.oldest.games
        first = max((name for name in self._complete if name.games <= oldest), default=None)
        if first is not None:
            self._abandoned |= {name.games for name in self._published if name < first}
            self._published = [name for name in self._published if name >= first]
            self._complete.intersection_update(self._published)
        self._bus.drop_snapshots(self._abandoned - {name.games for name in self._published})
        self._abandoned.clear()

    def _send_patch(self, name: SnapshotId, base: SnapshotId) -> None:
        patch = self._learner.changes(base.games, name.games)
        self._bus.publish(name, self._parts(name, base, patch))
        self._published = sorted([*self._published, name])
        self._patched += len(patch.index)

    def _parts(
        self, name: SnapshotId, base: SnapshotId | None, patch: Patch, policies: bool = False
    ) -> Iterator[bytes]:
        size = len(patch.rows) if base is None else self._learner.size_at(name.games)
        parts = max(1, -(-len(patch.index) // PART_ROWS))
        for part in range(parts):
            piece = slice(part * PART_ROWS, (part + 1) * PART_ROWS)
            rows = Patch(patch.index[piece], patch.rows[piece])
            made = SnapshotPart(name, base, part, parts, size, policies, rows)
            message = self._codec.encode(made)
            self.sent_bytes += len(message)
            yield message


def _all(rows: Rows) -> Patch:
    return Patch(np.arange(len(rows)), rows)
