"""`rejoinder clean`: remove a run's keys from a server."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder_cli.commands.status import buses
from rejoinder_cli.options import RedisOption
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OptionalRunArgument


def clean(
    run: OptionalRunArgument = None,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="A run by its id, without its directory.")
    ] = None,
    redis: RedisOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if a learner is at work on it.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove what a run has left on a server; its directory is not touched."""
    output = Output(as_json)
    if (run is None) == (run_id is None):
        raise ValueError("name one run: its directory, or its id by --run-id")
    bus = next((bus for bus in buses(run, redis) if run_id in (None, bus.run)), None)
    if bus is None and run_id:
        raise ValueError(f"--run-id: there is no run {run_id} on that server")
    if bus is None:
        output.say("nothing to remove: the run's own server has ended")
        output.result({"run_id": None, "removed": 0})
        return
    if bus.has_learner() and not force:
        raise ValueError(f"a learner is at work on {bus.run}; stop it, or --force")
    removed = bus.clean()
    output.say(f"removed {removed:,} keys of {bus.run}")
    output.result({"run_id": bus.run, "removed": removed})
