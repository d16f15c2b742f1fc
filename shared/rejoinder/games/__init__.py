"""The games that are there. `find_game` knows them by name: `kuhn`, `leduc`, `deal-medium`, …"""

from __future__ import annotations

from rejoinder.games import deal, kuhn, leduc
from rejoinder.games.base import Abstraction, Game, JsonDict, Rules, States

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
    for stem in sorted(GAMES, key=len, reverse=True):  # a game's name may have dashes, too
        game = GAMES[stem]
        if name == stem:
            return game, next(iter(game.configurations))
        configuration = name.removeprefix(f"{stem}-")
        if configuration != name and configuration in game.configurations:
            return game, configuration
    raise ValueError(f"no game is called {name!r}; there are {', '.join(game_names())}")


__all__ = [
    "GAMES",
    "Abstraction",
    "Game",
    "JsonDict",
    "Rules",
    "States",
    "find_game",
    "game_names",
]
