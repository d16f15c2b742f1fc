"""The learner alone: how many games a second it can take in, and what publishing a big table costs.

`games_per_second`: a `LearnerService`, unchanged, on a core of its own, finds the deltas of the
paper's games waiting on a real server, in messages of a lease each. It decodes, checks and folds
them, keeps the ledger, publishes the snapshots and leases the next games. It never finds more than
the contract's window of (L + 1)·B games waiting: more cannot be there in a real run either.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rejoinder.actor import Actor, Delta
from rejoinder.bus import Bus, connect
from rejoinder.bus.server import EmbeddedServer
from rejoinder.config import RunConfig, load_config
from rejoinder.ledger import SnapshotId
from rejoinder.rundir import RunDir
from rejoinder.wire import Codec, Deltas
from rejoinder_bench import Result
from rejoinder_learner.main import LearnerService
from rejoinder_learner.state import Learner

_GAMES = 10_000
_LEASE = 10  # games in a message
_ROUNDS = 5


class _Window(Bus):
    """A bus on which everything is waiting already, and that gives it out as a real run would."""

    def receive(self, seconds: float, count: int = 64) -> list[bytes]:
        return super().receive(seconds, min(count, self.most))

    most = 4


def record(config: RunConfig) -> tuple[list[bytes], str]:
    """What workers would send for all games of a run, and the digest that it leads to."""
    actor, learner, codec = Actor(config), Learner(config), Codec(config)
    messages = []
    while learner.games < config.games:
        first = learner.games
        name = learner.snapshots()[config.version_for(first) * config.batch]
        deltas = []
        for game in range(first, min(first + _LEASE, config.games)):
            deltas.append(actor.play(game, learner.policy_for(game)).copy())
            learner.fold(deltas[-1])
        counts = tuple(map(len, deltas))
        messages.append(
            codec.encode(Deltas(first, name, "recorded", 0.1, counts, np.concatenate(deltas)))
        )
    return messages, learner.digest()
