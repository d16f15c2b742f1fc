"""Chaos: whatever is killed, and however often, the result is that of an undisturbed run."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command import refused, run, run_json

from rejoinder.run.config import make_config
from rejoinder.run.rundir import RunDir
from rejoinder_cli.chaos import KINDS, Report, plan
from rejoinder_cli.commands.chaos import _compare
from rejoinder_learner.sequential import train

# Until the games of a dead worker are under way again, and a new learner goes on. On two idle cores
# it is a tenth of that, which `rejoinder chaos` tells; here others may have the machine.
SECONDS = 30.0


@pytest.mark.slow
def test_a_run_survives_every_kind_of_death(tmp_path: Path) -> None:
    before = children()
    result = chaos(tmp_path / "run", kills=32, seed=1)
    assert children() == before
    assert result["kills"] == dict.fromkeys(KINDS, 8)
    assert all(len(result["recoveries"][kind]["all"]) >= 2 for kind in KINDS), result
    verified = run_json("verify", tmp_path / "run", "--sample", "0.2")
    assert verified["verified"]
    assert verified["games"] == result["games"]
    recoveries = result["recoveries"]
    assert all(recoveries[kind]["max"] < SECONDS for kind in KINDS), recoveries


@pytest.mark.slow
def test_a_run_of_blocks_survives_every_kind_of_death(tmp_path: Path) -> None:
    """External sampling, whose deltas are of many iterations and have many entries."""
    result = chaos(tmp_path / "run", 8, 2, "leduc", "method.iterations=10000")
    assert result["kills"] == dict.fromkeys(KINDS, 2)
    assert run_json("verify", tmp_path / "run", "--sample", "0.2")["verified"]


def chaos(
    path: Path,
    kills: int,
    seed: int,
    config: str = "paper",
    setting: str = "method.rollouts=10",
) -> dict[str, Any]:
    numbers = ("--kills", str(kills), "--seed", str(seed), "--workers", "2")
    result = run_json("chaos", config, *numbers, "--set", setting, "--run", path)
    assert result["equal"], result
    assert result["digest"] == result["expected"]
    assert result["problems"] == []
    return result


def children() -> list[str]:
    """The processes that this one has started and that have not ended; where that can be known."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("kills", [0, 1, 4, 30, 33])
def test_every_kind_gets_its_share(kills: int) -> None:
    for seed in range(20):
        strikes = plan(kills, seed)
        counts = Counter(strike.kind for strike in strikes)
        assert sum(counts.values()) == kills
        assert all(kills // 4 <= counts[kind] <= kills // 4 + 1 for kind in KINDS)
        assert strikes == plan(kills, seed)
    assert kills < 4 or plan(kills, 1) != plan(kills, 2)


def test_a_difference_is_noticed(tmp_path: Path) -> None:
    fields = {"game": "kuhn", "method.rollouts": 2, "eval_every": 10, "eval_games": 20, "games": 20}
    runs = {
        name: RunDir.create(tmp_path / name, make_config(fields | {"seed": seed}))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    }
    for one in runs.values():
        train(one)
    same = _compare(runs["a"], runs["b"])
    assert same["equal"]
    assert same["digest"] == same["expected"]
    other = _compare(runs["a"], runs["c"])
    assert not other["equal"]
    assert other["digest"] != other["expected"]
    assert not other["ledger_equal"]
    runs["b"].append_metrics({"games": 20, "mer": -1.0})
    changed = _compare(runs["b"], runs["a"])
    assert (changed["equal"], changed["metrics_equal"]) == (False, False)


def test_fewer_kills_than_asked_for_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def calm(directory: RunDir, _: Any, **__: Any) -> Report:
        train(directory)
        return Report(kills=dict.fromkeys(KINDS, 0) | {"flush": 2})

    monkeypatch.setattr("rejoinder_cli.chaos.cause_chaos", calm)
    asked = ("chaos", "kuhn", "--iterations", "3000", "--set", "eval_every=0")
    told = run(*asked, "--kills", "4")
    assert told.exit_code == 1
    assert "the same as undisturbed" in told.stdout
    assert "only 2 of 4 kills were made: the run is too short" in told.stdout
    assert "give it more than 3,000 iterations, by --iterations" in told.stdout
    assert "what went wrong" not in told.stderr
    found = run(*asked, "--kills", "4", "--json")
    result = json.loads(found.stdout.splitlines()[-1])
    assert (found.exit_code, result["asked"], sum(result["kills"].values())) == (1, 4, 2)
    assert result["equal"]
    enough = run_json(*asked, "--kills", "2")
    assert (enough["asked"], enough["equal"]) == (2, True)


def test_what_is_there_is_not_disturbed(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "run", make_config({"game": "kuhn"}))
    assert "holds a run already" in refused("chaos", "kuhn-rollout", "--run", tmp_path / "run")
    assert "order" in refused("chaos", "kuhn-rollout", "--set", "order=arrival")
    assert "no config is called" in refused("chaos", "khun")
