"""`rejoinder bench NAME`: speed as a ratio to a peer in the same run."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder_cli.output import JsonFlag, Output


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="openspiel, kernel or startup.")],
    as_json: JsonFlag = False,
) -> None:
    """Measure speed side by side with a peer, such as OpenSpiel's C++ solvers."""
    from rejoinder_bench import run_bench

    output = Output(as_json)
    result = run_bench(name, output.say)
    output.result({"bench": name, "ratios": result.ratios, "figures": result.figures})
