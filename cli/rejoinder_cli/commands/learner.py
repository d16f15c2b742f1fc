"""`rejoinder learner CONFIG`: the learner alone, for workers that run elsewhere."""

from __future__ import annotations

from pathlib import Path

import typer

from rejoinder_cli.commands.train import graceful_stop, result_fields, serve_learner, tell_result
from rejoinder_cli.options import (
    ConfigArgument,
    GamesOption,
    ModeOption,
    PatienceOption,
    RedisOption,
    RunOption,
    SeedOption,
    SetOption,
    check_server,
    overrides,
    read_config,
    resume_command,
    run_path,
)
from rejoinder_cli.output import JsonFlag, Output


def learner(
    config: ConfigArgument,
    redis: RedisOption = None,
    mode: ModeOption = "ordered",
    patience: PatienceOption = 60.0,
    games: GamesOption = None,
    seed: SeedOption = None,
    run: RunOption = None,
    settings: SetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Start a run, or go on with it if it is there: safe to be restarted at any time."""
    from rejoinder.rundir import RunDir
    from rejoinder_cli.live import live_status

    if redis is None:
        raise ValueError("--redis: a learner needs the URL of a server that its workers can reach")
    if mode == "sequential":
        raise ValueError("--mode: a learner has workers; sequential is for `rejoinder train`")
    output = Output(as_json)
    changed = overrides(mode, games, seed, settings)
    loaded = read_config(config, mode, changed)
    check_server(redis)
    path = run_path(config, run)
    directory = RunDir.open_or_create(path, loaded)
    output.say(f"the run is {directory.id}, in {path}")
    with graceful_stop() as should_stop, live_status(output, Path(config).stem) as show:
        result = serve_learner(
            directory, redis, should_stop, show, output, mode=mode, patience=patience
        )
    tell_result(result, path, output)
    output.result(result_fields(result) | {"run": str(path), "mode": mode})
    if not result.finished:
        again = resume_command("learner", config, path, mode, changed, redis)
        output.say(f"stopped; to go on: {again}")
        raise typer.Exit(130)
