"""A trained policy to look things up in: what it says of an infoset, or of a state."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from rejoinder.games import queries
from rejoinder.games.base import Abstraction, States
from rejoinder.kernel.masks import mask_of
from rejoinder.methods.base import Rows
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.methods.rows import opaque
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
    """The policy of a run after so many games, read-only; infosets in order of first use.

    What is asked for is made from the learner's rows, which may be a mapped file: there is no
    object for an infoset that nobody asks for.
    """

    def __init__(self, config: Learning, checkpoint: Checkpoint) -> None:
        self.games = checkpoint.games
        self.abstraction: Abstraction = config.load_abstraction()
        self._config, self._state_rows = config, checkpoint.rows
        self._method, self._task = config.load_method(), config.task()

    @functools.cached_property
    def digest(self) -> str:
        return digest(self._config.fingerprint, self.games, self._state_rows)

    @functools.cached_property
    def policy(self) -> Any:
        """As agents take it."""
        return self._config.policy(self._method.policy_rows(self._task, self._state_rows))

    def __len__(self) -> int:
        return len(self._state_rows)

    def learned(self, index: Any) -> Rows:
        """Infosets as readers take them (see `methods.base.Method`), by their numbers."""
        rows: Rows = opaque(self._state_rows)[index].view(self._state_rows.dtype)
        return self._method.learned(self._task, rows)

    def infoset(self, row: int) -> Infoset:
        return self.infosets(slice(row, row + 1))[0]

    def infosets(self, index: Any) -> list[Infoset]:
        return [_infoset(self.abstraction, row, self.games) for row in self.learned(index)]

    def row_of(self, identifier: str) -> int | None:
        """The row of an infoset by its name, if the policy knows it."""
        if self.abstraction.read_identifier is not None:
            key = self.abstraction.read_identifier(identifier)
            return None if key is None else self._row_of_key(key)
        order, sorted_hashes = self._by_identifier
        wanted = np.uint64(_hash(identifier))
        for place in range(*np.searchsorted(sorted_hashes, [wanted, wanted + np.uint64(1)])):
            row = int(order[place])
            if self.abstraction.identifier(int(self._state_rows["key"][row])) == identifier:
                return row
        return None

    def _row_of_key(self, key: int) -> int | None:
        order, sorted_keys = self._by_key
        place = int(np.searchsorted(sorted_keys, np.uint64(key)))
        if place == len(sorted_keys) or sorted_keys[place] != np.uint64(key):
            return None
        return int(order[place])

    @functools.cached_property
    def _by_key(self) -> tuple[Any, Any]:
        """The rows in the order of their keys, and the keys in that order."""
        order = np.argsort(self._state_rows["key"], kind="stable").astype(np.int32)
        return order, self._state_rows["key"][order]

    @functools.cached_property
    def _by_identifier(self) -> tuple[Any, Any]:
        """The same for hashes of identifiers, where keys cannot be read off them."""
        name = self.abstraction.identifier
        keys = (int(key) for key in self._state_rows["key"])
        hashes = np.fromiter((_hash(name(key)) for key in keys), np.uint64, len(self))
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return order, hashes[order]

    def infoset_at(self, states: States) -> Infoset:
        """That of the player to move; one never met has no visits, and all actions are alike."""
        row = self.row_at(states)
        if row is None:
            return self.unknown_infoset(states)
        return _infoset(self.abstraction, self.learned(slice(row, row + 1))[0], self.games, states)

    def row_at(self, states: States) -> int | None:
        """The row of the infoset of the player to move, if the policy knows it."""
        key = queries.infoset_key(states, self.abstraction.argument())
        return self._row_of_key(int(key))

    def unknown_infoset(self, states: States) -> Infoset:
        """That of the player to move, never met: nothing is known, so everything is alike."""
        row = np.zeros(1, self.learned(slice(0)).dtype)[0]
        argument = self.abstraction.argument()
        row["key"] = queries.infoset_key(states, argument)
        legal = queries.bits(queries.legal_actions(states, argument))
        row["legal"] = mask_of(legal, len(self.abstraction.actions))
        row["policy"][:, legal] = 1 / len(legal)
        return _infoset(self.abstraction, row, self.games, states)


def _hash(identifier: str) -> int:
    return (
        int.from_bytes(hashlib.blake2b(identifier.encode(), digest_size=8).digest(), "little") >> 1
    )


def _infoset(
    abstraction: Abstraction, row: Any, games: int, states: States | None = None
) -> Infoset:
    """A row of the learner's table after so many games, in words; of these states if given."""
    key = int(row["key"])
    described = abstraction.description(key)
    if states is not None:
        described = abstraction.description_at(states, key)
    means = row["regret"] / np.where(row["count"] > 0, row["count"], 1.0)
    return Infoset(
        identifier=abstraction.identifier(key),
        key=f"{key:016x}",
        description=described,
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
