"""The study of staleness: each run trained once, every figure named, all cells in the picture."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime import kuhn, sequential
from test_capacity import COSTS

from rejoinder.run.config import RunConfig, load_config
from rejoinder_bench import costs
from rejoinder_bench import runtime as runtime_bench
from rejoinder_bench.system import TooShort
from rejoinder_cli.studies import convergence, picture, staleness, throughput
from rejoinder_cli.studies.convergence import Stopped, Task, Trained, train, train_all
from rejoinder_cli.studies.estimate import estimate
from rejoinder_cli.studies.staleness import Cell, Grid, make_grid
from rejoinder_cli.studies.throughput import Measured, Timing, games_to_time, speed

KUHN = ["games=40", "method.rollouts=1"]


def small_grid(**fields: Any) -> Grid:
    asked: dict[str, Any] = {
        "batches": [2, 20],
        "lags": [0, 1],
        "seeds": 2,
        "workers": [1, 64],
        "evaluations": (4, 10),
        "tests": 20,
    }
    return make_grid("kuhn-rollout", KUHN, **asked | fields)


def silent(_: str) -> None:
    pass


@contextmanager
def bar(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Runs are trained in this process; the list has those that were."""
    trained: list[Task] = []

    def in_turn(tasks: list[Task]) -> Iterator[tuple[Task, Trained]]:
        for task in tasks:
            trained.append(task)
            yield task, train(task)

    monkeypatch.setattr(convergence, "_in_processes", in_turn)
    return trained


@pytest.fixture
def no_clock(monkeypatch: pytest.MonkeyPatch) -> list[Timing]:
    """Nothing is timed for real; the list has what would have been."""
    timed: list[Timing] = []

    def time(timing: Timing) -> Measured:
        timed.append(timing)
        return Measured(100.0 + len(timed), others=0.0)

    monkeypatch.setattr(throughput, "_time", time)
    monkeypatch.setattr(throughput, "_cores_in_use", lambda: 0.0)
    monkeypatch.setattr(throughput, "cores", lambda: 2)
    monkeypatch.setattr(costs, "measure", lambda *_: COSTS)
    return timed


def study(grid: Grid, folder: Path, retime: bool = False) -> dict[str, Any]:
    return staleness.run(grid, folder, retime=retime, progress=bar, say=silent)


def test_a_run_comes_to_what_sequential_training_comes_to() -> None:
    config = kuhn(eval_every=20)
    trained, expected = train(Task(config, tests=config.eval_games)), sequential(config)
    assert trained.digest == expected.digest
    for n, point in enumerate(trained.curve):
        told = expected.metrics[n]
        assert (point["games"], point["mer"]) == (told["games"], told["mer"])
        for name, rate in point["strengths"].items():
            assert rate == told["matches"][name]["mean_utility"]
    assert trained.mer == trained.curve[-1]["mer"]


def test_a_run_that_is_not_wanted_any_more_stops() -> None:
    asked = iter([False, False, True])
    with pytest.raises(Stopped):
        train(Task(kuhn(eval_every=20), 10), should_stop=lambda: next(asked))


def test_what_is_there_is_not_trained_again(tmp_path: Path, here: list[Task]) -> None:
    tasks = {
        task.key: task for seed in (1, 2) for task in [Task(kuhn(eval_every=20, seed=seed), 4)]
    }
    first = train_all(tasks, tmp_path / "cells", lambda _: None)
    assert len(here) == 2
    heard: list[int] = []
    assert train_all(tasks, tmp_path / "cells", heard.append) == first
    assert len(here) == 2
    assert heard == [2]


def test_a_stopped_study_goes_on_where_it_was(
    tmp_path: Path, here: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = {task.key: task for b in (1, 2, 4) for task in [Task(kuhn(eval_every=20, batch=b), 4)]}
    in_turn = convergence._in_processes

    def interrupted(missing: list[Task]) -> Iterator[tuple[Task, Trained]]:
        yield next(in_turn(missing))
        raise KeyboardInterrupt

    monkeypatch.setattr(convergence, "_in_processes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_all(tasks, tmp_path / "cells", lambda _: None)
    with (tmp_path / "cells").open("a") as file:
        file.write('{"key": "cut sho')  # as by a crash
    monkeypatch.setattr(convergence, "_in_processes", in_turn)
    assert set(train_all(tasks, tmp_path / "cells", lambda _: None)) == set(tasks)
    assert [task.config.batch for task in here] == [1, 2, 4]
    assert set(train_all(tasks, tmp_path / "cells", lambda _: None)) == set(tasks)
    assert len(here) == 3


def test_the_key_changes_with_all_that_the_result_depends_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fields: list[dict[str, Any]] = [
        *({"batch": 6}, {"lag": 2}, {"seed": 5}, {"games": 61}, {"method.rollouts": 3}),
        *({"eval_every": 7}, {"eval_games": 22}),
    ]
    tasks = [Task(kuhn(), 10), Task(kuhn(), 11), *(Task(kuhn(**field), 10) for field in fields)]
    keys = {task.key for task in tasks}
    assert len(keys) == len(tasks)
    monkeypatch.setattr(RunConfig, "kernel", "others")
    assert keys.isdisjoint(task.key for task in tasks)
    assert Task(kuhn(checkpoint_every=7), 10).key == Task(kuhn(), 10).key


@given(batch=st.integers(1, 60), lag=st.integers(0, 70), games=st.integers(1, 50))
def test_a_lag_is_shortened_only_where_no_game_can_tell(batch: int, lag: int, games: int) -> None:
    grid = Grid(kuhn(games=games), (Cell(batch, lag),), (1,), (1,), 10)
    asked, trained = kuhn(batch=batch, lag=lag), grid.run(Cell(batch, lag), 1)
    assert trained.lag <= lag
    assert all(asked.version_for(g) == trained.version_for(g) for g in range(games))
    assert trained.lag == lag or trained.lag == (games - 1) // batch


def test_a_study_end_to_end(tmp_path: Path, here: list[Task], no_clock: list[Timing]) -> None:
    grid = small_grid()
    result = study(grid, tmp_path)
    assert result == json.loads((tmp_path / staleness.RESULT).read_text())
    assert [(c["batch"], c["lag"], c["window"]) for c in result["cells"]] == [
        *((2, 0, 2), (2, 1, 4), (20, 0, 20), (20, 1, 40))
    ]
    assert result["reference"] == {"batch": 20, "lag": 1}  # the config's own
    assert len(here) == 8
    for cell in result["cells"]:
        assert 0 <= cell["strength"]["mean"] <= 1
        assert cell["strength"] == pytest.approx(estimate(cell["strength_by_seed"])._asdict())
        assert cell["mer"]["half_width"] >= 0
        assert [point["games"] for point in cell["curve"]] == [10, 20, 30, 40]
        assert len(set(cell["digests"])) == 2
    assert result["cells"][3]["difference"] == {"mean": 0.0, "half_width": 0.0}
    digest = sequential(grid.run(Cell(2, 1), 2)).digest
    assert result["cells"][1]["digests"][1] == digest


def test_measured_and_predicted_are_told_apart(
    tmp_path: Path, here: list[Task], no_clock: list[Timing]
) -> None:
    result = study(small_grid(lags=[0, 1, 3]), tmp_path)
    for cell in result["cells"]:
        one, many = cell["speed"]["1"], cell["speed"]["64"]
        assert (one["measured"] is None) == (cell["lag"] == 3)  # only the smallest lags are timed
        assert many["measured"] is None  # there are two cores
        assert one["predicted"] < 1 / COSTS.game
        assert many["bottleneck"] in ("window", "workers")
        assert many["predicted"] > one["predicted"] or cell["window"] < 3
    assert {(timing.config.lag, timing.workers) for timing in no_clock} == {(0, 1), (1, 1)}
    alone = study(small_grid(predict=False, workers=[1]), tmp_path)
    assert {cell["speed"]["1"]["predicted"] for cell in alone["cells"]} == {None}
    untimed = study(small_grid(measure=False, workers=[1]), tmp_path)
    assert {cell["speed"]["1"]["measured"] for cell in untimed["cells"]} == {None}
    assert untimed["others"] is None


def test_speeds_are_kept_until_they_are_asked_for_again(
    tmp_path: Path, here: list[Task], no_clock: list[Timing]
) -> None:
    first = study(small_grid(), tmp_path)
    assert study(small_grid(), tmp_path) == first
    assert len(no_clock) == 4
    again = study(small_grid(), tmp_path, retime=True)
    assert len(no_clock) == 8
    assert study(small_grid(), tmp_path) == again  # the newest counts
    assert len(here) == 8


def test_costs_are_kept(tmp_path: Path, no_clock: list[Timing]) -> None:
    said: list[str] = []
    for _ in range(2):
        found = throughput.known_costs(tmp_path / "costs.json", kuhn(), False, said.append)
        assert asdict(found) == asdict(COSTS)
    assert len(said) == 1
    throughput.known_costs(
        tmp_path / "costs.json", kuhn(**{"method.rollouts": 7}), False, said.append
    )
    assert len(said) == 2


def test_a_prediction_is_the_models(no_clock: list[Timing]) -> None:
    config = kuhn(batch=20)
    here = speed(config, 2, {Timing(config, 2).key: Measured(7.0, 1.5)}, COSTS)
    assert (here.measured, here.others, here.bottleneck) == (7.0, 1.5, "cores")
    assert speed(config, 3, {}, COSTS).bottleneck == "workers"  # a core for each


@pytest.mark.parametrize("batch", [1, 20, 150, 199, 200, 500, 3_000])
@pytest.mark.parametrize("lag", [0, 1, 4])
def test_there_is_enough_to_time(batch: int, lag: int) -> None:
    """Snapshots that nobody needs are not published; between those that are, two batches pass."""
    config = kuhn(batch=batch, lag=lag)
    last = config.version_for(games_to_time(config) - 1) * batch
    first = next(games for games in itertools.count(0, batch) if games >= runtime_bench._FIRST)
    assert last - first >= max(2 * batch, 300)


@pytest.mark.parametrize("batch", [1, 2, 99, 300])
@pytest.mark.parametrize("lag", [0, 3])
def test_there_is_enough_to_time_of_blocks(batch: int, lag: int) -> None:
    config = leduc_blocks(batch=batch, lag=lag)
    units, rest = divmod(games_to_time(config), config.block)
    assert rest == 0
    last = config.version_for(units - 1) * batch
    first = next(n for n in itertools.count(0, batch) if n >= runtime_bench._FIRST)
    assert last - first >= max(batch, 60)


def leduc_blocks(**fields: Any) -> RunConfig:
    settings = {"method.iterations": 10, "games": 95, "batch": 2, "lag": 1}
    return load_config("leduc", settings | fields)


def test_a_grid_of_blocks_is_in_whole_units(
    tmp_path: Path, here: list[Task], no_clock: list[Timing]
) -> None:
    grid = make_grid(
        "leduc",
        ["method.iterations=10", "games=95"],
        batches=[2],
        lags=[1, 40],
        seeds=1,
        workers=[1],
        evaluations=(5, 10),
        tests=20,
    )
    assert (grid.config.games, grid.config.eval_every) == (100, 20)
    assert grid.run(Cell(2, 40), 1).lag == 4  # ten units
    said: list[str] = []
    result = staleness.run(grid, tmp_path, retime=False, progress=bar, say=said.append)
    assert (result["games"], result["counts"], result["unit"]) == (100, "iterations", 10)
    assert said == [
        "speeds are not predicted: the capacity model is of methods whose unit is a game"
    ]
    assert {cell["speed"]["1"]["predicted"] for cell in result["cells"]} == {None}
    text = picture.save(result, tmp_path)[1].read_text()
    assert "after 100 training iterations" in text
    assert "a unit has 10 iterations" in text


def test_what_is_too_short_to_be_timed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_few(*_: Any) -> None:
        raise TooShort("300 games are too few to be timed")

    monkeypatch.setattr(runtime_bench, "System", too_few)
    with pytest.raises(ValueError, match=r"batch=2 lag=1: 300 games are too few.*--no-timing"):
        throughput._time(Timing(leduc_blocks(), 1))


def test_the_interval_is_students() -> None:
    assert estimate([0.5]) == (0.5, None)
    mean, width = estimate([1.0, 2.0, 3.0])
    assert mean == 2
    assert width == pytest.approx(4.303 / math.sqrt(3))
    _, wide = estimate([0.0, 1.0] * 7)  # 13 degrees of freedom: as 12, which is wider
    assert wide == pytest.approx(2.179 * math.sqrt(14 / 4 / 13 / 14))


def test_the_picture_has_every_cell(
    tmp_path: Path, here: list[Task], no_clock: list[Timing]
) -> None:
    result = study(small_grid(lags=[0, 1, 3]), tmp_path)
    png, svg = picture.save(result, tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    drawn = set(re.findall(r'id="((?:strength|regret|measured|predicted)-[\d-]+)"', text))
    wanted = set()
    for cell in result["cells"]:
        wanted |= {picture.point_name(w, cell) for w in (picture.STRENGTH, picture.REGRET)}
        wanted |= {picture.point_name(picture.PREDICTED, cell, w) for w in (1, 64)}
        if cell["lag"] < 3:
            wanted.add(picture.point_name(picture.MEASURED, cell, 1))
    assert drawn == wanted
    for said in ("L = 3", "B = 20", "64 workers", "over 2 seeds", "predicted"):
        assert said in text


@pytest.mark.slow
def test_processes_train_and_real_workers_are_timed(tmp_path: Path) -> None:
    grid = small_grid(batches=[20], lags=[1], workers=[1], predict=False)
    result = study(grid, tmp_path)
    (cell,) = result["cells"]
    assert cell["digests"] == [sequential(grid.run(Cell(20, 1), seed)).digest for seed in (1, 2)]
    assert cell["speed"]["1"]["measured"] > 0
    assert cell["speed"]["1"]["others"] >= 0
