"""The deltas of a run, recorded once: what workers send, without the playing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.wire import Codec, Deltas
from rejoinder_learner.state import Learner


@dataclass(frozen=True)
class Recording:
    """All games of a run."""

    config: RunConfig
    deltas: list[Any]  # by game index
    snapshots: dict[int, SnapshotId]  # by games
    digest: str  # that they lead to

    def messages(self, lease: int, seconds: float) -> Iterator[bytes]:
        """What workers send with so many games a lease, which they say took so many seconds.

        The size of a lease must divide the batch, as all its games have one snapshot.
        """
        codec, games = Codec(self.config), self.config.games
        for first in range(0, games, lease):
            deltas = self.deltas[first : min(first + lease, games)]
            name = self.snapshots[self.config.version_for(first) * self.config.batch]
            counts = tuple(len(delta) for delta in deltas)
            yield codec.encode(
                Deltas(first, name, "recorded", seconds, counts, np.concatenate(deltas))
            )


def record(config: RunConfig) -> Recording:
    """Play and fold all games of a run."""
    actor, learner = config.actor(), Learner(config)
    deltas, snapshots = [], dict(learner.snapshots())
    while learner.games < config.games:
        deltas.append(actor.play(learner.units, learner.snapshot_for(learner.units)).copy())
        learner.fold(deltas[-1])
        if learner.games % config.batch == 0:
            snapshots |= learner.snapshots()
    return Recording(config, deltas, snapshots, learner.digest())
