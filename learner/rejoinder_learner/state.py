"""The learner's state: the infoset table, the ledger's head, and the snapshots of games to come.

Invariant (the determinism contract): after n folds the state is a pure function of (run config, n).
Game g is played with snapshot version v(g) = max(0, g // B − L); version v is a copy of the
policies after exactly v·B folds; games are folded strictly by index. Who plays a game, when and how
often cannot be seen from here.

Snapshots cost what has changed, not what there is: the learner keeps the policies of the oldest
version that a game to come may need as a table, and every later version as a patch on the one
before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rejoinder.methods.actor import Delta
from rejoinder.methods.tabular.patch import Patch, apply_patch, difference, merge, take_rows
from rejoinder.methods.tabular.policy import policy_dtype
from rejoinder.methods.tabular.rollout import AVERAGING, entry_dtype, fold, policies, row_dtype
from rejoinder.methods.tabular.table import Table, new_table, table_of, with_room
from rejoinder.run.checkpoints import Checkpoint, Policies, digest, needed_versions
from rejoinder.run.config import Learning
from rejoinder.run.ledger import SnapshotId, genesis, head_of, record

_FIRST_ROWS = 256  # room in a new table; it grows by itself


class Played(NamedTuple):
    """A training game as it comes from whoever played it."""

    game: int
    version: int  # of the snapshot it was played with
    delta: Delta


class Version(NamedTuple):
    """A snapshot as the changes since the one before."""

    id: SnapshotId
    size: int  # rows of the whole table
    patch: Patch


class Learner:
    """Folds deltas by game index, and keeps every snapshot as long as a game may need it."""

    def __init__(self, config: Learning, checkpoint: Checkpoint | None = None) -> None:
        abstraction = config.load_abstraction()
        actions = len(abstraction.actions)
        self.config = config
        self.games = 0  # folded so far; also the index of the next game to fold
        self.head = genesis(config.fingerprint)
        self.oldest = SnapshotId(0, self.head)  # the oldest snapshot that a game may still need
        self.keep_from: int | None = None  # changes since then are kept too, for a publisher
        self._oldest_table = new_table(policy_dtype(actions), _FIRST_ROWS)
        self._versions: deque[Version] = deque()
        self._table = new_table(row_dtype(actions, config.kept_policies), _FIRST_ROWS)
        self._touched: list[Any] = []  # rows written since the newest snapshot
        self._records: list[bytes] = []
        self._fold_settings = (
            config.decay,
            AVERAGING[config.averaging],
            np.uint64(abstraction.clamps.never),
            np.uint64(abstraction.clamps.passive),
        )
        if checkpoint:
            self._restore(checkpoint)
        elif config.start:
            raise ValueError("the policy that the run starts from is missing")

    def fold(self, delta: Delta) -> None:
        """Add the delta of game number `games`."""
        self.fold_all([Played(self.games, self.config.version_for(self.games), delta)])

    def fold_all(self, games: Sequence[Played]) -> None:
        """Add deltas one after the other; by index they must be the next ones."""
        for chunk in self._up_to_snapshots(games):
            # As bytes: NumPy would compare the dtypes of all deltas, field by field.
            parts = [played.delta.view(np.uint8) for played in chunk]
            entries = np.concatenate(parts).view(chunk[0].delta.dtype)
            self._table = with_room(self._table, len(entries))
            touched = np.empty(len(entries), np.int64)
            fold(self._table, entries, *self._fold_settings, touched)
            self._touched.append(touched)
            for played in chunk:
                self._records.append(record(self.head, *played))
                self.head = head_of(self._records[-1])
            self.games += len(chunk)
            if self.games % self.config.batch == 0:
                self._take_snapshot()

    def policy_for(self, game: int) -> Table:
        """The snapshot that `game` is played with; it must exist by now."""
        return self.policy_at(self.config.version_for(game))

    def policy_at(self, version: int) -> Table:
        """The policies of a snapshot; not a copy if it is the oldest one."""
        wanted = version * self.config.batch
        if wanted == self.oldest.games:
            return self._oldest_table
        if wanted not in self.snapshots():
            raise ValueError(f"snapshot {version} is not at hand after {self.games} games")
        table = table_of(_rows(self._oldest_table))
        return apply_patch(table, self.changes(self.oldest.games, wanted))

    def changes(self, old: int, new: int) -> Patch:
        """What makes the snapshot after `old` games the one after `new` games."""
        if not self.remembers(old):
            raise ValueError(f"the changes since game {old} are gone")
        return merge([v.patch for v in self._versions if old < v.id.games <= new])

    def remembers(self, games: int) -> bool:
        """Whether the changes since that snapshot are still at hand."""
        if not self._versions:
            return games >= self.oldest.games  # which is the newest too
        return games >= self._versions[0].id.games - self.config.batch

    def snapshots(self) -> dict[int, SnapshotId]:
        """The snapshots at hand by their number of games, oldest first."""
        later = [v.id for v in self._versions if v.id.games > self.oldest.games]
        return {name.games: name for name in (self.oldest, *later)}

    def size_at(self, games: int) -> int:
        """Rows of the snapshot after so many games."""
        sizes = {v.id.games: v.size for v in self._versions}
        return sizes.get(games, int(self._oldest_table.size[0]))

    @property
    def rows(self) -> Any:
        """The table's rows in order of first use; later folds write into them."""
        return _rows(self._table)

    def policy(self) -> Table:
        """A copy of the policies as they are now."""
        return policies(self._table)

    def policy_rows(self) -> Any:
        """The same as plain rows."""
        return take_rows(self._table, np.arange(self._table.size[0])).rows

    def digest(self) -> str:
        return digest(self.config.fingerprint, self.games, self.rows)

    def take_records(self) -> bytes:
        """The ledger's records since this was last asked."""
        taken = b"".join(self._records)
        self._records.clear()
        return taken

    def checkpoint(self) -> Checkpoint:
        """A copy of everything that is needed to go on from here."""
        names = self.snapshots()
        return Checkpoint(
            games=self.games,
            head=self.head,
            rows=self.rows.copy(),
            snapshots={
                version: Policies(
                    names[version * self.config.batch].head, _rows(self.policy_at(version)).copy()
                )
                for version in needed_versions(self.config, self.games)
            },
        )

    def _up_to_snapshots(self, games: Sequence[Played]) -> Iterator[Sequence[Played]]:
        """The games in pieces, each of which ends at a snapshot or at the end."""
        if self.config.order == "index":
            for n, played in enumerate(games, start=self.games):
                if (played.game, played.version) != (n, self.config.version_for(n)):
                    raise ValueError(f"game {played.game} cannot be folded as game {n}")
        start = 0
        while start < len(games):
            end = start + self.config.batch - self.games % self.config.batch
            yield games[start:end]
            start = end

    def _take_snapshot(self) -> None:
        touched = np.unique(np.concatenate(self._touched))
        self._touched.clear()
        name = SnapshotId(self.games, self.head)
        self._versions.append(Version(name, len(self.rows), take_rows(self._table, touched)))
        needed = self.config.version_for(self.games) * self.config.batch
        for version in self._versions:
            if self.oldest.games < version.id.games <= needed:
                self._oldest_table = apply_patch(self._oldest_table, version.patch)
                self.oldest = version.id
        kept = self.oldest.games if self.keep_from is None else min(self.keep_from, needed)
        while self._versions and self._versions[0].id.games <= kept:
            self._versions.popleft()

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.games, self.head = checkpoint.games, checkpoint.head
        self._table = table_of(checkpoint.rows)
        oldest, *later = needed_versions(self.config, checkpoint.games)
        before = checkpoint.snapshots[oldest]
        self.oldest = SnapshotId(oldest * self.config.batch, before.head)
        self._oldest_table = table_of(before.rows)
        for version in later:
            after = checkpoint.snapshots[version]
            name = SnapshotId(version * self.config.batch, after.head)
            patch = difference(before.rows, after.rows)
            self._versions.append(Version(name, len(after.rows), patch))
            before = after
        current = take_rows(self._table, np.arange(len(checkpoint.rows)))
        self._touched.append(difference(before.rows, current.rows).index)


def warm_up(config: Learning) -> None:
    """Have the learner's kernels compiled or loaded, by folding a game without decisions."""
    learner = Learner(config.model_copy(update={"batch": 1, "start": ""}))
    learner.fold(np.zeros(0, entry_dtype(len(config.load_abstraction().actions))))


def _rows(table: Table) -> Any:
    return table.rows[: table.size[0]]
