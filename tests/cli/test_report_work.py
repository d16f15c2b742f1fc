"""What a report measures: how far it is is told while it goes on, and a failure ends it."""

from __future__ import annotations

import threading

import pytest

from rejoinder_cli import output
from rejoinder_cli.output import Output
from rejoinder_cli.report import work as work_module
from rejoinder_cli.report.work import Tell, Work

PATIENCE = 60.0  # seconds until a test gives up


class Told(Output):
    """Says everything to a list."""

    def __init__(self) -> None:
        super().__init__(as_json=False)
        self.lines: list[str] = []
        self.changed = threading.Condition()

    def say(self, text: str) -> None:
        with self.changed:
            self.lines.append(text)
            self.changed.notify_all()

    def wait_for(self, beginning: str) -> None:
        def said() -> bool:
            return any(line.startswith(beginning) for line in self.lines)

        with self.changed:
            assert self.changed.wait_for(said, PATIENCE), f"{beginning!r} was never said"


def test_progress_is_told_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_LINES", 0.0)
    told, work = Told(), Work()

    def dear(tell: Tell) -> None:
        tell(5)
        told.wait_for("measuring: 40 of 100 %")
        tell(10)

    def cheap(tell: Tell) -> None:
        told.wait_for("measuring: 80 of 100 %")

    work.add(10, dear, cost=8.0)
    work.add(20, cheap)
    work.run("measuring", told)
    assert told.lines[0] == "measuring: 30 games"
    percents = [int(line.split()[1]) for line in told.lines[1:]]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert {40, 80} <= set(percents)


def test_the_clock_starts_with_the_first_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before them kernels are compiled, and nothing that was told of the speed would be true."""
    monkeypatch.setattr(output, "_LINES", 0.0)
    monkeypatch.setattr(work_module, "_POLL", 0.001)
    told, work = Told(), Work()

    def compile_first(tell: Tell) -> None:
        threading.Event().wait(0.1)
        tell(5)
        told.wait_for("measuring: 50 of 100 %")

    work.add(10, compile_first)
    work.run("measuring", told)
    assert {int(line.split()[1]) for line in told.lines[1:]} == {50, 100}


def test_a_piece_that_fails_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_LINES", 0.0)
    told, work = Told(), Work()

    def fail(tell: Tell) -> None:
        raise ValueError("no such opponent")

    work.add(1, fail)
    with pytest.raises(ValueError, match="no such opponent"):
        work.run("measuring", told)
    assert not any("100 of 100" in line for line in told.lines)
