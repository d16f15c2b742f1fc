"""`rejoinder forecast RUN`: after how many games a run reaches a target, by its fitted curve."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder_cli.forecasts import backtest_in_words, in_words
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument

ForecastOption = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET", help="Say when a target is reached: mer=0.05, or risk-aware=0.88."
    ),
]


def forecast(
    run: RunArgument,
    mer: Annotated[float | None, typer.Option(help="A maximum expected regret to get to.")] = None,
    win_rate: Annotated[
        list[str] | None,
        typer.Option(metavar="OPPONENT=RATE", help="A win rate to get to; may be repeated."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Forecast when a run reaches a target, with its error and a backtest."""
    from rejoinder.measure.targets import MER, Target, tell
    from rejoinder.run.rundir import RunDir

    output = Output(as_json)
    targets = [] if mer is None else [Target.of("--mer", MER, mer)]
    rates = [Target.parse("--win-rate", text) for text in win_rate or []]
    if not targets + rates:
        raise ValueError("name a target: --mer 0.05, or --win-rate risk-aware=0.88")
    directory = RunDir.open(run)
    for target in rates:
        target.check("--win-rate", directory.config, mer=False)
    records, status = directory.metrics(), directory.standing()
    told = [tell(records, target, status) for target in targets + rates]
    for one in told:
        output.say(in_words(one))
        output.say(backtest_in_words(one))
    output.result(
        {"run": str(run), "at": status["games"], "forecasts": [one.plain() for one in told]}
    )
