"""What a player sees, as numbers: named pieces of a fixed length.

Invariant: they are made from the player's view and from nothing else, so what is hidden from him
cannot be in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games import queries
from rejoinder.games.base import Game, Rules, States
from rejoinder.games.numbers import Pieces

LIMIT = 10_000.0  # no number is beyond it, either way

Vector = np.ndarray[Any, np.dtype[np.float32]]


class Observer:
    """Observes the states of one game under some rules."""

    def __init__(self, game: Game, rules: Rules) -> None:
        if game.observation is None:
            raise ValueError(f"game: {game.name} has no observation as numbers")
        self._game, self._rules, self._observation = game, rules, game.observation
        states = np.zeros(1, game.dtype)
        queries.start(states, game.template(rules), 0)
        self.sizes = {name: len(part) for name, part in self.pieces(states, 0).items()}

    @property
    def size(self) -> int:
        return sum(self.sizes.values())

    def pieces(self, states: States, player: int) -> Pieces:
        return self._observation(self._rules, self._game.view(states, player))

    def vector(self, states: States, player: int) -> Vector:
        """The pieces one after the other."""
        return np.concatenate([np.asarray(p, "f4") for p in self.pieces(states, player).values()])
