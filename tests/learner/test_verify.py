"""Verification: an honest run holds, and every kind of tampering is found and named."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime import by_table
from tampering import change_ledger, flip, forge_delta, forge_ledger, unordered_run

from rejoinder.run import checkpoints
from rejoinder.run.checkpoints import Checkpoint, Policies, RunError
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.ledger import RECORD, head_after
from rejoinder.run.rundir import RunDir
from rejoinder_learner import verify as verify_module
from rejoinder_learner.sequential import train
from rejoinder_learner.verify import Problem, Verification, choose, read, verify

KUHN = {"game": "kuhn", "method.rollouts": 2, "eval_every": 0, "games": 60, "batch": 4}


def kuhn(**fields: Any) -> RunConfig:
    return make_config(KUHN | {"checkpoint_every": 20} | by_table(fields))


def everything(run: RunDir) -> Verification:
    return verify(RunDir.open(run.path), sample=1, seed=0)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A finished run with checkpoints at games 20, 40 and 60."""
    made = RunDir.create(tmp_path / "run", kuhn())
    train(made)
    return made


@pytest.mark.parametrize(("batch", "lag"), [(1, 0), (4, 0), (4, 1), (7, 3), (100, 1)])
@pytest.mark.parametrize("averaging", ["buffer", "uniform"])
def test_an_honest_run_holds(tmp_path: Path, batch: int, lag: int, averaging: str) -> None:
    made = RunDir.create(tmp_path / "run", kuhn(batch=batch, lag=lag, averaging=averaging))
    train(made)
    found = everything(made)
    assert found.problems == []
    assert (found.recomputed, found.checkpoints, found.compared) == (60, 3, 3)


def test_a_share_is_whole_segments_and_the_beginning_of_one_more(run: RunDir) -> None:
    found = read(run)
    for sample, games in ((0, 0), (0.01, 1), (0.05, 3), (0.5, 30), (1, 60)):
        for seed in range(20):
            chosen = choose(found, sample, seed)
            assert sum(map(len, chosen)) == games
            assert {segment.start for segment in chosen} <= {0, 20, 40}
            assert sum(len(segment) < 20 for segment in chosen) <= 1
            assert chosen == choose(found, sample, seed)
    first = {choose(found, 0.05, seed)[0].start for seed in range(20)}
    assert first == {0, 20, 40}
    assert verify(run, sample=0.05, seed=5).recomputed == 3


def test_progress_is_told_to_the_end(run: RunDir) -> None:
    heard: list[int] = []
    verify(run, sample=1, seed=0, on_game=heard.append)
    assert heard[0] == 0
    assert heard[-1] == 60
    assert heard == sorted(heard)


def test_a_run_that_was_stopped_and_resumed_holds(tmp_path: Path) -> None:
    made = RunDir.create(tmp_path / "run", kuhn())
    asked = iter([False] * 27 + [True])
    train(made, should_stop=lambda: next(asked))
    stopped = everything(made)
    assert stopped.holds
    assert stopped.recomputed == 27
    train(RunDir.open(made.path))
    assert everything(made).holds


def test_a_run_without_games_cannot_be_verified(tmp_path: Path) -> None:
    made = RunDir.create(tmp_path / "run", kuhn())
    with pytest.raises(RunError, match="nothing to verify"):
        read(made)


@pytest.mark.parametrize("place", [0, 8, 16, 40, 48, 79])  # of every field, and the last byte
def test_a_flipped_byte_in_the_ledger(run: RunDir, place: int) -> None:
    change_ledger(run, lambda content: flip(content, 33 * RECORD.itemsize + place))
    found = everything(run)
    assert Problem("ledger", 33, "its record does not follow from the one before") in found.problems
    assert min(problem.game for problem in found.problems) == 33


def test_a_forged_ledger_is_found_by_the_checkpoints(run: RunDir) -> None:
    forge_delta(run, 33)
    found = read(run)
    assert [(p.part, p.game) for p in found.problems] == [("checkpoint", 40), ("checkpoint", 60)]
    assert "another history" in found.problems[0].what


def test_a_forged_ledger_with_forged_checkpoints_is_found_by_playing(run: RunDir) -> None:
    forge_delta(run, 33)
    records = run.ledger()
    for games in run.checkpoint_games():
        forge_checkpoint(run, games, lambda c: with_heads(c, records, run.config))
    assert read(run).holds
    (problem,) = everything(run).problems
    assert (problem.part, problem.game) == ("recomputation", 33)
    assert "another delta" in problem.what
    # Games before it are honest, so a sample that does not reach it finds nothing.
    assert verify(run, sample=0.2, seed=seed_for(run, 0.2, 0)).holds
    assert not verify(run, sample=0.25, seed=seed_for(run, 0.25, 20)).holds


def test_games_in_another_order_or_with_another_snapshot(run: RunDir) -> None:
    def exchange(records: Any) -> None:
        records["unit"][[10, 11]] = [11, 10]
        records["version"][30] += 1

    forge_ledger(run, exchange)
    told = {
        problem.game: problem.what for problem in read(run).problems if problem.part == "ledger"
    }
    assert "game 11 as number 10" in told[10]
    assert "version 7; the contract asks for 6" in told[30]


def test_a_ledger_cut_short(run: RunDir) -> None:
    change_ledger(run, lambda content: content[: 50 * RECORD.itemsize + 7])
    (problem,) = everything(run).problems
    assert problem == Problem("ledger", 50, "it ends here, before the checkpoint at game 60")
    (run.path / "ledger.bin").unlink()
    (problem,) = everything(run).problems
    assert problem == Problem("ledger", 0, "it ends here, before the checkpoint at game 60")


def test_a_missing_checkpoint(run: RunDir) -> None:
    shutil.rmtree(run.path / "checkpoints/00000060")
    (problem,) = everything(run).problems
    assert (problem.part, problem.game) == ("checkpoint", 60)
    assert "is missing" in problem.what


def test_an_old_checkpoint_may_be_gone_for_they_are_thinned_out(run: RunDir) -> None:
    shutil.rmtree(run.path / "checkpoints/00000020")
    found = everything(run)
    assert found.holds
    assert found.recomputed == 60


def test_games_after_the_newest_checkpoint_are_played_too(run: RunDir) -> None:
    """A trainer that is killed between writing the ledger and the checkpoint leaves such a run."""
    run.continue_with(kuhn(games=100))
    shutil.rmtree(run.path / "checkpoints/00000060")
    found = everything(run)
    assert found.holds
    assert found.recomputed == 60
    assert "20 games after the newest checkpoint" in found.notes[0]
    change_ledger(run, lambda content: flip(content, 50 * RECORD.itemsize + 16))
    assert [p.part for p in everything(run).problems] == ["ledger", "recomputation"]


def test_a_damaged_checkpoint(run: RunDir) -> None:
    table = run.path / "checkpoints/00000040/table.bin"
    table.write_bytes(flip(table.read_bytes(), 9))
    found = everything(run)
    (problem,) = found.problems
    assert (problem.part, problem.game) == ("checkpoint", 40)
    assert "table.bin does not match its checksum" in problem.what
    assert found.recomputed == 60  # from game 20 to the end in one go


@pytest.mark.parametrize("other", ["another game", "another seed"])
def test_a_swapped_checkpoint(run: RunDir, tmp_path: Path, other: str) -> None:
    source = run.path / "checkpoints/00000020"
    if other == "another seed":
        stranger = RunDir.create(tmp_path / "stranger", kuhn(seed=2))
        train(stranger)
        source = stranger.path / "checkpoints/00000040"
    shutil.rmtree(run.path / "checkpoints/00000040")
    shutil.copytree(source, run.path / "checkpoints/00000040")
    (problem,) = everything(run).problems
    assert (problem.part, problem.game) == ("checkpoint", 40)
    assert problem.what.startswith("is damaged: ")


def test_a_changed_table_with_its_checksums_made_anew(run: RunDir) -> None:
    def change(checkpoint: Checkpoint) -> Checkpoint:
        rows = checkpoint.rows.copy()
        rows["regret"][3, 0] += 0.5
        return dataclasses.replace(checkpoint, rows=rows)

    forge_checkpoint(run, 40, change)
    assert read(run).holds
    problems = everything(run).problems
    assert problems[0].part == "recomputation"
    assert problems[0].game == 40
    assert "the table of the checkpoint" in problems[0].what
    assert "row 3 is the first that differs" in problems[0].what
    assert all(problem.game >= 40 for problem in problems)


def test_changed_snapshots_with_their_checksums_made_anew(run: RunDir) -> None:
    def change(checkpoint: Checkpoint) -> Checkpoint:
        snapshots = dict(checkpoint.snapshots)
        rows = snapshots[9].rows.copy()
        rows["policy"][0, 0] += 0.125
        snapshots[9] = Policies(snapshots[9].head, rows)
        return dataclasses.replace(checkpoint, snapshots=snapshots)

    forge_checkpoint(run, 40, change)
    assert read(run).holds
    first = everything(run).problems[0]
    assert (first.part, first.game) == ("recomputation", 40)
    assert "snapshot 9 of the checkpoint" in first.what


def test_parts_that_do_not_belong_together(run: RunDir) -> None:
    def change(checkpoint: Checkpoint) -> Checkpoint:
        snapshots = dict(checkpoint.snapshots)
        rows = snapshots[9].rows.copy()
        rows["key"][0] += np.uint64(1)
        snapshots[9] = Policies(snapshots[9].head, rows)
        return dataclasses.replace(checkpoint, snapshots=snapshots)

    forge_checkpoint(run, 40, change)
    told = {(p.part, p.game) for p in everything(run).problems}
    assert ("recomputation", 40) in told
    assert min(game for _, game in told) == 40


def test_a_run_of_other_kernels_is_said_to_be_one(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(run).notes == []
    made_by = run.config.kernel
    monkeypatch.setattr(RunConfig, "kernel", "another")
    (note,) = read(run).notes
    assert made_by in note
    assert "another" in note


def test_an_unordered_run_holds(tmp_path: Path) -> None:
    made = unordered_run(tmp_path / "run", kuhn(order="arrival", games=80), old=2)
    found = everything(made)
    assert found.problems == []
    assert (found.recomputed, found.not_checkable) == (80, 0)


def test_of_an_unordered_run_some_games_may_not_be_checkable(tmp_path: Path) -> None:
    """A segment begins with games that were played with snapshots from before its checkpoint."""
    made = unordered_run(tmp_path / "run", kuhn(order="arrival", games=80), old=6)
    found = read(made)
    for segment in (range(20, 40), range(40, 60)):
        verify_module.recompute(found, [segment])
    assert found.problems == []
    assert found.not_checkable > 0
    assert found.recomputed + found.not_checkable == 40
    assert everything(made).not_checkable == 0


def test_an_unordered_run_with_a_game_twice_or_from_the_future(tmp_path: Path) -> None:
    made = unordered_run(tmp_path / "run", kuhn(order="arrival", games=80), old=2)

    def change(records: Any) -> None:
        records["unit"][50] = records["unit"][49]
        records["version"][70] = 2**63

    forge_ledger(made, change)
    told = {p.game: p.what for p in everything(made).problems if p.part == "ledger"}
    assert "which was folded before" in told[50]
    assert "there were only versions up to 17" in told[70]


def test_a_forged_unordered_run(tmp_path: Path) -> None:
    made = unordered_run(tmp_path / "run", kuhn(order="arrival", games=80), old=2)
    forge_delta(made, 33)
    records = made.ledger()
    for games in made.checkpoint_games():
        forge_checkpoint(made, games, lambda c: with_heads(c, records, made.config))
    (problem,) = everything(made).problems
    assert (problem.part, problem.game) == ("recomputation", 33)


def seed_for(run: RunDir, sample: float, start: int) -> int:
    """A seed with which only the segment from `start` on is chosen."""
    found = read(run)
    return next(s for s in range(99) if [c.start for c in choose(found, sample, s)] == [start])


def forge_checkpoint(run: RunDir, games: int, change: Callable[[Checkpoint], Checkpoint]) -> None:
    """Write another checkpoint in the place of one, with all its checksums."""
    changed = change(run.checkpoint(games))
    folder = run.path / f"checkpoints/{games:08d}"
    shutil.rmtree(folder)
    folder.mkdir()
    checkpoints.write_checkpoint(folder, run.config, changed)


def with_heads(checkpoint: Checkpoint, records: Any, config: RunConfig) -> Checkpoint:
    """The checkpoint with the heads of another ledger."""
    return dataclasses.replace(
        checkpoint,
        head=head_after(records, checkpoint.games, config.fingerprint),
        snapshots={
            version: Policies(
                head_after(records, version * config.batch, config.fingerprint), part.rows
            )
            for version, part in checkpoint.snapshots.items()
        },
    )
