"""What the commands print: text for people, or one JSON object for programs.

With `--json` the last line of standard output is the object and everything for people goes to
standard error; without it people read standard output.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Any

import typer

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")
]

KERNELS = "loading kernels"
_REFRESH = 0.1  # seconds between two updates of a progress bar
_LINES = 5.0  # seconds between two lines where no bar can stay in place


class Output:
    """Where a command's words go."""

    def __init__(self, as_json: bool) -> None:
        from rich.console import Console

        self._as_json = as_json
        self.console = Console(stderr=as_json, highlight=False, soft_wrap=True)
        self._warnings = Console(stderr=True, highlight=False, soft_wrap=True)
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """A line for people, plain: nothing in it is markup."""
        self.console.print(text, markup=False)

    def say_once(self, text: str) -> None:
        """A line for people, unless it was said before."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def warn(self, text: str) -> None:
        self._warnings.print(f"warning: {text}", style="yellow", markup=False)

    def result(self, values: Mapping[str, Any]) -> None:
        """The object for programs; nothing without `--json`."""
        if self._as_json:
            print(json.dumps(values), flush=True)

    @contextmanager
    def working(self, on: str) -> Iterator[None]:
        """A spinner, on a terminal, for work that takes its time but cannot say how much."""
        if not self.console.is_terminal:
            yield
            return
        with self.console.status(on):
            yield

    @contextmanager
    def progress(
        self, what: str, total: int, unit: str = "games"
    ) -> Iterator[Callable[[int], None]]:
        """A bar with rate and time left; the function it gives is told the number done so far.

        Its first call says where the work begins, and starts the clock. Where no bar can stay in
        place there is a line now and then.
        """
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        terminal = self.console.is_terminal
        pause = _REFRESH if terminal else _LINES
        with Progress(*columns, console=self.console, disable=not terminal) as bar:
            task = bar.add_task(what, total=total, rate=KERNELS)
            began_with, began, shown = -1, 0.0, 0.0

            def update(done: int) -> None:
                nonlocal began_with, began, shown
                now = time.monotonic()
                if began_with < 0:
                    began_with, began, shown = done, now, now
                    bar.reset(task, total=total, completed=done, rate="")
                elif now - shown >= pause or (terminal and done >= total):
                    shown = now
                    rate = (done - began_with) / max(now - began, 1e-9)
                    bar.update(task, completed=done, rate=f"{rate:,.0f} {unit}/s")
                    if not terminal:
                        self.say(_line(what, done, total, unit, rate))

            yield update


def _line(what: str, done: int, total: int, unit: str, rate: float) -> str:
    left = ""
    if rate > 0 and done < total:
        left = f", {timedelta(seconds=round((total - done) / rate))} left"
    return f"{what}: {done:,} of {total:,} {unit}, {rate:,.0f} {unit}/s{left}"
