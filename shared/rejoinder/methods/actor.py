"""The actor plays training games: what a worker does for each game of its lease.

Invariant: a delta is a pure function of (run config, policy, game index). The actor keeps nothing
from one game to the next but memory to write into.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from rejoinder.kernel.rng import STREAM
from rejoinder.methods.tabular.rollout import entry_dtype, play_game
from rejoinder.methods.tabular.table import Table
from rejoinder.run.config import Learning

Delta: TypeAlias = np.ndarray[Any, np.dtype[Any]]  # of `entry_dtype`, one entry a decision


class Actor:
    """Plays the games of one run config."""

    def __init__(self, config: Learning) -> None:
        game, abstraction = config.load_game(), config.load_abstraction()
        self._template = game.template(config.rules)
        self._states = np.zeros(2, game.dtype)
        self._streams = np.zeros(3, STREAM)
        self._entries = np.zeros(
            game.max_decisions(config.rules), entry_dtype(len(abstraction.actions))
        )
        self._settings = (
            game.players,
            game.starts,
            abstraction.number,
            config.rollouts,
            config.epsilon,
            config.common_luck,
        )
        self._seed = config.seed

    def play(self, game: int, policy: Table) -> Delta:
        """The delta of training game `game`; valid until the next call."""
        decisions = play_game(
            self._template,
            policy,
            self._states,
            self._streams,
            self._seed,
            game,
            *self._settings,
            self._entries,
        )
        return self._entries[:decisions]
