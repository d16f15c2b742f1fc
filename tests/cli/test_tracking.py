"""Trackers get every evaluation of a run once, by game index, whatever happens in between."""

from __future__ import annotations

import functools
import json
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_json
from runtime import eventually, kuhn

from rejoinder.run.rundir import TRACKING, RunDir, remove_run
from rejoinder.transport.server import end_with_parent
from rejoinder_cli import tracking
from rejoinder_cli.tracking import figures_of, track
from rejoinder_learner.sequential import train

EVERY = 20


def trained(path: Path, games: int) -> RunDir:
    """A run after so many games, begun or gone on with."""
    run = RunDir.open_or_create(path, kuhn(games=games, eval_every=EVERY))
    train(run)
    return run


class Notebook:
    """A tracker that remembers."""

    def __init__(self) -> None:
        self.logged: list[int] = []
        self.closed = 0

    def __call__(self, _: RunDir) -> Notebook:
        return self

    def log(self, games: int, figures: Mapping[str, float]) -> None:
        assert {"mer", "matches/random/mean_utility"} <= figures.keys()
        self.logged.append(games)

    def go_back(self, games: int) -> None:
        self.logged.append(-games)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setitem(tracking.TRACKERS, "notebook", made)
    monkeypatch.setattr(tracking, "_POLL", 0.005)
    return made


def test_figures_are_flat_and_without_the_index() -> None:
    record = {"games": 5, "mer": 0.5, "infosets": 12, "matches": {"random": {"low": 0.25}}}
    assert figures_of(record) == {"mer": 0.5, "infosets": 12.0, "matches/random/low": 0.25}


def test_a_resumed_run_is_logged_once(tmp_path: Path, notebook: Notebook) -> None:
    run = trained(tmp_path / "run", 60)
    assert track(run, "notebook") == 3
    assert track(run, "notebook") == 0
    assert track(trained(run.path, 100), "notebook") == 2
    assert notebook.logged == [20, 40, 60, 80, 100]
    assert notebook.closed == 3


def test_evaluations_that_are_made_again_are_not_logged_again(
    tmp_path: Path, notebook: Notebook
) -> None:
    run = trained(tmp_path / "run", 60)
    records = run.metrics()
    track(run, "notebook")
    run.drop_metrics_after(20)  # as a learner does that goes on from a checkpoint
    for record in records[1:]:
        run.append_metrics(record)
    assert track(run, "notebook") == 0


def lied_about(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What these evaluations would have been with a liar among the workers."""
    return [record | {"mer": record["mer"] / 2} for record in records]


def test_what_a_liar_brought_is_replaced(tmp_path: Path, notebook: Notebook) -> None:
    run = trained(tmp_path / "run", 80)
    honest = run.metrics()
    run.drop_metrics_after(20)
    for record in lied_about(honest[1:3]):
        run.append_metrics(record)
    assert track(run, "notebook") == 3
    run.drop_metrics_after(20)  # the lie is found, and the run goes back
    assert track(run, "notebook") == 0
    for record in honest[1:]:
        run.append_metrics(record)
    assert track(run, "notebook") == 3
    assert track(run, "notebook") == 0
    assert notebook.logged == [20, 40, 60, -40, 40, 60, 80]


def test_evaluations_wait_for_their_matches(tmp_path: Path, notebook: Notebook) -> None:
    whole = trained(tmp_path / "whole", 60).metrics()
    rates = [{"games": r["games"], "matches": r.pop("matches")} for r in whole]
    run = RunDir.create(tmp_path / "run", kuhn(games=60, eval_every=EVERY))
    follower = threading.Thread(target=track, args=(run, "notebook"), kwargs={"follow": True})
    follower.start()
    for record in (*whole[:2], rates[1]):  # those of game 40 come first
        run.append_metrics(record)
    assert track(run, "notebook") == 0
    assert notebook.logged == []
    run.append_metrics(rates[0])
    assert eventually(lambda: notebook.logged == [20, 40])
    assert follower.is_alive()
    for record in (whole[2], rates[2]):
        run.append_metrics(record)
    train(run)  # makes the same evaluations again, and finishes
    follower.join(60)
    assert not follower.is_alive()
    assert notebook.logged == [20, 40, 60]


def test_a_new_run_in_the_same_place_begins_anew(tmp_path: Path, notebook: Notebook) -> None:
    run = trained(tmp_path / "run", 40)
    state = run.path / TRACKING / "notebook.jsonl"
    assert track(run, "notebook") == 2
    state.write_text(state.read_text().replace(run.id, "another-00000000"))
    assert track(run, "notebook") == 2
    remove_run(run.path)
    assert not run.path.exists()


@pytest.mark.parametrize("name", ["wandb", "tensorboard"])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    trained(tmp_path / "run", 20)
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    line = refused("track", tmp_path / "run", "--to", name)
    assert f"pip install 'rejoinder[{name}]'" in line


def test_an_unknown_tracker_is_refused(tmp_path: Path) -> None:
    trained(tmp_path / "run", 20)
    assert "there are wandb, tensorboard" in refused("track", tmp_path / "run", "--to", "paper")


@pytest.mark.slow
def test_tensorboard_shows_every_figure(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    path = tmp_path / "run"
    trained(path, 40)
    assert run_json("track", path, "--to", "tensorboard")["logged"] == 2
    run = trained(path, 80)
    with _following(path, "tensorboard") as process:
        process.wait(60)  # the run is finished, so there is an end to it
    assert process.returncode == 0
    assert run_json("track", path, "--to", "tensorboard")["logged"] == 0
    assert len(list((path / TRACKING / "tensorboard").iterdir())) == 2, "no file without events"
    assert _events(path / TRACKING / "tensorboard") == _wanted(run)


@pytest.mark.slow
def test_tensorboard_forgets_what_a_liar_brought(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    run = trained(tmp_path / "run", 80)
    honest = run.metrics()
    for records in (honest[:1] + lied_about(honest[1:]), honest):
        run.drop_metrics_after(0)
        for record in records:
            run.append_metrics(record)
        track(run, "tensorboard")
    assert _events(run.path / TRACKING / "tensorboard") == _wanted(run)


@pytest.mark.slow
def test_a_tracker_that_was_killed_is_succeeded_by_another(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    records = trained(tmp_path / "whole", 80).metrics()
    run = RunDir.create(tmp_path / "run", kuhn(games=80, eval_every=EVERY))
    state = run.path / TRACKING / "tensorboard.jsonl"
    for number, signals in enumerate((signal.SIGKILL, signal.SIGTERM)):
        with _following(run.path, "tensorboard") as process:
            run.append_metrics(records[number])
            games = records[number]["games"]
            assert eventually(functools.partial(_has_got_to, state, games), 60)
            process.send_signal(signals)
            process.wait(60)
    assert process.returncode == 0
    train(run)
    assert run_json("track", run.path, "--to", "tensorboard")["logged"] == 2
    assert _events(run.path / TRACKING / "tensorboard") == _wanted(run)


@pytest.mark.slow
def test_wandb_offline_has_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="needs the extra wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    path = tmp_path / "run"
    for games in (40, 80):
        run = trained(path, games)
        assert run_json("track", path, "--to", "wandb")["logged"] == 2
    files = sorted((path / TRACKING).glob(f"wandb/offline-run-*/run-{run.id}.wandb"))
    assert len(files) == 2
    wanted = [{"games": r["games"], **figures_of(r)} for r in run.metrics()]

    def logged() -> list[dict[str, Any]]:
        history = [step for file in files for step in _wandb_history(file)]
        return [{n: s[n] for n in s if not n.startswith("_")} for s in history]

    assert eventually(lambda: logged() == wanted), logged()  # another process writes the files


def _has_got_to(state: Path, games: int) -> bool:
    return state.exists() and f'"games": {games},' in state.read_text().splitlines()[-1]


@contextmanager
def _following(path: Path, to: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `rejoinder track --follow` process, ended at the latest when this is left."""
    command = [sys.executable, "-m", "rejoinder_cli.main", "track", str(path), "--to", to]
    with subprocess.Popen([*command, "--follow"], preexec_fn=end_with_parent) as process:
        try:
            yield process
        finally:
            process.kill()


def _wanted(run: RunDir) -> dict[str, list[tuple[int, float]]]:
    """By figure: every game index with its value, as single precision has it."""
    series: dict[str, list[tuple[int, float]]] = {}
    for record in run.metrics():
        for name, value in figures_of(record).items():
            single: float = struct.unpack("f", struct.pack("f", value))[0]
            series.setdefault(name, []).append((record["games"], single))
    return series


def _events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    read.Reload()
    return {n: [(e.step, e.value) for e in read.Scalars(n)] for n in read.Tags()["scalars"]}


def _wandb_history(file: Path) -> Iterator[dict[str, Any]]:
    """What was logged, from W&B's file: LevelDB's log format around protocol buffers."""
    from wandb.proto import wandb_internal_pb2

    data, at, parts = file.read_bytes(), 7, b""  # behind a magic number
    while at + 7 <= len(data):
        if at % 32768 > 32768 - 7:  # no header fits into the rest of a block
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        if at + 7 + length > len(data):  # the rest is still to be written
            return
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record: Any = getattr(wandb_internal_pb2, "Record")()  # noqa: B009 (made at run time)
            record.ParseFromString(parts)
            parts = b""
            if record.WhichOneof("record_type") == "history":
                yield {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }
