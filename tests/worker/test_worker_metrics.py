"""What a worker counts is what happened in its games."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from runtime import eventually, kuhn

from rejoinder.games import GAMES
from rejoinder.games.deal import DealView
from rejoinder.games.responses import Responses, response_actions
from rejoinder.games.session import Session
from rejoinder.run.config import RunConfig, load_config
from rejoinder.run.ledger import SnapshotId
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer, end_with_parent
from rejoinder.transport.wire import Deltas, EvaluationLease, Lease, Refusal
from rejoinder_learner.state import Learner
from rejoinder_worker.telemetry import MAX_RUNS, WorkerMetrics

SNAPSHOT = SnapshotId(0, bytes(32))


def deltas_of(config: RunConfig, games: int) -> Deltas:
    actor, policy = config.actor(), Learner(config).snapshot_at(0)
    played = [actor.play(game, policy).copy() for game in range(games)]
    counts = tuple(len(delta) for delta in played)
    return Deltas(0, SNAPSHOT, "worker", 0.1, counts, np.concatenate(played))


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"rejoinder_worker_{name}", labels)


@pytest.mark.parametrize("abstraction", GAMES["deal"].abstractions, ids=lambda a: a.name)
def test_a_response_is_known_by_its_actions(abstraction: object) -> None:
    """In any position of any game: the mask meets the legal actions if, and only if, one is due."""
    names = {a.name: a for a in GAMES["deal"].abstractions}
    chosen = names[getattr(abstraction, "name", "")]
    draw, seen = random.Random(3), set()
    for seed in range(20):
        session = Session.start("deal-medium", seed=seed)
        while not session.over and session.to_move is not None:
            view = session.view(session.to_move)
            assert isinstance(view, DealView)
            legal = {chosen.actions.index(a.name) for a in session.legal_abstract(chosen.name)}
            mask = response_actions(GAMES["deal"], chosen)
            responds = {mask >> number & 1 == 1 for number in legal}
            assert responds == {view.response is not None}
            seen |= responds
            session.apply(draw.choice(session.legal()).name)
    assert seen == {True, False}


def test_the_summary_is_that_of_a_slow_reading() -> None:
    config = load_config("small", {"method.rollouts": 1})
    deltas = deltas_of(config, 12)
    mask = response_actions(config.load_game(), config.load_abstraction())
    responses = phases = choices = 0
    for delta in deltas.by_unit().values():
        before = False
        for entry in delta:
            legal = int(entry["legal"])
            now = legal & mask != 0
            responses += now
            phases += now and not before
            choices += legal.bit_count() if legal.bit_count() > 1 else 0
            before = now
    work = config.load_method().work(config.task(), deltas.entries, deltas.counts)
    assert work == (responses, phases, choices)  # one rollout each
    assert 0 < phases < responses < len(deltas.entries)


def test_a_game_that_begins_with_a_response_begins_a_phase() -> None:
    config = kuhn()
    deltas, task = deltas_of(config, 3), config.task()
    deltas.entries["legal"] = 1
    work = config.load_method().work
    assert work(task, deltas.entries, deltas.counts) == (0, 0, 0)
    responses = Responses(kind=np.zeros(2, np.int8), actions={task.abstraction.name: 1})
    responding = replace(task, game=replace(task.game, capabilities=(responses,)))
    assert work(responding, deltas.entries, deltas.counts) == (len(deltas.entries), 3, 0)


def test_games_without_response_phases_have_initiators_only() -> None:
    config, metrics = kuhn(rollouts=3), WorkerMetrics()
    deltas = deltas_of(config, 5)
    metrics.work_on("r", config).played(deltas)
    told = metrics.registry
    assert value(told, "games_total", run="r") == 5
    assert value(told, "decisions_total", run="r", role="initiator") == len(deltas.entries)
    assert value(told, "decisions_total", run="r", role="responder") == 0
    assert value(told, "response_phases_total", run="r") == 0
    assert value(told, "rollouts_total", run="r") == 2 * 3 * len(deltas.entries)


def test_leases_by_kind_and_outcome() -> None:
    metrics = WorkerMetrics()
    told, of_run = metrics.registry, metrics.work_on("r", kuhn())
    refusal = Refusal("job", "worker", "why", snapshot_missing=True)
    of_run.ended(Lease(0, 5, None, "k"), deltas_of(kuhn(), 1), 100, 0.5)
    of_run.ended(EvaluationLease(SNAPSHOT, 4, "k"), refusal, 10, 0.25)
    of_run.ended(None, refusal, 10, 0.25)  # it could not be read
    assert value(told, "leases_total", run="r", kind="games", outcome="done") == 1
    assert value(told, "leases_total", run="r", kind="games", outcome="refused") == 1
    assert value(told, "leases_total", run="r", kind="evaluation", outcome="refused") == 1
    assert value(told, "busy_seconds_total", run="r") == 1.0
    assert value(told, "sent_bytes_total", run="r", kind="deltas") == 100
    assert value(told, "sent_bytes_total", run="r", kind="refusal") == 20
    assert value(told, "lease_seconds_count", run="r", kind="games") == 2


def test_a_worker_lives_through_any_number_of_runs() -> None:
    metrics, told = WorkerMetrics(), []
    assert value(metrics.registry, "up", run="") == 0
    for number in range(MAX_RUNS + 3):
        metrics.work_on(str(number), kuhn())
        assert value(metrics.registry, "up", run=str(number)) == 1
        assert value(metrics.registry, "up", run="") is None
        metrics.wait()
        assert value(metrics.registry, "up", run=str(number)) == 0
        assert value(metrics.registry, "up", run="") == 0
        told.append(sum(len(family.samples) for family in metrics.registry.collect()))
    assert told[-1] == told[MAX_RUNS - 1]
    assert value(metrics.registry, "games_total", run="2") is None
    assert value(metrics.registry, "games_total", run="3") == 0


def test_the_last_step_is_that_of_the_present_run() -> None:
    """At most one series: what is old there is a worker that is stuck."""
    metrics, step = WorkerMetrics(), "last_step_timestamp_seconds"

    def told() -> dict[str, float]:
        (family,) = (f for f in metrics.registry.collect() if f.name.endswith(step))
        return {sample.labels["run"]: sample.value for sample in family.samples}

    assert told() == {}
    metrics.step()  # it looks for a run
    assert set(told()) == {""}
    first = metrics.work_on("1", kuhn())
    assert told() == {}  # its kernels may have to be compiled
    first.step()
    assert set(told()) == {"1"}
    assert 0 <= time.time() - told()["1"] < 60
    metrics.wait()
    assert told() == {}
    metrics.work_on("2", kuhn()).step()
    assert set(told()) == {"2"}


@pytest.mark.slow
def test_a_worker_takes_steps_wherever_it_is(own_server: EmbeddedServer, tmp_path: Path) -> None:
    """While it waits for a run, for a lease, and for a server that is away."""
    run, heard = RunDir.create(tmp_path / "run", kuhn()), tmp_path / "steps"
    code = (
        "from rejoinder_worker import telemetry, main\n"
        "plain = telemetry.WorkerMetrics.step\n"
        "def step(self, run=''):\n"
        f"    open({str(heard)!r}, 'a').write((run or '-') + '\\n')\n"
        "    plain(self, run)\n"
        "telemetry.WorkerMetrics.step = step\n"
        f"main.serve({own_server.url!r}, name='w')\n"
    )

    def said() -> list[str]:
        return heard.read_text().split() if heard.exists() else []

    with subprocess.Popen([sys.executable, "-c", code], preexec_fn=end_with_parent) as process:
        try:
            assert eventually(lambda: len(said()) > 3, 60)
            assert set(said()) == {"-"}
            announce(own_server, run)
            assert eventually(lambda: run.id in said(), 60)
            count = len(said())
            assert eventually(lambda: len(said()) > count + 1)  # without any lease
            own_server.kill()
            time.sleep(2)
            count = len(said())
            assert eventually(lambda: len(said()) > count + 1)
            assert process.poll() is None
        finally:
            process.kill()


def announce(server: EmbeddedServer, run: RunDir) -> None:
    """As a learner does, which then has no leases to give."""
    bus = Bus(connect(server.url), run.id)
    assert bus.claim()
    told = {"fingerprint": run.config.fingerprint, "kernel": run.config.kernel, "finished": False}
    bus.announce(told | {"config": run.config.model_dump(mode="json")})
