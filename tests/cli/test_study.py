"""`rejoinder study` from outside: what it leaves, how it goes on, how it refuses and stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import refused, run, run_json
from runtime import eventually

SMALL = ("study", "staleness", "kuhn-rollout", "--quick", "--games", "30", "--batches", "5,1")
SPEED = ("measured", "others", "predicted", "bottleneck")
UNTIMED = ("--no-timing",)


def test_the_studies_are_listed() -> None:
    assert "staleness" in run("study", "--help").stdout


def test_a_small_study_leaves_table_file_and_picture(tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = run(*SMALL, *UNTIMED, "--out", out)
    assert told.exit_code == 0, told.output
    assert "95 % interval over 2 seeds" in told.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        *("cells.jsonl", "staleness.json", "staleness.png", "staleness.svg")
    ]
    lines = (out / "cells.jsonl").read_text()
    again = run_json(*SMALL, *UNTIMED, "--out", out)
    assert (out / "cells.jsonl").read_text() == lines
    assert again["files"] == [str(out / f"staleness.{end}") for end in ("json", "png", "svg")]
    assert [(cell["batch"], cell["lag"]) for cell in again["cells"]] == [
        *((1, 0), (1, 1), (5, 0), (5, 1))
    ]
    assert again["seeds"] == [1, 2]
    assert again["cells"][0]["speed"] == {"1": dict.fromkeys(SPEED)}
    kept = json.loads((out / "staleness.json").read_text())
    assert kept == {name: value for name, value in again.items() if name != "files"}


def test_lengths_are_whole_units_of_what_the_method_counts(tmp_path: Path) -> None:
    small = ("--quick", "--seeds", "1", "--batches", "2", "--lags", "0", *UNTIMED)
    block = ("study", "staleness", "leduc", *small, "--set", "method.iterations=50")
    told = run(*block, "--iterations", "120", "--out", tmp_path)
    assert told.exit_code == 0, told.output
    assert "120 iterations are rounded up to 150: whole units of 50" in told.stdout
    assert "B: units of 50 iterations; chips a game: mean of 200 games against " in told.stdout
    assert "after 150 training iterations" in told.stdout
    assert "won" not in told.stdout
    found = run_json(*block, "--out", tmp_path)
    assert (found["games"], found["unit"], found["counts"]) == (6_000, 50, "iterations")
    (cell,) = found["cells"]
    assert [point["games"] for point in cell["curve"]] == [2_000, 4_000, 6_000]
    assert run_json(*block, "--set", "games=100", "--out", tmp_path)["games"] == 100


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("papr",), "no config is called 'papr'"),
        (("--batches", "1,x"), "--batches: '1,x' is not a list of numbers such as 1,5,20"),
        (("--batches", ""), "--batches: '' is not a list of numbers"),
        (("--batches", "0"), "batch: input should be greater"),
        (("--batches", "9999999"), "batch: input should be less"),
        (("--lags", "-1"), "lag: input should be greater"),
        (("--workers", "0"), "workers: there must be at least one, not 0"),
        (("--games", "0"), "games: input should be greater"),
        (("--seeds", "0"), "seeds"),
        (("--set", "rolouts=3"), "near it: method.rollouts"),
        (("--set", "order=arrival"), "order: staleness is a choice only where"),
        (("--set", f"seed={2**63 - 1}", "--seeds", "2"), "seed: input should be less"),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in refused("study", "staleness", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "rejoinder_cli.studies.picture", raising=False)
    monkeypatch.delattr("rejoinder_cli.studies.picture", raising=False)
    told = refused(*SMALL, "--out", tmp_path / "out")
    assert "pip install 'rejoinder[report]'" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_stopped_and_gone_on_with(number: int, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group, SIGTERM the command alone."""
    asked = (*SMALL, *UNTIMED, "--seeds", "400", "--out", str(tmp_path))
    # A shell that starts tests in the background has SIGINT ignored, here and in all they start.
    heed = "from signal import *; signal(SIGINT, default_int_handler)"
    code = f"{heed}; from rejoinder_cli.main import main; main()"
    cells = tmp_path / "cells.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", code, *asked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert eventually(lambda: cells.exists() and cells.read_text().endswith("\n"), 120)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        said, complained = process.communicate(timeout=120)
    assert process.returncode == 130, complained
    assert "the same command goes on" in said
    assert "Traceback" not in complained
    before = cells.read_text()
    assert 0 < len(before.splitlines()) < 1_600
    run_json(*SMALL, *UNTIMED, "--seeds", "1", "--out", tmp_path)
    assert cells.read_text().startswith(before)
