"""The run directory: what is written is read again, and what is damaged is never used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder import rundir
from rejoinder.cfr.policy import policy_dtype
from rejoinder.cfr.rollout import row_dtype
from rejoinder.config import RunConfig, make_config
from rejoinder.rundir import Checkpoint, RunDir, RunError, digest, is_run, needed_versions

KUHN = make_config({"game": "kuhn", "batch": 2, "lag": 1, "buffer_size": 3})


def checkpoint(games: int, rows: int = 5, config: RunConfig = KUHN) -> Checkpoint:
    """Numbers that are all different, so that a misplaced byte shows."""
    table = np.zeros(rows, row_dtype(2, config.kept_policies))
    table["key"] = np.arange(rows) + 1
    table["regret"] = games + np.arange(2 * rows).reshape(rows, 2) / 7
    policies = {}
    for version in needed_versions(config, games):
        policies[version] = np.zeros(rows, policy_dtype(2))
        policies[version]["key"] = table["key"]
        policies[version]["policy"] = version + 0.25
    return Checkpoint(games, table, policies)


def make_run(path: Path, *games: int) -> RunDir:
    run = RunDir.create(path, KUHN)
    for n in games:
        run.save(checkpoint(n))
    return run


def test_a_checkpoint_round_trip(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 7)
    read = RunDir.open(tmp_path / "run").result()
    written = checkpoint(7)
    assert read.games == 7
    assert read.rows.tobytes() == written.rows.tobytes()
    assert read.snapshots.keys() == {2, 3}
    assert all(read.snapshots[v].tobytes() == written.snapshots[v].tobytes() for v in (2, 3))
    assert RunDir.open(tmp_path / "run").config == KUHN


def test_an_empty_table_can_be_saved(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.save(checkpoint(0, rows=0))
    assert len(run.result().rows) == 0


def test_only_the_last_few_checkpoints_are_kept(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 1, 2, 3, 4, 5)
    kept = sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == ["00000003", "00000004", "00000005"]


def test_checkpoints_are_ordered_by_number_not_by_name(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 99_999_999, 100_000_001)
    assert run.result().games == 100_000_001


def test_the_manifest_is_readable(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 7)
    manifest = json.loads((tmp_path / "run/checkpoints/00000007/manifest.json").read_text())
    assert manifest["games"] == 7
    assert manifest["fingerprint"] == KUHN.fingerprint
    assert manifest["digest"] == digest(KUHN.fingerprint, 7, checkpoint(7).rows)
    assert manifest["dtype"]["policy"] == "<f8[2, 2]"
    assert manifest["files"]["table.bin"]["rows"] == 5


def test_the_digest_depends_on_config_games_and_every_row() -> None:
    rows = checkpoint(7).rows
    other = rows.copy()
    other["reach"][-1] = np.nextafter(0.0, 1.0)
    digests = {
        digest("a", 7, rows),
        digest("b", 7, rows),
        digest("a", 8, rows),
        digest("a", 7, rows[:-1]),
        digest("a", 7, rows[::-1]),
        digest("a", 7, other),
    }
    assert len(digests) == 6


def damage(folder: Path, how: str) -> None:
    table, manifest = folder / "table.bin", folder / "manifest.json"
    content = table.read_bytes()
    told = json.loads(manifest.read_text())
    match how:
        case "truncated":
            table.write_bytes(content[:-1])
        case "longer":
            table.write_bytes(content + b"\0")
        case "flipped":
            table.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
        case "empty table":
            table.write_bytes(b"")
        case "no table":
            table.unlink()
        case "no snapshot":
            (folder / "policy-3.bin").unlink()
        case "no manifest":
            manifest.unlink()
        case "empty manifest":
            manifest.write_text("")
        case "manifest is a list":
            manifest.write_text("[]")
        case "deep manifest":
            manifest.write_text("[" * 100_000)
        case "more games":
            manifest.write_text(json.dumps(told | {"games": 8}))
        case "other format":
            manifest.write_text(json.dumps(told | {"format": 99}))
        case "other checksum":
            told["files"]["table.bin"]["sha256"] = "0" * 64
            manifest.write_text(json.dumps(told))
        case "absurd size":
            told["files"]["table.bin"]["rows"] = 10**30
            manifest.write_text(json.dumps(told))
        case "escaping name":
            told["files"]["../../../table.bin"] = told["files"].pop("table.bin")
            manifest.write_text(json.dumps(told))
        case "other config":
            manifest.write_text(json.dumps(told | {"fingerprint": "f" * 64}))


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("truncated", "bytes, not 5 rows"),
        ("longer", "bytes, not 5 rows"),
        ("flipped", "table.bin does not match its checksum"),
        ("empty table", "has 0 bytes"),
        ("no table", "table.bin cannot be read: No such file"),
        ("no snapshot", "policy-3.bin cannot be read"),
        ("no manifest", "manifest.json cannot be read"),
        ("empty manifest", "not the manifest"),
        ("manifest is a list", "not the manifest"),
        ("deep manifest", "not the manifest"),
        ("more games", "own checksum"),
        ("other format", "format 99 is unknown"),
        ("other checksum", "own checksum"),
        ("absurd size", "own checksum"),
        ("escaping name", "own checksum"),
        ("other config", "own checksum"),
    ],
)
def test_a_damaged_checkpoint_is_reported_and_the_one_before_used(
    tmp_path: Path, how: str, reason: str
) -> None:
    run = make_run(tmp_path / "run", 5, 7)
    damage(tmp_path / "run/checkpoints/00000007", how)
    problems: list[str] = []
    assert run.result(problems.append).games == 5
    assert len(problems) == 1
    assert "00000007 is damaged" in problems[0]
    assert reason in problems[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fingerprint": "f" * 64}, "another config"),
        ({"games": 8}, "speaks of 8 games"),
        ({"dtype": {"key": "<u8"}}, "another layout"),
        ({"files": {}}, "lists the files"),
        ({"digest": "0" * 64}, "its digest is not"),
    ],
)
def test_a_consistent_but_wrong_manifest_is_refused(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    run = make_run(tmp_path / "run", 7)
    path = tmp_path / "run/checkpoints/00000007/manifest.json"
    manifest = rundir._Manifest.model_validate(json.loads(path.read_text()) | change)
    manifest.checksum = manifest.checksum_of_the_rest()
    path.write_text(manifest.model_dump_json())
    problems: list[str] = []
    assert run.newest_checkpoint(problems.append) is None
    assert reason in problems[0]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_no_flipped_byte_goes_unnoticed(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever byte of whatever file is changed: what is read is what was written, or refused."""
    path = tmp_path / "run"
    run = RunDir.open(path) if is_run(path) else make_run(path)
    run.save(checkpoint(7))
    folder = path / "checkpoints/00000007"
    file = folder / data.draw(st.sampled_from(sorted(os.listdir(folder))))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    read = run.newest_checkpoint()
    written = checkpoint(7)
    assert read is None or (
        read.rows.tobytes() == written.rows.tobytes()
        and [s.tobytes() for s in read.snapshots.values()]
        == [s.tobytes() for s in written.snapshots.values()]
    )


def test_a_save_that_fails_leaves_the_older_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", 5)

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(rundir, "_write_durably", full)
        with pytest.raises(OSError, match="No space left"):
            run.save(checkpoint(7))
    assert sorted(os.listdir(tmp_path / "run/checkpoints")) == ["00000005"]
    assert run.result().games == 5


def test_what_a_crash_leaves_is_never_read_and_cleared_later(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 5)
    half = tmp_path / "run/checkpoints/.temporary-1-00000007"
    half.mkdir()
    (half / "table.bin").write_bytes(b"half")
    assert run.result().games == 5
    run.begin_session(from_game=5)
    assert not half.exists()


def test_saving_over_a_damaged_checkpoint(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 7)
    damage(tmp_path / "run/checkpoints/00000007", "flipped")
    run.save(checkpoint(7))
    assert run.result().games == 7


def test_a_run_may_get_longer_but_not_become_another(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.continue_with(KUHN.model_copy(update={"games": 5_000}))
    assert RunDir.open(tmp_path / "run").config.games == 5_000
    other = make_config({"game": "kuhn", "batch": 2, "buffer_size": 3, "seed": 2, "rollouts": 1})
    with pytest.raises(RunError, match="seed is 1 there and 2 here; rollouts is 20 there"):
        run.continue_with(other)
    assert RunDir.open(tmp_path / "run").config.games == 5_000


def test_a_changed_config_is_noticed(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    path = tmp_path / "run/config.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(RunError, match="fingerprint"):
        RunDir.open(tmp_path / "run")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format":1,"fingerprint":"","config":3}'])
def test_a_config_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match="not the config of a run"):
        RunDir.open(tmp_path)


def test_no_run_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run at"):
        RunDir.open(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="no run at"):
        RunDir.open(tmp_path / "file")
    with pytest.raises(RunError, match="is a file"):
        RunDir.create(tmp_path / "file", KUHN)
    with pytest.raises(RunError, match="no usable checkpoint"):
        make_run(tmp_path / "new").result()


def test_only_runs_are_removed_and_only_what_they_wrote(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"theme": "dark"}')
    with pytest.raises(RunError, match="not a run directory"):
        rundir.remove_run(tmp_path)
    with pytest.raises(RunError, match="not empty and not a run"):
        RunDir.create(tmp_path, KUHN)
    run = make_run(tmp_path / "run", 5)
    run.append_metrics({"games": 5})
    (tmp_path / "run/notes.txt").write_text("mine")
    rundir.remove_run(tmp_path / "run")
    assert os.listdir(tmp_path / "run") == ["notes.txt"]
    assert not is_run(tmp_path / "run")


def test_metrics_survive_a_line_cut_short(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for games in (10, 20, 30):
        run.append_metrics({"games": games, "mer": games / 7})
    with (tmp_path / "run/metrics.jsonl").open("a") as file:
        file.write('{"games": 40, "me')
    assert [r["games"] for r in run.metrics()] == [10, 20, 30]
    run.drop_metrics_after(20)
    run.append_metrics({"games": 25})
    assert [r["games"] for r in run.metrics()] == [10, 20, 25]


def test_provenance_says_what_ran(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.begin_session(from_game=0)
    run.begin_session(from_game=7)
    sessions = run.sessions()
    assert [session["from_game"] for session in sessions] == [0, 7]
    known = {"python", "numpy", "numba", "rejoinder", "kernel", "commit", "cpu", "platform"}
    assert known <= sessions[0].keys()


def test_one_trainer_at_a_time(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", KUHN)
    with run.locked():
        other = RunDir.open(tmp_path / "run")
        with pytest.raises(RunError, match="is being trained by another process"), other.locked():
            pass
    with RunDir.open(tmp_path / "run").locked():
        assert is_run(tmp_path / "run")


def test_saving_again_what_is_there_leaves_it_alone(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", KUHN)
    run.save(checkpoint(6))
    (manifest,) = tmp_path.glob("run/checkpoints/*/manifest.json")
    before = manifest.stat().st_ino
    run.save(checkpoint(6))
    assert manifest.stat().st_ino == before
    manifest.write_bytes(b"damaged")
    run.save(checkpoint(6))
    found = run.newest_checkpoint()
    assert found is not None
    assert found.games == 6
