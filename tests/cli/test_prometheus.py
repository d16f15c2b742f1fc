"""Metrics from the command line: ports, targets, and a real Prometheus beside a run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_json
from runtime import eventually, kuhn

from rejoinder.run.rundir import RunDir, remove_run
from rejoinder.transport.server import end_with_parent
from rejoinder_cli import deployed
from rejoinder_cli.options import usual_port
from rejoinder_cli.prometheus import prometheus_command
from rejoinder_cli.supervise import Household, Program

NEEDS_PROMETHEUS = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="needs Prometheus: apt install prometheus"
)
SMALL = ["small", "--set", "method.rollouts=1", "--set", "eval_games=10"]


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that somebody else has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def test_a_port_that_is_taken_is_refused_before_anything_is_done(
    tmp_path: Path, taken: str
) -> None:
    path, port = tmp_path / "run", ["--metrics-port", taken]
    redis = ["--redis", "unix:///nowhere"]
    for command in (
        ["train", "tiny", "--mode", "sequential", "--run", str(path)],
        ["learner", "tiny", "--run", str(path), *redis],
        ["worker", *redis],
    ):
        assert f"--metrics-port: {taken} of 127.0.0.1 cannot be had" in refused(*command, *port)
    up = ["up", "tiny", "--run", str(path), "--no-gateway", "--prometheus"]
    if shutil.which("prometheus"):
        assert f"--prometheus-port: {taken} cannot" in refused(*up, "--prometheus-port", taken)
    assert not path.exists()


def test_a_port_that_nobody_asked_for_may_be_another_one(taken: str) -> None:
    """Debian's package starts a Prometheus of its own at the usual port."""
    assert usual_port("--prometheus-port", None, int(taken)) not in (0, int(taken))
    with pytest.raises(ValueError, match=f"{taken} cannot be had: .*; 0 takes any free one"):
        usual_port("--prometheus-port", int(taken), 9090)
    assert usual_port("--prometheus-port", 0, int(taken)) > 0


def test_a_foreign_program_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_REDIS", "redis://:secret@host")
    monkeypatch.setenv("REJOINDER_GRAFANA_TOKEN", "secret")
    monkeypatch.setenv("TZ", "UTC")
    run = RunDir.create(tmp_path / "run", kuhn())
    show = [
        sys.executable,
        "-c",
        "import json, os; print(json.dumps(dict(os.environ)), flush=True)",
    ]
    log = run.path / "logs" / "foreign.log"
    with Household(run, "unix:///nowhere", print) as household:
        household.add_program("foreign", show)
        assert eventually(lambda: log.exists() and log.read_text().endswith("}\n"))
    told = json.loads(log.read_text().splitlines()[0])
    assert told["PATH"] == os.environ["PATH"]
    assert told["TZ"] == "UTC"
    assert "secret" not in str(told)


def test_a_machine_without_prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["up", "tiny", "--run", str(tmp_path / "run"), "--no-gateway", "--prometheus"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt install prometheus" in refused(*command)
    monkeypatch.setenv("REJOINDER_PROMETHEUS", "/no/such/program")
    assert "REJOINDER_PROMETHEUS: /no/such/program is no program" in refused(*command)
    assert not (tmp_path / "run").exists()


def test_the_environment_is_read_and_not_handed_to_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all workers would want the learner's port."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    monkeypatch.setenv("REJOINDER_METRICS_PORT", str(port))
    monkeypatch.setenv("REJOINDER_METRICS_TARGETS", str(tmp_path / "targets"))
    arguments = ["--games", "20", "--workers", "2", "--run", str(tmp_path / "run")]
    assert run_json("train", *SMALL, *arguments)["finished"]
    assert list((tmp_path / "targets").iterdir()) == []
    assert "may not go on" not in (tmp_path / "run" / "logs" / "worker-1.log").read_text("utf-8")


def test_what_the_rest_can_do_without_ends_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    broken = [sys.executable, "-c", "raise SystemExit('no good')"]
    program = Program(broken, {}, tmp_path / "broken.log", dispensable=True)
    for _ in range(50):
        program.wait()
        program.revive(said.append)
    assert "broken keeps dying; its last words: no good" in said[-1]
    assert "the others go on without it" in said[-1]
    assert len(said) == 5


@NEEDS_PROMETHEUS
def test_prometheus_takes_the_settings(tmp_path: Path) -> None:
    folder = tmp_path / 'a run\'s "folder"'
    folder.mkdir()
    command = prometheus_command("prometheus", folder, 9090)
    settings = next(word for word in command if word.startswith("--config.file=")).partition("=")[2]
    subprocess.run(["promtool", "check", "config", settings], check=True, capture_output=True)
    written = (folder / "prometheus" / "rules.yml").read_bytes()
    assert written == deployed.path(deployed.RULES).read_bytes()


class Up:
    """`rejoinder up --prometheus` under way."""

    def __init__(self, path: Path, games: int = 1_000_000) -> None:
        arguments = [*SMALL, "--games", str(games), "--workers", "2", "--run", str(path)]
        ports = ["--port", "0", "--prometheus", "--prometheus-port", "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "rejoinder_cli.main", "up", *arguments, *ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=end_with_parent,
        )
        self.prometheus = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Prometheus: http://"):
                self.prometheus = line.partition(" ")[2].strip()
                break

    def ask(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self.prometheus}/api/v1/{path}", timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def targets(self) -> dict[tuple[str, str], str]:
        told = self.ask("targets") or {"activeTargets": []}
        return {
            (target["labels"]["job"], target["labels"]["instance"]): target["health"]
            for target in told["activeTargets"]
        }

    def value(self, query: str) -> float:
        told = self.ask(f"query?query={urllib.parse.quote(query)}")
        return float(told["result"][0]["value"][1]) if told and told["result"] else 0.0


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path / "run")
    yield started
    started.process.kill()
    started.process.communicate()


def until(condition: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)


@pytest.mark.slow
@NEEDS_PROMETHEUS
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=lambda end: end.name)
def test_up_with_a_real_prometheus(up: Up, tmp_path: Path, end: signal.Signals) -> None:
    """It sees every process, and ends with them."""
    path = tmp_path / "run"

    def all_up() -> bool:
        seen = up.targets()
        jobs = sorted(job for job, _ in seen)
        wanted = ["rejoinder-gateway", "rejoinder-learner", "rejoinder-worker", "rejoinder-worker"]
        return jobs == wanted and set(seen.values()) == {"up"}

    until(all_up, 120)
    until(lambda: up.value("sum(rejoinder_worker_games_total)") > 0, 60)
    until(lambda: up.value("rejoinder_learner_games") > 0, 60)
    until(lambda: up.value('sum(rejoinder_worker_decisions_total{role="responder"})') > 0, 60)
    groups = up.ask("rules")["groups"]
    assert groups
    assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
    up.process.send_signal(end)
    up.process.communicate(timeout=60)
    until(lambda: up.ask("targets") is None, 60)
    if end is signal.SIGINT:
        assert up.process.returncode == 130
        assert list((path / "targets").iterdir()) == []
        remove_run(path)
        assert not path.exists()
    else:
        assert RunDir.open(path).id


@pytest.mark.slow
@NEEDS_PROMETHEUS
def test_the_last_figures_of_a_run_are_there_after_its_end(tmp_path: Path) -> None:
    up = Up(tmp_path / "run", games=400)
    try:
        until(lambda: up.value("rejoinder_learner_games") == 400, 180)
        until(lambda: up.value("rejoinder_learner_up") == 0, 60)
        assert up.value("rejoinder_learner_games") == 400
        assert up.process.poll() is None
        up.process.send_signal(signal.SIGINT)
        up.process.communicate(timeout=60)
        assert up.process.returncode == 0
    finally:
        up.process.kill()
        up.process.communicate()
