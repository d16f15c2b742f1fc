"""The alert rules: sound, tested by promtool, and seen at work in a real Prometheus."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from monitoring import ROOT, RULES, needs_prometheus, prometheus, promtool, rejoinder, until

from rejoinder.bus.server import EmbeddedServer

NAMES = re.findall(r"- alert: (\w+)", RULES.read_text("utf-8"))
SLACK = 15.0  # seconds for a scrape, an evaluation and a busy machine


@needs_prometheus
def test_rules_and_configuration_are_sound() -> None:
    assert f"{len(NAMES)} rules found" in promtool("check", "rules", RULES)
    promtool("check", "config", ROOT / "deploy/prometheus/prometheus.yml")


@needs_prometheus
def test_rules_do_what_they_should() -> None:
    """Each alert fires and keeps still as rules_test.yml says; and all of them are in it."""
    tests = ROOT / "deploy/prometheus/rules_test.yml"
    promtool("test", "rules", tests)
    assert set(re.findall(r"Rejoinder\w+", tests.read_text("utf-8"))) >= set(NAMES)


def test_the_wanted_alerts_are_there() -> None:
    assert set(NAMES) == {
        "RejoinderLearnerDown",
        "RejoinderLearnerRestarting",
        "RejoinderNoWorkers",
        "RejoinderNoProgress",
        "RejoinderBacklogGrowing",
        "RejoinderQuarantine",
        "RejoinderCheckpointFailing",
        "RejoinderGatewayErrors",
    }
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_says_what_it_is_and_what_to_do(name: str) -> None:
    rule = RULES.read_text("utf-8").split(f"- alert: {name}\n")[1].split("- alert: ")[0]
    assert re.search(r"severity: (critical|warning)\n", rule)
    assert "summary: " in rule
    assert "description: " in rule
    assert f"runbook_url: docs/operations.md#{name.lower()}\n" in rule


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_has_its_chapter(name: str) -> None:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs/operations.md").read_text("utf-8"), re.M)
    assert name in [heading.strip("`") for heading in headings]


@needs_prometheus
@pytest.mark.slow
def test_a_killed_learner_is_an_alert_and_a_finished_one_is_not(
    tmp_path: Path, own_server: EmbeddedServer
) -> None:
    killed, finished = tmp_path / "killed", tmp_path / "finished"
    targets = [tmp_path / "targets-of-killed", tmp_path / "targets-of-finished"]
    (period,) = re.findall(r"alert: RejoinderLearnerDown\n.*\n *for: (\d+)s", RULES.read_text())

    @contextmanager
    def learner(run: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        where = ("--metrics-targets", tmp_path / f"targets-of-{run.name}")
        log = tmp_path / f"{run.name}.log"
        url = ("--redis", own_server.url)
        with rejoinder(log, "learner", "small", "--run", run, *url, *where, *more) as process:
            yield process

    with prometheus(tmp_path / "prometheus", targets) as watching, ExitStack() as workers:
        for n in (1, 2):
            command = ("worker", "--redis", own_server.url, "--name", f"worker-{n}")
            log = tmp_path / f"worker-{n}.log"
            workers.enter_context(rejoinder(log, *command, "--metrics-targets", targets[0]))

        def learners_seen() -> int:
            return sum(t["job"] == "rejoinder-learner" for t in watching.targets())

        # One that ends by itself takes its target with it.
        with learner(finished, "--games", "3000", "--set", "eval_every=0") as process:
            until(lambda: (watching.value("rejoinder_learner_games") or 0) > 0, 180)
            assert process.wait(120) == 0
        until(lambda: learners_seen() == 0, 10)

        with learner(killed, "--games", "10000000", "--set", "eval_every=0") as process:
            folded = f'rejoinder_learner_games{{run=~"{killed.name}.*"}}'
            until(lambda: (watching.value(folded) or 0) > 100, 120)
            assert watching.alerts() == {}
            process.kill()
            until(watching.alerts, int(period) + SLACK, lambda: watching.alerts("pending"))
        alert = watching.alerts().pop("RejoinderLearnerDown")
        assert alert["instance"].startswith(killed.name)
        assert alert["severity"] == "critical"
        assert list(watching.alerts()) == ["RejoinderLearnerDown"]
        assert learners_seen() == 1

        with learner(killed, "--games", "10000000", "--set", "eval_every=0"):
            until(lambda: watching.alerts() == {}, 120)
