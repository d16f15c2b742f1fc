"""Trees of the games that can be enumerated, each built once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from rejoinder.games import GAMES
from rejoinder.measure.best_response import Exploitability, both_exploitabilities
from rejoinder.methods.exact.full import FullSolver
from rejoinder.methods.exact.tree import Tree, build_tree


@cache
def tree_of(name: str, play: str = "none", policy: str | None = None) -> Tree:
    """As `play` shows the game; `policy`, where it is another one, looks strategies up."""
    game = GAMES[name]
    rules = game.configurations["micro" if name == "deal" else "standard"]
    return build_tree(game, rules, game.abstraction(play), game.abstraction(policy or play))


@dataclass(frozen=True)
class Solution:
    measured: Exploitability  # in the game as it was shown
    real: Exploitability


@cache
def solved(name: str, variant: str, iterations: int, abstraction: str = "none") -> Solution:
    """What the average strategy of a full-tree solver is worth."""
    solver = FullSolver(tree_of(name, abstraction), variant)
    solver.run(iterations)
    tree = solver.tree
    (found,) = both_exploitabilities(tree.game, tree.rules, tree.policy, [solver.policy()])
    return Solution(measured=found[1], real=found[0])
