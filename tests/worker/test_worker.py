"""The worker as a process: it comes, works, survives the server, and leaves when it should."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runtime import Watch, eventually, kuhn, outcome, sequential, serve, worker_process

from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import SnapshotId
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus, Order, job_name
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec, Deltas, Lease
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner
from rejoinder_worker.main import WorkerRefused, _player

pytestmark = pytest.mark.slow  # a process takes its time to start


@pytest.fixture
def bus(own_server: EmbeddedServer) -> Iterator[Bus]:
    with connect(own_server.url) as client:
        yield Bus(client, "run-12345678")


def announce(bus: Bus, config: RunConfig, /, **more: Any) -> None:
    plain = config.model_dump(mode="json")
    info = {"fingerprint": config.fingerprint, "kernel": config.kernel, "config": plain}
    bus.announce(info | {"finished": False} | more)


def order(bus: Bus, config: RunConfig, name: SnapshotId, *leases: range) -> None:
    codec = Codec(config)
    orders = [
        Order(
            job_name(bus.run, str(games.start)),
            codec.encode(Lease(games.start, games.stop, name, config.kernel)),
            "a lease",
        )
        for games in leases
    ]
    bus.enqueue(orders)


def publish(bus: Bus, config: RunConfig) -> SnapshotId:
    publisher = Publisher(bus, Codec(config))
    publisher.start_again(Learner(config))
    return publisher.publish(0)


def ended(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str]:
    """Its exit code and all that it said."""
    said, _ = process.communicate(timeout=seconds)
    return process.returncode, said


def test_a_run_with_real_workers(own_server: EmbeddedServer, tmp_path: Path) -> None:
    """They wait for the run, and leave when it is finished."""
    config = kuhn(eval_every=20)
    run = RunDir.create(tmp_path / "run", config)
    with (
        worker_process(own_server.url, run.id, "a") as a,
        worker_process(own_server.url, None, "b") as b,
    ):
        result = serve(own_server, run)
        assert outcome(run, result) == sequential(config)
        code, said = ended(a)
        assert code == 0
        assert f"{run.id} has no more work" in said
        assert b.poll() is None  # it was not told which run, so it waits for the next
        b.terminate()
        code, said = ended(b)
        assert code == 0
        assert "worker b stops" in said


def test_told_to_stop_while_idle(own_server: EmbeddedServer, bus: Bus) -> None:
    announce(bus, kuhn())
    with worker_process(own_server.url, bus.run, "idle") as process:
        assert eventually(lambda: "idle" in bus.workers(), 120)
        process.send_signal(signal.SIGTERM)
        code, said = ended(process)
    assert code == 0
    assert said.endswith("worker idle stops\n")
    assert bus.workers() == {}


def test_told_to_stop_while_waiting_for_a_run(own_server: EmbeddedServer) -> None:
    with worker_process(own_server.url, "no-such-run", "early") as process:
        assert process.stdout is not None
        assert "waiting for no-such-run" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        code, said = ended(process)
    assert (code, said) == (0, "worker early stops\n")


# A worker that says when it begins a lease, and plays it when it is allowed to.
HELD = """
import time
from rejoinder_worker.job import Player

def play(self, lease, plain=Player.work_on):
    self.bus.client.set("begun", 1)
    while not self.bus.client.exists("go on"):
        time.sleep(0.01)
    return plain(self, lease)

Player.work_on = play
"""


def test_told_to_stop_while_busy_it_finishes_its_lease(
    own_server: EmbeddedServer, bus: Bus
) -> None:
    config = kuhn(game="leduc", batch=10_000)
    announce(bus, config)
    name = publish(bus, config)
    order(bus, config, name, range(40), range(40, 80), range(80, 120))
    with worker_process(own_server.url, bus.run, "busy", before=HELD) as process:
        assert eventually(lambda: bus.client.exists("begun"), 120)
        process.send_signal(signal.SIGTERM)
        assert bus.undelivered() == 0
        bus.client.set("go on", 1)
        code, said = ended(process)
    assert code == 0
    assert said.endswith("worker busy stops\n")
    bus.receive(0.01)
    (answer,) = bus.receive(0.01)
    deltas = Codec(config).decode(answer)
    assert isinstance(deltas, Deltas)
    assert deltas.units == range(40)
    assert bus.waiting() == {job_name(bus.run, "40"), job_name(bus.run, "80")}


def test_it_goes_on_after_the_server_was_away(own_server: EmbeddedServer, bus: Bus) -> None:
    config = kuhn()
    announce(bus, config)
    with worker_process(own_server.url, bus.run, "patient") as process:
        assert eventually(lambda: "patient" in bus.workers(), 120)
        own_server.kill()
        assert process.stdout is not None
        lines = iter(process.stdout)
        assert any("the Redis server cannot be used" in line for line in lines)
        own_server.start()
        announce(bus, config)
        order(bus, config, publish(bus, config), range(5))
        assert eventually(lambda: bus.undelivered() == 1)
        assert process.poll() is None
        announce(bus, config, finished=True)
        assert process.wait(60) == 0


@pytest.mark.parametrize("what", ["run", "kernel"])
def test_a_lease_that_is_not_for_it_is_given_back(
    own_server: EmbeddedServer, bus: Bus, what: str
) -> None:
    config = kuhn()
    announce(bus, config)
    name = SnapshotId(0, bytes(32))
    codec = Codec(kuhn(seed=2) if what == "run" else config)
    message = codec.encode(Lease(0, 5, name, "others" if what == "kernel" else config.kernel))
    bus.enqueue([Order("run_1", message, ""), Order("run_2", message, "")])
    with worker_process(own_server.url, bus.run, "choosy") as process:
        code, said = ended(process, 120)
    assert code != 0
    assert ("it belongs to the run" if what == "run" else "kernels others") in said
    assert bus.queue.get_job_ids() == ["run_1", "run_2"]
    assert bus.client.exists("rq:job:run_1")
    assert bus.undelivered() == 0
    assert bus.workers() == {}


def test_a_banned_worker_stops(own_server: EmbeddedServer, bus: Bus) -> None:
    announce(bus, kuhn())
    with worker_process(own_server.url, bus.run, "liar") as process:
        assert eventually(lambda: "liar" in bus.workers(), 120)
        bus.ban("liar")
        code, said = ended(process)
    assert code != 0
    assert "liar was caught with wrong deltas and is banned" in said
    assert bus.workers() == {}


def test_killed_in_the_middle_nothing_is_lost(own_server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(game="leduc", rollouts=20_000, games=150, batch=25)
    run = RunDir.create(tmp_path / "run", config)
    with (
        worker_process(own_server.url, run.id, "victim") as victim,
        worker_process(own_server.url, run.id, "other") as other,
    ):
        watch = Watch(lambda status: status["games"] >= 50, victim.kill)
        result = serve(own_server, run, on_status=watch)
        assert watch.done
        assert outcome(run, result) == sequential(config)
        assert ended(other)[0] == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kernel": "other"}, "made with kernels other"),
        ({"config": {"game": "chess"}}, "cannot be played here"),
        ({"config": {"game": "kuhn"}}, "announces a config that is not its own"),
    ],
)
def test_a_run_that_it_is_not_fit_for(bus: Bus, change: dict[str, Any], says: str) -> None:
    announce(bus, kuhn(), **change)
    info = bus.info()
    assert info is not None
    with pytest.raises(WorkerRefused, match=says):
        _player(bus, info, "worker")


def test_a_finished_run_is_refused(own_server: EmbeddedServer, bus: Bus) -> None:
    announce(bus, kuhn(), finished=True)
    with worker_process(own_server.url, bus.run, "late") as process:
        code, said = ended(process)
    assert code != 0
    assert f"the run {bus.run} is finished already" in said
