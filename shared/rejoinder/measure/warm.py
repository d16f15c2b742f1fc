"""Having a player's kernels at hand before the clock runs: compiled, or loaded from the cache."""

from __future__ import annotations

from rejoinder.games.base import Game
from rejoinder.games.contract import CONCRETE
from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.measure.metrics import play_matches
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.table import new_table
from rejoinder.run.config import RunConfig


def warm_up_player(config: RunConfig) -> None:
    """Play a game and a match that leave no trace."""
    method = config.load_method()
    quick = config.model_copy(update={"method": method.quick(config.method), "eval_games": 2})
    task = quick.task()
    if config.eval_every:
        play_matches(quick, 0, new_table(method.policy_dtype(task), 1))
    quick.actor().play(0, method.snapshot(task))


def untrained_agents(game: Game) -> list[Agent]:
    """One for each number of actions that a policy may have: code is compiled for each anew.

    Policies of concrete moves are left out where there is an abstraction: hardly a run has one.
    """
    widths = {
        len(abstraction.actions): abstraction
        for abstraction in game.abstractions
        if abstraction.number != CONCRETE or len(game.abstractions) == 1
    }
    return [
        trained_agent("untrained", abstraction, new_table(policy_dtype(width), 1), argmax=False)
        for width, abstraction in widths.items()
    ]
