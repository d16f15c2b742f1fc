"""The alert rules: sound, tested by promtool, and seen at work in a real Prometheus."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from monitoring import ROOT, RULES, needs_prometheus, prometheus, promtool, rejoinder, until

from rejoinder.transport.server import EmbeddedServer

NAMES = re.findall(r"- alert: (\w+)", RULES.read_text("utf-8"))
RECORDED = re.findall(r"- record: (\S+)", RULES.read_text("utf-8"))
SLACK = 60.0  # seconds for a scrape, an evaluation and a busy machine


@needs_prometheus
def test_rules_are_sound() -> None:
    assert f"{len(NAMES + RECORDED)} rules found" in promtool("check", "rules", RULES)


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
        "RejoinderGatewayDown",
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


def test_the_page_has_them_with_their_severities() -> None:
    page = (ROOT / "docs/grafana.md").read_text("utf-8")
    listed = re.findall(r"^\| `(Rejoinder\w+)` \| .+ \| (\w+) \|$", page, re.MULTILINE)
    rules = re.split(r"- (?:alert|record): ", RULES.read_text("utf-8"))[1:]
    severities = {rule.split()[0]: re.findall(r"severity: (\w+)", rule) for rule in rules}
    assert [(name, *severities[name]) for name in NAMES] == listed


@needs_prometheus
@pytest.mark.slow
def test_a_killed_learner_is_an_alert_and_a_finished_one_is_not(
    tmp_path: Path, own_server: EmbeddedServer
) -> None:
    killed, finished = tmp_path / "killed", tmp_path / "finished"
    targets = [tmp_path / "targets-of-killed", tmp_path / "targets-of-finished"]
    (rule,) = re.findall(
        r"alert: RejoinderLearnerDown\n.*?(?=- alert)", RULES.read_text(), re.DOTALL
    )
    (period,) = re.findall(r"for: (\d+)s", rule)

    @contextmanager
    def learner(run: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        where = ("--metrics-targets", tmp_path / f"targets-of-{run.name}")
        log = tmp_path / f"{run.name}.log"
        url = ("--redis", own_server.url)
        with rejoinder(log, "learner", "small", "--run", run, *url, *where, *more) as process:
            yield process

    with prometheus(tmp_path / "prometheus", targets) as watching, ExitStack() as workers:
        # Others may come and go: they tell of a slow machine, too.
        def is_down() -> bool:
            return "RejoinderLearnerDown" in watching.alerts()

        def learners_seen() -> int:
            return sum(t["job"] == "rejoinder-learner" for t in watching.targets())

        # One that ends by itself takes its target with it.
        with learner(finished, "--games", "200", "--set", "eval_every=0") as process:
            until(lambda: watching.value("rejoinder_learner_games") is not None, 180)
            for n in (1, 2):  # not before it was looked at, so that a short run will do
                command = ("worker", "--redis", own_server.url, "--name", f"worker-{n}")
                log = tmp_path / f"worker-{n}.log"
                workers.enter_context(rejoinder(log, *command, "--metrics-targets", targets[0]))
            assert process.wait(120) == 0
        until(lambda: learners_seen() == 0, SLACK)

        with learner(killed, "--games", "10000000", "--set", "eval_every=0") as process:
            folded = f'rejoinder_learner_games{{run=~"{killed.name}.*"}}'
            until(lambda: (watching.value(folded) or 0) > 100, 120)
            assert not is_down()
            process.kill()
            until(is_down, int(period) + SLACK, lambda: watching.alerts("pending"))
        alert = watching.alerts()["RejoinderLearnerDown"]
        assert alert["instance"].startswith(killed.name)
        assert alert["severity"] == "critical"
        assert learners_seen() == 1

        with learner(killed, "--games", "10000000", "--set", "eval_every=0"):
            until(lambda: not is_down(), 120)
