"""The bus on a real server: whose keys are whose, how long they stay, what is refused."""

from __future__ import annotations

import itertools
import os
import pickle
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rq.job import Job
from rq.queue import Queue
from runtime import Clock, Hand, eventually, kuhn, sequential, train_with

from rejoinder.run.ledger import SnapshotId
from rejoinder.run.rundir import RunDir
from rejoinder.transport import bus as module
from rejoinder.transport.bus import LEARNER_TTL, Bus, Flushed, Order, Packed, job_name, runs
from rejoinder.transport.connection import Backoff, BusError, connect, shown
from rejoinder.transport.server import EmbeddedServer, _executable, end_with_parent

PASSWORD = "open-sesame"
_numbers = itertools.count()


@pytest.fixture
def client(own_server: EmbeddedServer) -> Iterator[Any]:
    made = connect(own_server.url)
    yield made
    made.close()


def fill(bus: Bus) -> None:
    """A run that uses every kind of key there is."""
    name = SnapshotId(20, bytes(32))
    bus.announce({"finished": False})
    assert bus.claim()
    bus.publish(name, [b"a", b"b"])
    bus.publish_for_evaluation(20, [b"c"])
    bus.name_newest(name)
    bus.enqueue([Order(job_name(bus.run, str(n)), b"m", "a lease", n == 1) for n in range(3)])
    Queue.dequeue_any([bus.queue], 1, bus.client, serializer=Packed)  # one is in a worker's hands
    bus.deliver([b"delta"], "none")
    bus.beat("worker", {"games": 1})
    bus.ban("liar")
    bus.write_status({"games": 3})


# Whose keys are whose


def test_clean_removes_one_run_and_nothing_else(client: Any) -> None:
    client.set("somebody-else", 1)
    client.set("rq:job:somebody-else", 1)
    names = ["kuhn-1", "kuhn", "kuhn-1-2", "my-kuhn-1", "kuhn-11"]
    keys: dict[str, set[bytes]] = {}
    before = set(client.keys())
    for name in names:
        fill(Bus(client, name))
        keys[name] = set(client.keys()) - before
        before |= keys[name]
    shared = {b"rejoinder:runs", b"rq:queues"}
    for name in names:
        assert Bus(client, name).clean() == len(keys[name] - shared)
        assert not set(client.keys()) & (keys[name] - shared)
        assert name not in runs(client)
        before -= keys[name] - shared
        assert set(client.keys()) >= before - shared
    assert set(client.keys()) == {b"somebody-else", b"rq:job:somebody-else"}


def test_two_runs_do_not_see_each_other(client: Any) -> None:
    one, two = Bus(client, "one"), Bus(client, "one-more")
    fill(one)
    two.announce({"finished": True})
    assert two.claim()
    assert (list(two.snapshot(20)), two.newest(), two.waiting(), two.workers()) == (
        [],
        None,
        set(),
        {},
    )
    assert (two.receive(0.01), two.status(), two.undelivered()) == ([], {}, 0)
    two.withdraw_all()
    two.withdraw(one.waiting())
    assert len(one.waiting()) == 2
    assert list(one.snapshot(20)) == [b"a", b"b"]
    assert one.receive(0.01) == []  # first what was read and not acknowledged: nothing
    assert one.receive(0.01) == [b"delta"]
    assert sorted(runs(client)) == ["one", "one-more"]


def test_every_key_of_a_run_expires(client: Any) -> None:
    fill(Bus(client, "run"))
    lasting = {key for key in client.scan_iter() if client.ttl(key) == -1}
    assert lasting == {b"rejoinder:runs", b"rq:queues"}


def test_a_run_that_has_expired_is_struck_off(client: Any) -> None:
    for name in ("gone", "here"):
        Bus(client, name).announce({})
    client.delete("rejoinder:gone:run")
    assert runs(client) == ["here"]
    assert client.smembers("rejoinder:runs") == {b"here"}


def test_a_status_keeps_the_run(client: Any) -> None:
    bus = Bus(client, "run")
    fill(bus)
    keys = ["rejoinder:run:run", "rejoinder:run:deltas", bus.queue.key]
    for key in keys:
        client.expire(key, 5)
    bus.write_status({})
    assert all(client.ttl(key) > 5 for key in keys)


# The learner's place


def test_only_one_is_the_learner(client: Any) -> None:
    first, second = Bus(client, "run"), Bus(client, "run")
    assert not first.has_learner()
    assert first.claim()
    assert first.claim()
    assert not second.claim()
    second.release()
    assert first.has_learner()
    first.release()
    assert second.claim()
    assert 0 < client.ttl("rejoinder:run:learner") <= LEARNER_TTL


def test_a_place_that_is_gone_while_it_is_looked_at_is_nobodys(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, real = Bus(client, "run"), client.get
    assert bus.claim()

    def too_late(key: str) -> Any:
        monkeypatch.undo()
        client.flushall()
        return real(key)

    monkeypatch.setattr(client, "get", too_late)
    assert bus.claim()
    assert not Bus(client, "run").claim()


# Leases


def test_the_place_of_a_learner_that_died_here_is_free_at_once(client: Any) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    bus = Bus(client, "run-1")
    key = "rejoinder:run-1:learner"
    client.set(key, f"{socket.gethostname()}/{gone.pid}/token", ex=60)
    assert bus.claim()
    for alive in (f"{socket.gethostname()}/{os.getpid()}/token", f"elsewhere/{gone.pid}/token"):
        client.set(key, alive, ex=60)
        assert not bus.claim()


def test_leases_of_a_learner_that_is_gone_leave_nothing(client: Any) -> None:
    bus = Bus(client, "run-1")
    before = set(client.keys())
    bus.enqueue([Order(job_name("run-1", str(n)), b"m", "a lease") for n in range(3)])
    Queue.dequeue_any([bus.queue], 1, client, serializer=Packed)
    bus.withdraw_all()
    assert set(client.keys()) == before


def test_urgent_leases_go_first_and_in_order(client: Any) -> None:
    bus = Bus(client, "run")
    bus.enqueue([Order("run_1", b"", ""), Order("run_2", b"", "")])
    bus.enqueue(
        [Order("run_3", b"", "", True), Order("run_4", b"", ""), Order("run_5", b"", "", True)]
    )
    assert bus.queue.get_job_ids() == ["run_3", "run_5", "run_1", "run_2", "run_4"]
    assert bus.waiting() == {f"run_{n}" for n in range(1, 6)}
    bus.withdraw(["run_1", "run_9"])
    assert bus.waiting() == {f"run_{n}" for n in range(2, 6)}
    assert not client.exists(Job.key_for("run_1"))
    bus.withdraw_all()
    assert bus.waiting() == set()
    assert client.keys("rq:job:*") == []


def test_a_delivery_ends_its_lease(client: Any) -> None:
    bus = Bus(client, "run")
    bus.announce({})
    bus.enqueue([Order("run_1", b"lease", "")])
    found = Queue.dequeue_any([bus.queue], 1, client, serializer=Packed)
    assert found is not None
    assert list(found[0].args) == [b"lease"]
    assert client.lrange(bus.queue.intermediate_queue_key, 0, -1) == [b"run_1"]
    bus.deliver([b"delta"], "run_1")
    assert client.keys("rq:job:*") == []
    assert client.llen(bus.queue.intermediate_queue_key) == 0


def test_nothing_is_pickled(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kuhn(eval_every=20)
    expected = train_with(server, RunDir.create(tmp_path / "first", config))  # loads the kernels
    run = RunDir.create(tmp_path / "run", config)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was pickled")

    with monkeypatch.context() as patch:
        for name in ("dumps", "loads", "dump", "load", "Pickler", "Unpickler"):
            patch.setattr(pickle, name, refuse)
        assert train_with(server, run) == expected


# The stream


def test_messages_are_read_once_and_leave_nothing(client: Any) -> None:
    bus = Bus(client, "run")
    bus.announce({})
    sent = [bytes([n]) for n in range(100)]
    bus.deliver(sent, "none")
    got: list[bytes] = []
    while len(got) < 100:
        got += bus.receive(0.01, count=30)
    assert got == sent
    assert bus.undelivered() == 0
    assert client.xpending("rejoinder:run:deltas", "learner")["pending"] == 0


def test_what_a_learner_had_read_when_it_fell_is_read_by_the_next(client: Any) -> None:
    first = Bus(client, "run")
    first.announce({})
    first.deliver([b"1", b"2"], "none")
    first.receive(0.01)

    def fall() -> None:
        with first.in_one_go():
            assert first.receive(0.01) == [b"1", b"2"]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fall()
    second = Bus(client, "run")
    second.announce({})
    assert second.receive(0.01) == [b"1", b"2"]
    assert second.receive(0.01) == []


def test_what_is_written_in_one_go_arrives_together(client: Any) -> None:
    bus = Bus(client, "run")
    with bus.in_one_go():
        bus.enqueue([Order("run_1", b"", "")])
        bus.publish(SnapshotId(0, bytes(32)), [b"part"])
        assert bus.waiting() == set()
        assert list(bus.snapshot(0)) == []
    assert bus.waiting() == {"run_1"}
    assert list(bus.snapshot(0)) == [b"part"]


def test_an_entry_of_another_shape_is_a_message_too(client: Any) -> None:
    """So that it is counted and kept, like everything that cannot be used."""
    bus = Bus(client, "run")
    bus.announce({})
    client.xadd("rejoinder:run:deltas", {"strange": "field"})
    bus.receive(0.01)
    assert bus.receive(0.01) == [b""]


def test_a_flushed_server_is_noticed(client: Any) -> None:
    bus = Bus(client, "run")
    bus.announce({})
    bus.receive(0.01)
    client.flushall()
    with pytest.raises(Flushed):
        bus.receive(0.01)
    bus.announce({})
    assert bus.receive(0.01) == []


def test_a_server_flushed_in_the_middle_of_a_snapshot_is_noticed(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FLUSH_BYTES", 1)
    bus = Bus(client, "run")

    def parts() -> Iterator[bytes]:
        yield b"the only part"
        client.flushall()

    with pytest.raises(Flushed):
        bus.publish(SnapshotId(1, bytes(32)), parts())
    assert list(bus.snapshot(1)) == []


class Twice(Bus):
    def deliver(self, messages: Sequence[bytes], job: str) -> None:
        super().deliver(messages, job)
        super().deliver(messages, job)


class Retrying(Hand):
    """A client whose XADD is applied twice, as after a timeout."""

    def make_bus(self, url: str, run: str) -> Bus:
        return Twice(connect(url), run)


def test_what_is_added_twice_is_folded_once(server: EmbeddedServer, tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", kuhn())
    got = train_with(server, run, [Retrying(server.url, run, "retrying")])
    assert got == sequential(run.config)


# Workers


def test_workers_come_and_go(client: Any) -> None:
    bus = Bus(client, "run")
    assert bus.beat("a", {"games": 1})
    assert bus.beat("b", {"games": 2})
    assert {name: about["games"] for name, about in bus.workers().items()} == {"a": 1, "b": 2}
    bus.leave("a")
    client.delete("rejoinder:run:worker:b")  # as when it expires
    assert bus.workers() == {}
    assert client.smembers("rejoinder:run:workers") == set()
    bus.ban("a")
    assert not bus.beat("a", {})
    assert bus.beat("b", {})


def test_nonsense_on_the_server_is_not_taken_for_a_run(client: Any) -> None:
    bus = Bus(client, "run")
    client.set("rejoinder:run:run", b"\xff{")
    client.set("rejoinder:run:status", "[1, 2]")
    assert bus.info() is None
    assert bus.status() == {}


# Connections


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server with a password and a limited user, on a port of its own."""
    folder = tmp_path_factory.mktemp("guarded")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [
        *(_executable(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""),
        *("--requirepass", PASSWORD, "--dir", str(folder)),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent
    ) as process:
        assert eventually(lambda: _answers(port))
        with connect(f"redis://:{PASSWORD}@127.0.0.1:{port}") as admin:
            admin.acl_setuser(
                "limited", enabled=True, passwords=[f"+{PASSWORD}"], commands=["+ping", "+client"]
            )
        yield port
        process.kill()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (f"redis://:wrong-{PASSWORD}@127.0.0.1:PORT", "refuses us"),
        ("redis://127.0.0.1:PORT", "refuses us"),
        (f"redis://nobody:{PASSWORD}@127.0.0.1:PORT", "refuses us"),
        (f"redis://limited:{PASSWORD}@127.0.0.1:PORT", "refuses us"),
        (f"redis://:{PASSWORD}@127.0.0.1:PORT/99999", "refuses us"),
        pytest.param(  # a server without TLS waits for the rest, so it takes until the timeout
            f"rediss://:{PASSWORD}@127.0.0.1:PORT",
            "no Redis server answers",
            marks=pytest.mark.slow,
        ),
        (f"redis://:{PASSWORD}@127.0.0.1:1", "no Redis server answers"),
        (f"redis://:{PASSWORD}@no-such-host.invalid:1", "no Redis server answers"),
        (f"unix://:{PASSWORD}@/no/such.sock", "no Redis server answers"),
        (f"http://:{PASSWORD}@127.0.0.1:PORT", "is not the URL"),
        (f"redis://:{PASSWORD}#x@127.0.0.1:PORT", "is not the URL"),
        (f"redis://:{PASSWORD}@127.0.0.1:many", "is not the URL"),
        (f"redis://:{PASSWORD}@[::1", "is not the URL"),
        (f":{PASSWORD}@127.0.0.1:PORT", "is not the URL"),
        (f"redis://127.0.0.1:PORT?pasword={PASSWORD}", "is not the URL"),
        ("", "is not the URL"),
    ],
)
def test_a_server_that_cannot_be_used(guarded: int, url: str, says: str) -> None:
    with pytest.raises(BusError) as refused:
        connect(url.replace("PORT", str(guarded)))
    message = str(refused.value)
    assert says in message
    assert PASSWORD not in message
    assert "\n" not in message


def test_the_password_and_the_database_are_used(guarded: int) -> None:
    base = f"redis://:{PASSWORD}@127.0.0.1:{guarded}"
    zero, three = connect(f"{base}/0"), connect(f"{base}/3")
    fill(Bus(three, "run"))
    assert runs(three) == ["run"]
    assert runs(zero) == []
    assert zero.keys() == []
    Bus(three, "run").clean()
    for made in (zero, three):
        made.close()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"redis://user:{PASSWORD}@host:1/2", "redis://host:1/2"),
        (f"rediss://:{PASSWORD}@host?password={PASSWORD}", "rediss://host"),
        (f"unix://:{PASSWORD}@/some/s.sock?db=1", "unix:///some/s.sock"),
        (f"{PASSWORD}@host", "host"),
        (f"redis://:{PASSWORD}@[::1", "the given URL"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert shown(url) == expected


def test_the_pauses_grow_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    clock = Clock(monkeypatch)
    pause = Backoff(told.append, patience=0.2)
    begin = clock.now
    waits = list(itertools.takewhile(bool, (pause.wait(OSError("gone")) for _ in range(1000))))
    assert 0.2 < clock.now - begin < 2.0
    assert len(waits) < 20
    assert told == ["the Redis server cannot be used now, trying again: gone"]
    pause.reset()
    assert pause.wait(OSError("gone again"))
    assert len(told) == 2
