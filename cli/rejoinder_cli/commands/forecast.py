"""`rejoinder forecast RUN`: when a run reaches a target, by its fitted curve."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder_cli.forecasts import backtest_in_words, in_words
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument

ForecastOption = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET",
        help="Say when a target is reached: mer=0.05, exploitability=0.01, or random=0.88.",
    ),
]


def forecast(
    run: RunArgument,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET...",
            help="mer=0.05; exploitability=0.01 where it is exact; OPPONENT=0.88 for a win rate, "
            "or the mean utility where the game counts no wins.",
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Forecast when a run reaches a target, with its error and a backtest."""
    from rejoinder.measure.targets import Target, tell
    from rejoinder.run.rundir import RunDir

    output = Output(as_json)
    directory = RunDir.open(run)
    wanted = [Target.parse("TARGET", text, directory.config) for text in targets]
    records, status = directory.metrics(), directory.standing()
    counts = directory.config.counts
    told = [tell(records, target, status) for target in wanted]
    for one in told:
        output.say(in_words(one, counts))
        output.say(backtest_in_words(one, counts))
    output.result(
        {
            "run": str(run),
            "at": status["games"],
            "counts": counts,
            "forecasts": [one.plain() for one in told],
        }
    )
