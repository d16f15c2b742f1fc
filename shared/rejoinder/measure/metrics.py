"""What is reported about a run at a game index: the table's statistics and the win rates.

Measuring reads the table and draws from streams of its own, so it never influences the learner;
the figures are a function of (run config, learner's state, game index).
"""

from __future__ import annotations

import functools
import hashlib
import math
from typing import Any

import numpy as np

from rejoinder.games import GAMES
from rejoinder.games.base import Abstraction
from rejoinder.games.contract import kernel_identity
from rejoinder.measure.agents import opponents, trained_agent
from rejoinder.measure.exploit import policy_exploitability
from rejoinder.measure.match import MATCH_KERNELS, MatchResult, play_match
from rejoinder.methods.exact.tree import Tree, build_tree
from rejoinder.methods.learned import largest_mean_regrets, max_expected_regret
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.table import Table, table_of
from rejoinder.run.config import RunConfig

QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}


def table_statistics(rows: Any, abstraction: Abstraction) -> dict[str, Any]:
    """MER, infosets, how their regrets and updates spread, the median policy of each action."""
    return {
        "mer": max_expected_regret(rows),
        "infosets": len(rows),
        "regret": _quantiles(largest_mean_regrets(rows)),
        "updates": _quantiles(rows["updates"]),
        "policy": _median_policy(rows, abstraction.actions),
    }


def exact_exploitability(config: RunConfig, policy_rows: Any) -> float | None:
    """In the real game, where that is small enough to be enumerated."""
    if not config.load_game().is_enumerable(config.rules):
        return None
    tree = _tree(config.game, config.rules, config.abstraction)
    return policy_exploitability(tree, table_of(policy_rows)).exploitability


@functools.lru_cache(maxsize=4)
def _tree(game: str, rules: Any, abstraction: str) -> Tree:
    found = GAMES[game]
    return build_tree(found, rules, policy=found.abstraction(abstraction))


def _quantiles(values: Any) -> dict[str, float]:
    return {
        name: float(np.quantile(values, q)) if len(values) else 0.0 for name, q in QUANTILES.items()
    }


def _median_policy(rows: Any, actions: tuple[str, ...]) -> dict[str, float]:
    """By action, over the infosets where it is a choice; actions never met are left out."""
    medians = {}
    choice = rows["legal"] & (rows["legal"] - np.uint64(1)) != 0
    for a, name in enumerate(actions):
        available = choice & ((rows["legal"] >> np.uint64(a)) & np.uint64(1) == 1)
        if available.any():
            medians[name] = float(np.median(rows["policy"][available, AVERAGE, a]))
    return medians


def win_rates(config: RunConfig, games: int, policy: Table) -> dict[str, dict[str, Any]]:
    """Against each baseline, by the seed and the game index alone."""
    game = config.load_game()
    agent = trained_agent("trained", config.load_abstraction(), policy, argmax=False)
    template = game.template(config.rules)
    seed = evaluation_seed(config.seed, games)
    return {
        name: plain_result(
            play_match(game, template, agent, opponent, games=config.eval_games, seed=seed)
        )
        for name, opponent in opponents(game).items()
    }


@functools.cache
def _evaluation_kernel(game: str) -> str:
    return kernel_identity(GAMES[game].dtype, MATCH_KERNELS)


def evaluation_kernel(config: RunConfig) -> str:
    """The version of the kernels that matches of this game are compiled from."""
    return _evaluation_kernel(config.game)


def evaluation_seed(seed: int, games: int) -> int:
    """Evaluations of one run draw from streams that have nothing in common."""
    scattered = hashlib.sha256(f"evaluation {seed} {games}".encode()).digest()
    return int.from_bytes(scattered[:8], "little")


def plain_result(result: MatchResult) -> dict[str, Any]:
    """A match result as JSON has it; one pair of games tells nothing of the error."""
    several = math.isfinite(result.utility_error)
    return {
        "win_rate": result.win_rate,
        "low": result.low,
        "high": result.high,
        "draw_rate": result.draws / result.games,
        "mean_utility": result.mean_utility,
        **({"utility_error": result.utility_error} if several else {}),
        "games": result.games,
    }
