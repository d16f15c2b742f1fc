"""`rejoinder up CONFIG`: every part as a process of its own, on one machine."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from rejoinder_cli.commands.train import graceful_stop
from rejoinder_cli.options import (
    ConfigArgument,
    GamesOption,
    ModeOption,
    RedisOption,
    RunOption,
    SeedOption,
    SetOption,
    WorkersOption,
    check_server,
    cores,
    overrides,
    read_config,
    resume_command,
    run_path,
)
from rejoinder_cli.output import JsonFlag, Output

_LOOK = 0.25  # seconds between two looks at the status


def up(
    config: ConfigArgument,
    workers: WorkersOption = None,
    mode: ModeOption = "ordered",
    redis: RedisOption = None,
    games: GamesOption = None,
    seed: SeedOption = None,
    run: RunOption = None,
    settings: SetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Start server, learner and workers, keep them alive, and let more workers join."""
    from rejoinder.bus import shown
    from rejoinder.rundir import RunDir
    from rejoinder_cli.live import live_status
    from rejoinder_cli.supervise import Household

    if mode == "sequential":
        raise ValueError("--mode: a learner has workers; sequential is for `rejoinder train`")
    output = Output(as_json)
    changed = overrides(mode, games, seed, settings)
    loaded = read_config(config, mode, changed)
    check_server(redis)
    path = run_path(config, run)
    directory = RunDir.open_or_create(path, loaded)
    with directory.locked():  # nobody else is at it
        directory.withdraw_stop()
    with (
        graceful_stop() as should_stop,
        Household(directory, redis, output.warn) as household,
    ):
        again = [word for text in changed for word in ("--set", text)]
        learner = household.add(
            *("learner", "learner", config, "--run", str(path), "--mode", mode, *again),
            essential=True,
        )
        household.add_workers(cores() if workers is None else workers)
        output.say(
            f"the run is {directory.id}, in {path}\n"
            f"more workers may join: rejoinder worker --redis {shown(household.url)}"
        )
        with live_status(output, Path(config).stem) as show:
            while learner.exit_code != 0 and not (should_stop() or directory.stop_requested()):
                household.tend()
                if status := directory.status():
                    show(status)
                time.sleep(_LOOK)
            show(directory.status())
        household.stop_children()
    status = directory.status()
    finished = status.get("state") == "finished"
    output.say(f"{status.get('games', 0):,} games, {status.get('state', 'stopped')}, in {path}")
    output.result({"run": str(path), "finished": finished, **status})
    if not finished:
        again_command = resume_command("up", config, path, mode, changed, redis, workers)
        output.say(f"to go on: {again_command}")
        raise typer.Exit(130)
