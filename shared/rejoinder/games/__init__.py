"""The games that are there. `find_game` knows them by name: `kuhn`, `leduc`, `deal-medium`, …

Every package in this folder is a game and has a `GAME`; modules are what games have in common. So
adding a game is adding its package.
"""

from __future__ import annotations

import importlib
import pkgutil

from rejoinder.games.base import Abstraction, Clamps, Game, JsonDict, Rules, States


def _discover() -> dict[str, Game]:
    packages = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    games = [importlib.import_module(f"{__name__}.{package}").GAME for package in packages]
    return {game.name: game for game in games}


GAMES: dict[str, Game] = _discover()
(DEFAULT_GAME,) = (name for name, game in GAMES.items() if game.is_default)


def game_names() -> list[str]:
    """Every name that `find_game` takes."""
    return [
        name if len(game.configurations) == 1 else f"{name}-{configuration}"
        for name, game in GAMES.items()
        for configuration in game.configurations
    ]


def find_game(name: str) -> tuple[Game, str]:
    """A game and the name of its configuration, from `game` or `game-configuration`."""
    if name in GAMES:
        return GAMES[name], next(iter(GAMES[name].configurations))
    for stem, game in GAMES.items():  # names may have dashes too
        configuration = name.removeprefix(f"{stem}-")
        if configuration != name and configuration in game.configurations:
            return game, configuration
    raise ValueError(f"no game is called {name!r}; there are {', '.join(game_names())}")


__all__ = [
    "DEFAULT_GAME",
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
