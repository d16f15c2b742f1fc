"""What the API calls the games and their configurations."""

from __future__ import annotations

from rejoinder.games import find_game, game_names
from rejoinder.games.base import Game, Rules


def full_name(game: Game, configuration: str) -> str:
    """The name by which `find_game` knows the configuration."""
    wanted = game.name, configuration
    return next(name for name in game_names() if _found(name) == wanted)


def configuration_of(game: Game, rules: Rules) -> str | None:
    """The full name of the configuration with these rules, if there is one."""
    for name, known in game.configurations.items():
        if known == rules:
            return full_name(game, name)
    return None


def _found(name: str) -> tuple[str, str]:
    game, configuration = find_game(name)
    return game.name, configuration
