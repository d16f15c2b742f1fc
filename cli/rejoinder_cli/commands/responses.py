"""`rejoinder responses RUN`: how a trained agent answers what is demanded of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument, open_run

if TYPE_CHECKING:
    from rejoinder.evaluate.answers import Answers


def responses(
    run: RunArgument,
    games: Annotated[int, typer.Option(min=1, help="Games that it plays against itself.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the deals and of its choices.")] = 1,
    argmax: Annotated[
        bool, typer.Option("--argmax", help="Play the likeliest action instead of a sample.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show how long response phases are, and what is chosen first and later in them."""
    from rejoinder.evaluate.answers import watch

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    game = config.load_game()
    with output.progress("playing against itself", games) as update:
        answers = watch(
            game,
            game.template(config.rules),
            opened.agent(argmax),
            games=games,
            seed=seed,
            progress=update,
        )
    output.say(
        f"{answers.phases:,} response phases in {games:,} games, "
        f"{answers.mean_length:.3f} decisions each"
    )
    output.console.print(_table(answers))
    output.result(_plain(answers))


def _table(answers: Answers) -> Any:
    from rich.table import Table

    table = Table("decision", "times", "chosen")
    for choice in answers.choices:
        shares = [f"{name} {n / choice.times:.1%}" for name, n in choice.chosen.items()]
        table.add_row("first" if choice.first else "later", f"{choice.times:,}", ", ".join(shares))
    return table


def _plain(answers: Answers) -> dict[str, Any]:
    return {
        "games": answers.games,
        "phases": answers.phases,
        "mean_length": answers.mean_length,
        "lengths": answers.lengths,
        "choices": [
            {"first": choice.first, "times": choice.times, "chosen": choice.chosen}
            for choice in answers.choices
        ],
    }
