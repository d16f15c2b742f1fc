"""The learner's state: the infoset table and the snapshots that games to come are played with.

Invariant (the determinism contract): after n folds the state is a pure function of (run config, n).
Game g is played with snapshot version v(g) = max(0, g // B − L); version v is a copy of the
policies after exactly v·B folds; games are folded strictly by index. Who plays a game, when and how
often cannot be seen from here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.actor import Delta
from rejoinder.cfr.rollout import AVERAGING, fold, policies, row_dtype, with_room
from rejoinder.cfr.table import Table, new_table, table_of
from rejoinder.config import Learning
from rejoinder.rundir import Checkpoint, digest, needed_versions

_FIRST_ROWS = 256  # room in a new table; it grows by itself


class Learner:
    """Folds deltas by game index, and keeps every snapshot as long as a game may need it."""

    def __init__(self, config: Learning, checkpoint: Checkpoint | None = None) -> None:
        abstraction = config.load_abstraction()
        self.config = config
        self.games = 0  # folded so far; also the index of the next game to fold
        self._table = new_table(
            row_dtype(len(abstraction.actions), config.kept_policies), _FIRST_ROWS
        )
        self._snapshots = {0: policies(self._table)}
        self._fold_settings = (
            config.decay,
            AVERAGING[config.averaging],
            np.uint64(abstraction.clamps.never),
            np.uint64(abstraction.clamps.passive),
        )
        if checkpoint:
            self.games = checkpoint.games
            self._table = table_of(checkpoint.rows)
            self._snapshots = {v: table_of(rows) for v, rows in checkpoint.snapshots.items()}

    def policy_for(self, game: int) -> Table:
        """The snapshot that `game` is played with; it must exist by now."""
        return self._snapshots[self.config.version_for(game)]

    def fold(self, delta: Delta) -> None:
        """Add the delta of game number `games`."""
        self._table = with_room(self._table, len(delta))
        fold(self._table, delta, *self._fold_settings)
        self.games += 1
        if self.games % self.config.batch == 0:
            self._snapshots[self.games // self.config.batch] = policies(self._table)
            for version in list(self._snapshots):
                if version < self.config.version_for(self.games):
                    del self._snapshots[version]

    @property
    def rows(self) -> Any:
        """The table's rows in order of first use; later folds write into them."""
        return self._table.rows[: self._table.size[0]]

    def policy(self) -> Table:
        """A copy of the policies as they are now."""
        return policies(self._table)

    def digest(self) -> str:
        return digest(self.config.fingerprint, self.games, self.rows)

    def checkpoint(self) -> Checkpoint:
        """A copy of everything that is needed to go on from here."""
        return Checkpoint(
            games=self.games,
            rows=self.rows.copy(),
            snapshots={
                version: _rows(self._snapshots[version])
                for version in needed_versions(self.config, self.games)
            },
        )


def _rows(table: Table) -> Any:
    return table.rows[: table.size[0]]
