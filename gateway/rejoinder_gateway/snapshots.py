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

from rejoinder.games import queries
from rejoinder.measure.infosets import Infoset, Policy
from rejoinder.methods.base import Rows
from rejoinder.methods.learned import largest_mean_regrets
from rejoinder.methods.tabular.table import Table, table_of
from rejoinder.run.checkpoints import Checkpoint
from rejoinder.run.config import RunConfig

_ANSWER_BYTES = 4 * 2**20  # of answers kept for a snapshot: thousands

Sort = Literal["visits", "regret", "identifier"]


@dataclass(frozen=True)
class Query:
    """Which infosets, in which order."""

    search: str = ""
    min_visits: int = 0
    sort: Sort = "visits"
    descending: bool = True


class Snapshot(Policy):
    """The policies of a run after so many games, with what makes many questions quick."""

    def __init__(self, config: RunConfig, checkpoint: Checkpoint) -> None:
        super().__init__(config, checkpoint)
        self._answers: OrderedDict[str, bytes] = OrderedDict()  # the latest last
        self._answer_bytes = 0

    @property
    def rows(self) -> Rows:
        """Of the learner's table; for reading."""
        return self._rows

    @functools.cached_property
    def policy(self) -> Table:
        """As agents take it."""
        return table_of(self._policy_rows)

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

    def find(self, query: Query, offset: int, limit: int) -> tuple[int, list[Infoset]]:
        """How many infosets match, and a page of them."""
        rows = np.flatnonzero(self._rows["updates"] >= query.min_visits)
        if query.search:
            wanted = query.search.lower()
            rows = np.array([r for r in rows.tolist() if wanted in self._texts[r]], np.int64)
        order = self._ranks(query.sort)[rows]
        rows = rows[np.argsort(-order if query.descending else order, kind="stable")]
        return len(rows), [self.infoset(r) for r in rows[offset : offset + limit].tolist()]

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
