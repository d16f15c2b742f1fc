"""The games that are there. `find_game` knows them by name: `kuhn`, `leduc`, `deal-medium`, …"""

from __future__ import annotations

from rejoinder.games import deal, kuhn, leduc
from rejoinder.games.base import Abstraction, Clamps, Game, JsonDict, Rules, States

GAMES: dict[str, Game] = {game.name: game for game in (deal.GAME, kuhn.GAME, leduc.GAME)}


def game_names() -> list[str]:
    """Every name that `find_game` takes."""
    return [
        name if len(game.configurations) == 1 else f"{name}-{configuration}"
        for name, game in GAMES.items()
        for configuration in game.configurations
    ]


def find_game(name: str) -> tuple[Game, str]:
    """A game and the name of its configuration, from `game` or `game-configuration`."""
    stem, _, configuration = name.partition("-")
    game = GAMES.get(stem)
    if game is not None:
        configuration = configuration or next(iter(game.configurations))
        if configuration in game.configurations:
            return game, configuration
    raise ValueError(f"no game is called {name!r}; there are {', '.join(game_names())}")


__all__ = [
    "GAMES",
    "Abstraction",
    "Clamps",
    "Game",
    "JsonDict",
    "Rules",
    "States",
    "find_game",
    "game_names",
]
