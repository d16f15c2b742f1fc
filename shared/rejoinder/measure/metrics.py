"""What is reported about a run at a game index: the table's statistics and its matches.

Measuring reads the table and draws from streams of its own, so it never influences the learner;
the figures are a function of (run config, learner's state, game index).
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rejoinder.games import GAMES
from rejoinder.games.base import Abstraction
from rejoinder.games.contract import kernel_identity
from rejoinder.kernel.masks import mask_table
from rejoinder.measure.agents import opponents, trained_agent
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.measure.match import MATCH_KERNELS, MatchResult, play_match, seated
from rejoinder.methods.exact.tree import Tree, build_tree
from rejoinder.methods.learned import largest_mean_regrets, max_expected_regret
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.table import InfosetTable
from rejoinder.run.config import RunConfig

STATISTICS_ROWS = 2**18  # infosets that statistics are taken of
QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}


def statistics_step(infosets: int) -> int:
    """Statistics take every so many-th infoset, so that those of a big table take no longer."""
    return -(-infosets // STATISTICS_ROWS) or 1


def table_statistics(
    rows: Any, abstraction: Abstraction, infosets: int | None = None
) -> dict[str, Any]:
    """MER, infosets, how their regrets and updates spread, the median policy of each action.

    Of a table with so many infosets the rows may be evenly spaced ones (see `statistics_step`).
    """
    return {
        "mer": max_expected_regret(rows),
        "infosets": len(rows) if infosets is None else infosets,
        "regret": _quantiles(largest_mean_regrets(rows)),
        "updates": _quantiles(rows["updates"]),
        "policy": _median_policy(rows, abstraction.actions),
    }


def exact_exploitability(config: RunConfig, policy_rows: Callable[[], Any]) -> float | None:
    """In the real game, where that is small enough to be enumerated."""
    if not config.load_game().is_enumerable(config.rules) or config.load_abstraction().options:
        return None  # a policy of options cannot be followed move by move
    tree = _tree(config.game, config.rules, config.abstraction)
    return policy_exploitability(tree, config.policy(policy_rows())).exploitability


@functools.lru_cache(maxsize=4)
def _tree(game: str, rules: Any, abstraction: str) -> Tree:
    found = GAMES[game]
    return build_tree(found, rules, policy=found.abstraction(abstraction))


def _quantiles(values: Any) -> dict[str, float]:
    if not len(values):
        return dict.fromkeys(QUANTILES, 0.0)
    found = np.quantile(values, list(QUANTILES.values()))
    return dict(zip(QUANTILES, map(float, found), strict=True))


def _median_policy(rows: Any, actions: tuple[str, ...]) -> dict[str, float]:
    """By action, over the infosets where it is a choice; actions never met are left out."""
    medians = {}
    legal = mask_table(rows["legal"], len(actions))
    choice = legal.sum(axis=1) > 1
    for a, name in enumerate(actions):
        available = choice & legal[:, a]
        if available.any():
            medians[name] = float(np.median(rows["policy"][available, AVERAGE, a]))
    return medians


def play_matches(config: RunConfig, games: int, policy: InfosetTable) -> dict[str, dict[str, Any]]:
    """Against each baseline (in all other seats), by the seed and the game index alone."""
    game = config.load_game()
    agent = trained_agent("trained", config.load_abstraction(), policy, argmax=False)
    template = game.template(config.rules)
    seed = evaluation_seed(config.seed, games)
    found = {}
    for name, opponent in opponents(game).items():
        agents = seated(game, agent, [opponent])
        result, *_ = play_match(game, template, agents, games=config.eval_games, seed=seed)
        found[name] = plain_result(result)
    return found


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
    """As JSON has it: the error where there are deals enough, wins where the game counts them."""
    plain = {"mean_utility": result.mean_utility}
    if math.isfinite(result.utility_error):
        plain["utility_error"] = result.utility_error
    if result.counts_wins:
        plain |= {"win_rate": result.win_rate, "low": result.low, "high": result.high}
        plain["draw_rate"] = result.draws / result.games
    return plain | {"games": result.games}
