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
        list[str] | None,
        typer.Option(
            metavar="random|…|RUN",
            help="Who it plays against (random by default). One takes all other seats; repeated, "
            "they take them in order.",
        ),
    ] = None,
    games: Annotated[
        int,
        typer.Option(
            min=1, help="Test games, rounded up: each deal is played once from every seat."
        ),
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
            help="The same for the opponents, whoever they are.",
        ),
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Play a trained agent against baselines or other runs."""
    from rejoinder.measure.match import play_match, seated
    from rejoinder.measure.metrics import plain_result
    from rejoinder.measure.search import searching

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    game = config.load_game()
    names = opponent or ["random"]
    others = [
        searching(find_opponent(name, opened, argmax, output), game, opponent_search)
        for name in names
    ]
    agents = seated(game, opened.agent(argmax, search), others)
    against = " and ".join(other.name for other in others)
    with output.progress(f"against {against}", games) as update:
        results = play_match(
            game,
            game.template(config.rules),
            agents,
            games=games,
            seed=seed,
            starts=starts,
            progress=update,
        )
    output.say(
        f"{run}{_thinking(search)} against {against}{_thinking(opponent_search)}: {results[0]}"
    )
    if game.players > 2:
        for agent, result in zip(agents[1:], results[1:], strict=True):
            output.say(f"{agent.name}: {result.utility_in_words}")
    output.result(
        {
            **plain_result(results[0]),
            "unit": game.utility_unit,
            "opponents": [
                {"name": agent.name, **plain_result(result)}
                for agent, result in zip(agents[1:], results[1:], strict=True)
            ],
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
