"""Runs with a real server and workers in threads, for the tests of the runtime."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rq.queue import Queue

from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.methods.tabular.rollout_method import RolloutSettings
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import RunConfig, load_config, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus, Packed
from rejoinder.transport.connection import LOST, connect
from rejoinder.transport.server import EmbeddedServer, end_with_parent
from rejoinder.transport.wire import Deltas, EvaluationLease, Lease, Message, Refusal
from rejoinder_learner import planner
from rejoinder_learner.main import LearnerService
from rejoinder_learner.sequential import TrainResult, train
from rejoinder_worker.job import MissingSnapshot, Player, take_lease

KUHN = {
    "game": "kuhn",
    "method.rollouts": 2,
    "games": 60,
    "batch": 5,
    "lag": 1,
    "eval_every": 0,
    "eval_games": 20,
    "checkpoint_every": 20,
}
LEDUC = KUHN | {"game": "leduc"}
_LOST = 60.0  # seconds that a server may be away from a worker
_STALLED = 300.0  # seconds without a lease done, compilation on a busy machine included
TINY = {"method.rollouts": 1, "games": 40, "batch": 4, "eval_every": 20, "eval_games": 4}


def by_table(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields with the settings of the rollout method under their dotted names."""
    settings = RolloutSettings.model_fields
    return {f"method.{name}" if name in settings else name: fields[name] for name in fields}


def kuhn(**fields: Any) -> RunConfig:
    return make_config(KUHN | by_table(fields))


def leduc(**fields: Any) -> RunConfig:
    return make_config(LEDUC | by_table(fields))


def tiny(**fields: Any) -> RunConfig:
    return load_config("tiny", TINY | by_table(fields))


class Outcome(NamedTuple):
    """All that a run comes to, whoever made it."""

    digest: str
    ledger: bytes
    metrics: list[dict[str, Any]]


def outcome(run: RunDir, result: TrainResult) -> Outcome:
    return Outcome(result.digest, run.ledger().tobytes(), run.metrics())


def trained(config: RunConfig, path: Path) -> Agent:
    """The agent that training alone makes, as it samples its average policy."""
    run = RunDir.create(path, config)
    train(run)
    policy = table_of(run.policy_rows(run.result()))
    return trained_agent("trained", config.load_abstraction(), policy, argmax=False)


def sequential(config: RunConfig) -> Outcome:
    """What sequential training makes of a config."""
    return _sequential(config.model_dump_json())


@functools.cache
def _sequential(text: str) -> Outcome:
    config = RunConfig.model_validate_json(text)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir.create(Path(folder) / "run", config)
        return outcome(run, train(run))


class Hand(threading.Thread):
    """A worker in a thread: takes leases from the queue until told to stop."""

    pause = 0.0  # seconds before each lease

    def __init__(self, url: str, run: RunDir, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.bus = self.make_bus(url, run.id)
        self.player = Player(self.bus, run.config, name)
        self.halt = threading.Event()
        self.banned = False
        self.failure: BaseException | None = None
        self.done = 0  # leases

    def make_bus(self, url: str, run: str) -> Bus:
        return Bus(connect(url), run)

    def run(self) -> None:
        lost: float | None = None  # since when
        try:
            while not self.halt.is_set() and not self.banned:
                try:
                    self.step()
                    lost = None
                except LOST:
                    lost = lost or time.monotonic()
                    if time.monotonic() - lost > _LOST:
                        raise
                    time.sleep(0.01)
        except BaseException as error:  # for the test to see
            self.failure = error

    def step(self) -> None:
        self.banned = not self.bus.beat(self.name, {"games": self.player.games})
        found = Queue.dequeue_any([self.bus.queue], None, self.bus.client, serializer=Packed)
        if found is None:
            time.sleep(0.002)
        else:
            time.sleep(self.pause)
            self.work(found[0].id, found[0].args[0])
            self.done += 1

    def work(self, job: str, message: bytes) -> None:
        take_lease(self.player, job, message)

    def answer(self, job: str, message: bytes) -> Message:
        """What an honest worker would deliver."""
        lease = self.player.codec.decode(message)
        assert isinstance(lease, Lease | EvaluationLease)
        try:
            return self.player.work_on(lease)
        except MissingSnapshot as error:
            return Refusal(job, self.name, str(error), snapshot_missing=True)


class Slow(Hand):
    """Takes its time, so that a run lasts long enough to be disturbed."""

    pause = 0.03


class Snail(Hand):
    """Keeps its first lease until it may go on."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept = 0  # games
        self.go_on = threading.Event()

    def work(self, job: str, message: bytes) -> None:
        if not self.go_on.is_set():
            lease = self.player.codec.decode(message)
            assert isinstance(lease, Lease)
            self.kept = lease.end - lease.first
            assert self.go_on.wait(120), "nobody has waited for it"
        super().work(job, message)

    def is_waited_for(self, status: dict[str, Any]) -> bool:
        """Whether everything else that may be played has been."""
        return bool(0 < self.kept == status["outstanding"])


class _Later(Hand):
    """Comes once the snail keeps a lease."""

    snail: Snail

    def step(self) -> None:
        if self.snail.kept:
            super().step()
        else:
            time.sleep(0.002)


class Liar(Hand):
    """Plays honestly for a while, then improves its results a little."""

    honest = 3  # leases

    def work(self, job: str, message: bytes) -> None:
        answer = self.answer(job, message)
        if isinstance(answer, Deltas) and self.player.leases >= self.honest:
            answer.entries["reach"] /= 2
        self.player.leases += 1
        self.bus.deliver([self.player.codec.encode(answer)], job)


class BareLiar(Liar):
    """Never plays honestly."""

    honest = 0


@contextmanager
def crew(hands: list[Hand]) -> Iterator[list[Hand]]:
    """Workers at work; whatever went wrong in one of them comes out at the end."""
    for hand in hands:
        hand.start()
    _at_work.extend(hands)
    try:
        yield hands
    finally:
        for hand in hands:
            _at_work.remove(hand)
            hand.halt.set()
        for hand in hands:
            hand.join(60)
            hand.bus.client.close()
    for hand in hands:
        assert not hand.is_alive(), f"{hand.name} does not end; it is at\n{_whereabouts(hand)}"
        if hand.failure:
            raise hand.failure


# The workers of the test under way: a learner without any would wait for ever.
_at_work: list[Hand | subprocess.Popen[str]] = []


class Unattended(AssertionError):
    """A learner waits for workers in vain."""


class Trouble:
    """Why a learner waits in vain, once it does."""

    def __init__(self) -> None:
        self.reason = ""
        self.cause: BaseException | None = None
        self._done, self._since = 0, time.monotonic()

    def __call__(self) -> bool:
        self.reason = self.reason or self._fallen() or self._stalled()
        return bool(self.reason)

    def _fallen(self) -> str:
        threads = [worker for worker in _at_work if isinstance(worker, Hand)]
        for hand in threads:
            if hand.failure:
                self.cause = hand.failure
                return f"{hand.name} fell: {hand.failure!r}"
        for worker in _at_work:
            # A test may end its workers by signals; an exit code is the worker's own doing.
            if isinstance(worker, subprocess.Popen) and (worker.poll() or 0) > 0:
                said = worker.stdout.read() if worker.stdout else ""
                return f"a worker process ended with {worker.returncode}: {said}"
        return (
            "every worker is banned or has left" if _at_work and all(map(_left, _at_work)) else ""
        )

    def _stalled(self) -> str:
        """No thread has done a lease for long."""
        threads = [worker for worker in _at_work if isinstance(worker, Hand)]
        done = sum(hand.done for hand in threads)
        if done != self._done or not threads:
            self._done, self._since = done, time.monotonic()
        if time.monotonic() - self._since < _STALLED:
            return ""
        where = "\n".join(f"{hand.name} is at\n{_whereabouts(hand)}" for hand in threads)
        return f"no lease was done in {_STALLED:.0f} s\n{where}"


def _left(worker: Hand | subprocess.Popen[str]) -> bool:
    return worker.banned if isinstance(worker, Hand) else worker.poll() is not None


def _whereabouts(hand: Hand) -> str:
    """What a thread is doing."""
    frame = sys._current_frames().get(hand.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame else "its end"


def hands(
    server: EmbeddedServer, run: RunDir, count: int = 2, kind: type[Hand] = Hand
) -> list[Hand]:
    return [kind(server.url, run, f"{kind.__name__.lower()}-{i}") for i in range(count)]


def with_a_snail(server: EmbeddedServer, run: RunDir, others: int) -> tuple[Snail, list[Hand]]:
    """A snail, and all the workers."""
    snail = Snail(server.url, run, "snail")
    later = [_Later(server.url, run, f"later-{i}") for i in range(others)]
    for hand in later:
        hand.snail = snail
    return snail, [snail, *later]


def never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease is given to another worker, however long it takes."""
    for name in ("SHORTEST_DEADLINE", "_FIRST_DEADLINE"):
        monkeypatch.setattr(planner, name, 3600.0)


def serve(
    server: EmbeddedServer,
    run: RunDir,
    should_stop: Callable[..., bool] = lambda: False,
    **options: Any,
) -> TrainResult:
    """A learner, in this thread; fails with a reason when its workers have left it alone."""
    client, trouble = connect(server.url), Trouble()
    options["should_stop"] = lambda: should_stop() or trouble()
    try:
        result = LearnerService(run, Bus(client, run.id), **options).serve()
    finally:
        client.close()
    if trouble.reason:
        raise Unattended(trouble.reason) from trouble.cause
    return result


def train_with(
    server: EmbeddedServer, run: RunDir, workers: list[Hand] | int = 2, **options: Any
) -> Outcome:
    """Bring a run to its end, or to where `should_stop` says, with workers."""
    present = hands(server, run, workers) if isinstance(workers, int) else workers
    with crew(present):
        return outcome(run, serve(server, run, **options))


class Watch:
    """Hears a learner's statuses; does something once at the first that fulfils a condition."""

    def __init__(
        self,
        when: Callable[[dict[str, Any]], bool] = lambda _: False,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        self.statuses: list[dict[str, Any]] = []
        self.done = False
        self._when, self._then = when, then

    def __call__(self, status: dict[str, Any]) -> None:
        self.statuses.append(status)
        if not self.done and self._when(status):
            self.done = True
            self._then()

    @property
    def last(self) -> dict[str, Any]:
        return self.statuses[-1]


class Clock:
    """Time that passes only where the code sleeps, or a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def worker_process(
    url: str, run: str | None, name: str = "process", before: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """A real worker; what it says goes to its standard output. `before` is code to run first."""
    code = f"from rejoinder_worker.main import serve; serve({url!r}, run={run!r}, name={name!r})"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", f"{before}\n{code}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=end_with_parent,
    ) as process:
        _at_work.append(process)
        try:
            yield process
        finally:
            _at_work.remove(process)
            process.kill()


def eventually(condition: Callable[[], object], seconds: float = 60.0) -> bool:
    """Whether it becomes true in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
