"""`rejoinder track RUN`: the figures of a run in Weights & Biases or TensorBoard."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument


def track(
    run: RunArgument,
    to: Annotated[str, typer.Option(metavar="NAME", help="wandb or tensorboard.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Stay until the run is finished, or Ctrl-C.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Hand the evaluations of a run, by game index, to an experiment tracker; each of them once."""
    from rejoinder.run.rundir import TRACKING, RunDir
    from rejoinder_cli import tracking

    output = Output(as_json)
    directory = RunDir.open(run)
    with _until_stopped() as should_stop:
        logged = tracking.track(directory, to, follow=follow, should_stop=should_stop)
    output.say(f"{logged} evaluations to {to}; its files are in {directory.path / TRACKING}")
    output.result({"run": str(run), "to": to, "logged": logged})


@contextmanager
def _until_stopped() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask for an end after what is there has been handed over."""
    asked = False

    def ask(*_: Any) -> None:
        nonlocal asked
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
