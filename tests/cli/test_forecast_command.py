"""`rejoinder forecast`, and the line that `status` and `train` show."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command import refused, run, run_json

from rejoinder_cli.forecasts import MER, Target, tell
from rejoinder_cli.live import live_status
from rejoinder_cli.output import Output


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "kuhn"
    how = ("--mode", "sequential", "--set", "eval_every=10", "--set", "eval_games=20")
    run_json("train", "kuhn", "--games", "200", "--run", path, *how)
    return path


def records(level: float) -> list[dict[str, object]]:
    return [{"games": n, "mer": level + 5 / n} for n in range(50, 1_001, 50)]


def test_a_forecast_in_words() -> None:
    status = {"games": 1_000, "games_per_second": 50.0, "alive": True}
    told = tell(records(0.01), Target(MER, 0.0125), status)
    assert told.forecast is not None
    assert told.forecast.games == pytest.approx(2_000, rel=0.05)
    assert told.seconds == pytest.approx(20, rel=0.1)
    assert told.text().startswith("MER 0.0125 is expected after ")
    assert " s from now" in told.text()
    assert "after 1,000 games it would be 0.0150 (" in told.backtest_text()

    never = tell(records(0.01), Target(MER, 0.005), status)
    assert "is not expected, however long it trains: the fitted curve levels off at" in never.text()
    assert never.plain()["games"] is None
    json.dumps(never.plain(), allow_nan=False)

    there = tell(records(0.01), Target(MER, 0.02), status)
    assert there.text() == "MER 0.02 was reached after 500 games"
    assert there.plain()["reached"] == 500
    assert "it was 500" in there.backtest_text()
    assert math.isinf(never.reached)


def test_nobody_knows_how_fast_a_run_is_that_is_over() -> None:
    over = {"games": 1_000, "games_per_second": 50.0, "alive": False}
    told = tell(records(0.01), Target(MER, 0.0125), over)
    assert told.seconds is None
    assert "from now" not in told.text()


def test_the_command(kuhn: Path) -> None:
    told = run_json("forecast", kuhn, "--mer", "0.001", "--win-rate", "random=0.999")
    assert told["at"] == 200
    assert [one["what"] for one in told["forecasts"]] == ["mer", "random"]
    assert told["forecasts"][0]["backtest"]["known"] >= 80
    text = run("forecast", kuhn, "--mer", "0.001").stdout
    assert text.startswith("MER 0.001 is ")
    assert "backtest, from the first " in text


def test_status_shows_it(kuhn: Path) -> None:
    shown = run("status", kuhn, "--forecast", "mer=0.001").stdout
    assert "MER 0.001 is " in shown
    assert "finished" in run("status", kuhn).stdout


def test_the_line_of_training_under_way_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    status = {
        "games": 10,
        "target": 20,
        "games_per_second": 5.0,
        "seconds_left": 2.0,
        "mer": 0.1,
        "win_rates": {},
        "infosets": 3,
        "workers": {"a": {}},
        "state": "training",
    }
    with live_status(Output(as_json=False), "run", lambda now: f"at {now['games']}") as show:
        show(status)
    assert capsys.readouterr().out.strip().endswith("1 worker, training; at 10")


def test_bad_input(kuhn: Path, tmp_path: Path) -> None:
    assert "name a target" in refused("forecast", kuhn)
    assert "no run at" in refused("forecast", tmp_path / "none", "--mer", "0.1")
    assert "the target must be above 0" in refused("forecast", kuhn, "--mer", "-1")
    assert "between 0 and 1" in refused("forecast", kuhn, "--win-rate", "random=1.5")
    assert "write it as mer=0.05" in refused("forecast", kuhn, "--win-rate", "random")
    assert "'much' is not a number" in refused("status", kuhn, "--forecast", "mer=much")
    told = refused("status", kuhn, "--forecast", "nobody=0.5")
    assert "no 'nobody' here; there are mer, random" in told
    told = refused("forecast", kuhn, "--win-rate", "nobody=0.5")
    assert "no win rate against 'nobody' is measured; there are random" in told
    few = tmp_path / "few"
    run_json("train", "kuhn", "--games", "5", "--mode", "sequential", "--run", few)
    assert "needs 8 evaluations, and there are 1" in refused("forecast", few, "--mer", "0.1")
    sequential = ("train", "kuhn", "--run", tmp_path / "x", "--mode", "sequential")
    assert "--forecast" in refused(*sequential, "--forecast", "mer=0.1")
