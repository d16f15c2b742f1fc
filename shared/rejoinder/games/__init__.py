"""The games that are there. `find_game` knows them by name: `kuhn`, `leduc`, `deal-medium`, …

Every package in this folder is a game and has a `GAME`; modules are what games have in common. So
adding a game is adding its package.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from rejoinder.games.base import Abstraction, Game, JsonDict, Rules, States


def discover(folders: Iterable[str], parent: str) -> dict[str, Game]:
    """The games of all packages in some folders, which are packages of `parent`, by name.

    A mistake in one of them is a ValueError that names the package: games are found while modules
    are imported, so that it would stop every command, and the commands tell a ValueError in a line.
    """
    games: dict[str, Game] = {}
    packages: dict[str, str] = {}  # by the name of the game
    for package in sorted(found.name for found in pkgutil.iter_modules(folders) if found.ispkg):
        game = _game_of(f"{parent}.{package}")
        for name, other in games.items():
            both = f"the packages {packages[name]} and {package} in {parent}"
            if name == game.name:
                raise ValueError(f"{both} are both called {name!r}: change the `name` of one GAME")
            if other.dtype == game.dtype:  # by which compiled code chooses a game's functions
                raise ValueError(f"{both} have states of one dtype: rename a field of one STATE")
        games[game.name], packages[game.name] = game, package
    return games


def _game_of(package: str) -> Game:
    """The game of a package, which is imported; what `implement` and `Game` refuse names it."""
    try:
        found = getattr(importlib.import_module(package), "GAME", None)
    except Exception as error:
        kind = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"the package {package} makes no game: {kind}{error}") from error
    if not isinstance(found, Game):
        raise ValueError(f"the package {package} has no GAME, which every package there needs")
    return found


GAMES: dict[str, Game] = discover(__path__, __name__)
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
    for stem in sorted(GAMES, key=len, reverse=True):  # a game's name may have dashes, too
        game = GAMES[stem]
        if name == stem:
            return game, next(iter(game.configurations))
        configuration = name.removeprefix(f"{stem}-")
        if configuration != name and configuration in game.configurations:
            return game, configuration
    raise ValueError(f"no game is called {name!r}; there are {', '.join(game_names())}")


__all__ = [
    "DEFAULT_GAME",
    "GAMES",
    "Abstraction",
    "Game",
    "JsonDict",
    "Rules",
    "States",
    "discover",
    "find_game",
    "game_names",
]
