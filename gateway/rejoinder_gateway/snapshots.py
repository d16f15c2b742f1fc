"""A checkpoint as the gateway reads it: infosets by identifier, and as an agent plays them.

A snapshot never changes once it is loaded, so whatever is made from it can be kept until it is
dropped: the order of keys, visits and regrets, an array each, and the texts that a search looks at.
Those are a line of text for each infoset, so only the first `SEARCHED` that were met have one. Of
answers the latest are kept.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rejoinder.games import queries
from rejoinder.measure.infosets import Infoset, Policy
from rejoinder.methods.base import Rows
from rejoinder.methods.learned import largest_mean_regrets
from rejoinder.run.checkpoints import Checkpoint
from rejoinder.run.config import RunConfig

SEARCHED = 100_000  # infosets that a search looks at: the first that were met
_BLOCK = 2**16  # infosets that are read at once
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
        """All infosets as readers take them."""
        return self.learned(slice(None))

    def make_index(self) -> None:
        """Make what finds an infoset by a state or by its name: all keys are sorted for it."""
        _ = self._by_key
        if self.abstraction.read_identifier is None:
            _ = self._by_identifier

    def answer(self, identifier: str) -> bytes | None:
        """The infoset as JSON, kept for the next who asks: the fast path of a policy query."""
        made = self._answers.get(identifier)
        if made is not None:
            self._answers.move_to_end(identifier)
            return made
        row = self.row_of(identifier)
        if row is None:
            return None
        made = self._answers[identifier] = self.infoset(row).model_dump_json().encode()
        self._answer_bytes += len(made)
        while self._answer_bytes > _ANSWER_BYTES:
            self._answer_bytes -= len(self._answers.popitem(last=False)[1])
        return made

    def find(self, query: Query, offset: int, limit: int) -> tuple[int, list[Infoset]]:
        """How many infosets match, and a page of them."""
        rows = np.flatnonzero(self._visits >= query.min_visits)
        if query.search:
            wanted = query.search.lower()
            rows = rows[rows < SEARCHED]
            rows = np.array([r for r in rows.tolist() if wanted in self._texts[r]], np.int64)
        order = self._ranks(query.sort)[rows]
        rows = rows[np.argsort(-order if query.descending else order, kind="stable")]
        return len(rows), self.infosets(rows[offset : offset + limit])

    def visits(self, row: int) -> int:
        return int(self._visits[row])

    def _ranks(self, sort: Sort) -> Any:
        if sort == "visits":
            return self._visits
        return self._regrets if sort == "regret" else self._alphabetical

    @functools.cached_property
    def _visits(self) -> Any:
        return self._of_all(lambda rows: rows["updates"], np.int64)

    @functools.cached_property
    def _regrets(self) -> Any:
        return self._of_all(largest_mean_regrets, np.float64)

    def _of_all(self, read: Callable[[Rows], Any], dtype: Any) -> Any:
        """A number for each infoset, without all of them in memory as readers take them."""
        made = np.empty(len(self), dtype)
        for first in range(0, len(self), _BLOCK):
            block = slice(first, first + _BLOCK)
            made[block] = read(self.learned(block))
        return made

    @functools.cached_property
    def _texts(self) -> list[str]:
        """What a search looks at: the identifier, the actions and the description."""
        return [self._text(row) for row in self.learned(slice(SEARCHED))]

    def _text(self, row: Any) -> str:
        key = int(row["key"])
        actions = (self.abstraction.actions[a] for a in queries.bits(row["legal"]))
        description = self.abstraction.description(key).items()
        told = (self.abstraction.identifier(key), *actions, *(f"{k}={v}" for k, v in description))
        return " ".join(told).lower()

    @functools.cached_property
    def _alphabetical(self) -> Any:
        """The place of each row by identifier; by key where there are too many to be named.

        Identifiers that are keys in hexadecimal digits have the order of the keys.
        """
        if self.abstraction.read_identifier is not None or len(self) > SEARCHED:
            order = self._by_key[0]
        else:
            name, keys = self.abstraction.identifier, self._state_rows["key"].tolist()
            order = np.array(sorted(range(len(keys)), key=lambda row: name(keys[row])), np.int32)
        places = np.empty(len(self), np.int32)
        places[order] = np.arange(len(self), dtype=np.int32)
        return places
