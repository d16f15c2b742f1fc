"""`rejoinder up CONFIG`: every part as a process of its own, on one machine."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Annotated

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

GATEWAY = "gateway"
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
    gateway: Annotated[
        bool,
        typer.Option(help="Serve the page and the API, also when the run is finished."),
    ] = True,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of the gateway; 0: any free one.")
    ] = 8642,
    as_json: JsonFlag = False,
) -> None:
    """Start server, learner, workers and gateway, keep them alive, and let more workers join."""
    from rejoinder.bus import shown
    from rejoinder.rundir import RunDir
    from rejoinder_cli.live import live_status
    from rejoinder_cli.supervise import HOPELESS, Household

    if mode == "sequential":
        raise ValueError("--mode: a learner has workers; sequential is for `rejoinder train`")
    output = Output(as_json)
    changed = overrides(mode, games, seed, settings)
    loaded = read_config(config, mode, changed)
    check_server(redis)
    port = _free_port(port) if gateway else port
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
        if gateway:
            served = household.add(
                GATEWAY, "gateway", "--runs", str(path.parent), "--port", str(port)
            )
            output.say(f"in some seconds the page and the API: http://127.0.0.1:{port}")
        with live_status(output, Path(config).stem) as show:
            while learner.exit_code != 0 and not (should_stop() or directory.stop_requested()):
                household.tend()
                if status := directory.status():
                    show(status)
                time.sleep(_LOOK)
            show(directory.status())
        household.stop_children(but=[GATEWAY])
        status = directory.status()
        finished = status.get("state") == "finished"
        if gateway and finished and not should_stop():
            output.say(f"finished; the page stays at http://127.0.0.1:{port} until Ctrl-C")
            while not should_stop() and served.exit_code not in HOPELESS:
                household.tend()
                time.sleep(_LOOK)
    output.say(f"{status.get('games', 0):,} games, {status.get('state', 'stopped')}, in {path}")
    output.result({"run": str(path), "finished": finished, **status})
    if not finished:
        again_command = resume_command("up", config, path, mode, changed, redis, workers)
        output.say(f"to go on: {again_command}")
        raise typer.Exit(130)


def _free_port(wanted: int) -> int:
    """That port of this machine, or any for 0; it must be free."""
    try:
        with socket.create_server(("127.0.0.1", wanted)) as found:
            port: int = found.getsockname()[1]
            return port
    except OSError as error:
        raise ValueError(f"--port: {wanted} cannot be had: {error.strerror}") from None
