"""`rejoinder worker`: one worker process, on this machine or another."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rejoinder_cli.options import (
    LOOPBACK,
    MetricsHostOption,
    MetricsPortOption,
    MetricsTargetsOption,
    RedisOption,
    exposure,
)


def worker(
    redis: RedisOption = None,
    run_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Work on this run only, and leave when it is finished."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Its name in lists (default: host and process).")
    ] = None,
    give_up_after: Annotated[
        float,
        typer.Option(
            min=0, metavar="S", help="Seconds that a lost server may stay away; 0: for ever."
        ),
    ] = 600.0,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = LOOPBACK,
    metrics_targets: MetricsTargetsOption = None,
) -> None:
    """Take leases from a server's queue, play their games, push the deltas; until stopped."""
    if redis is None:
        raise ValueError("--redis: a worker needs the URL of the learner's server")
    from rejoinder_worker.main import serve

    where = exposure(metrics_port, metrics_host, metrics_targets)
    serve(redis, run=run_id, name=name, report=_say, exposure=where, patience=give_up_after)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
