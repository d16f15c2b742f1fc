"""A checkpoint as the gateway reads it: infosets by identifier, and as an agent plays them.

A snapshot never changes once it is loaded, so whatever is made from it can be kept: the index and
the texts that a search looks at, a line for each infoset, until the snapshot itself is dropped; of
answers, which are bigger, the latest.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rejoinder.cfr.policy import AVERAGE, LATEST
from rejoinder.cfr.rollout import largest_mean_regrets, policies
from rejoinder.cfr.table import Table, table_of
from rejoinder.checkpoints import Checkpoint, Rows, digest
from rejoinder.config import RunConfig
from rejoinder.games import queries
from rejoinder.games.base import Abstraction, States
from rejoinder_gateway.schemas import Infoset, InfosetAction, ResponseAnalysis

_ANSWER_BYTES = 4 * 2**20  # of answers kept for a snapshot: thousands

Sort = Literal["visits", "regret", "identifier"]


@dataclass(frozen=True)
class Query:
    """Which infosets, in which order."""

    search: str = ""
    min_visits: int = 0
    sort: Sort = "visits"
    descending: bool = True


class Snapshot:
    """The policies of a run after so many games, read-only."""

    def __init__(self, config: RunConfig, checkpoint: Checkpoint) -> None:
        self.games = checkpoint.games
        self.analysis: ResponseAnalysis | None = None  # once somebody has asked for it
        self.abstraction: Abstraction = config.load_abstraction()
        self.digest = digest(config.fingerprint, checkpoint.games, checkpoint.rows)
        self._rows = checkpoint.rows
        self._by_key = np.argsort(self._rows["key"], kind="stable")
        self._sorted_keys = self._rows["key"][self._by_key]
        self._answers: OrderedDict[str, bytes] = OrderedDict()  # the latest last
        self._answer_bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Rows:
        """Of the learner's table; for reading."""
        return self._rows

    @functools.cached_property
    def policy(self) -> Table:
        """As agents take it."""
        return policies(table_of(self._rows))

    def answer(self, identifier: str) -> bytes | None:
        """The infoset as JSON, kept for the next who asks: the fast path of a policy query."""
        made = self._answers.get(identifier)
        if made is not None:
            self._answers.move_to_end(identifier)
            return made
        row = self._index.get(identifier)
        if row is None:
            return None
        made = self._answers[identifier] = self.infoset(row).model_dump_json().encode()
        self._answer_bytes += len(made)
        while self._answer_bytes > _ANSWER_BYTES:
            self._answer_bytes -= len(self._answers.popitem(last=False)[1])
        return made

    def infoset(self, row: int) -> Infoset:
        return self._told(self._rows[row])

    def unknown_infoset(self, states: States) -> Infoset:
        """That of the player to move, never met: nothing is known, so everything is alike."""
        row = np.zeros(1, self._rows.dtype)[0]
        row["key"] = queries.infoset_key(states, self.abstraction.number)
        row["legal"] = queries.legal_actions(states, self.abstraction.number)
        legal = queries.bits(row["legal"])
        row["policy"][:, legal] = 1 / len(legal)
        return self._told(row)

    def _told(self, row: Any) -> Infoset:
        key = int(row["key"])
        means = row["regret"] / np.where(row["count"] > 0, row["count"], 1.0)
        return Infoset(
            identifier=self.abstraction.identifier(key),
            key=f"{key:016x}",
            description=self.abstraction.describe(key),
            visits=int(row["updates"]),
            reach=float(row["reach"]),
            actions=[
                InfosetAction(
                    name=self.abstraction.actions[a],
                    latest=float(row["policy"][LATEST, a]),
                    average=float(row["policy"][AVERAGE, a]),
                    regret=float(means[a]),
                )
                for a in queries.bits(row["legal"])
            ],
            snapshot=self.games,
        )

    def find(self, query: Query, offset: int, limit: int) -> tuple[int, list[Infoset]]:
        """How many infosets match, and a page of them."""
        rows = np.flatnonzero(self._rows["updates"] >= query.min_visits)
        if query.search:
            wanted = query.search.lower()
            rows = np.array([r for r in rows.tolist() if wanted in self._texts[r]], np.int64)
        order = self._ranks(query.sort)[rows]
        rows = rows[np.argsort(-order if query.descending else order, kind="stable")]
        return len(rows), [self.infoset(r) for r in rows[offset : offset + limit].tolist()]

    def row_at(self, states: States) -> int | None:
        """The row of the infoset of the player to move, if the policy knows it."""
        key = np.uint64(queries.infoset_key(states, self.abstraction.number))
        place = int(np.searchsorted(self._sorted_keys, key))
        if place == len(self._sorted_keys) or self._sorted_keys[place] != key:
            return None
        return int(self._by_key[place])

    def visits(self, row: int) -> int:
        return int(self._rows["updates"][row])

    @functools.cached_property
    def identifiers(self) -> list[str]:
        return [self.abstraction.identifier(int(key)) for key in self._rows["key"].tolist()]

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {identifier: row for row, identifier in enumerate(self.identifiers)}

    @functools.cached_property
    def _texts(self) -> list[str]:
        """What a search looks at: the identifier, the actions and the description."""
        return [
            " ".join(
                (
                    identifier,
                    *(self.abstraction.actions[a] for a in queries.bits(legal)),
                    *(f"{k}={v}" for k, v in self.abstraction.describe(int(key)).items()),
                )
            ).lower()
            for identifier, key, legal in zip(
                self.identifiers,
                self._rows["key"].tolist(),
                self._rows["legal"].tolist(),
                strict=True,
            )
        ]

    def _ranks(self, sort: Sort) -> Any:
        if sort == "visits":
            return self._rows["updates"]
        return self._regrets if sort == "regret" else self._alphabetical

    @functools.cached_property
    def _regrets(self) -> Any:
        return largest_mean_regrets(self._rows)

    @functools.cached_property
    def _alphabetical(self) -> Any:
        """The place of each row when identifiers are in alphabetical order."""
        order = sorted(range(len(self)), key=self.identifiers.__getitem__)
        places = np.empty(len(self), np.int64)
        places[order] = np.arange(len(self))
        return places
