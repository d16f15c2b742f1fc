"""`rejoinder report RUN`: a page with the figures of a run."""

from __future__ import annotations

from pathlib import Path

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OpenRun, RunArgument, open_run


def report(run: RunArgument, as_json: JsonFlag = False) -> None:
    """Write report.html into the run directory: figures, configuration, digest, provenance."""
    output = Output(as_json)
    opened = open_run(run, output)
    path = write_report(opened)
    output.say(f"wrote {path}")
    output.result({"report": str(path), "digest": opened.digest, "games": opened.checkpoint.games})


def write_report(opened: OpenRun) -> Path:
    """Write the page of a run; returns where it is."""
    from rejoinder.rundir import REPORT

    try:
        from rejoinder_cli.page import page
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the report needs {error.name}: install it by pip install 'rejoinder[report]'"
        ) from None
    path = opened.run.path / REPORT
    path.write_text(page(opened), encoding="utf-8")
    return path
