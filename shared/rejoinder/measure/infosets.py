"""A trained policy to look things up in: what it says of an infoset, or of a state."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from rejoinder.games import queries
from rejoinder.games.base import Abstraction, States
from rejoinder.methods.base import Rows
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.run.checkpoints import Checkpoint, digest
from rejoinder.run.config import Learning


class InfosetAction(BaseModel):
    name: str
    latest: float
    average: float
    regret: float = Field(description="The mean over the updates.")


class Infoset(BaseModel):
    identifier: str
    key: str
    description: dict[str, Any]
    visits: int = Field(description="Updates in training.")
    reach: float = Field(
        description="The sum, over the updates, of the probability that chance and the moves of "
        "the others lead here; MER weights by it."
    )
    actions: list[InfosetAction]
    snapshot: int


class Policy:
    """The policy of a run after so many games, read-only; infosets in order of first use."""

    def __init__(self, config: Learning, checkpoint: Checkpoint) -> None:
        self.games = checkpoint.games
        self.abstraction: Abstraction = config.load_abstraction()
        self.digest = digest(config.fingerprint, checkpoint.games, checkpoint.rows)
        self._rows = config.load_method().learned(config.task(), checkpoint.rows)
        self._config, self._state_rows = config, checkpoint.rows
        self._by_key = np.argsort(self._rows["key"], kind="stable")
        self._sorted_keys = self._rows["key"][self._by_key]

    @property
    def _policy_rows(self) -> Rows:
        return self._config.load_method().policy_rows(self._config.task(), self._state_rows)

    def __len__(self) -> int:
        return len(self._rows)

    def infoset(self, row: int) -> Infoset:
        return _told(self.abstraction, self._rows[row], self.games)

    def infoset_at(self, states: States) -> Infoset:
        """That of the player to move; one never met has no visits, and all actions are alike."""
        row = self.row_at(states)
        return self.unknown_infoset(states) if row is None else self.infoset(row)

    def row_at(self, states: States) -> int | None:
        """The row of the infoset of the player to move, if the policy knows it."""
        key = np.uint64(queries.infoset_key(states, self.abstraction.number))
        place = int(np.searchsorted(self._sorted_keys, key))
        if place == len(self._sorted_keys) or self._sorted_keys[place] != key:
            return None
        return int(self._by_key[place])

    def unknown_infoset(self, states: States) -> Infoset:
        """That of the player to move, never met: nothing is known, so everything is alike."""
        row = np.zeros(1, self._rows.dtype)[0]
        row["key"] = queries.infoset_key(states, self.abstraction.number)
        row["legal"] = queries.legal_actions(states, self.abstraction.number)
        legal = queries.bits(row["legal"])
        row["policy"][:, legal] = 1 / len(legal)
        return _told(self.abstraction, row, self.games)


def _told(abstraction: Abstraction, row: Any, games: int) -> Infoset:
    """A row of the learner's table after so many games, in words."""
    key = int(row["key"])
    means = row["regret"] / np.where(row["count"] > 0, row["count"], 1.0)
    return Infoset(
        identifier=abstraction.identifier(key),
        key=f"{key:016x}",
        description=abstraction.describe(key),
        visits=int(row["updates"]),
        reach=float(row["reach"]),
        actions=[
            InfosetAction(
                name=abstraction.actions[a],
                latest=float(row["policy"][LATEST, a]),
                average=float(row["policy"][AVERAGE, a]),
                regret=float(means[a]),
            )
            for a in queries.bits(row["legal"])
        ],
        snapshot=games,
    )
