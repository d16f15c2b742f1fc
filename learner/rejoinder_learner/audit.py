"""Audits: play some of the games again and see whether workers told the truth.

A delta is a pure function of (config, snapshot, game index), so one game played here settles it.
Which games are audited cannot be foreseen by a worker, and does not influence what is learned.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from rejoinder.run.config import RunConfig
from rejoinder_learner.inbox import Arrived
from rejoinder_learner.state import Learner


class Auditor:
    """Audits a share of the games before they are folded."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._actor = config.actor()
        self._random = random.SystemRandom()
        self.audited = 0

    def find_mismatch(self, learner: Learner, games: Sequence[Arrived]) -> Arrived | None:
        """The first of the games to be folded next that is audited and wrong.

        What the model calls impossible is always audited.
        """
        for arrived in games:
            suspected = learner.flaw(arrived.played.delta) is not None
            if (suspected or self._is_chosen()) and self.is_wrong(learner, arrived):
                return arrived
        return None

    def _is_chosen(self) -> bool:
        return self._config.audit > 0 and self._random.random() < self._config.audit

    def is_wrong(self, learner: Learner, arrived: Arrived) -> bool:
        """Whether the game gives another delta; not known if its snapshot is no longer here."""
        played = arrived.played
        games = played.version * self._config.batch * self._config.block
        if games not in learner.snapshots():
            return False
        self.audited += 1
        delta = self._actor.play(played.unit, learner.snapshot_at(played.version))
        return delta.tobytes() != played.delta.tobytes()
