"""Sequential training obeys the determinism contract; digests are compared, not tolerances."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime import by_table

from rejoinder.methods.tabular.model import TableSnapshot
from rejoinder.run.checkpoints import RunError
from rejoinder.run.config import RunConfig, load_config, make_config
from rejoinder.run.rundir import RunDir
from rejoinder_learner.sequential import TrainResult, train
from rejoinder_learner.state import Learner

KUHN = {"game": "kuhn", "method.rollouts": 2, "eval_games": 2, "eval_every": 0, "games": 24}


def kuhn(**fields: Any) -> RunConfig:
    return make_config(KUHN | by_table(fields))


def stop_at(games: int) -> Callable[[], bool]:
    """Asks for a stop before the game of that number."""
    asked = itertools.count()
    return lambda: next(asked) >= games


def fresh(path: Path, config: RunConfig) -> TrainResult:
    return train(RunDir.create(path, config))


def folded(config: RunConfig, games: int) -> Learner:
    learner, actor = Learner(config), config.actor()
    for game in range(games):
        learner.fold(actor.play(game, learner.snapshot_for(game)))
    return learner


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 7),
    lag=st.integers(0, 4),
    stop=st.integers(0, 30),
    more=st.integers(0, 30),
    averaging=st.sampled_from(["buffer", "uniform", "linear"]),
)
def test_a_checkpoint_anywhere_changes_nothing(
    batch: int, lag: int, stop: int, more: int, averaging: str
) -> None:
    config = kuhn(batch=batch, lag=lag, averaging=averaging)
    resumed, actor = Learner(config, folded(config, stop).checkpoint()), config.actor()
    for game in range(stop, stop + more):
        resumed.fold(actor.play(game, resumed.snapshot_for(game)))
    assert resumed.digest() == folded(config, stop + more).digest()


@pytest.mark.parametrize(("batch", "lag"), [(1, 0), (4, 0), (4, 1), (5, 3), (100, 1)])
@pytest.mark.parametrize("stop", [0, 1, 4, 13, 23])
def test_stop_and_resume_give_the_digest_of_an_uninterrupted_run(
    tmp_path: Path, batch: int, lag: int, stop: int
) -> None:
    config = kuhn(batch=batch, lag=lag, checkpoint_every=6)
    expected = fresh(tmp_path / "whole", config)
    run = RunDir.create(tmp_path / "stopped", config)
    first = train(run, should_stop=stop_at(stop))
    assert (first.games, first.finished) == (stop, False)
    second = train(RunDir.open(tmp_path / "stopped"))
    assert (second.games, second.played, second.finished) == (24, 24 - stop, True)
    assert second.digest == expected.digest


def snapshot_of(learner: Learner) -> TableSnapshot:
    """A copy of what actors read now."""
    rows = learner.policy_rows()
    return TableSnapshot(rows.dtype, rows)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_game_is_played_with_the_snapshot_of_its_index(batch: int, lag: int) -> None:
    """Against a learner written from the contract: keep every snapshot there ever was."""
    config = kuhn(batch=batch, lag=lag)
    naive, actor = Learner(config), config.actor()
    snapshots = [snapshot_of(naive)]
    for game in range(20):
        naive.fold(actor.play(game, snapshots[max(0, game // batch - lag)]))
        if (game + 1) % batch == 0:
            snapshots.append(snapshot_of(naive))
    assert folded(config, 20).digest() == naive.digest()


def test_a_delta_is_a_pure_function_of_its_game() -> None:
    config = kuhn()
    policy = snapshot_of(folded(config, 9))
    actor, other = config.actor(), config.actor()
    first = actor.play(9, policy).tobytes()
    actor.play(3, policy)
    assert actor.play(9, policy).tobytes() == first
    assert other.play(9, policy).tobytes() == first
    assert other.play(10, policy).tobytes() != first


def test_batch_lag_and_seed_matter() -> None:
    base = {"batch": 4, "lag": 1}
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"batch": 5},
        {"lag": 0},
        {"seed": 2},
        {"method.rollouts": 3},
        {"method.decay": 0.9},
    )
    rows = [folded(kuhn(**(base | change)), 24).rows.tobytes() for change in changes]
    assert len(set(rows)) == len(rows)


def test_reporting_never_touches_the_learner(tmp_path: Path) -> None:
    quiet = fresh(tmp_path / "quiet", kuhn(checkpoint_every=0))
    loud = fresh(tmp_path / "loud", kuhn(eval_every=1, eval_games=20, checkpoint_every=1))
    assert quiet.digest == loud.digest


def test_a_longer_run_goes_through_the_states_of_the_shorter(tmp_path: Path) -> None:
    fresh(tmp_path / "run", kuhn(games=10))
    run = RunDir.open(tmp_path / "run")
    run.continue_with(kuhn(games=24))
    assert train(run).digest == fresh(tmp_path / "whole", kuhn(games=24)).digest
    with pytest.raises(RunError, match="has 24 games already"):
        run.continue_with(kuhn(games=10))
    assert RunDir.open(tmp_path / "run").config.games == 24


def test_a_run_ends_after_a_whole_unit_and_can_be_continued_from_there(tmp_path: Path) -> None:
    fields = {"method.name": "external", "method.iterations": 10, "eval_every": 0}
    config = make_config({"game": "kuhn", "games": 25, **fields})
    run = RunDir.create(tmp_path / "run", config)
    result = train(run)
    assert (result.games, result.finished) == (30, True)
    run.write_status({})  # so that checkpoints tell how far it is
    assert run.standing()["state"] == "finished"
    assert run.standing()["target"] == 30
    again = RunDir.open_or_create(tmp_path / "run", config)
    assert (train(again).digest, again.config.games) == (result.digest, 25)
    with pytest.raises(RunError, match="has 30 iterations already; 20 are fewer"):
        run.continue_with(make_config({"game": "kuhn", "games": 15, **fields}))


def test_a_damaged_checkpoint_costs_time_not_the_digest(tmp_path: Path) -> None:
    config = kuhn(checkpoint_every=5)
    run = RunDir.create(tmp_path / "run", config)
    expected = train(run).digest
    for games, restart in ((24, 20), (20, 15)):
        (tmp_path / f"run/checkpoints/{games:08d}/table.bin").write_bytes(b"")
        for later in (p for p in (tmp_path / "run/checkpoints").iterdir() if int(p.name) > games):
            (later / "table.bin").write_bytes(b"")
        problems: list[str] = []
        result = train(run, report=problems.append)
        assert result.played == 24 - restart
        assert result.digest == expected
        assert any(f"at game {games} of" in p and "not used: table.bin" in p for p in problems)


def test_metrics_of_a_resumed_run_are_those_of_an_uninterrupted_one(tmp_path: Path) -> None:
    config = kuhn(eval_every=5, eval_games=20, checkpoint_every=10)
    whole = RunDir.create(tmp_path / "whole", config)
    train(whole)
    stopped = RunDir.create(tmp_path / "stopped", config)
    train(stopped, should_stop=stop_at(18))
    (tmp_path / "stopped/checkpoints/00000018/manifest.json").unlink()  # back to game 10
    train(stopped)
    assert [r["games"] for r in whole.metrics()] == [5, 10, 15, 20, 24]
    assert stopped.metrics() == whole.metrics()


def test_what_an_evaluation_says(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", kuhn(games=60, eval_every=60, eval_games=100))
    train(run)
    (record,) = run.metrics()
    assert record["infosets"] == 12
    assert record["mer"] >= 0
    assert record["updates"]["min"] <= record["updates"]["median"] <= record["updates"]["max"]
    assert record["policy"].keys() == {"pass", "bet"}
    for match in record["matches"].values():
        assert match.keys() == {"mean_utility", "utility_error", "games"}  # poker counts no wins
        assert match["games"] == 100
        assert 0 < match["utility_error"] < 1


def test_other_kernels_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDir.create(tmp_path / "run", kuhn())
    train(run, should_stop=stop_at(3))
    monkeypatch.setattr(RunConfig, "kernel", "another")
    told: list[str] = []
    train(run, report=told.append)
    assert "kernels" in told[0]
    assert "another" in told[0]


def test_leduc_learns_too(tmp_path: Path) -> None:
    config = make_config({"game": "leduc", "games": 200, "method.rollouts": 5, "eval_every": 200})
    run = RunDir.create(tmp_path / "run", config)
    train(run)
    assert run.metrics()[-1]["matches"]["random"]["mean_utility"] > 0


def test_tiny_learns_to_beat_random(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", load_config("tiny", {"games": 100}))
    train(run)
    assert run.metrics()[-1]["matches"]["random"]["low"] > 0.5


def test_it_says_how_it_stands(tmp_path: Path) -> None:
    """As a learner with workers does, so that whoever watches need not know the mode."""
    run = RunDir.create(tmp_path / "run", make_config({"game": "kuhn", "games": 40}))
    states: list[str] = []

    def look(games: int) -> None:
        if games:
            states.append(run.standing()["state"])

    train(run, on_game=look, should_stop=lambda: len(states) == 20)
    assert states == ["training"] * 20
    stopped = run.standing()
    assert (stopped["state"], stopped["games"], stopped["alive"]) == ("stopped", 20, False)
    train(run)
    assert (run.standing()["state"], run.standing()["games"]) == ("finished", 40)
