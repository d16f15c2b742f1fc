"""One lease: what a worker makes of it, and which leases it does not touch."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from rq import SimpleWorker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.queue import Queue
from runtime import Clock, kuhn

from rejoinder.measure.metrics import evaluation_kernel, play_matches
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus, Order, Packed
from rejoinder.transport.connection import BusError, connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec, Deltas, Evaluation, EvaluationLease, Lease, Refusal
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner
from rejoinder_worker.job import ForeignLease, Player, take_lease
from rejoinder_worker.main import LeaseWorker, Server

_numbers = itertools.count()
FOR_EVER = Server("redis://nowhere", math.inf)


class Bench:
    """A run on the server, without a learner at work."""

    def __init__(self, client: Any, config: RunConfig) -> None:
        self.config = config
        self.bus = Bus(client, f"job-{next(_numbers)}")
        self.bus.announce({})
        self.codec = Codec(config)
        self.learner = Learner(config)
        self.publisher = Publisher(self.bus, self.codec)
        self.publisher.start_again(self.learner)
        self.player = Player(self.bus, config, "worker")
        self.bus.receive(0.001)

    def do(self, lease: Lease | EvaluationLease) -> Any:
        """Through the queue to a worker, and what it answers."""
        self.bus.enqueue([Order(f"{self.bus.run}_1", self.codec.encode(lease), "a lease")])
        found = Queue.dequeue_any([self.bus.queue], 1, self.bus.client, serializer=Packed)
        assert found is not None
        take_lease(self.player, found[0].id, found[0].args[0])
        (answer,) = self.bus.receive(0.001)
        return self.codec.decode(answer)

    def play(self, games: int) -> None:
        actor = self.config.actor()
        for _ in range(games):
            policy = self.learner.snapshot_for(self.learner.units)
            self.learner.fold(actor.play(self.learner.units, policy))


@pytest.fixture
def bench(server: EmbeddedServer) -> Iterator[Bench]:
    with connect(server.url) as client:
        made = Bench(client, kuhn(batch=4, lag=0))
        yield made
        made.bus.clean()


def test_a_lease_brings_the_deltas_of_its_games(bench: Bench) -> None:
    bench.play(8)
    name = bench.publisher.publish(8)
    answer = bench.do(Lease(8, 12, name, bench.config.kernel))
    assert isinstance(answer, Deltas)
    assert (answer.units, answer.snapshot, answer.worker) == (range(8, 12), name, "worker")
    actor, policy = bench.config.actor(), bench.learner.snapshot_at(2)
    for game, delta in answer.by_unit().items():
        assert delta.tobytes() == actor.play(game, policy).tobytes()
    assert bench.bus.waiting() == set()
    assert (bench.player.games, bench.player.leases) == (4, 1)


def test_a_lease_without_a_snapshot_takes_the_newest(bench: Bench) -> None:
    bench.play(4)
    name = bench.publisher.publish(4)
    answer = bench.do(Lease(6, 7, None, bench.config.kernel))
    assert answer.snapshot == name


def test_an_evaluation_is_that_of_sequential_training(bench: Bench) -> None:
    bench.play(6)
    name = SnapshotId(6, bench.learner.head)
    bench.publisher.publish_for_evaluation(name, bench.learner.policy_rows())
    answer = bench.do(EvaluationLease(name, 30, evaluation_kernel(bench.config)))
    assert isinstance(answer, Evaluation)
    config = bench.config.model_copy(update={"eval_games": 30})
    assert answer.matches == play_matches(config, 6, table_of(bench.learner.policy_rows()))


def test_policies_with_a_key_twice_are_answered_as_missing(bench: Bench) -> None:
    bench.play(6)
    name, rows = SnapshotId(6, bench.learner.head), bench.learner.policy_rows()
    rows["key"][1] = rows["key"][0]
    bench.publisher.publish_for_evaluation(name, rows)
    answer = bench.do(EvaluationLease(name, 30, evaluation_kernel(bench.config)))
    assert isinstance(answer, Refusal)
    assert answer.snapshot_missing
    assert answer.reason == "the policies after 6 games: a key is there twice"


@pytest.mark.parametrize(
    "lease",
    [
        Lease(0, 1, SnapshotId(0, bytes(32)), kuhn().kernel),
        Lease(0, 1, None, kuhn().kernel),
        EvaluationLease(SnapshotId(4, bytes(32)), 10, evaluation_kernel(kuhn())),
    ],
)
def test_a_missing_snapshot_is_answered(bench: Bench, lease: Lease | EvaluationLease) -> None:
    answer = bench.do(lease)
    assert isinstance(answer, Refusal)
    assert answer.snapshot_missing
    assert answer.lease == f"{bench.bus.run}_1"
    assert bench.player.games == 0


def test_a_lease_for_other_kernels_is_not_touched(bench: Bench) -> None:
    message = bench.codec.encode(Lease(0, 4, None, "other"))
    with pytest.raises(ForeignLease, match=f"kernels other and this worker {bench.config.kernel}"):
        take_lease(bench.player, "job", message)
    assert bench.bus.undelivered() == 0


def test_a_lease_of_another_run_is_not_touched(bench: Bench) -> None:
    other = Codec(kuhn(seed=2))
    message = other.encode(Lease(0, 4, None, bench.config.kernel))
    with pytest.raises(ForeignLease, match="it belongs to the run"):
        take_lease(bench.player, "job", message)
    assert bench.bus.undelivered() == 0


def test_a_damaged_lease_is_answered_and_stops_nobody(bench: Bench) -> None:
    for message in (b"", b"damaged", bench.codec.encode(Refusal("a", "b", "c", False))):
        take_lease(bench.player, "job", message)
        (answer,) = bench.bus.receive(1.0)
        refusal = bench.codec.decode(answer)
        assert isinstance(refusal, Refusal)
        assert (refusal.lease, refusal.snapshot_missing) == ("job", False)


def test_a_lease_costs_less_than_a_quarter_of_a_job_of_rq(
    own_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In commands to the server, from the queue to the end, without the worker's own start."""
    monkeypatch.setattr(SimpleWorker, "_install_signal_handlers", lambda _: None)
    with connect(own_server.url) as client:
        bench = Bench(client, kuhn(batch=4, lag=0))
        lease = bench.codec.encode(Lease(0, 1, bench.publisher.publish(0), bench.config.kernel))
        stock = Queue("stock", connection=client)

        def take_leases(count: int) -> int:
            names = [f"{bench.bus.run}_{n}" for n in range(count)]
            bench.bus.enqueue([Order(name, lease, "a lease") for name in names])
            return commands(client, LeaseWorker(bench.player, FOR_EVER, print))

        def do_jobs(count: int) -> int:
            for _ in range(count):
                stock.enqueue(time.time)
            return commands(client, SimpleWorker([stock], connection=client))

        ours, theirs = (work(21) - work(1) for work in (take_leases, do_jobs))
        assert bench.player.leases == 22
        assert 0 < ours < theirs / 4


def commands(client: Any, worker: SimpleWorker) -> int:
    """How many commands a worker needs for what is in its queue."""
    client.config_resetstat()
    assert worker.work(burst=True, logging_level="CRITICAL")
    return sum(command["calls"] for command in client.info("commandstats").values())


def test_a_server_that_answers_in_between_has_not_been_away_all_the_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it has no lease for long: only one long absence makes a worker give up."""
    worker = LeaseWorker(bench.player, Server("redis://user:secret@host", 60), lambda _: None)
    clock = Clock(monkeypatch)
    answers: Iterator[Exception] = iter(
        [redis.ConnectionError("gone"), DequeueTimeout()] * 3
        + [redis.ConnectionError("gone")] * 999
    )
    asked: list[float] = []

    def dequeue(*_: Any, **__: Any) -> Any:
        answer = next(answers)
        clock.now += 40 if isinstance(answer, DequeueTimeout) else 0
        asked.append(clock.now)
        raise answer

    monkeypatch.setattr(Queue, "dequeue_any", dequeue)
    with pytest.raises(StopRequested):
        worker.dequeue_job_and_maintain_ttl(None)
    assert asked[-1] - asked[0] > 3 * 40 + 60
    assert isinstance(worker._failure, BusError)
    assert worker._failure.exit_code == 4
    assert "redis://host has been away for 60 seconds" in str(worker._failure)


def test_a_worker_may_wait_for_ever() -> None:
    pause = FOR_EVER.backoff(lambda _: None)
    assert all(pause.wait(redis.ConnectionError("gone")) for _ in range(3))
