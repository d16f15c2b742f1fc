"""Trees of the games that can be enumerated, each built once."""

from __future__ import annotations

from functools import cache

from rejoinder.games import GAMES
from rejoinder.methods.exact.tree import Tree, build_tree


@cache
def tree_of(name: str, play: str = "none", policy: str | None = None) -> Tree:
    """As `play` shows the game; `policy`, where it is another one, looks strategies up."""
    game = GAMES[name]
    rules = game.configurations["micro" if name == "deal" else "standard"]
    return build_tree(game, rules, game.abstraction(play), game.abstraction(policy or play))
