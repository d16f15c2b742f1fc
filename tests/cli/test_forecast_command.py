"""`rejoinder forecast`, and the line that `status` and `train` show."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command import refused, run, run_json

from rejoinder.measure import targets
from rejoinder.measure.forecast import MER, Forecast, Series
from rejoinder.measure.targets import Target, Told, foresee, tell
from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder_cli.forecasts import backtest_in_words, in_words, watcher
from rejoinder_cli.live import live_status
from rejoinder_cli.output import Output


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "kuhn"
    how = ("--mode", "sequential", "--set", "eval_every=10", "--set", "eval_games=20")
    run_json("train", "kuhn-rollout", "--games", "200", "--run", path, *how)
    return path


def records(level: float) -> list[dict[str, object]]:
    return [{"games": n, "mer": level + 5 / n} for n in range(50, 1_001, 50)]


def test_a_forecast_in_words() -> None:
    status = {"games": 1_000, "games_per_second": 50.0, "alive": True}
    told = tell(records(0.01), Target(MER, 0.0125), status)
    assert told.forecast is not None
    assert told.forecast.games == pytest.approx(2_000, rel=0.05)
    assert told.seconds is not None
    low, middle, high = told.seconds
    assert middle == pytest.approx(20, rel=0.1)
    assert low == (told.forecast.low - 1_000) / 50
    assert high == (told.forecast.high - 1_000) / 50
    plain = told.plain()
    assert [plain[f"seconds{end}"] for end in ("_low", "", "_high")] == [low, middle, high]
    assert in_words(told).startswith("MER 0.0125 is expected after ")
    assert in_words(told).endswith(f", {middle:.0f} s from now ({low:.0f} s to {high:.0f} s)")
    assert "after 1,000 games it would be 0.0150 (" in backtest_in_words(told)

    never = tell(records(0.01), Target(MER, 0.005), status)
    assert "is not expected, however long it trains: the fitted curve levels off at" in in_words(
        never
    )
    assert never.plain()["games"] is None
    json.dumps(never.plain(), allow_nan=False)

    there = tell(records(0.01), Target(MER, 0.02), status)
    assert in_words(there) == "MER 0.02 was reached after 500 games"
    assert there.plain()["reached"] == 500
    assert "it was 500" in backtest_in_words(there)
    assert math.isinf(never.reached)


def test_iterations_are_called_so() -> None:
    for level in (0.0125, 0.02):  # ahead, and behind
        told = tell(records(0.01), Target(MER, level), {"games": 1_000, "games_per_second": 50.0})
        said = [in_words(told, "iterations"), backtest_in_words(told, "iterations")]
        assert all("iterations" in line and "games" not in line for line in said), said


@pytest.mark.parametrize(
    ("chance", "low", "games", "words"),
    [
        (0.62, 1_500, 2_000, "is expected after 2,000 games (1,500 to no end), 20 s from now (10 "),
        (0.38, 1_500, math.inf, "is unlikely by this curve: 38% of the refits get there; the fit"),
        (0.03, math.inf, math.inf, "is not expected, however long it trains: the fitted curve lev"),
    ],
)
def test_as_sure_as_the_refits_are(chance: float, low: float, games: float, words: str) -> None:
    found = Forecast(0.01, games, low, math.inf, chance, (0.008, 0.01, 0.011))
    told = Told(Target(MER, 0.01), math.inf, found, None)
    said = in_words(told.at_speed({"games": 1_000, "games_per_second": 50.0}))
    assert said.startswith(f"MER 0.01 {words}")
    assert said.endswith(f"; {chance:.0%} of the refits get there") is (chance == 0.03)
    assert told.plain()["seconds_high"] is None


def test_nobody_knows_how_fast_a_run_is_that_is_over() -> None:
    over = {"games": 1_000, "games_per_second": 50.0, "alive": False}
    told = tell(records(0.01), Target(MER, 0.0125), over)
    assert told.seconds is None
    assert "from now" not in in_words(told)


def test_the_command(kuhn: Path) -> None:
    told = run_json("forecast", kuhn, "mer=0.001", "exploitability=1e-5", "random=1.5")
    assert told["at"] == 200
    assert [one["what"] for one in told["forecasts"]] == ["mer", "exploitability", "random"]
    assert told["forecasts"][0]["backtest"]["known"] >= 80
    text = run("forecast", kuhn, "mer=0.001", "random=1.5").stdout
    assert text.startswith("MER 0.001 is ")
    assert "a mean of +1.5 chips a game against random is " in text
    assert "backtest, from the first " in text


def test_status_shows_it(kuhn: Path) -> None:
    shown = run("status", kuhn, "--forecast", "mer=0.001").stdout
    assert "MER 0.001 is " in shown
    assert "finished" in run("status", kuhn).stdout


def test_a_watched_run_is_told_of_with_its_newest_figures_and_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[Target] = []

    def counted(series: Series, target: Target) -> Told:
        fits.append(target)
        return foresee(series, target)

    monkeypatch.setattr(targets, "foresee", counted)
    directory = RunDir.create(tmp_path / "run", load_config("kuhn-rollout"))
    for games in range(50, 1_001, 50):
        directory.append_metrics({"games": games, "mer": 0.01 + 5 / games})
        if games < 950:
            directory.append_metrics({"games": games, "matches": rates(games)})
    look = watcher(directory, Target("random", 0.695, "chips"))
    status = {"games": 1_000, "games_per_second": 50.0}
    first = look(status)
    assert look(status | {"games_per_second": 5.0}) != first
    assert look(status | {"games": 1_300}) != first
    assert look(status) == first
    assert len(fits) == 1
    directory.append_metrics({"games": 950, "matches": rates(9_000)})
    directory.append_metrics({"games": 1_000, "matches": rates(9_000)})
    assert (
        look(status) == "a mean of +0.695 chips a game against random was reached after 950 games"
    )
    assert len(fits) == 2


def test_a_watched_run_that_was_hardly_measured(tmp_path: Path) -> None:
    directory = RunDir.create(tmp_path / "run", load_config("kuhn-rollout"))
    look = watcher(directory, Target(MER, 0.1))
    assert look({"games": 0}).startswith("no forecast yet: MER: a forecast needs 8 evaluations")
    assert watcher(directory, None)({"games": 0}) == ""


def test_the_forecast_of_a_watched_run_counts_what_its_method_counts(tmp_path: Path) -> None:
    directory = RunDir.create(tmp_path / "run", load_config("leduc"))
    for record in records(0.01):
        directory.append_metrics(record)
    said = watcher(directory, Target(MER, 0.02))({"games": 1_000, "games_per_second": 50.0})
    assert said == "MER 0.02 was reached after 500 iterations"


def rates(games: int) -> dict[str, dict[str, float]]:
    rate = 0.7 - 8 / games
    return {"random": {"mean_utility": rate, "utility_error": 0.02}}


def test_the_line_of_training_under_way_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    status = {
        "games": 10,
        "target": 20,
        "games_per_second": 5.0,
        "seconds_left": 2.0,
        "mer": 0.1,
        "matches": {},
        "infosets": 3,
        "workers": {"a": {}},
        "state": "training",
    }
    with live_status(Output(as_json=False), "run", lambda now: f"at {now['games']}") as show:
        show(status)
    assert capsys.readouterr().out.strip().endswith("1 worker, training; at 10")


def test_bad_input(kuhn: Path, tmp_path: Path) -> None:
    assert "TARGET" in refused("forecast", kuhn)
    assert "no run at" in refused("forecast", tmp_path / "none", "mer=0.1")
    assert "the target must be above 0" in refused("forecast", kuhn, "mer=-1")
    assert "a number of chips a game" in refused("forecast", kuhn, "random=inf")
    assert "write it as mer=0.05" in refused("forecast", kuhn, "random")
    assert "'much' is not a number" in refused("status", kuhn, "--forecast", "mer=much")
    told = refused("status", kuhn, "--forecast", "nobody=0.5")
    assert "no 'nobody' here; there are mer, exploitability, random" in told
    with pytest.raises(ValueError, match="must be between 0 and 1, a win rate, not"):
        Target.parse("--forecast", "random=1.5", load_config("paper"))
    with pytest.raises(ValueError, match="no 'exploitability' here"):
        Target.parse("--forecast", "exploitability=0.1", load_config("paper"))
    few = tmp_path / "few"
    run_json("train", "kuhn-rollout", "--games", "5", "--mode", "sequential", "--run", few)
    assert "needs 8 evaluations, and there are 1" in refused("forecast", few, "mer=0.1")
    sequential = ("train", "kuhn-rollout", "--run", tmp_path / "x", "--mode", "sequential")
    assert "--forecast" in refused(*sequential, "--forecast", "mer=0.1")
