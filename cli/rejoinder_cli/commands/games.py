"""`rejoinder games`: what can be trained and played."""

from __future__ import annotations

from rejoinder_cli.output import JsonFlag, Output


def games(as_json: JsonFlag = False) -> None:
    """List the games, their configurations and abstractions, and the shipped configs."""
    from rich.table import Table

    from rejoinder.games import GAMES
    from rejoinder.run.config import shipped_configs

    output = Output(as_json)
    table = Table("game", "title", "players", "configurations", "abstractions")
    for game in GAMES.values():
        configurations = ", ".join(game.configurations)
        abstractions = ", ".join(abstraction.name for abstraction in game.abstractions)
        table.add_row(game.name, game.title, str(game.players), configurations, abstractions)
    output.console.print(table)
    configs = Table("config", "what it is")
    for name, what in shipped_configs().items():
        configs.add_row(name, what)
    output.console.print(configs)
    output.result(
        {
            "games": {
                game.name: {
                    "title": game.title,
                    "players": game.players,
                    "configurations": list(game.configurations),
                    "abstractions": [abstraction.name for abstraction in game.abstractions],
                }
                for game in GAMES.values()
            },
            "configs": shipped_configs(),
        }
    )
