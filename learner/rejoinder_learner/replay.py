"""Folded games, played again in the order of the ledger and with the snapshots that they had.

A delta is a pure function of (config, snapshot, game), so a game that is played again must give the
bytes whose hash is in the ledger. By index a game's snapshot follows from its number, and the
learner has it at hand. In unordered mode the ledger names it, and it may be older than what the
learner keeps for itself: snapshots are then kept here until the last game that needs them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rejoinder.methods.base import Snapshot
from rejoinder.run.checkpoints import Checkpoint
from rejoinder.run.config import Learning
from rejoinder.run.ledger import RECORD, record
from rejoinder_learner.state import Learner, Played


class Replay:
    """Plays games of a ledger again; `chosen` are all that will be asked for."""

    def __init__(self, config: Learning, records: Any, chosen: Iterable[range]) -> None:
        self._config, self._records = config, records
        self._in_order = config.order == "index"
        self._actor = config.actor()
        self._snapshots: dict[int, Snapshot] = {}  # unordered mode: by version
        self._last_use: dict[int, int] = {}
        if not self._in_order:
            versions = records["version"]
            self._last_use = {int(versions[n]): n for games in chosen for n in games}
        self.learner: Learner

    def begin(self, checkpoint: Checkpoint | None) -> None:
        """Go to a checkpoint, or to the beginning; unordered mode may only go forward."""
        self.learner = Learner(self._config, checkpoint)
        self._keep_snapshots()

    def play(self, n: int) -> Played | None:
        """The n-th game folded; None if its snapshot is not at hand. Valid until the next one."""
        if self._in_order:
            version = self._config.version_for(n)
            return Played(n, version, self._actor.play(n, self.learner.snapshot_at(version)))
        unit, version = int(self._records["unit"][n]), int(self._records["version"][n])
        snapshot = self._snapshots.get(version)
        if snapshot is None:
            return None
        return Played(unit, version, self._actor.play(unit, snapshot))

    def is_as_recorded(self, n: int, played: Played) -> bool:
        """Whether the delta is the one that the ledger names."""
        made = np.frombuffer(record(b"", *played), RECORD)[0]
        return bool((made["delta"] == self._records["delta"][n]).all())

    def fold(self, played: Played) -> None:
        self.learner.fold_all([played])
        self._keep_snapshots()

    def forget_snapshots(self) -> None:
        """What follows is not what the ledger tells of."""
        self._snapshots.clear()

    def _keep_snapshots(self) -> None:
        if self._in_order:
            return
        units = self.learner.units
        for version in [v for v in self._snapshots if self._last_use[v] < units]:
            del self._snapshots[version]
        for taken in self.learner.snapshots():
            version = taken // (self._config.batch * self._config.block)
            if version not in self._snapshots and self._last_use.get(version, -1) >= units:
                self._snapshots[version] = self.learner.snapshot_at(version).copy()
