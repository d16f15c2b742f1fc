"""What is shown of training under way where nothing can stay in place."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder_cli import live
from rejoinder_cli.output import Output

WAITING: dict[str, Any] = {
    "state": "waiting for workers",
    "games": 0,
    "target": 12,
    "games_per_second": 0.0,
    "seconds_left": None,
    "mer": None,
    "matches": {},
    "infosets": 0,
    "workers": {},
}


def test_that_nobody_plays_is_said_once_in_all_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`warm` trains a little with one config after the other."""
    monkeypatch.setattr(live, "_SECONDS", 0.0)
    output = Output(as_json=False)
    playing = WAITING | {"state": "training", "games": 4, "workers": {"w": {"games": 4}}}
    for _ in range(2):
        with live.live_status(output, "training") as show:
            for status in (WAITING, WAITING, playing, playing):
                show(status)
    told = capsys.readouterr().out.splitlines()
    assert sum("no workers yet" in line for line in told) == 1
    assert sum("4 of 12 games" in line for line in told) == 4
