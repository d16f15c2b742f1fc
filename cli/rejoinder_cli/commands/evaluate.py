"""`rejoinder eval RUN`: how well a trained agent plays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import MOST_SAMPLES, OpenRun, RunArgument, SearchOption, open_run

if TYPE_CHECKING:
    from rejoinder.measure.agents import Agent


def evaluate(
    run: RunArgument,
    opponent: Annotated[
        str, typer.Option(metavar="random|risk-aware|RUN", help="Who it plays against.")
    ] = "random",
    games: Annotated[
        int, typer.Option(min=1, help="Test games; in pairs, so an odd number plays one more.")
    ] = 4_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the deals and of the players' choices.")] = 1,
    starts: Annotated[
        Literal["alternate", "agent", "opponent"], typer.Option(help="Who begins.")
    ] = "alternate",
    argmax: Annotated[
        bool, typer.Option("--argmax", help="Play the likeliest action instead of a sample.")
    ] = False,
    search: SearchOption = 0,
    opponent_search: Annotated[
        int,
        typer.Option(
            metavar="SAMPLES",
            min=0,
            max=MOST_SAMPLES,
            help="The same for the opponent, whoever it is.",
        ),
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Play a trained agent against a baseline or another run."""
    from rejoinder.measure.match import play_match
    from rejoinder.measure.metrics import plain_result
    from rejoinder.measure.search import searching

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    game = config.load_game()
    other = searching(find_opponent(opponent, opened, argmax, output), game, opponent_search)
    with output.progress(f"against {other.name}", games) as update:
        result = play_match(
            game,
            game.template(config.rules),
            opened.agent(argmax, search),
            other,
            games=games,
            seed=seed,
            starts=starts,
            progress=update,
        )
    output.say(
        f"{run}{_thinking(search)} against {other.name}{_thinking(opponent_search)}: {result}"
    )
    output.result(
        {
            **plain_result(result),
            "opponent": opponent,
            "starts": starts,
            "seed": seed,
            "search": search,
            "opponent_search": opponent_search,
        }
    )


def _thinking(samples: int) -> str:
    return f" (search, {samples:,} samples a move)" if samples else ""


def find_opponent(name: str, opened: OpenRun, argmax: bool, output: Output) -> Agent:
    from rejoinder.measure.agents import opponents

    config = opened.run.config
    known = opponents(config.load_game())
    if name in known:
        return known[name]
    if not Path(name).exists():
        raise ValueError(f"--opponent: {name!r} is neither a run nor one of {', '.join(known)}")
    other = open_run(Path(name), output)
    theirs = other.run.config
    if theirs.game != config.game:
        raise ValueError(f"--opponent: {name} plays {theirs.game}, not {config.game}")
    if theirs.rules != config.rules:
        output.warn(f"{name} was trained under other rules; the match uses those of the first run")
    return other.agent(argmax)
