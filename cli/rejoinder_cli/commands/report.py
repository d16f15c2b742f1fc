"""`rejoinder report RUN…`: a page with the figures of a run, or of several side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OpenRun, open_run

if TYPE_CHECKING:
    from rejoinder_cli.report.subject import Effort
    from rejoinder_cli.report.write import Written

COMPARISON = "comparison"  # folder of a report on several runs, beside the first of them
_BOUNDS = 5  # checkpoints at which --exploitability looks for a bound


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run directories.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the report (default: the run; of several runs: comparison/ beside).",
        ),
    ] = None,
    test_games: Annotated[
        int, typer.Option(min=2, help="Games of each match at each kept checkpoint.")
    ] = 2_000,
    exploitability: Annotated[
        bool,
        typer.Option(
            "--exploitability",
            help="Look for lower bounds at some checkpoints where it cannot be exact; slow.",
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write report.html and its figures: one run, or several compared."""
    with report_extra():
        from rejoinder_cli.report.subject import Effort
    output = Output(as_json)
    opened = [open_run(run, output) for run in runs]
    folder = out or (runs[0] if len(runs) == 1 else runs[0].parent / COMPARISON)
    effort = Effort(test_games, bounds=_BOUNDS if exploitability else 0)
    written = write_report(opened, output, folder, effort)
    output.say(f"wrote {written.page} and {len(written.figures)} figures beside it")
    output.result(
        written.plain()
        | {
            "runs": [str(run) for run in runs],
            "games": [o.checkpoint.games for o in opened],
            "digests": [o.digest for o in opened],
        }
    )


def write_report(
    opened: list[OpenRun],
    output: Output,
    folder: Path | None = None,
    effort: Effort | None = None,
    quick: bool = False,
) -> Written:
    """Write the report on some runs; of one into its own directory by default."""
    with report_extra():
        from rejoinder_cli.report.subject import Effort
        from rejoinder_cli.report.write import write
    return write(opened, folder or opened[0].run.path, effort or Effort(), output, quick)


@contextmanager
def report_extra() -> Iterator[None]:
    """What is missing without the extra `report` is said in a line."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the report needs {error.name}: install it by pip install 'rejoinder[report]'"
        ) from None
