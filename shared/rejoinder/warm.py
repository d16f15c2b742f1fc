"""Having a player's kernels at hand before the clock runs: compiled, or loaded from the cache."""

from __future__ import annotations

from rejoinder.actor import Actor
from rejoinder.cfr.policy import policy_dtype
from rejoinder.cfr.table import new_table
from rejoinder.config import RunConfig
from rejoinder.metrics import win_rates


def warm_up_player(config: RunConfig) -> None:
    """Play a game and a match that leave no trace."""
    quick = config.model_copy(update={"rollouts": 1, "eval_games": 2})
    policy = new_table(policy_dtype(len(config.load_abstraction().actions)), 1)
    if config.eval_every:
        win_rates(quick, 0, policy)
    Actor(quick).play(0, policy)
