"""`rejoinder up CONFIG`: every part as a process of its own, on one machine."""

from __future__ import annotations

import shlex
import time
from typing import Annotated, Any

import typer

from rejoinder_cli.commands.train import AFTER_THIS_GAME, graceful_stop
from rejoinder_cli.options import (
    ConfigArgument,
    GamesOption,
    ModeOption,
    RedisOption,
    RunOption,
    SeedOption,
    SetOption,
    WorkersOption,
    cores,
    free_port,
    needs_workers,
    plan,
    usual_port,
)
from rejoinder_cli.output import JsonFlag, Output

GATEWAY, LEARNER, PROMETHEUS = "gateway", "learner", "prometheus"
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
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Start this machine's Prometheus, too.")
    ] = False,
    prometheus_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, help="Of Prometheus (default: 9090 if it is free, else any)."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Start server, learner, workers and gateway, keep them alive, and let more workers join."""
    from rejoinder.run.rundir import TARGETS, RunDir
    from rejoinder.telemetry import forget_targets
    from rejoinder.transport.connection import shown
    from rejoinder_cli.live import live_status
    from rejoinder_cli.prometheus import LAST_SCRAPE, PORT, find_prometheus, prometheus_command
    from rejoinder_cli.supervise import HOPELESS, Household

    needs_workers(mode)
    output = Output(as_json)
    planned = plan(config, mode, redis, games, seed, run, settings)
    path = planned.path
    port = free_port("--port", port) if gateway else port
    program = find_prometheus() if prometheus else None
    scraper = usual_port("--prometheus-port", prometheus_port, PORT) if program else 0
    directory = RunDir.open_or_create(path, planned.config)
    began = time.time()
    with directory.locked():  # nobody else is at it
        directory.withdraw_stop()
        forget_targets(path / TARGETS)
    finished = False
    with (
        graceful_stop(lambda: "stopping" if finished else AFTER_THIS_GAME) as should_stop,
        Household(directory, redis, output.warn, path / TARGETS) as household,
    ):
        stay = ["--stay"] if program else []  # its last figures are to be scraped
        learner = household.add(LEARNER, "learner", *planned.arguments(), *stay, essential=True)
        household.add_workers(cores() if workers is None else workers)
        output.say(
            f"the run is {directory.id}, in {path}\n"
            f"more workers may join: rejoinder worker --redis {shown(household.url)} "
            f"--run-id {directory.id} --metrics-targets {shlex.quote(str(path / TARGETS))}"
        )
        if gateway:
            served = household.add(
                GATEWAY, "gateway", "--runs", str(path.parent), "--port", str(port)
            )
            output.say(f"in some seconds the page and the API: http://127.0.0.1:{port}")
        if program:
            household.add_program(PROMETHEUS, prometheus_command(program, path, scraper))
            taken = prometheus_port is None and scraper != PORT
            why = f" ({PORT} is taken: by another Prometheus?)" if taken else ""
            output.say(f"Prometheus: http://127.0.0.1:{scraper}{why}")
        status: dict[str, Any] = {}
        with live_status(output, planned.name) as show:
            while learner.exit_code != 0 and not (should_stop() or directory.stop_requested()):
                household.tend()
                said = directory.status()
                if said.get("time", 0.0) > began:  # not the last word of a learner before
                    show(status := said)
                if status.get("state") == "finished":
                    break
                time.sleep(_LOOK)
            show(directory.status())
        staying = [GATEWAY, PROMETHEUS, *([LEARNER] if status.get("state") == "finished" else [])]
        household.stop_children(but=staying if program else [GATEWAY])
        status = directory.status()
        finished = status.get("state") == "finished"
        if program and finished and not gateway:
            time.sleep(LAST_SCRAPE)
        if gateway and finished and not should_stop():
            output.say(f"finished; the page stays at http://127.0.0.1:{port} until Ctrl-C")
            while not should_stop() and served.exit_code not in HOPELESS:
                household.tend()
                time.sleep(_LOOK)
    done, state = status.get("games", 0), status.get("state", "stopped")
    output.say(f"{done:,} {planned.config.counts}, {state}, in {path}")
    output.result({"run": str(path), "finished": finished, **status})
    if not finished:
        more = ["--prometheus"] if prometheus else []
        output.say(f"to go on: {planned.resume_command('up', workers, more)}")
        raise typer.Exit(130)
