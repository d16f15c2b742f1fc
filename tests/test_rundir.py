"""The run directory: what is written is read again, and what is damaged is never used."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.rollout import row_dtype
from rejoinder.run import checkpoints, rundir
from rejoinder.run.checkpoints import (
    Checkpoint,
    Policies,
    RunError,
    digest,
    needed_versions,
    thinned,
)
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.ledger import RECORD, genesis, head_after, record
from rejoinder.run.rundir import RunDir, is_run

KUHN = make_config({"game": "kuhn", "batch": 2, "lag": 1, "method.buffer_size": 3})


def policies(point: int, rows: int) -> Policies:
    made = np.zeros(rows, policy_dtype(2))
    made["key"] = np.arange(rows) + 1
    made["policy"] = point + 0.25
    return Policies(hashlib.sha256(f"{point}".encode()).digest(), made)


def checkpoint(
    games: int, rows: int = 5, config: RunConfig = KUHN, evaluations: tuple[int, ...] = ()
) -> Checkpoint:
    """Numbers that are all different, so that a misplaced byte shows."""
    table = np.zeros(rows, row_dtype(2, config.method.model_dump()["buffer_size"]))
    table["key"] = np.arange(rows) + 1
    table["regret"] = games + np.arange(2 * rows).reshape(rows, 2) / 7
    return Checkpoint(
        games,
        head_after(LEDGER, games, config.fingerprint) if games <= len(LEDGER) else bytes(32),
        table,
        config.kernel,
        {version: policies(version, rows) for version in needed_versions(config, games)},
        {games: policies(1000 + games, rows) for games in evaluations},
    )


def chain(games: int, config: RunConfig = KUHN) -> bytes:
    """A ledger of so many games."""
    head, records = genesis(config.fingerprint), b""
    for game in range(games):
        records += record(head, game, config.version_for(game), f"delta of game {game}".encode())
        head = records[-32:]
    return records


LEDGER = np.frombuffer(chain(40), RECORD)


def everything(made: Checkpoint) -> list[object]:
    """A checkpoint as plain data, to compare every byte of it."""
    parts = {
        **{f"snapshot {v}": s for v, s in made.snapshots.items()},
        **{f"evaluation {g}": e for g, e in made.evaluations.items()},
    }
    plain = {name: (part.head, part.rows.tobytes()) for name, part in parts.items()}
    return [made.games, made.head, made.kernel, made.rows.tobytes(), plain]


def make_run(path: Path, *games: int) -> RunDir:
    run = RunDir.create(path, KUHN)
    for n in games:
        run.save(checkpoint(n))
    return run


def test_a_checkpoint_round_trip(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.save(checkpoint(7, evaluations=(3, 6)))
    read = RunDir.open(tmp_path / "run").result()
    assert read.games == 7
    assert read.snapshots.keys() == {2, 3}
    assert read.evaluations.keys() == {3, 6}
    assert everything(read) == everything(checkpoint(7, evaluations=(3, 6)))
    assert RunDir.open(tmp_path / "run").config == KUHN


def test_a_run_keeps_its_id_and_no_other_has_it(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name / "My run: 1") for name in ("a", "b")]
    assert runs[0].id != runs[1].id
    assert all(run.id.startswith("My-run-1-") for run in runs)
    assert [RunDir.open(run.path).id for run in runs] == [run.id for run in runs]
    path = tmp_path / "a/My run: 1/config.json"
    path.write_text(path.read_text().replace(runs[0].id, "*"))
    with pytest.raises(RunError, match="its id is not one that a run gets"):
        RunDir.open(tmp_path / "a/My run: 1")


def test_an_empty_table_can_be_saved(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.save(checkpoint(0, rows=0))
    assert len(run.result().rows) == 0


def test_the_newest_checkpoints_are_kept_and_the_older_ones_thinned(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", KUHN.model_copy(update={"checkpoints_kept": 5}))
    for games in range(1, 13):
        run.save(checkpoint(games))
        assert run.checkpoint_games()[-3:] == list(range(max(1, games - 2), games + 1))
    assert run.checkpoint_games() == [4, 7, 10, 11, 12]


@given(
    steps=st.lists(st.integers(1, 1_000), max_size=60),
    kept=st.integers(3, 20),
)
def test_thinning_drops_only_what_is_too_many_and_never_the_newest(
    steps: list[int], kept: int
) -> None:
    games = np.cumsum(steps).tolist() if steps else []
    dropped = thinned(games, kept)
    assert len(dropped) == len(set(dropped)) == max(0, len(games) - kept)
    assert set(dropped) <= set(games[:-3])


@given(
    every=st.sampled_from([1, 7, 250]), saves=st.integers(1, 400), kept=st.sampled_from([3, 8, 16])
)
def test_thinned_checkpoints_stay_evenly_spread(every: int, saves: int, kept: int) -> None:
    """Save after save: the widest gap is within a small factor of what even spacing gives."""
    games: list[int] = []
    for n in range(1, saves + 1):
        games.append(n * every)
        games = [g for g in games if g not in thinned(games, kept)]
        assert len(games) == min(n, kept)
    assert games[-3:] == [n * every for n in range(max(1, saves - 2), saves + 1)]
    if kept > 3:
        widest = max(after - before for before, after in pairwise([0, *games]))
        assert widest <= max(2 * every, 3 * every * saves / (kept - 3))


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
        ({"files": {}}, "lists no table.bin"),
        ({"digest": "0" * 64}, "its digest is not"),
    ],
)
def test_a_consistent_but_wrong_manifest_is_refused(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    run = make_run(tmp_path / "run", 7)
    path = tmp_path / "run/checkpoints/00000007/manifest.json"
    manifest = checkpoints.Manifest.model_validate(json.loads(path.read_text()) | change)
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
    run.save(checkpoint(7, evaluations=(4,)))
    folder = path / "checkpoints/00000007"
    file = folder / data.draw(st.sampled_from(sorted(os.listdir(folder))))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    read = run.newest_checkpoint()
    assert read is None or everything(read) == everything(checkpoint(7, evaluations=(4,)))


def test_a_save_that_fails_leaves_the_older_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", 5)

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_durably", full)
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
    other = make_config(
        {"game": "kuhn", "batch": 2, "method.buffer_size": 3, "seed": 2, "method.rollouts": 1}
    )
    with pytest.raises(RunError, match=r"seed is 1 there and 2 here; method\.rollouts is 20 there"):
        run.continue_with(other)
    assert RunDir.open(tmp_path / "run").config.games == 5_000


def test_a_changed_config_is_noticed(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    path = tmp_path / "run/config.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(RunError, match="fingerprint"):
        RunDir.open(tmp_path / "run")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format":3,"fingerprint":"","config":3}'])
def test_a_config_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match="not the config of a run"):
        RunDir.open(tmp_path)


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    path = tmp_path / "run/config.json"
    path.write_text(path.read_text().replace('"format": 3', '"format": 1'))
    with pytest.raises(RunError, match="its format is 1, of another version of Rejoinder"):
        RunDir.open(tmp_path / "run")


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
    write_everything(tmp_path / "run")
    (tmp_path / "run/notes.txt").write_text("mine")
    rundir.remove_run(tmp_path / "run")
    assert os.listdir(tmp_path / "run") == ["notes.txt"]
    assert not is_run(tmp_path / "run")


def test_nothing_is_left_of_a_removed_run(tmp_path: Path) -> None:
    write_everything(tmp_path / "run")
    rundir.remove_run(tmp_path / "run")
    assert os.listdir(tmp_path) == []


def write_everything(path: Path) -> None:
    """All that a run can write, and what a crash can leave."""
    run = make_run(path, 5)
    with run.locked():
        run.begin_session(from_game=0)
        run.append_metrics({"games": 5})
        run.extend_ledger(0, chain(5))
        run.add_to_quarantine({"reason": "nonsense"})
        run.write_status({"games": 5})
    (path / rundir.REPORT).write_text("<html>")
    (path / rundir.LOGS).mkdir()
    (path / rundir.LOGS / "worker-1.log").write_text("hello")
    (path / ".temporary-1-status.json").write_text("{")
    (path / ".temporary-1-00000007").mkdir()


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


def test_a_line_after_one_cut_short_is_not_lost(tmp_path: Path) -> None:
    """A full disk takes half a line; what is written when there is room again stands alone."""
    run = make_run(tmp_path / "run")
    for name, write, read in (
        ("metrics.jsonl", run.append_metrics, run.metrics),
        ("quarantine.jsonl", run.add_to_quarantine, run.quarantine),
    ):
        write({"games": 10})
        with (run.path / name).open("a") as file:
            file.write('{"games":20,"me')
        write({"games": 20})
        write({"games": 30})
        assert read() == [{"games": 10}, {"games": 20}, {"games": 30}]


def test_metrics_of_one_game_index_are_one_record(tmp_path: Path) -> None:
    """Win rates come later than statistics, and not always in the order of the games."""
    run = make_run(tmp_path / "run")
    for part in (
        {"games": 20, "mer": 0.5},
        {"games": 10, "mer": 0.7},
        {"games": 10, "matches": {"random": 1}},
        {"games": 20, "mer": 0.25},
        {"mer": 9},
        {"games": "30"},
    ):
        run.append_metrics(part)
    expected = [{"games": 10, "mer": 0.7, "matches": {"random": 1}}, {"games": 20, "mer": 0.25}]
    assert run.metrics() == expected
    run.drop_metrics_after(20)
    assert run.metrics() == expected
    run.drop_metrics_after(19)
    assert run.metrics() == expected[:1]


def test_the_ledger_gives_way_from_where_it_is_extended(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert len(run.ledger()) == 0
    whole = chain(10)
    run.extend_ledger(0, whole[: 4 * RECORD.itemsize])
    run.extend_ledger(4, whole[4 * RECORD.itemsize :])
    assert run.ledger().tobytes() == whole
    run.extend_ledger(7, b"")
    assert run.ledger().tobytes() == whole[: 7 * RECORD.itemsize]
    run.extend_ledger(3, whole[3 * RECORD.itemsize : 5 * RECORD.itemsize])
    assert run.ledger().tobytes() == whole[: 5 * RECORD.itemsize]


def test_the_ledger_never_has_a_gap(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.extend_ledger(0, chain(4))
    with pytest.raises(RunError, match=r"ledger.bin is shorter than the 5 games before"):
        run.extend_ledger(5, b"x" * RECORD.itemsize)
    assert run.ledger().tobytes() == chain(4)


def test_a_record_cut_short_is_not_read_and_gives_way(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    path, whole = tmp_path / "run/ledger.bin", chain(5)
    path.write_bytes(whole[:-1])
    assert run.ledger().tobytes() == whole[: 4 * RECORD.itemsize]
    run.extend_ledger(4, whole[4 * RECORD.itemsize :])
    assert path.read_bytes() == whole


def ledger_run(path: Path) -> RunDir:
    run = make_run(path, 2, 5, 8)
    run.extend_ledger(0, chain(10))
    return run


def test_the_newest_checkpoint_that_the_ledger_leads_to(tmp_path: Path) -> None:
    run = ledger_run(tmp_path / "run")
    for most, games in ((None, 8), (8, 8), (7, 5), (5, 5), (2, 2)):
        found = run.supported_checkpoint(pytest.fail, most)
        assert found is not None
        assert found.games == games
    assert run.supported_checkpoint(pytest.fail, 1) is None


@pytest.mark.parametrize(
    ("records", "games", "reasons"),
    [
        (7, 5, ["game 8 .* the ledger ends at game 7"]),
        (5, 5, ["game 8 .* ends at game 5"]),
        (3, 2, ["game 8 .* ends at game 3", "game 5 .* ends at game 3"]),
        (1, None, ["game 8", "game 5", "game 2 .* ends at game 1"]),
    ],
)
def test_a_short_ledger_supports_older_checkpoints(
    tmp_path: Path, records: int, games: int | None, reasons: list[str]
) -> None:
    run = ledger_run(tmp_path / "run")
    run.extend_ledger(records, b"")
    told: list[str] = []
    found = run.supported_checkpoint(told.append)
    assert (found.games if found else None) == games
    assert len(told) == len(reasons)
    for said, reason in zip(told, reasons, strict=True):
        assert re.search(reason, said)


def test_a_checkpoint_of_another_history_is_not_used(tmp_path: Path) -> None:
    run = ledger_run(tmp_path / "run")
    other = bytearray(chain(10))
    other[8 * RECORD.itemsize - 1] ^= 1  # the head after game 8
    run.extend_ledger(0, bytes(other))
    told: list[str] = []
    found = run.supported_checkpoint(told.append)
    assert found is not None
    assert found.games == 5
    assert told == [
        f"the checkpoint at game 8 of {run.path} is not used: the ledger tells of another history"
    ]


@pytest.mark.parametrize("content", [None, b"", b"half a record"])
def test_without_its_ledger_a_run_is_not_begun_again_behind_ones_back(
    tmp_path: Path, content: bytes | None
) -> None:
    run = ledger_run(tmp_path / "run")
    if content is None:
        (run.path / "ledger.bin").unlink()
    else:
        (run.path / "ledger.bin").write_bytes(content)
    with pytest.raises(RunError, match=r"ledger.bin is missing.* start again with --overwrite"):
        run.supported_checkpoint()
    assert run.result().games == 8  # it can still be read


def test_a_new_run_needs_no_ledger(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert run.supported_checkpoint(pytest.fail) is None
    run.save(checkpoint(0, rows=0))
    found = run.supported_checkpoint(pytest.fail)
    assert found is not None
    assert found.games == 0


def test_the_quarantine_keeps_messages_until_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    assert run.quarantine() == []
    monkeypatch.setattr(rundir, "QUARANTINE_BYTES", 100)
    for n in range(4):
        run.add_to_quarantine({"reason": f"wrong {n}", "message": "x" * 60})
    assert [record["reason"] for record in run.quarantine()] == [f"wrong {n}" for n in range(4)]
    assert ["message" in record for record in run.quarantine()] == [True, True, False, False]


def test_the_status_is_the_last_one_written(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert run.status() == {}
    run.write_status({"games": 1, "state": "training"})
    run.write_status({"games": 2})
    assert run.status() == {"games": 2}
    assert not list(run.path.glob(".temporary-*"))
    for damaged in (b"", b"[]", b'{"games": 3', b"\xff\xfe"):
        (run.path / "status.json").write_bytes(damaged)
        assert run.status() == {}


def test_standing_tells_whether_somebody_trains(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert not run.standing()["alive"]
    said = {"games": 3, "target": 9, "state": "training", "time": time.time() + 3600}
    run.write_status(said)
    assert run.standing() == said | {"alive": True}
    run.write_status(said | {"time": time.time() - 60})
    assert (run.standing()["state"], run.standing()["alive"]) == ("gone", False)
    run.write_status(said | {"state": "finished"})
    assert (run.standing()["state"], run.standing()["alive"]) == ("finished", False)
    run.write_status({"state": "training"})
    assert not run.standing()["alive"]


def test_a_request_to_stop_is_forgotten_when_training_begins(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert not run.stop_requested()
    run.request_stop()
    assert run.stop_requested()
    run.begin_session(from_game=0)
    assert not run.stop_requested()


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


@pytest.mark.parametrize(
    "other",
    [
        checkpoint(6, evaluations=(4,)),
        checkpoint(6, rows=4),
        dataclasses.replace(checkpoint(6), head=b"h" * 32),
        dataclasses.replace(checkpoint(6), kernel="others"),
    ],
    ids=["evaluations", "rows", "head", "kernel"],
)
def test_saving_something_else_in_its_place_replaces_it(tmp_path: Path, other: Checkpoint) -> None:
    run = make_run(tmp_path / "run", 6)
    run.save(other)
    assert everything(run.result()) == everything(other)
    run.save(checkpoint(6))
    assert everything(run.result()) == everything(checkpoint(6))
