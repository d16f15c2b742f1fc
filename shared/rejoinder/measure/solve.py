"""Solve an enumerable game and say how far from equilibrium the answer is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rejoinder.games import Abstraction, Game
from rejoinder.games.contract import CONCRETE
from rejoinder.measure.exploit import Exploitability, exploitability, policy_exploitability
from rejoinder.methods.exact.full import VARIANTS, FullSolver
from rejoinder.methods.exact.tree import Tree, build_tree
from rejoinder.methods.tabular.sampling import ALGORITHMS, SamplingSolver

SOLVERS = (*VARIANTS, *ALGORITHMS)
"""Names of the algorithms."""


@dataclass(frozen=True)
class Solution:
    """What the average strategy of a solver is worth."""

    measured: Exploitability  # in the game that was solved
    real: Exploitability  # in the real game (the same, without an abstraction)
    seconds: float  # spent in iterations only
    infosets: int


def solve(
    game: Game,
    configuration: str,
    algorithm: str,
    iterations: int,
    *,
    abstraction: Abstraction | None = None,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Solution:
    """Run `iterations` of an algorithm on the game, or on the game as an abstraction shows it."""
    if algorithm not in SOLVERS:
        raise ValueError(f"algorithm: no {algorithm!r}; there are {', '.join(SOLVERS)}")
    if iterations < 1:
        raise ValueError(f"iterations: at least one is needed, not {iterations}")
    rules = game.configurations[configuration]
    tree = enumerate_game(game, configuration, abstraction)
    solver: FullSolver | SamplingSolver
    if algorithm in VARIANTS:
        solver = FullSolver(tree, algorithm)
    else:
        solver = SamplingSolver(
            game, rules, tree.policy, algorithm, infosets=len(tree.form.infosets), seed=seed
        )
    solver.run(0)  # compile before the clock starts
    seconds = _run(solver, iterations, progress)
    if isinstance(solver, SamplingSolver):
        measured = policy_exploitability(tree, solver.policy())
    else:
        measured = exploitability(tree, solver.average_strategy())
    real = measured
    if tree.policy.number != CONCRETE:
        real_tree = build_tree(game, rules, policy=tree.policy)
        real = policy_exploitability(real_tree, solver.policy())
    return Solution(measured, real, seconds, len(tree.form.infosets))


def enumerate_game(game: Game, configuration: str, abstraction: Abstraction | None = None) -> Tree:
    """The tree of a game that is known to be small enough."""
    if configuration not in game.enumerable:
        known = ", ".join(sorted(game.enumerable)) or "none"
        raise ValueError(
            f"{game.name}-{configuration} is too large to enumerate; of its configurations "
            f"these are not: {known}"
        )
    return build_tree(game, game.configurations[configuration], abstraction)


def _run(
    solver: FullSolver | SamplingSolver, iterations: int, progress: Callable[[int], None] | None
) -> float:
    """Run in chunks of about a tenth of a second, so that progress can be shown."""
    seconds, chunk, done = 0.0, 1, 0
    while done < iterations:
        step = min(chunk, iterations - done)
        begin = time.perf_counter()
        solver.run(step)
        spent = time.perf_counter() - begin
        seconds += spent
        done += step
        if progress:
            progress(done)
        if spent < 0.1:
            chunk *= 2
    return seconds
