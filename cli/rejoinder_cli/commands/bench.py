"""`rejoinder bench NAME`: speed as a ratio to a peer in the same run."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder_cli.output import JsonFlag, Output

_NAMES = (
    "openspiel, kernel, startup, determinism, runtime, learner, table, gateway, capacity, search, "
    "crowd or forecast."
)


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help=_NAMES)],
    config: Annotated[
        str | None,
        typer.Option(metavar="CONFIG", help="Which config to run (runtime only; default: paper)."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure speed side by side with a peer, such as OpenSpiel's C++ solvers."""
    from rejoinder_bench import run_bench

    output = Output(as_json)
    result = run_bench(name, output.say, config)
    output.result({"bench": name, "ratios": result.ratios, "figures": result.figures})
    if not result.ok:
        output.warn(f"the benchmark {name} found something wrong; see above")
        raise typer.Exit(1)
