"""The bus: everything that Rejoinder keeps on a Redis server, and the only module that knows how.

For a run with the id R:

    rejoinder:runs              set of the ids of the runs on this server
    rejoinder:R:run             JSON: what a worker must know of the run before it takes a lease
    rejoinder:R:learner         the token of the learner at work; expires when it stops renewing it
    rejoinder:R:snapshot:N      list of the parts of the snapshot after N games
    rejoinder:R:evaluation:N    the same for an evaluation, complete by itself
    rejoinder:R:newest          name of the newest snapshot
    rejoinder:R:deltas          stream of deltas, evaluations and refusals; consumer group `learner`
    rejoinder:R:status          JSON: what the learner last said of itself
    rejoinder:R:workers         set of the names of workers
    rejoinder:R:worker:NAME     JSON: what a worker last said of itself; expires when it is gone
    rejoinder:R:banned          set of the names of workers that were caught lying
    rq:queue:rejoinder-R        the leases, as RQ jobs named R_… (an id has no underscore)

Redis is a transport: nothing here is the only copy of anything. A snapshot, lease or delta that is
lost is made again, with the same bytes. Every key of ours expires after `KEPT` seconds without use,
so an abandoned run leaves nothing behind; `clean` removes one at once.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgpack
import redis
from rq import Queue
from rq.job import Job, JobStatus
from rq.utils import now, utcformat

from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.connection import Client

__all__ = ["LEARNER_TTL", "Bus", "Flushed", "Order", "Packed", "job_name", "runs"]

PREFIX = "rejoinder"
KEPT = 7 * 24 * 3600  # seconds that an unused key stays
LEARNER_TTL = 3  # seconds after which a learner that stopped beating is taken for dead
WORKER_TTL = 6  # the same for a worker
_LEASE = "lease"  # RQ's jobs name a function; this is none, workers read `lease_message`

_GROUP, _CONSUMER, _FIELD = "learner", "learner", b"m"
_FLUSH_BYTES = 8 * 2**20  # of a pipeline that writes a big snapshot


class Flushed(Exception):
    """The server has lost what the learner had put there."""


class Packed:
    """The serializer of RQ's jobs: msgpack, so that nothing is ever pickled."""

    @staticmethod
    def dumps(value: Any) -> bytes:
        return bytes(msgpack.packb(value))

    @staticmethod
    def loads(data: bytes) -> Any:
        return msgpack.unpackb(data)


class Order(NamedTuple):
    """A lease on its way into the queue."""

    job: str
    message: bytes
    label: str
    urgent: bool = False  # ahead of the others


def job_name(run: str, rest: str) -> str:
    """What a lease is called in RQ; no name of one run begins like one of another."""
    return f"{run}_{rest}"


def runs(client: Client) -> list[str]:
    """The ids of the runs on a server; those that have expired are struck off."""
    names = sorted(_text(name) for name in client.smembers(f"{PREFIX}:runs"))
    if not names:
        return []
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.exists(f"{PREFIX}:{name}:run")
    present = [n for n, there in zip(names, pipeline.execute(), strict=True) if there]
    for name in set(names) - set(present):
        client.srem(f"{PREFIX}:runs", name)
        client.srem(Queue.redis_queues_keys, Bus(client, name).queue.key)
    return present


class Bus:
    """One run's share of a server."""

    def __init__(self, client: Client, run: str) -> None:
        self.client = client
        self.run = run
        self.queue = Queue(f"{PREFIX}-{run}", connection=client, serializer=Packed)
        self._lists = (self.queue.key, self.queue.intermediate_queue_key)
        self._lease_fields = _fields_of_a_lease(self.queue)
        self._token = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(8)}"
        self._backlog = True  # what was read and not acknowledged comes first
        self._joint: Client | None = None  # the pipeline of `in_one_go`

    @contextmanager
    def in_one_go(self) -> Iterator[None]:
        """Collect what is written inside, and send it in order and in one round trip at the end.

        Whoever reads inside does not see it yet. If the block fails, or the run is announced anew
        in it, what was collected is void: what was received comes again, as after a learner's
        fall. Big snapshots, bans and withdrawals do not wait.
        """
        self._joint = self.client.pipeline(transaction=False)
        try:
            yield
            _send(self._joint)
        finally:
            self._joint = None

    @contextmanager
    def _writing(self) -> Iterator[Client]:
        """The pipeline to write into: the joint one, or one that is sent at the end."""
        if self._joint is not None:
            yield self._joint
            return
        pipeline = self.client.pipeline(transaction=False)
        yield pipeline
        _send(pipeline)

    def _key(self, *parts: object) -> str:
        return ":".join((PREFIX, self.run, *map(str, parts)))

    # The run

    def announce(self, info: dict[str, Any]) -> None:
        """Say what the run is, and make the stream; safe to repeat."""
        if self._joint is not None:
            self._joint.reset()
        pipeline = self.client.pipeline()
        pipeline.sadd(f"{PREFIX}:runs", self.run)
        pipeline.sadd(Queue.redis_queues_keys, self.queue.key)
        pipeline.set(self._key("run"), json.dumps(info), ex=KEPT)
        pipeline.execute()
        try:
            self.client.xgroup_create(self._key("deltas"), _GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._backlog = True

    def info(self) -> dict[str, Any] | None:
        """What the run is, or None if nobody has announced it."""
        return _json(self.client.get(self._key("run")))

    def claim(self) -> bool:
        """Become, or stay, the learner of this run; False while there is another one."""
        key = self._key("learner")
        while not self.client.set(key, self._token, nx=True, ex=LEARNER_TTL):
            holder = self.client.get(key)
            if holder is None:
                continue  # gone between the two commands, so the place is free
            if holder != self._token.encode() and not _is_dead(holder.decode()):
                return False
            self.client.set(key, self._token, ex=LEARNER_TTL)
            break
        return True

    def release(self) -> None:
        """Let go of the learner's place, if it is ours."""
        if self.client.get(self._key("learner")) == self._token.encode():
            self.client.delete(self._key("learner"))

    def has_learner(self) -> bool:
        return bool(self.client.exists(self._key("learner")))

    def write_status(self, status: dict[str, Any]) -> None:
        """Say how the run stands, and keep what must last as long as somebody says so."""
        pipeline = self.client.pipeline(transaction=False)
        pipeline.set(self._key("status"), json.dumps(status), ex=KEPT)
        for key in (*map(self._key, ("run", "deltas", "banned")), *self._lists):
            pipeline.expire(key, KEPT)
        pipeline.execute()

    def status(self) -> dict[str, Any]:
        return _json(self.client.get(self._key("status"))) or {}

    def clean(self) -> int:
        """Remove every key of this run; returns how many there were."""
        removed = 0
        queue, jobs = f"rq:*:{self.queue.name}", Job.key_for(job_name(self.run, "*"))
        for pattern in (self._key("*"), queue, f"{queue}:*", jobs):
            for keys in _in_blocks(self.client.scan_iter(match=pattern, count=1000)):
                removed += self.client.delete(*keys)
        pipeline = self.client.pipeline()
        pipeline.srem(f"{PREFIX}:runs", self.run)
        pipeline.srem("rq:queues", self.queue.key)
        pipeline.execute()
        return removed

    # Snapshots

    def publish(self, name: SnapshotId, parts: Iterable[bytes]) -> None:
        """Put a snapshot where workers find it, whole or not at all."""
        self._write_parts(self._key("snapshot", name.games), parts)

    def name_newest(self, name: SnapshotId) -> None:
        """Say which snapshot is the newest, for those who do not care which they get."""
        with self._writing() as pipeline:
            pipeline.set(self._key("newest"), msgpack.packb(list(name)), ex=KEPT)

    def publish_for_evaluation(self, games: int, parts: Iterable[bytes]) -> None:
        self._write_parts(self._key("evaluation", games), parts)

    def snapshot(self, games: int) -> list[bytes]:
        """The parts of a snapshot; none if it is not there."""
        return list(self.client.lrange(self._key("snapshot", games), 0, -1))

    def snapshot_for_evaluation(self, games: int) -> list[bytes]:
        return list(self.client.lrange(self._key("evaluation", games), 0, -1))

    def newest(self) -> SnapshotId | None:
        """The newest snapshot's name."""
        packed = self.client.get(self._key("newest")) or b""
        try:
            games, head = msgpack.unpackb(packed)
        except (ValueError, TypeError):
            return None
        fits = type(games) is int and type(head) is bytes and games >= 0
        return SnapshotId(games, head) if fits else None

    def snapshots(self) -> set[int]:
        """Which snapshots are on the server, by their number of games."""
        keys = self.client.scan_iter(match=self._key("snapshot", "*"), count=1000)
        ends = {_text(key).rpartition(":")[2] for key in keys}
        return {int(end) for end in ends if end.isdecimal()}

    def drop_snapshots(self, games: Iterable[int], kind: str = "snapshot") -> None:
        with self._writing() as pipeline:
            for keys in _in_blocks(self._key(kind, n) for n in games):
                pipeline.unlink(*keys)  # the server need not stop to free a big one

    def _write_parts(self, key: str, parts: Iterable[bytes]) -> None:
        draft = f"{key}:draft"
        with self._writing() as pipeline:
            pipeline.delete(draft)
            size = 0
            for part in parts:
                pipeline.rpush(draft, part)
                size += len(part)
                if size > _FLUSH_BYTES:
                    _send(pipeline)
                    size = 0
            pipeline.expire(draft, KEPT)
            pipeline.rename(draft, key)

    # Leases

    def enqueue(self, orders: Sequence[Order]) -> None:
        """Put leases into the queue, in one round trip."""
        back = [order.job for order in orders if not order.urgent]
        front = [order.job for order in orders if order.urgent]
        moment = utcformat(now())
        with self._writing() as pipeline:
            for order in orders:
                fields = {
                    **self._lease_fields,
                    "created_at": moment,
                    "enqueued_at": moment,
                    "description": order.label,
                    "data": Packed.dumps((_LEASE, None, (order.message,), {})),
                }
                pipeline.hset(Job.key_for(order.job), mapping=fields)
                pipeline.expire(Job.key_for(order.job), KEPT)
            if back:
                pipeline.rpush(self.queue.key, *back)
            if front:  # each is pushed before the others, so the last one goes first
                pipeline.lpush(self.queue.key, *front[::-1])

    def waiting(self) -> set[str]:
        """The leases that no worker has taken yet."""
        return {_text(job) for job in self.client.lrange(self.queue.key, 0, -1)}

    def withdraw(self, jobs: Iterable[str]) -> None:
        """Forget leases that are done or given up, wherever they are."""
        with self._writing() as pipeline:
            for job in jobs:
                pipeline.lrem(self.queue.key, 1, job)
                self._finish(pipeline, job)

    def withdraw_all(self) -> None:
        """Forget every lease, taken or not: those of a learner that is gone."""
        jobs = [job for key in self._lists for job in self.client.lrange(key, 0, -1)]
        self.client.delete(*self._lists, *(Job.key_for(_text(job)) for job in jobs))

    # What workers send

    def deliver(self, messages: Sequence[bytes], job: str) -> None:
        """Send what a lease has brought, and end the lease, at once."""
        pipeline = self.client.pipeline()
        for message in messages:
            pipeline.xadd(self._key("deltas"), {_FIELD: message})
        pipeline.expire(self._key("deltas"), KEPT)  # there may be no learner to see to it
        self._finish(pipeline, job)
        pipeline.execute()

    def _finish(self, pipeline: Any, job: str) -> None:
        pipeline.lrem(self.queue.intermediate_queue_key, 1, job)
        pipeline.delete(Job.key_for(job))

    def receive(self, seconds: float, count: int = 64) -> list[bytes]:
        """Messages that have come, oldest first; waits a little if there are none.

        They are acknowledged with the next thing written: whatever is lost is leased again.
        """
        key = self._key("deltas")
        start = "0" if self._backlog else ">"
        block = None if self._backlog else max(1, int(seconds * 1000))
        try:
            answer = self.client.xreadgroup(_GROUP, _CONSUMER, {key: start}, count, block)
        except redis.ResponseError as error:
            if "NOGROUP" in str(error) or "UNBLOCKED" in str(error):
                raise Flushed(str(error)) from None
            raise
        entries = answer[0][1] if answer else []
        if not entries:
            self._backlog = False
            return []
        names = [name for name, _ in entries]
        with self._writing() as pipeline:
            pipeline.xack(key, _GROUP, *names)
            pipeline.xdel(key, *names)
        return [fields.get(_FIELD, b"") for _, fields in entries if fields]

    def undelivered(self) -> int:
        """Messages in the stream."""
        return int(self.client.xlen(self._key("deltas")))

    # Who is there

    def beat(self, name: str, about: dict[str, Any]) -> bool:
        """A worker says that it is alive and what it has done; False if it was banned."""
        pipeline = self.client.pipeline(transaction=False)
        pipeline.sadd(self._key("workers"), name)
        pipeline.expire(self._key("workers"), KEPT)
        pipeline.set(self._key("worker", name), json.dumps(about), ex=WORKER_TTL)
        pipeline.sismember(self._key("banned"), name)
        return not pipeline.execute()[-1]

    def leave(self, name: str) -> None:
        """A worker says good-bye."""
        pipeline = self.client.pipeline(transaction=False)
        pipeline.srem(self._key("workers"), name)
        pipeline.delete(self._key("worker", name))
        pipeline.execute()

    def workers(self) -> dict[str, dict[str, Any]]:
        """The workers that are alive, and what each last said."""
        names = sorted(self.client.smembers(self._key("workers")))
        if not names:
            return {}
        said = self.client.mget([self._key("worker", _text(name)) for name in names])
        gone = [name for name, text in zip(names, said, strict=True) if text is None]
        if gone:
            self.client.srem(self._key("workers"), *gone)
        beats = {_text(name): _json(text) for name, text in zip(names, said, strict=True)}
        return {name: _beat(about) for name, about in beats.items() if about is not None}

    def ban(self, name: str) -> None:
        self.client.sadd(self._key("banned"), name)
        self.client.expire(self._key("banned"), KEPT)


def _send(pipeline: Client) -> None:
    try:
        pipeline.execute()
    except redis.ResponseError as error:
        if "no such key" in str(error):  # a draft that was there a moment ago
            raise Flushed(str(error)) from None
        raise


def lease_message(job: Job) -> bytes:
    """What a lease says, as `Codec` reads it."""
    message: bytes = job.args[0]
    return message


def _fields_of_a_lease(queue: Queue) -> dict[str, Any]:
    """What RQ keeps of every lease alike. It makes a job in a tenth of a millisecond, so once."""
    job = Job.create(
        _LEASE,
        timeout=-1,  # the learner minds the time: a compiled game cannot be interrupted
        result_ttl=0,
        failure_ttl=60,
        origin=queue.name,
        status=JobStatus.QUEUED,
        connection=queue.connection,
        serializer=Packed,
    )
    return {name: value for name, value in job.to_dict().items() if value != ""}


def _is_dead(learner: str) -> bool:
    """Whether it ran on this machine and does no more; of others only its silence can tell."""
    host, _, rest = learner.partition("/")
    pid = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _beat(about: dict[str, Any]) -> dict[str, Any]:
    """What a worker says of itself, with every field that readers count on."""
    numbers = ("games", "leases", "evaluations", "busy_seconds", "up_seconds", "pid")
    known: dict[str, Any] = {
        name: about[name] if isinstance(about.get(name), int | float) else 0 for name in numbers
    }
    return known | {name: str(about.get(name, ""))[:200] for name in ("host", "kernel")}


def _text(raw: Any) -> str:
    """A name from the server, whatever bytes it is made of."""
    return str(raw, errors="replace") if isinstance(raw, bytes) else str(raw)


def _json(text: Any) -> dict[str, Any] | None:
    """The object, or None where there is none."""
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _in_blocks(keys: Iterable[Any], size: int = 500) -> Iterator[list[Any]]:
    block: list[Any] = []
    for key in keys:
        block.append(key)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
