"""Metrics from end to end: what is served, where it is announced, and what the page says of it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from runtime import (
    BareLiar,
    Hand,
    Slow,
    Watch,
    eventually,
    hands,
    kuhn,
    never_late,
    serve,
    train_with,
    with_a_snail,
)

from rejoinder.run.config import load_config
from rejoinder.run.ledger import SnapshotId
from rejoinder.run.rundir import RunDir, is_run
from rejoinder.telemetry import (
    GATEWAY_JOB,
    LEARNER_JOB,
    WORKER_JOB,
    Exposure,
    announced,
    exposed,
    forget_targets,
    new_registry,
    target_file,
)
from rejoinder.transport.server import EmbeddedServer, end_with_parent
from rejoinder.transport.wire import Deltas
from rejoinder_gateway.telemetry import Telemetry
from rejoinder_learner.journal import Journal
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner
from rejoinder_learner.telemetry import LearnerMetrics
from rejoinder_worker.telemetry import WorkerMetrics

STEP = "last_step_timestamp_seconds"
PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"


class Scraped:
    """What Prometheus would read there."""

    def __init__(self, target: str) -> None:
        with urllib.request.urlopen(f"http://{target}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        self._values = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        return self._values.get((f"rejoinder_{name}", *sorted(labels.items())))


def targets(folder: Path) -> dict[str, str]:
    """Job and instance of each document in the folder, and where it is."""
    found = {}
    for file in folder.glob("*.json"):
        (group,) = json.loads(file.read_text("utf-8"))
        assert set(group["labels"]) == {"job", "instance"}
        (found[group["labels"]["instance"]],) = group["targets"]
    return found


def worker(url: str, name: str, folder: Path) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return command("worker", "--redis", url, "--name", name, "--metrics-targets", str(folder))


@contextmanager
def command(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `rejoinder` command, until this is left."""
    with subprocess.Popen(
        [sys.executable, "-m", "rejoinder_cli.main", *command],
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_learner_that_stays_can_be_asked_after_the_end(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    url, run, folder = own_server.url, tmp_path / "run", tmp_path / "targets"
    asked = ["learner", "kuhn-rollout", "--redis", url, "--run", str(run), "--games", "40", "--stay"]
    with (
        command(*asked, "--metrics-targets", str(folder)) as learner,
        worker(url, "a", tmp_path / "others"),
    ):
        assert eventually(lambda: is_run(run) and RunDir.open(run).status().get("games") == 40, 180)
        assert eventually(lambda: RunDir.open(run).status()["state"] == "finished")
        ((_, target),) = targets(folder).items()
        name = RunDir.open(run).id
        assert Scraped(target)("learner_games", run=name) == 40
        assert learner.poll() is None
        learner.terminate()
        assert learner.wait(60) == 0
    assert targets(folder) == {}


@pytest.mark.slow
def test_a_run_with_two_workers_is_counted_to_the_last_game(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    config = load_config(
        "small", {"method.rollouts": 1, "games": 120, "eval_every": 60, "eval_games": 10}
    )
    run, folder = RunDir.create(tmp_path / "run", config), tmp_path / "targets"
    telemetry = LearnerMetrics(run.id)
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(own_server.url, n, folder)) for n in ("a", "b/c")]
        where = Exposure(targets=folder)
        stack.enter_context(exposed(telemetry.registry, where, LEARNER_JOB, run.id))
        assert eventually(lambda: len(targets(folder)) == 3, 120)
        assert target_file(folder, WORKER_JOB, "b/c").parent == folder
        idle = Scraped(targets(folder)["a"])
        assert idle("worker_up", run="") == 0
        result = serve(own_server, run, telemetry=telemetry)

        learner = Scraped(targets(folder)[run.id])
        status = run.status()
        assert result.games == learner("learner_games_folded_total", run=run.id) == 120
        assert learner("learner_games", run=run.id) == len(run.ledger())
        assert learner("learner_target_games", run=run.id) == 120
        assert learner("learner_deltas_total", run=run.id, outcome="accepted") == 120
        assert learner("learner_checkpoint_games", run=run.id) == 120
        assert learner("learner_infosets", run=run.id) == status["infosets"]
        assert learner("learner_mer", run=run.id) == status["mer"]
        assert learner("learner_up", run=run.id) == 0
        for opponent, rates in status["win_rates"].items():
            shown = learner("learner_win_rate_ratio", run=run.id, opponent=opponent)
            assert shown == rates["win_rate"]

        def both(name: str, **labels: str) -> float:
            scraped = [Scraped(targets(folder)[n]) for n in ("a", "b/c")]
            return sum(one(f"worker_{name}", run=run.id, **labels) or 0 for one in scraped)

        assert eventually(lambda: both("up") == 0)
        assert all(process.poll() is None for process in workers)  # they wait for the next run
        assert both("games_total") >= 120
        assert both("decisions_total", role="initiator") > 0
        phases = both("response_phases_total")
        assert 0 < phases <= both("decisions_total", role="responder")
        assert both("leases_total", kind="evaluation", outcome="done") >= 2
        received = learner("learner_received_bytes_total", run=run.id) or 0
        kinds = ("deltas", "evaluation", "refusal")
        assert 0 < received <= sum(both("sent_bytes_total", kind=kind) for kind in kinds)

        workers[0].send_signal(signal.SIGTERM)
        assert workers[0].wait(60) == 0
        assert set(targets(folder)) == {"b/c", run.id}
        workers[1].kill()  # what it leaves behind is for the next to remove
        workers[1].wait()
        assert set(targets(folder)) == {"b/c", run.id}
    forget_targets(folder)
    assert targets(folder) == {}


class Twice(Hand):
    """Delivers everything twice, the second time a little later."""

    def work(self, job: str, message: bytes) -> None:
        data = self.player.codec.encode(self.answer(job, message))
        self.bus.deliver([data, data], job)


class Wrong(Slow):
    """Sends, before the truth, what is of another history, and what is nothing at all."""

    def work(self, job: str, message: bytes) -> None:
        answer = self.answer(job, message)
        if isinstance(answer, Deltas):
            other = SnapshotId(answer.snapshot.games, bytes(32))
            late = Deltas(answer.first, other, self.name, 0.1, answer.counts, answer.entries)
            self.bus.deliver([self.player.codec.encode(late), b"junk"], "nothing")
        self.bus.deliver([self.player.codec.encode(answer)], job)


def of_learner(telemetry: LearnerMetrics, name: str, **labels: str) -> float | None:
    run = {"run": "r"} | labels
    return telemetry.registry.get_sample_value(f"rejoinder_learner_{name}", run)


def test_what_is_not_folded_is_counted_by_its_reason(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    for kind in (Twice, Wrong):
        run = RunDir.create(tmp_path / kind.__name__, kuhn(eval_every=20))
        telemetry = LearnerMetrics("r")
        train_with(server, run, hands(server, run, 2, kind), telemetry=telemetry)
        told = {
            outcome: of_learner(telemetry, "deltas_total", outcome=outcome)
            for outcome in ("accepted", "duplicate", "late", "banned")
        }
        quarantined = of_learner(telemetry, "quarantined_total")
        assert told["accepted"] == of_learner(telemetry, "games_folded_total") == 60
        assert told["banned"] == 0
        if kind is Twice:
            assert (told["late"], quarantined) == (0, 0)
            assert (told["duplicate"] or 0) > 0
        else:
            assert (told["late"] or 0) > 0
            assert quarantined == len(run.quarantine()) > 0


def test_a_liar_is_counted(server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(games=120, audit=1.0, checkpoint_every=10)
    run, telemetry = RunDir.create(tmp_path / "run", config), LearnerMetrics("r")
    present = hands(server, run, 1, BareLiar) + hands(server, run, 1, Slow)
    train_with(server, run, present, telemetry=telemetry)
    assert of_learner(telemetry, "banned_workers") == 1
    assert (of_learner(telemetry, "audited_total") or 0) >= 120
    assert (of_learner(telemetry, "games_leased_again_total") or 0) > 0
    assert of_learner(telemetry, "games") == 120


def test_a_resumed_run_shows_at_once_what_was_known(tmp_path: Path) -> None:
    config = kuhn(games=40, eval_every=20)
    run, before = RunDir.create(tmp_path / "run", config), LearnerMetrics("r")
    train(run, telemetry=before)
    after = LearnerMetrics("r")
    assert of_learner(after, "mer") is None
    Journal(run, print, after).resume()
    assert of_learner(after, "checkpoint_games") == 40
    last = run.metrics()[-1]
    assert of_learner(after, "mer") == of_learner(before, "mer") == last["mer"]
    for opponent, rates in last["win_rates"].items():
        assert of_learner(after, "win_rate_ratio", opponent=opponent) == rates["win_rate"]
    assert of_learner(before, "games_folded_total") == 40
    assert of_learner(before, "fold_seconds_count") == 40
    assert of_learner(before, "up") == 0


def test_what_waits_can_fill_most_of_the_window(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alert goes by that share, so a run with a slow worker has to reach it."""
    never_late(monkeypatch)
    run, telemetry = RunDir.create(tmp_path / "run", kuhn(games=120)), LearnerMetrics("r")
    shares: list[float] = []

    def look(status: dict[str, Any]) -> None:
        window = of_learner(telemetry, "window_games") or 0
        leased = of_learner(telemetry, "leased_games") or 0
        waiting = of_learner(telemetry, "unfolded_games") or 0
        if status["state"] == "training":
            assert leased + waiting == window <= 10  # (lag + 1) · batch
            shares.append(waiting / window if window else 0)
        if snail.is_waited_for(status):
            snail.go_on.set()

    snail, present = with_a_snail(server, run, 2)
    train_with(server, run, present, telemetry=telemetry, on_status=look)
    assert max(shares) > 0.5
    assert of_learner(telemetry, "window_games") == 0  # there is nothing left to play


def test_a_learner_tells_its_last_step_while_there_will_be_a_next(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    run, telemetry = RunDir.create(tmp_path / "run", kuhn(games=30)), LearnerMetrics("r")
    ages: list[float] = []

    def look(status: dict[str, Any]) -> None:
        if status["state"] == "training":
            ages.append(time.time() - (of_learner(telemetry, STEP) or 0))

    assert of_learner(telemetry, STEP) is None  # its kernels may have to be compiled first
    train_with(server, run, hands(server, run, 1, Slow), telemetry=telemetry, on_status=look)
    assert ages
    assert all(0 <= age < 60 for age in ages)
    assert of_learner(telemetry, STEP) is None  # it may stay for ever, with nothing to do


def test_a_learner_that_waits_for_the_server_is_not_stuck(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    run, telemetry = RunDir.create(tmp_path / "run", kuhn()), LearnerMetrics("r")
    steps: set[float | None] = set()

    def look() -> bool:
        if not own_server.is_running():
            steps.add(of_learner(telemetry, STEP))
        return len(steps) > 2

    watch = Watch(when=lambda _: True, then=own_server.kill)
    serve(own_server, run, look, telemetry=telemetry, on_status=watch, patience=60.0)
    assert len(steps) > 2


def test_sequential_training_tells_its_steps(tmp_path: Path) -> None:
    run, telemetry = RunDir.create(tmp_path / "run", kuhn(games=10)), LearnerMetrics("r")
    steps: list[float | None] = []
    train(run, telemetry=telemetry, on_game=lambda _: steps.append(of_learner(telemetry, STEP)))
    assert steps[0] is None
    assert all(step and time.time() - step < 60 for step in steps[1:])
    assert of_learner(telemetry, STEP) is None


def test_a_checkpoint_that_fails_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    run, telemetry = RunDir.create(tmp_path / "run", kuhn()), LearnerMetrics("r")
    journal = Journal(run, lambda _: None, telemetry)
    journal.resume()
    assert journal.save(Learner(run.config))
    monkeypatch.setattr(RunDir, "save", full)
    assert not journal.save(Learner(run.config))
    assert not journal.save(Learner(run.config))
    assert of_learner(telemetry, "checkpoint_failures_total") == 2
    assert of_learner(telemetry, "checkpoint_seconds_count") == 1
    assert of_learner(telemetry, "checkpoints_refused") == 2
    monkeypatch.undo()
    journal.resume()  # which finds the old one, and saves nothing
    assert of_learner(telemetry, "checkpoints_refused") == 2
    assert journal.save(Learner(run.config))
    assert of_learner(telemetry, "checkpoint_failures_total") == 2
    assert of_learner(telemetry, "checkpoints_refused") == 0


# Where it is served


def test_nothing_listens_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoinder.telemetry.start_http_server", None)
    with exposed(new_registry(), Exposure(), WORKER_JOB, "w"):
        pass


def test_a_process_says_what_it_needs_and_no_longer_when_it_ends(tmp_path: Path) -> None:
    with exposed(new_registry(), Exposure(targets=tmp_path / "t"), WORKER_JOB, "w"):
        (target,) = targets(tmp_path / "t").values()
        assert target.startswith("127.0.0.1:")
        with urllib.request.urlopen(f"http://{target}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        assert "process_cpu_seconds_total" in text
        assert "process_resident_memory_bytes" in text
        assert "_created" not in text
    assert list((tmp_path / "t").iterdir()) == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{target}/metrics", timeout=5)


@pytest.mark.parametrize(
    ("job", "end", "stays"),
    [
        (WORKER_JOB, LookupError, False),
        (LEARNER_JOB, None, False),
        (LEARNER_JOB, KeyboardInterrupt, False),
        (LEARNER_JOB, LookupError, True),
        (GATEWAY_JOB, LookupError, True),
    ],
)
def test_who_ends_by_an_error_and_is_to_be_missed_stays_in_the_list(
    tmp_path: Path, job: str, end: type[BaseException] | None, stays: bool
) -> None:
    with ExitStack() as stack:
        if end:
            stack.enter_context(pytest.raises(end))
        stack.enter_context(announced(tmp_path, job, "../w", "127.0.0.1:1"))
        assert [file.parent for file in tmp_path.rglob("*.json")] == [tmp_path]
        if end:
            raise end
    assert targets(tmp_path) == ({"../w": "127.0.0.1:1"} if stays else {})
    with announced(tmp_path, job, "../w", "127.0.0.1:1"):  # and the next one tidies
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_removed_by_its_owner_only(tmp_path: Path) -> None:
    """Two processes of one name, by mistake: the living one is in the list."""
    where = Exposure(targets=tmp_path)
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(exposed(new_registry(), where, WORKER_JOB, "w"))
        of_first = targets(tmp_path)
        second.enter_context(exposed(new_registry(), where, WORKER_JOB, "w"))
        of_second = targets(tmp_path)
        assert of_first != of_second
        first.close()
        assert targets(tmp_path) == of_second
        with exposed(new_registry(), where, WORKER_JOB, "w"):
            assert targets(tmp_path) != of_second
        assert targets(tmp_path) == of_second
    assert list(tmp_path.iterdir()) == []


def test_a_second_learner_that_is_refused_leaves_the_first_in_the_list(tmp_path: Path) -> None:
    where = Exposure(targets=tmp_path)

    def refused() -> None:
        with exposed(new_registry(), where, LEARNER_JOB, "r"):
            raise LookupError

    with exposed(new_registry(), where, LEARNER_JOB, "r"):
        of_first = targets(tmp_path)
        with pytest.raises(LookupError):
            refused()
        assert targets(tmp_path) == of_first


def test_only_those_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    for name, text in {"half.123": "[", "odd.json": "{}", "none.json": ""}.items():
        (tmp_path / f"rejoinder-worker-{name}").write_text(text)
    with exposed(new_registry(), Exposure(targets=tmp_path), WORKER_JOB, "lives"):
        dead = target_file(tmp_path, WORKER_JOB, "dead")
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        dead.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}"], "labels": {}}]))
        forget_targets(tmp_path)
        assert list(tmp_path.iterdir()) == [target_file(tmp_path, WORKER_JOB, "lives")]


@pytest.mark.slow
def test_a_learner_that_loses_its_server_is_missed(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    folder, run = tmp_path / "targets", tmp_path / "run"
    asked = ["learner", "kuhn", "--redis", own_server.url, "--run", str(run), "--patience", "0.5"]
    with command(*asked, "--metrics-targets", str(folder)) as learner:
        assert eventually(lambda: is_run(run) and RunDir.open(run).status(), 180)
        own_server.kill()
        assert learner.wait(60) == 4
    assert list(targets(folder)) == [RunDir.open(run).id]


@pytest.mark.parametrize(("host", "called"), [("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")])
def test_the_address_is_one_that_can_be_called(tmp_path: Path, host: str, called: str) -> None:
    where = Exposure(0, host, tmp_path)
    try:
        where.check()
    except ValueError:
        pytest.skip(f"{host} is no address of this machine")
    with exposed(new_registry(), where, WORKER_JOB, "w"):
        (target,) = targets(tmp_path).values()
        assert target.rpartition(":")[0] == called
        urllib.request.urlopen(f"http://{target}/metrics", timeout=60).close()


def test_what_cannot_be_had_names_the_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = Exposure(taken.getsockname()[1])
        for attempt in (where.check, lambda: exposed(new_registry(), where, "j", "n").__enter__()):
            with pytest.raises(ValueError, match=r"--metrics-port: \d+ of 127.0.0.1 cannot be had"):
                attempt()
    with pytest.raises(ValueError, match="--metrics-host: no such host"):
        Exposure(0, "no such host").check()


# The page


def test_the_page_lists_what_there_is() -> None:
    """Names, types and labels, both ways."""
    assert documented() == of_worker() | of_trainer() | of_gateway()


def documented() -> dict[str, tuple[str, frozenset[str]]]:
    """By name, from the rows of the tables."""
    found = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| `rejoinder_"):
            name, kind, labels, meaning = (cell.strip() for cell in line.strip("|").split(" | "))
            assert meaning, line
            found[name.strip("`")] = kind, frozenset(re.findall("`([a-z]+)`", labels))
    return found


def exposed_by(registry: CollectorRegistry) -> dict[str, tuple[str, frozenset[str]]]:
    return {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            frozenset(label for s in family.samples for label in s.labels) - {"le"},
        )
        for family in registry.collect()
        if family.name.startswith("rejoinder_")
    }


def of_worker() -> dict[str, tuple[str, frozenset[str]]]:
    metrics = WorkerMetrics()
    metrics.work_on("r", kuhn()).step()
    return exposed_by(metrics.registry)


def of_trainer() -> dict[str, tuple[str, frozenset[str]]]:
    metrics = LearnerMetrics("r")
    metrics.step()
    metrics.published(1, 0.1)
    metrics.measured({"mer": 0.1, "win_rates": {"random": {"win_rate": 0.5}}})
    return exposed_by(metrics.registry)


def of_gateway() -> dict[str, tuple[str, frozenset[str]]]:
    metrics = Telemetry()
    metrics.request({"type": "http", "method": "GET"}, 200, 0.1)
    metrics.games.labels("created").inc()
    metrics.moves.labels("person").inc()
    return exposed_by(metrics.registry)
