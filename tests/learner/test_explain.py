"""Provenance of a policy: exact at every game, verified against the ledger, complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime import by_table
from tampering import change_ledger, flip, forge_delta, forge_ledger, unordered_run

from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.run.config import RunConfig, load_config, make_config
from rejoinder.run.ledger import RECORD
from rejoinder.run.rundir import RunDir
from rejoinder_learner.explain import (
    Infoset,
    NotVerified,
    Standing,
    find_infoset,
    follow,
    gives_states,
    history,
    total_variation,
    unit_in_words,
    whole_units,
)
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner

KUHN = {"game": "kuhn", "method.rollouts": 2, "eval_every": 0, "games": 60, "batch": 4}


def kuhn(**fields: Any) -> RunConfig:
    return make_config(KUHN | {"checkpoint_every": 20} | by_table(fields))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A finished run with checkpoints at games 20, 40 and 60."""
    made = RunDir.create(tmp_path / "run", kuhn())
    train(made)
    return made


def infosets(run: RunDir) -> list[Infoset]:
    rows, abstraction = run.result().rows, run.config.load_abstraction()
    return [find_infoset(f"{key:016x}", rows, abstraction) for key in rows["key"].tolist()]


def rows_after(config: RunConfig, games: int) -> dict[int, Any]:
    """By key, the rows of a learner that was stopped there."""
    learner, actor = Learner(config), config.actor()
    for game in range(games):
        learner.fold(actor.play(game, learner.snapshot_for(game)))
    return {int(row["key"]): row.copy() for row in learner.rows}


def assert_is(point: Standing, infoset: Infoset, row: Any) -> None:
    legal = list(infoset.legal)
    if row is None:
        assert point.visits == 0
        assert point.average.tolist() == [1 / len(legal)] * len(legal)
        return
    assert point.visits == row["updates"]
    assert point.reach == row["reach"]
    assert (point.latest == row["policy"][LATEST, legal]).all()
    assert (point.average == row["policy"][AVERAGE, legal]).all()
    assert (point.regret == row["regret"][legal] / row["count"][legal]).all()


@pytest.mark.parametrize("games", [0, 1, 7, 20, 33, 40, 59, 60])
def test_the_policy_at_any_game_is_that_of_a_run_stopped_there(run: RunDir, games: int) -> None:
    rows = rows_after(run.config, games)
    for infoset in infosets(run):
        found = follow(run, infoset, range(games, games))
        assert found.after.games == games
        assert found.replayed == range(games // 20 * 20, games)
        assert found.movers == []
        assert_is(found.after, infoset, rows.get(infoset.key))


def test_the_history_is_what_the_checkpoints_hold(run: RunDir) -> None:
    by_games = {games: rows_after(run.config, games) for games in (20, 40, 60)}
    for infoset in infosets(run):
        points = history(run, infoset)
        assert [point.games for point in points] == [20, 40, 60]
        for point in points:
            assert_is(point, infoset, by_games[point.games].get(infoset.key))


@pytest.mark.parametrize("games", [range(60), range(13, 47), range(40, 60)])
def test_the_movers_add_up_to_the_whole_change(run: RunDir, games: range) -> None:
    for infoset in infosets(run):
        found = follow(run, infoset, games)
        changes = [mover.after.average - mover.before.average for mover in found.movers]
        whole = found.after.average - found.before.average
        assert sum(changes, np.zeros(len(whole))) == pytest.approx(whole, abs=1e-12)
        updates = sum(len(mover.decisions) for mover in found.movers)
        assert updates == found.after.visits - found.before.visits
        for mover in found.movers:
            assert mover.game == mover.folded
            assert mover.folded in games
            gained = mover.after.regret_sum - mover.before.regret_sum
            regrets = [decision.regret for decision in mover.decisions]
            assert sum(regrets, np.zeros(len(gained))) == pytest.approx(gained, abs=1e-9)
        top = found.top(3)
        assert [m.moved for m in top] == sorted((m.moved for m in found.movers), reverse=True)[:3]
        assert found.moved >= total_variation(found.before.average, found.after.average) - 1e-12


def test_a_games_part_is_its_delta(run: RunDir) -> None:
    actor, learner = run.config.actor(), Learner(run.config)
    deltas = []
    for game in range(20):
        deltas.append(actor.play(game, learner.snapshot_for(game)).copy())
        learner.fold(deltas[-1])
    (infoset, *_) = infosets(run)
    for mover in follow(run, infoset, range(20)).movers:
        for decision in mover.decisions:
            entry = deltas[mover.game][decision.number]
            assert entry["key"] == infoset.key
            assert (decision.regret == entry["regret"][list(infoset.legal)]).all()


def test_decay_and_other_averages(tmp_path: Path) -> None:
    config = kuhn(decay=0.9, averaging="linear", lag=3, batch=7)
    made = RunDir.create(tmp_path / "run", config)
    train(made)
    rows = rows_after(config, 51)
    for infoset in infosets(made):
        found = follow(made, infoset, range(51, 51)).after
        assert found.average == pytest.approx(rows[infoset.key]["policy"][AVERAGE].tolist())


def test_an_unordered_run_is_followed_in_the_order_of_its_ledger(tmp_path: Path) -> None:
    made = unordered_run(tmp_path / "run", kuhn(order="arrival", games=80), old=6)
    for infoset in infosets(made):
        found = follow(made, infoset, range(30, 80))
        assert found.replayed == range(80)
        kept = history(made, infoset)[-1]
        assert (found.after.average == kept.average).all()
        assert found.after.visits == kept.visits
        assert [m.game for m in found.movers] != [m.folded for m in found.movers]


@pytest.mark.parametrize("place", [8, 20, 60])
def test_a_damaged_ledger_is_noticed(run: RunDir, place: int) -> None:
    change_ledger(run, lambda content: flip(content, 33 * RECORD.itemsize + place))
    (infoset, *_) = infosets(run)
    with pytest.raises(NotVerified, match="damaged: its record 33 does not follow"):
        follow(run, infoset, range(60))
    follow(run, infoset, range(33))  # what comes before is as it was


def test_a_forged_ledger_is_noticed_by_playing(run: RunDir) -> None:
    forge_delta(run, 33)
    (infoset, *_) = infosets(run)
    with pytest.raises(NotVerified, match="playing game 33 gives another delta"):
        follow(run, infoset, range(60))


def test_a_ledger_cut_short_or_with_snapshots_that_never_were(tmp_path: Path) -> None:
    made = unordered_run(tmp_path / "run", kuhn(order="arrival", games=80), old=2)
    (infoset, *_) = infosets(made)

    def change(records: Any) -> None:
        records["version"][70] = 2**62

    forge_ledger(made, change)
    with pytest.raises(NotVerified, match="a snapshot that never was, at 70"):
        follow(made, infoset, range(80))
    change_ledger(made, lambda content: content[: 50 * RECORD.itemsize])
    with pytest.raises(NotVerified, match="ends at game 50, not 80"):
        follow(made, infoset, range(80))


def test_a_damaged_checkpoint_is_left_out_and_told(run: RunDir) -> None:
    (run.path / "checkpoints/00000040/table.bin").write_bytes(b"")
    (infoset, *_) = infosets(run)
    told: list[str] = []
    assert [point.games for point in history(run, infoset, told.append)] == [20, 60]
    assert "the checkpoint at game 40" in told[0]
    assert follow(run, infoset, range(45, 50)).replayed == range(20, 50)


def test_infosets_by_name_key_and_beginning() -> None:
    config = load_config("paper", {"games": 2, "method.rollouts": 1})
    learner = Learner(config)
    learner.fold(config.actor().play(0, learner.snapshot_for(0)).copy())
    rows, intent = learner.rows, config.load_abstraction()
    for key in rows["key"].tolist():
        identifier = intent.identifier(key)
        for wanted in (identifier, f"{key:016x}", f"{key:x}", f" {identifier} "):
            assert find_infoset(wanted, rows, intent).key == key
        assert find_infoset(identifier[:-4], rows, intent).key == key
    found = find_infoset(identifier, rows, intent)
    assert found.actions == tuple(intent.actions[a] for a in found.legal)
    with pytest.raises(
        ValueError, match=r"'0@' could be 0@IntentStateAbstraction@.*give more of it"
    ):
        find_infoset("0@", rows, intent)
    wrong = identifier[:-1] + ("0" if identifier[-1] != "0" else "1")
    with pytest.raises(ValueError, match=f"no infoset '{wrong}'; near are .*{identifier}"):
        find_infoset(wrong, rows, intent)
    for nonsense in ("", "zzz", "fold"):
        with pytest.raises(ValueError, match=f"no infoset '{nonsense}'; it has met"):
            find_infoset(nonsense, rows, intent)


@pytest.mark.parametrize("method", [{"name": "external", "weighting": "uniform"}, {"name": "full"}])
def test_blocks_are_followed_by_whole_units(tmp_path: Path, method: dict[str, Any]) -> None:
    lengths = {"games": 60, "eval_every": 0, "checkpoint_every": 20}
    fields = {"game": "kuhn", "method": method | {"iterations": 10}}
    made = RunDir.create(tmp_path / "run", make_config(fields | lengths))
    train(made)
    infoset = infosets(made)[0]
    assert whole_units(made.config, range(25, 31)) == range(20, 40)
    assert whole_units(made.config, range(25, 25)) == range(30, 30)
    assert unit_in_words(made.config, 20) == "unit 2 (iterations 20 to 29)"
    found = follow(made, infoset, range(25, 31))
    assert (found.games, found.replayed) == (range(20, 40), range(20, 40))
    assert [mover.game for mover in found.movers] == [20, 30]
    assert (found.before.games, found.after.games) == (20, 40)
    at = follow(made, infoset, range(25, 25))
    assert (at.after.games, at.movers, at.replayed) == (30, [], range(20, 30))
    states = gives_states(made.config)
    assert states == (method["name"] == "full")
    for mover in found.movers:
        (entry,) = mover.decisions
        told = (
            mover.after.regret_sum if states else mover.after.regret_sum - mover.before.regret_sum
        )
        assert entry.regret == pytest.approx(told, abs=1e-3)


def test_a_game_is_a_unit_of_its_own() -> None:
    config = kuhn()
    assert whole_units(config, range(13, 47)) == range(13, 47)
    assert whole_units(config, range(7, 7)) == range(7, 7)
    assert unit_in_words(config, 1_234) == "game 1,234"
    assert not gives_states(config)


def test_progress_is_told_to_the_end(run: RunDir) -> None:
    heard: list[int] = []
    follow(run, infosets(run)[0], range(25, 30), heard.append)
    assert heard == list(range(20, 31))
