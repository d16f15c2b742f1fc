"""`rejoinder status RUN` and `rejoinder workers`: how a run is doing, and who works on it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder_cli.commands.forecast import ForecastOption
from rejoinder_cli.forecasts import watcher
from rejoinder_cli.options import RedisOption
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OptionalRunArgument, RunArgument

if TYPE_CHECKING:
    from rejoinder.transport.bus import Bus

_LOOK = 0.5


def status(
    run: RunArgument,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and show it until the run ends.")
    ] = False,
    forecast: ForecastOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how far a run is, how fast, how good, and with which workers."""
    from rejoinder.measure.targets import Target
    from rejoinder.run.rundir import RunDir
    from rejoinder_cli.live import live_status, panel

    output = Output(as_json)
    directory = RunDir.open(run)
    target = Target.parse("--forecast", forecast, directory.config) if forecast else None
    foresee = watcher(directory, target)
    if watch:
        with live_status(output, run.name, foresee) as show:
            while (now := directory.standing()).get("alive"):
                show(now)
                time.sleep(_LOOK)
    now = directory.standing()
    if "games_per_second" in now:
        output.console.print(panel(run.name, now, foresee(now)))
    else:
        output.say(
            f"{run.name}: {now['games']:,} of {now['target']:,} {directory.config.counts}, "
            f"{now['state']}"
        )
    output.result(now | ({"forecast": foresee(now)} if target else {}))


def workers(
    run: OptionalRunArgument = None,
    redis: RedisOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the workers of a run, or of every run on a server, and what each has done."""
    from rich.table import Table

    output = Output(as_json)
    found = {bus.run: bus.workers() for bus in buses(run, redis)}
    table = Table("run", "worker", "host", "games", "leases", "evaluations", "busy", box=None)
    for name, those in found.items():
        for worker, about in those.items():
            busy = about["busy_seconds"] / max(about["up_seconds"], 1e-9)
            table.add_row(
                *(name, worker, f"{about['host']} {about['pid']}", f"{about['games']:,}"),
                *(f"{about['leases']:,}", f"{about['evaluations']:,}", f"{busy:.0%}"),
            )
    if any(found.values()):
        output.console.print(table)
    else:
        output.say("no workers")
    output.result({"runs": found})


def buses(run: Path | None, redis: str | None) -> list[Bus]:
    """The run's place on its server, or those of all runs on a server."""
    from rejoinder.run.rundir import RunDir
    from rejoinder.transport.bus import Bus, runs
    from rejoinder.transport.connection import BusError, connect

    if run is None:
        if redis is None:
            raise ValueError("name a run directory, or a server by --redis")
        client = connect(redis)
        return [Bus(client, name) for name in runs(client)]
    directory = RunDir.open(run)
    url = redis or directory.status().get("redis")
    if url is None:
        raise ValueError(f"{run} does not say which server it uses; name it by --redis")
    if redis is None and url.startswith("unix://") and not Path(url[len("unix://") :]).exists():
        return []  # the run's own server, which has ended with it
    try:
        return [Bus(connect(url), directory.id)]
    except BusError as error:
        raise BusError(
            f"{error}; if the server needs a password, give the URL by --redis"
        ) from None
