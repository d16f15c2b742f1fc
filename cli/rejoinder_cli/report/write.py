"""A report on disk: one page that stands alone, and its charts as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rejoinder.files import write_atomically
from rejoinder.run.rundir import FIGURES, REPORT
from rejoinder_cli.output import Output
from rejoinder_cli.report.compare import check_comparable, head_to_head
from rejoinder_cli.report.page import page
from rejoinder_cli.report.sections import Report
from rejoinder_cli.report.subject import Effort, measure
from rejoinder_cli.runs import OpenRun


@dataclass(frozen=True)
class Written:
    """Where a report is, and what it is about."""

    page: Path
    figures: list[Path]
    report: Report

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "report": str(self.page),
            "figures": [str(path) for path in self.figures],
            "claims": {
                name: [judgement.plain() for judgement in judged]
                for name, judged in self.report.judgements.items()
            },
        }


def write(
    opened: Sequence[OpenRun], folder: Path, effort: Effort, output: Output, quick: bool = False
) -> Written:
    """Measure the runs and write report and pictures into the folder."""
    check_comparable(opened)
    subjects = measure(opened, effort, output)
    meetings = head_to_head(subjects, 2 * effort.test_games, output)
    report = Report(subjects, meetings, quick)
    with output.working("drawing"):
        pictures = folder / FIGURES  # others may keep theirs there, too
        pictures.mkdir(parents=True, exist_ok=True)
        figures = []
        for name, picture in report.pictures():
            figures.append(pictures / f"{name}.png")
            write_atomically(figures[-1], picture)
        path = folder / REPORT
        write_atomically(path, page(report).encode())
    return Written(path, figures, report)
