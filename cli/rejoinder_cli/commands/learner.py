"""`rejoinder learner CONFIG`: the learner alone, for workers that run elsewhere."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from rejoinder_cli.commands.train import (
    exposed_metrics,
    graceful_stop,
    print_result,
    result_fields,
    serve_learner,
)
from rejoinder_cli.options import (
    LOOPBACK,
    ConfigArgument,
    GamesOption,
    MetricsHostOption,
    MetricsPortOption,
    MetricsTargetsOption,
    ModeOption,
    PatienceOption,
    RedisOption,
    RunOption,
    SeedOption,
    SetOption,
    exposure,
    needs_workers,
    plan,
)
from rejoinder_cli.output import JsonFlag, Output

_LOOK = 0.5  # seconds between two looks whether to stop


def learner(
    config: ConfigArgument,
    redis: RedisOption = None,
    mode: ModeOption = "ordered",
    patience: PatienceOption = 60.0,
    games: GamesOption = None,
    seed: SeedOption = None,
    run: RunOption = None,
    settings: SetOption = None,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = LOOPBACK,
    metrics_targets: MetricsTargetsOption = None,
    stay: Annotated[
        bool,
        typer.Option("--stay", help="When the run is finished, keep its metrics up until stopped."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Start a run, or go on with it if it is there: safe to be restarted at any time."""
    from rejoinder.run.rundir import RunDir
    from rejoinder_cli.live import live_status

    if redis is None:
        raise ValueError("--redis: a learner needs the URL of a server that its workers can reach")
    needs_workers(mode)
    output = Output(as_json)
    where = exposure(metrics_port, metrics_host, metrics_targets)
    planned = plan(config, mode, redis, games, seed, run, settings)
    directory = RunDir.open_or_create(planned.path, planned.config)
    output.say(f"the run is {directory.id}, in {planned.path}")
    with (
        exposed_metrics(directory, where) as telemetry,
        graceful_stop() as should_stop,
        live_status(output, planned.name) as show,
    ):
        result = serve_learner(
            *(directory, redis, should_stop, show, output),
            mode=mode,
            patience=patience,
            telemetry=telemetry,
        )
        print_result(result, directory, output)
        output.result(result_fields(result) | {"run": str(planned.path), "mode": mode})
        while stay and result.finished and not should_stop():
            time.sleep(_LOOK)
    if not result.finished:
        output.say(f"stopped; to go on: {planned.resume_command('learner')}")
        raise typer.Exit(130)
