"""`rejoinder healthy`: who goes on, who is stuck, who need not take a step."""

from __future__ import annotations

import time

import pytest
from command import refused, run
from gateway_play import free_port
from prometheus_client import CollectorRegistry
from runtime import kuhn

from rejoinder.telemetry import LEARNER_JOB, WORKER_JOB, Exposure, exposed, new_registry
from rejoinder_gateway.telemetry import Telemetry
from rejoinder_learner.telemetry import LearnerMetrics
from rejoinder_worker.telemetry import WorkerMetrics


def verdict(registry: CollectorRegistry, within: int, job: str = LEARNER_JOB) -> str:
    """What the command says of a process with these metrics; nothing, if it is healthy."""
    port = free_port()
    with exposed(registry, Exposure(port), job, "here"):
        told = run("healthy", "--metrics-port", str(port), "--within", str(within))
    assert told.exit_code == (1 if told.stderr else 0), told.output
    assert told.stdout == ""
    return told.stderr


def later(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: now)


def test_a_learner_that_takes_no_steps_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = LearnerMetrics("run")
    assert verdict(metrics.registry, 120) == "", "it starts"
    metrics.begin(0, 100, 0)
    metrics.step()
    later(100, monkeypatch)
    assert verdict(metrics.registry, 120) == ""
    later(30, monkeypatch)
    assert "is stuck: no step for 130 seconds" in verdict(metrics.registry, 120)
    metrics.end()
    assert verdict(metrics.registry, 120) == "", "its run is finished, and it stays"


def test_a_worker_that_takes_no_steps_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = WorkerMetrics()
    assert verdict(metrics.registry, 300, WORKER_JOB) == ""
    metrics.step()
    assert verdict(metrics.registry, 300, WORKER_JOB) == "", "it waits for a run"
    run = metrics.work_on("run", kuhn())
    later(1000, monkeypatch)
    assert verdict(metrics.registry, 300, WORKER_JOB) == "", "it compiles its kernels"
    run.step()
    assert verdict(metrics.registry, 300, WORKER_JOB) == ""
    later(301, monkeypatch)
    assert "is stuck" in verdict(metrics.registry, 300, WORKER_JOB)
    metrics.wait()
    assert verdict(metrics.registry, 300, WORKER_JOB) == "", "the run has gone"


def test_nobody_and_somebody_else_are_not_healthy() -> None:
    told = run("healthy", "--metrics-port", str(free_port()))
    assert told.exit_code == 1
    assert "does not answer" in told.stderr
    assert "neither a learner's nor a worker's" in verdict(new_registry(), 120)
    told_of_a_gateway = verdict(Telemetry().registry, 120)
    assert "is a gateway's" in told_of_a_gateway
    assert "/readyz" in told_of_a_gateway


def test_it_asks_where_the_process_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variables of the process itself; it may listen everywhere."""
    metrics, port = WorkerMetrics(), free_port()
    monkeypatch.setenv("REJOINDER_METRICS_PORT", str(port))
    monkeypatch.setenv("REJOINDER_METRICS_HOST", "0.0.0.0")
    with exposed(metrics.registry, Exposure(port, "0.0.0.0"), WORKER_JOB, "here"):
        assert run("healthy").exit_code == 0
    monkeypatch.delenv("REJOINDER_METRICS_PORT")
    line = refused("healthy")
    assert "--metrics-port: give the one that the learner or worker was started with" in line
    assert "REJOINDER_METRICS_PORT" in line
