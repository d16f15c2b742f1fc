"""A server full of junk, one that refuses, and lies from before a restart: nothing is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest
from runtime import (
    BareLiar,
    Slow,
    Watch,
    crew,
    hands,
    kuhn,
    sequential,
    serve,
    train_with,
    worker_process,
)

from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus, Order, job_name
from rejoinder.transport.connection import BusError, connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder_learner.main import LearnerService


def litter(client: Any, run: str) -> None:
    """Put nonsense under every key that a learner or a worker reads."""
    key = f"rejoinder:{run}"
    client.sadd(f"{key}:workers", b"\xff\xfe", "half")
    client.set(f"{key}:worker:half", '{"games": "x", "busy_seconds": null}', ex=30)
    client.set(f"{key}:newest", b"\xc1")
    client.set(f"{key}:status", b"\xff")
    client.rpush(f"rq:queue:rejoinder-{run}", b"\xff\xfe", f"{run}_nobody", "foreign")
    client.rpush(f"rq:queue:rejoinder-{run}:intermediate", b"\xff\xfe", "gone")
    client.rpush(f"{key}:snapshot:5", b"junk")
    client.xadd(f"{key}:deltas", {"other": b"junk"})


def test_junk_on_the_server_stops_no_learner(own_server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(eval_every=20)
    run = RunDir.create(tmp_path / "run", config)
    client = connect(own_server.url)
    litter(client, run.id)
    watch = Watch(lambda status: status["games"] >= 10, lambda: litter(client, run.id))
    present = hands(own_server, run, 2, Tolerant)
    assert train_with(own_server, run, present, on_status=watch) == sequential(config)
    client.close()


class Tolerant(Slow):
    """Leaves alone what is no lease, as the real worker does (see the next test)."""

    def step(self) -> None:
        try:
            super().step()
        except UnicodeDecodeError:
            return


@pytest.mark.slow
def test_junk_in_the_queue_stops_no_worker(own_server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(eval_every=0)
    run = RunDir.create(tmp_path / "run", config)
    client = connect(own_server.url)
    bus = Bus(client, run.id)

    def poison() -> None:
        litter(client, run.id)
        bus.enqueue([Order(job_name(run.id, "poison"), b"damaged", "no lease", urgent=True)])
        client.hset(f"rq:job:{run.id}_odd", mapping={"created_at": "never", "data": b"\xc1"})
        client.lpush(bus.queue.key, f"{run.id}_odd")

    watch = Watch(lambda status: bool(status["workers"]), poison)
    with worker_process(own_server.url, run.id) as process:
        result = serve(own_server, run, on_status=watch)
        said, _ = process.communicate(timeout=60)
    assert watch.done
    assert result.digest == sequential(config).digest
    assert process.returncode == 0, said
    client.close()


def test_a_server_that_refuses_writes_for_a_while_is_waited_for(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    config = kuhn(eval_every=20)
    run = RunDir.create(tmp_path / "run", config)
    client, reports = connect(own_server.url), list[str]()

    def refuse() -> None:
        client.config_set("min-replicas-to-write", 1)

    def hear(report: str) -> None:
        reports.append(report)
        if "NOREPLICAS" in report:  # it has noticed
            threading.Timer(0.5, lambda: client.config_set("min-replicas-to-write", 0)).start()

    watch = Watch(lambda status: status["games"] >= 10, refuse)
    present = hands(own_server, run, 2, Slow)
    got = train_with(own_server, run, present, on_status=watch, report=hear)
    assert got == sequential(config)
    assert any("NOREPLICAS" in report for report in reports)
    client.close()


def test_a_user_who_may_not_do_it_is_told_at_once(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    run = RunDir.create(tmp_path / "run", kuhn())
    client = connect(own_server.url)
    client.execute_command(
        *("ACL", "SETUSER", "guest", "on", ">word", "~*", "&*", "+@all", "-xgroup", "-xreadgroup")
    )
    socket = own_server.url.removeprefix("unix://")
    bus = Bus(connect(f"unix://guest:word@{socket}"), run.id)
    reports: list[str] = []
    with pytest.raises(BusError, match=r"cannot be used .*xgroup"):
        LearnerService(run, bus, report=reports.append).serve()
    assert reports == [], "it has not tried again"
    client.close()


def test_whatever_ends_a_learner_leaves_a_checkpoint(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    config = kuhn(games=200, checkpoint_every=0)
    run = RunDir.create(tmp_path / "run", config)

    def fall(status: dict[str, Any]) -> None:
        if status["games"] >= 20:
            raise LookupError("something unforeseen")

    with crew(hands(server, run, 1, Slow)), pytest.raises(LookupError):
        serve(server, run, on_status=fall)
    assert run.result().games >= 20
    assert train_with(server, RunDir.open(run.path)) == sequential(config)


class SlowLiar(BareLiar):
    """Lies a little more slowly than others play."""

    pause = 0.01


def test_lies_from_before_a_restart_are_undone(server: EmbeddedServer, tmp_path: Path) -> None:
    """Nobody looked when they were folded; the next learner looks, and knows who brought what."""
    trusting, wary = kuhn(games=200, checkpoint_every=10), kuhn(games=200, audit=1.0)
    run = RunDir.create(tmp_path / "run", trusting)
    watch = Watch()
    liars = hands(server, run, 1, SlowLiar)
    train_with(
        server,
        run,
        liars,
        on_status=watch,
        should_stop=lambda: bool(watch.statuses) and watch.last["games"] >= 20,
    )
    assert 20 <= run.result().games < 200
    run.continue_with(wary)
    again = RunDir.open(run.path)
    present = hands(server, again, 1, SlowLiar) + hands(server, again, 1, Slow)
    assert train_with(server, again, present, on_status=watch) == sequential(wary)
    assert watch.last["banned"] == [present[0].name]


def test_a_ban_outlives_the_learner(server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(games=120, audit=1.0, checkpoint_every=10)
    run = RunDir.create(tmp_path / "run", config)
    watch = Watch()
    present = hands(server, run, 1, SlowLiar) + hands(server, run, 1, Slow)
    train_with(
        server,
        run,
        present,
        on_status=watch,
        should_stop=lambda: bool(watch.statuses) and bool(watch.last["banned"]),
    )
    statuses = Watch()
    train_with(server, RunDir.open(run.path), on_status=statuses)
    assert statuses.statuses[0]["banned"] == [present[0].name]


def test_audits_of_a_share_find_a_liar(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "SystemRandom", lambda: random.Random(1))
    config, watch = kuhn(games=200, audit=0.3, checkpoint_every=10), Watch()
    run = RunDir.create(tmp_path / "run", config)
    present = hands(server, run, 1, SlowLiar) + hands(server, run, 1)
    assert train_with(server, run, present, on_status=watch) == sequential(config)
    assert watch.last["audited"] < 200
