"""The journal: a disk that fails costs a report, never a game, and nothing noted is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rejoinder.run.checkpoints import Policies, RunError
from rejoinder.run.config import make_config
from rejoinder.run.ledger import first_break
from rejoinder.run.rundir import RunDir
from rejoinder_learner.journal import Journal, is_due, next_stop
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner

CONFIG = make_config(
    {
        "game": "kuhn",
        "method.rollouts": 1,
        "batch": 4,
        "games": 40,
        "eval_every": 0,
        "checkpoint_every": 10,
        "checkpoints_kept": 3,
    }
)
PLAYED = {"random": {"mean_utility": 0.5}}


class SmallDisk:
    """A file system of 256 kB, and a file that takes up what is left of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, but: int = 0) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            while os.statvfs(self.path).f_bavail:
                file.write(bytes(4096))
            file.truncate(file.tell() - but)

    def clear(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs a small disk of its own: run as root where `mount -t tmpfs` is allowed")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", str(path)], check=True)


def play(learner: Learner, end: int) -> None:
    actor = CONFIG.actor()
    while learner.games < end:
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))


def begin(path: Path) -> tuple[RunDir, Journal, Learner, list[str]]:
    told: list[str] = []
    run = RunDir.create(path, CONFIG)
    journal = Journal(run, told.append)
    learner, evaluations = journal.resume()
    assert (learner.games, evaluations, journal.saved) == (0, {}, 0)
    return run, journal, learner, told


def test_what_is_saved_is_resumed(tmp_path: Path) -> None:
    run, journal, learner, told = begin(tmp_path / "run")
    play(learner, 13)
    assert journal.save(learner)
    play(learner, 17)
    journal.save_last(learner)
    assert journal.saved == 17
    resumed, _ = Journal(run, told.append).resume()
    assert resumed.digest() == learner.digest()
    assert resumed.head == learner.head
    assert len(run.ledger()) == 17
    assert first_break(run.ledger(), CONFIG.fingerprint) is None
    assert told == []


def test_resume_goes_back_no_further_than_it_is_told(tmp_path: Path) -> None:
    run, journal, learner, told = begin(tmp_path / "run")
    for games in (10, 20, 30):
        play(learner, games)
        journal.statistics(learner)
        journal.save(learner)
    expected = run.ledger().tobytes()
    again = Journal(run, told.append)
    earlier, _ = again.resume(most=25)
    assert (earlier.games, again.saved) == (20, 20)
    assert [record["games"] for record in run.metrics()] == [10, 20]
    play(earlier, 30)
    again.save(earlier)
    assert earlier.digest() == learner.digest()
    assert run.ledger().tobytes() == expected  # from game 20 on written again, the same


def test_evaluations_to_come_outlive_the_trainer_unless_they_are_known(tmp_path: Path) -> None:
    run, journal, learner, told = begin(tmp_path / "run")
    waiting = {}
    for games in (4, 8, 12):
        play(learner, games)
        waiting[games] = Policies(learner.head, learner.policy_rows())
    journal.save(learner, waiting)
    journal.matches(8, PLAYED)
    _, evaluations = Journal(run, told.append).resume()
    assert list(evaluations) == [4, 12]
    for games, policies in evaluations.items():
        assert policies.head == waiting[games].head
        assert policies.rows.tobytes() == waiting[games].rows.tobytes()


def test_sequential_training_makes_up_for_evaluations_left_over(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"eval_every": 8, "eval_games": 20})
    whole = RunDir.create(tmp_path / "whole", config)
    train(whole)
    run = RunDir.create(tmp_path / "run", config)
    journal = Journal(run, pytest.fail)
    learner, _ = journal.resume()
    play(learner, 8)
    journal.statistics(learner)
    journal.save(learner, {8: Policies(learner.head, learner.policy_rows())})
    assert "matches" not in run.metrics()[0]
    train(run)
    assert run.metrics() == whole.metrics()


def test_metrics_are_joined_by_game_index(tmp_path: Path) -> None:
    run, journal, learner, _ = begin(tmp_path / "run")
    play(learner, 10)
    record = journal.statistics(learner)
    journal.matches(10, PLAYED)
    assert run.metrics() == [record | {"matches": PLAYED}]
    assert record["games"] == 10
    assert record["infosets"] == len(learner.rows)


def test_a_full_disk_is_told_of_and_the_training_goes_on(disk: SmallDisk) -> None:
    run, journal, learner, told = begin(disk.path / "run")
    play(learner, 10)
    assert journal.save(learner)
    disk.fill()
    for games in (20, 30):
        play(learner, games)
        assert not journal.save(learner)
        assert told[-1] == (
            f"no checkpoint at game {games}: No space left on device; the one at game 10 holds, "
            "and the next learner goes on from there"
        )
    assert run.result().games == 10
    found, _ = Journal(RunDir.open(run.path), told.append).resume(most=10)
    assert found.games == 10  # what holds can be continued, ledger and all
    disk.clear()
    play(learner, 34)
    assert journal.save(learner)
    assert run.result().games == 34
    assert len(run.ledger()) == 34
    assert first_break(run.ledger(), CONFIG.fingerprint) is None


@pytest.mark.parametrize("left", [0, 4096, 8192, 12288])
def test_wherever_the_disk_gets_full_nothing_is_half_there(disk: SmallDisk, left: int) -> None:
    """Room for nothing, for the ledger, for some of the files: whole checkpoints or none."""
    run, journal, learner, told = begin(disk.path / "run")
    play(learner, 10)
    journal.save(learner)
    disk.fill(but=left)
    play(learner, 20)
    assert not journal.save(learner)
    assert run.checkpoint_games() == [10]
    assert os.listdir(run.path / "checkpoints") == ["00000010"]
    before = Journal(run, pytest.fail).resume()[0]
    assert before.games == 10
    disk.clear()
    assert journal.save(learner)
    assert Journal(run, pytest.fail).resume()[0].digest() == learner.digest()
    assert len(told) == 1


def test_a_last_checkpoint_that_cannot_be_written_is_an_error(disk: SmallDisk) -> None:
    run, journal, learner, _ = begin(disk.path / "run")
    play(learner, 10)
    journal.save(learner)
    play(learner, 20)
    disk.fill()
    with pytest.raises(RunError) as caught:
        journal.save_last(learner)
    assert str(caught.value) == (
        f"the checkpoint at game 20 could not be written to {run.path}: No space left on device; "
        "the one at game 10 holds, and the next learner goes on from there"
    )
    disk.clear()
    journal.save_last(learner)
    assert run.result().games == 20


def test_metrics_that_found_no_room_are_written_later(disk: SmallDisk) -> None:
    """The file's last page takes some of them, the next one in part, and then none."""
    run, journal, learner, told = begin(disk.path / "run")
    expected = []
    for games in range(1, 41):
        play(learner, games)
        expected.append(journal.statistics(learner))
        if games == 3:
            disk.fill()
    written = len(run.metrics())
    assert 3 < written < 40
    assert told[0] == (f"metrics at game {written + 1}: No space left on device; kept for later")
    disk.clear()
    journal.save_last(learner)
    assert run.metrics() == expected


def test_a_checkpoint_without_its_metrics_is_told_as_that(disk: SmallDisk) -> None:
    run, journal, learner, told = begin(disk.path / "run")
    play(learner, 10)
    assert journal.save(learner)
    disk.fill()
    # What does not fit into the rest of the file's last page.
    journal.matches(10, {f"opponent {n}": PLAYED for n in range(200)})
    assert told == ["metrics at game 10: No space left on device; kept for later"]
    assert journal.save(learner)  # the checkpoint at game 10 is there
    assert len(told) == 1
    with pytest.raises(RunError, match=r"1 metrics could not .* the checkpoint at game 10 holds"):
        journal.save_last(learner)
    disk.clear()
    journal.save_last(learner)
    assert list(run.metrics()[0]["matches"]) == sorted(f"opponent {n}" for n in range(200))


def test_training_on_a_disk_that_is_full_for_a_while_gives_the_same_digest(
    disk: SmallDisk, tmp_path: Path
) -> None:
    expected = train(RunDir.create(tmp_path / "whole", CONFIG)).digest
    told: list[str] = []

    def weather(games: int) -> None:
        if games == 12:
            disk.fill()
        if games == 33:
            disk.clear()

    run = RunDir.create(disk.path / "run", CONFIG)
    result = train(run, on_game=weather, report=told.append)
    assert (result.digest, result.finished) == (expected, True)
    assert ["game 20" in told[0], "game 30" in told[1], len(told)] == [True, True, 2]
    assert run.ledger().tobytes() == RunDir.open(tmp_path / "whole").ledger().tobytes()


def test_a_directory_that_is_gone_for_a_while(tmp_path: Path) -> None:
    """No root needed: the disk is not full but away."""
    run, journal, learner, told = begin(tmp_path / "run")
    play(learner, 10)
    assert journal.save(learner)
    (tmp_path / "run").rename(tmp_path / "away")
    play(learner, 20)
    record = journal.statistics(learner)
    assert not journal.save(learner)
    with pytest.raises(RunError, match="run is gone"):
        journal.save_last(learner)
    assert told == [
        "metrics at game 20: No such file or directory; kept for later",
        f"no checkpoint at game 20: No such file or directory; {tmp_path / 'run'} is gone, "
        "and what was in it",
    ]
    (tmp_path / "away").rename(tmp_path / "run")
    assert journal.save(learner)
    assert run.metrics() == [record]
    assert Journal(run, pytest.fail).resume()[0].digest() == learner.digest()


@pytest.mark.parametrize(
    ("every", "due"), [(0, []), (1, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6, 7]), (99, [7])]
)
def test_what_is_due_when(every: int, due: list[int]) -> None:
    config = make_config({"game": "kuhn", "games": 7})
    assert [games for games in range(1, 8) if is_due(config, every, games)] == due


def test_the_next_stop_misses_nothing_that_is_due() -> None:
    fields: dict[str, Any] = {"game": "kuhn", "games": 50}
    for evaluations, checkpoints in ((0, 0), (7, 0), (0, 9), (6, 10)):
        config = make_config(fields | {"eval_every": evaluations, "checkpoint_every": checkpoints})
        stops = [0]
        while stops[-1] < 50:
            stops.append(next_stop(config, stops[-1]))
        expected = {0, 50}
        for every in (evaluations, checkpoints):
            expected |= set(range(0, 50, every)) if every else set()
        assert stops == sorted(expected)
