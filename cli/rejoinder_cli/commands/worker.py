"""`rejoinder worker`: one worker process, on this machine or another."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rejoinder_cli.options import RedisOption


def worker(
    redis: RedisOption = None,
    run_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Work on this run only, and leave when it is finished."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Its name in lists (default: host and process).")
    ] = None,
) -> None:
    """Take leases from a server's queue, play their games, push the deltas; until stopped."""
    if redis is None:
        raise ValueError("--redis: a worker needs the URL of the learner's server")
    from rejoinder_worker.main import serve

    serve(redis, run=run_id, name=name, report=_say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
