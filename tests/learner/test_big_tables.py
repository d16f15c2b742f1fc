"""Checkpoints of big tables: increments, written by a child beside the folding."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from rejoinder.run import checkpoints
from rejoinder.run.checkpoints import DamagedError, Policies
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.rundir import RunDir
from rejoinder_learner import journal as journal_module
from rejoinder_learner.journal import Journal
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner

CONFIG = make_config(
    {
        "game": "leduc",
        "method.name": "external",
        "method.iterations": 5,  # so that a unit meets a part of the infosets
        "batch": 3,
        "games": 400,
        "eval_every": 0,
        "checkpoint_every": 40,
        "checkpoints_kept": 4,
    }
)


@pytest.fixture(autouse=True)
def every_table_is_big(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "BIG_BYTES", 1)


def play(learner: Learner, units: int) -> None:
    actor = CONFIG.actor()
    while learner.units < units:
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))


def begin(path: Path, told: list[str]) -> tuple[RunDir, Journal, Learner]:
    run = RunDir.create(path, CONFIG)
    journal = Journal(run, told.append)
    return run, journal, journal.resume()[0]


def everything(learner: Learner) -> tuple[Any, ...]:
    """What a learner goes on from, down to the last byte."""
    saved = learner.checkpoint()
    snapshots = {v: (p.head, p.rows.tobytes()) for v, p in saved.snapshots.items()}
    return saved.games, saved.head, saved.rows.tobytes(), snapshots


def files_of(run: RunDir, games: int) -> set[str]:
    names = os.listdir(run.path / "checkpoints" / f"{games:08d}")
    return {name for name in names if name.startswith("table")}


def flip_a_bit(file: Path) -> None:
    """In place, so that it is flipped in all checkpoints that share the file."""
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)


def test_increments_make_the_state_that_was_saved_whatever_is_thinned_out(tmp_path: Path) -> None:
    told: list[str] = []
    run, journal, learner = begin(tmp_path / "run", told)
    expected, kinds = {}, set()
    for units in range(8, 81, 4):  # also between two snapshots
        play(learner, units)
        assert journal.save(learner)
        expected[learner.games] = everything(learner)
        journal.wait()
        kinds.add(frozenset(files_of(run, learner.games)))
        for games in run.checkpoint_games():
            assert everything(Learner(CONFIG, run.checkpoint(games))) == expected[games]
    assert len(run.checkpoint_games()) == 4  # the files of those before are still shared
    assert max(map(len, kinds)) > 2  # several increments on one table
    assert {"table.bin"} in kinds  # and the table written whole again now and then
    assert told == []


def test_an_evaluation_to_come_is_written_once(tmp_path: Path) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    play(learner, 60)
    waiting = {learner.games: Policies(learner.head, learner.checkpoint().rows)}
    for units in (60, 61, 62):
        play(learner, units)
        journal.save(learner, waiting)
        journal.wait()
    files = [run.path / f"checkpoints/{games:08d}/evaluation-300.bin" for games in (300, 305, 310)]
    assert len({file.stat().st_ino for file in files}) == 1
    assert run.result().evaluations[300].rows.tobytes() == waiting[300].rows.tobytes()


def test_a_resumed_learner_goes_on_with_increments(tmp_path: Path) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    play(learner, 60)
    journal.save_last(learner)
    again = Journal(run, pytest.fail)
    resumed, _ = again.resume()
    for units in (61, 62):
        play(resumed, units)
        again.save(resumed)
    again.wait()
    assert files_of(run, 310) == {"table.bin", "table-305.bin", "table-310.bin"}
    play(learner, 62)
    assert everything(Learner(CONFIG, run.result())) == everything(learner)


def test_a_damaged_increment_is_refused_and_the_one_before_used(tmp_path: Path) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    for units in (60, 61, 62):
        play(learner, units)
        journal.save(learner)
    journal.wait()
    file = run.path / "checkpoints/00000310/table-310.bin"
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedError, match=r"table-310\.bin does not match its checksum"):
        run.checkpoint(310)
    problems: list[str] = []
    resumed, _ = Journal(run, problems.append).resume()
    assert resumed.games == 305
    assert len(problems) == 1
    play(resumed, 62)
    assert resumed.digest() == learner.digest()


@pytest.mark.parametrize("lost", ["table-310.bin", "table.bin"])
def test_a_lost_file_costs_no_checkpoint_that_is_whole(tmp_path: Path, lost: str) -> None:
    """The table is then written whole, and not into a file that earlier checkpoints share."""
    run, journal, learner = begin(tmp_path / "run", [])
    for units in (60, 61, 62):
        play(learner, units)
        journal.save(learner)
    journal.wait()
    (run.path / "checkpoints/00000310" / lost).unlink()
    play(learner, 63)
    journal.save_last(learner)
    assert files_of(run, 315) == {"table.bin"}
    for games in (300, 305, 315):
        assert run.checkpoint(games).games == games


@pytest.mark.parametrize("damage", ["shorter", "longer", "flipped"])
def test_a_damaged_table_is_not_shared(tmp_path: Path, damage: str) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    play(learner, 60)
    journal.save_last(learner)
    file = run.path / "checkpoints/00000300/table.bin"
    if damage == "flipped":
        flip_a_bit(file)
    else:
        os.truncate(file, {"shorter": 100, "longer": 10**6}[damage])
    play(learner, 61)
    journal.save_last(learner)
    assert everything(Learner(CONFIG, run.result())) == everything(learner)


@pytest.mark.parametrize(
    "name", ["table-7", "table-../../../ledger.bin", f"table-{'9' * 5_000}.bin", "evaluation-x.bin"]
)
def test_a_manifest_with_a_name_that_no_writer_gives_is_damaged(tmp_path: Path, name: str) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    play(learner, 60)
    journal.save_last(learner)
    path = run.path / "checkpoints/00000300/manifest.json"
    manifest = checkpoints.Manifest.model_validate_json(path.read_bytes())
    manifest.files[name] = manifest.files["table.bin"]
    manifest.checksum = manifest.checksum_of_the_rest()
    path.write_text(manifest.model_dump_json())
    with pytest.raises(DamagedError, match="it lists the file '"):
        run.checkpoint(300)
    play(learner, 61)
    journal.save_last(learner)
    assert everything(Learner(CONFIG, run.result())) == everything(learner)


def test_a_damaged_table_costs_only_the_checkpoints_that_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "MOST_SHARING", 4)  # increments are never too heavy
    config = CONFIG.model_copy(update={"checkpoints_kept": 20})
    run = RunDir.create(tmp_path / "run", config)
    journal = Journal(run, pytest.fail)
    learner, _ = journal.resume()
    for units in range(60, 66):
        play(learner, units)
        journal.save(learner)
    journal.wait()
    *shared, whole, last = run.checkpoint_games()
    names = {games: len(files_of(run, games)) for games in run.checkpoint_games()}
    assert names == {games: n + 1 for n, games in enumerate(shared)} | {whole: 1, last: 2}
    flip_a_bit(run.path / f"checkpoints/{last:08d}/table.bin")
    problems: list[str] = []
    resumed, _ = Journal(run, problems.append).resume()
    assert (resumed.games, len(problems)) == (shared[-1], 2)
    play(resumed, learner.units)
    assert resumed.digest() == learner.digest()


def test_a_writer_that_fails_is_reported_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    run, journal, learner = begin(tmp_path / "run", told)
    play(learner, 60)
    journal.save(learner)
    journal.wait()

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_durably", full)
        play(learner, 61)
        assert journal.save(learner)  # has begun
    journal.wait()
    assert told == [
        "no checkpoint at game 305: No space left on device; the one at game 300 holds, "
        "and the next learner goes on from there"
    ]
    assert os.listdir(run.path / "checkpoints") == ["00000300"]
    play(learner, 62)
    journal.save(learner)
    journal.wait()
    assert journal.saved == 310
    assert files_of(run, 310) == {"table.bin", "table-310.bin"}
    assert everything(Learner(CONFIG, run.checkpoint(310))) == everything(learner)


def test_an_error_in_the_writer_is_not_taken_for_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    play(learner, 60)
    journal.save(learner)
    journal.wait()
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "digest", lambda *_: 1 / 0)
        play(learner, 63)
        journal.save(learner)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        journal.wait()
    for units, files in (
        (63, {"table.bin"}),  # whole, as a learner that ends by the error saves once more
        (64, {"table.bin", "table-320.bin"}),
    ):
        play(learner, units)
        assert journal.save(learner)
        journal.wait()
        assert files_of(run, learner.games) == files
        assert everything(Learner(CONFIG, run.checkpoint(learner.games))) == everything(learner)


@pytest.mark.parametrize("name", ["view", "take_records"])
def test_an_error_before_the_writer_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run, journal, learner = begin(tmp_path / "run", [])
    play(learner, 60)
    journal.save(learner)
    journal.wait()
    play(learner, 63)
    with monkeypatch.context() as patched:
        patched.setattr(learner, name, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            journal.save(learner)
    play(learner, 64)
    journal.save_last(learner)
    assert everything(Learner(CONFIG, run.checkpoint(320))) == everything(learner)


def test_without_a_process_to_write_it_the_learner_writes_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    run, journal, learner = begin(tmp_path / "run", told)
    play(learner, 8)

    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    before = len(os.listdir("/proc/self/fd"))
    assert journal.save(learner)
    assert len(os.listdir("/proc/self/fd")) == before
    assert journal.saved == 40
    assert everything(Learner(CONFIG, run.checkpoint(40))) == everything(learner)
    assert told == [
        "no process to write the checkpoint (Resource temporarily unavailable): "
        "the learner writes it"
    ]


def test_training_beside_the_writer_gives_the_digest_of_training_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    made = train(run)
    monkeypatch.setattr(journal_module, "BIG_BYTES", 2**40)
    plain = RunDir.create(tmp_path / "plain", CONFIG)
    assert made.digest == train(plain).digest
    assert run.checkpoint_games() == plain.checkpoint_games()
    assert run.ledger().tobytes() == plain.ledger().tobytes()
    for games in run.checkpoint_games():
        assert run.checkpoint(games).rows.tobytes() == plain.checkpoint(games).rows.tobytes()


SLOW = """
    import os, sys, time
    from pathlib import Path
    from rejoinder.run import checkpoints
    from rejoinder.run.rundir import RunDir
    from rejoinder_learner import journal
    from rejoinder_learner.sequential import train

    trainer, write = os.getpid(), checkpoints.write_durably

    def slow(path, content):
        write(path, content)
        if os.getpid() != trainer and "00000120" in str(path):
            Path(sys.argv[2]).write_text(str(os.getpid()))
            time.sleep(60)

    journal.BIG_BYTES = 1
    checkpoints.write_durably = slow
    train(RunDir.open(Path(sys.argv[1])))
"""


def test_a_learner_killed_while_its_child_writes_can_be_resumed(tmp_path: Path) -> None:
    expected = train(RunDir.create(tmp_path / "whole", CONFIG)).digest
    run, mark = RunDir.create(tmp_path / "run", CONFIG), tmp_path / "writing"
    learner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SLOW), run.path, mark])
    try:
        writer = _number_in(mark)
    finally:
        learner.send_signal(signal.SIGKILL)
        learner.wait()
    assert run.checkpoint_games()[-1] == 80
    result = train(run)  # at once: the child holds no lock
    assert (result.digest, result.played) == (expected, CONFIG.games - 80)
    assert not [p for p in os.listdir(run.path / "checkpoints") if p.startswith(".")]
    assert _is_gone(writer)


def _number_in(file: Path) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text()):
            return int(text)
        time.sleep(0.02)
    raise TimeoutError("the child has not begun to write")


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"  # nobody has asked for its end


def test_the_config_is_one_that_meets_new_infosets_for_long() -> None:
    """Else increments would not add rows, and these tests would not test that."""
    config: RunConfig = CONFIG
    learner = Learner(config)
    play(learner, 30)
    early = len(learner.rows)
    play(learner, 60)
    assert len(learner.rows) > early
