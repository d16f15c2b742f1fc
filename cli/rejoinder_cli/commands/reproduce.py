"""`rejoinder reproduce`: the paper's experiment, and a report that holds it against the paper."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rejoinder_cli.commands.report import report_extra, write_report
from rejoinder_cli.commands.train import (
    graceful_stop,
    prepare,
    print_result,
    result_fields,
    train_with_workers,
)
from rejoinder_cli.options import Mode, SeedOption, WorkersOption, cores, plan
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import open_run

_MODE: Mode = "ordered"
_BOUNDS = 5  # checkpoints, evenly spread, at which exploitability is bounded
_PATIENCE = 60.0


def reproduce(
    game: Annotated[
        str | None,
        typer.Argument(metavar="GAME", help="Whose experiment (default: the paper's, of deal)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 200 games, fewer test games.")
    ] = False,
    workers: WorkersOption = None,
    seed: SeedOption = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run directory (default: runs/reproduce[-quick])."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run there.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run there and start again.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the paper's experiment (Table 1) and report which of its claims come out."""
    with report_extra():
        from rejoinder_cli.report.subject import Effort
    from rejoinder.measure.experiments import find_experiment

    output = Output(as_json)
    path = run or Path("runs") / ("reproduce-quick" if quick else "reproduce")
    experiment = find_experiment(game)
    settings = list(experiment.quick if quick else experiment.settings)
    planned = plan(experiment.config, _MODE, None, None, seed, path, settings)
    directory = prepare(planned, output, resume=resume, overwrite=overwrite)
    with graceful_stop() as should_stop:
        result = train_with_workers(
            *(directory, None, cores() if workers is None else workers),
            *("the paper's experiment", should_stop, output),
            mode=_MODE,
            patience=_PATIENCE,
        )
    print_result(result, directory, output)
    fields = result_fields(result) | {
        "run": str(path),
        "fingerprint": directory.config.fingerprint,
        "mode": _MODE,
        "quick": quick,
    }
    if not result.finished:
        output.say(f"stopped; to go on: {_again(game, path, quick, workers, seed)}")
        output.result(fields)
        raise typer.Exit(130)
    effort = Effort(test_games=500) if quick else Effort(test_games=4_000, bounds=_BOUNDS)
    written = write_report([open_run(path, output)], output, effort=effort, quick=quick)
    if quick:
        output.say("a first look, with a fifth of the games: what it says of claims is not final")
    for judged in written.report.judgements.values():
        for judgement in judged:
            said = f": {judgement.reading.text}" if judgement.reading else ""
            output.say(f"{judgement.verdict:14}  {judgement.claim.text}{said}")
    output.say(f"wrote {written.page} and {len(written.figures)} figures beside it")
    output.result(written.plain() | fields)


def _again(game: str | None, path: Path, quick: bool, workers: int | None, seed: int | None) -> str:
    """What to type to go on, for a shell: the same run, so with all that made it."""
    words = ["rejoinder", "reproduce", *([] if game is None else [game]), "--run", str(path)]
    words += ["--quick"] if quick else []
    words += [] if workers is None else ["--workers", str(workers)]
    words += [] if seed is None else ["--seed", str(seed)]
    return shlex.join([*words, "--resume"])
