"""Learners in one process, without a run directory."""

from __future__ import annotations

from typing import Any

from rejoinder.run.config import RunConfig, make_config
from rejoinder_learner.state import Learner


def config(
    game: str, method: str, *, rules: str = "default", abstraction: str = "default", **settings: Any
) -> RunConfig:
    """A short run by a method, in units of a few iterations."""
    return make_config(
        {
            "game": game,
            "rules": rules,
            "abstraction": abstraction,
            "method": {"name": method, "iterations": 20, **settings},
            "games": 1_000,
            **({} if method == "full" else {"batch": 5}),
            "eval_every": 0,
            "checkpoint_every": 400,
        }
    )


def learn(config: RunConfig, units: int, learner: Learner | None = None) -> Learner:
    """Play and fold so many units, or go on until there are so many."""
    learner, actor = learner or Learner(config), config.actor()
    for unit in range(learner.units, units):
        learner.fold(actor.play(unit, learner.snapshot_for(unit)))
    return learner
