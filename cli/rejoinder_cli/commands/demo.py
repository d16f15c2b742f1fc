"""`rejoinder demo`: a small agent, trained in seconds, and the page to play it on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rejoinder_cli.commands.gateway import gateway_extra, serve_gateway
from rejoinder_cli.commands.train import graceful_stop, print_result, train_with_workers
from rejoinder_cli.options import cores, free_port
from rejoinder_cli.output import JsonFlag, Output

_CONFIG = {"games": 400, "method.rollouts": 10, "eval_every": 40, "checkpoint_every": 100}


def demo(
    run: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the agent is, or will be.")
    ] = Path("runs/demo"),
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of the page; 0: any free one.")
    ] = 8642,
    as_json: JsonFlag = False,
) -> None:
    """Train a small agent of Monopoly Deal, once, and serve the page to look around and play."""
    from rejoinder.run.config import load_config
    from rejoinder.run.rundir import RunDir

    with gateway_extra():
        from rejoinder_gateway.settings import Settings
    output = Output(as_json)
    port = free_port("--port", port)  # before anything is trained in vain
    directory = RunDir.open_or_create(run, load_config("paper", _CONFIG))
    if max(directory.checkpoint_games(), default=0) < directory.config.target:
        with graceful_stop() as should_stop:
            result = train_with_workers(
                *(directory, None, cores(), "training a small agent", should_stop, output),
                mode="ordered",
                patience=60.0,
            )
        print_result(result, directory, output)
        if not result.finished:
            raise typer.Exit(130)
    serve_gateway(Settings.read(os.environ, {"runs": run.parent, "port": port}), output)
