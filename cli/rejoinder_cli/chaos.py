"""Chaos: a run whose processes are killed again and again, and how soon it goes on each time.

cause_chaos
  start           a server, a learner, workers: real processes
  until the run is finished
    restart       what was killed, a moment later
    look          at the server: which leases are there, how many units are folded
    strike        when the run has come far enough: kill a worker, the learner or the server, or
                  make the server forget everything
  end             every process

Strikes are bound to the progress of the run, so that all of them hit it, and mostly wait until it
has recovered from the one before, so that the time to recover can be measured. Some do not wait:
troubles seldom come alone. Those are not measured.

What recovering means. *A worker*: every unit that was in a worker's hands at the kill is folded or
leased again. *Learner and server*, from the moment they are started again, and *flush*: there is a
new lease.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from rq.job import Job

from rejoinder.run.rundir import LOGS, RunDir
from rejoinder.transport.bus import Bus, Packed
from rejoinder.transport.connection import LOST, connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec, Lease, WireError
from rejoinder_cli.supervise import Child

KINDS = ("worker", "learner", "server", "flush")

_LOOK = 0.02  # seconds between two looks at the server
_RESTART_DELAY = 0.3  # seconds at most until something killed is started again
_STRIKE_DELAY = 0.2  # seconds at most between the moment for a strike and the strike
_OVERLAP_DELAY = 1.0  # the same for one that does not wait for a recovery
_OVERLAP = 0.2  # share of the strikes that do not wait for a recovery
_LAST_STRIKE = 0.85  # share of the units before which all strikes come
_BUSY = 1.0  # seconds to wait for all workers to be at work before one of them is killed
_STALLED = 60.0  # seconds without progress after which a run is given up


class ChaosError(OSError):
    """A run that did not survive."""

    exit_code = 1


class Strike(NamedTuple):
    kind: str
    overlaps: bool  # it does not wait until the run has recovered from the one before


@dataclass
class Recovery:
    """How long the run takes to go on after a strike."""

    kind: str
    measured: bool = True  # no other strike has come in between
    since: float | None = None  # None: not started again yet
    units: set[int] = field(default_factory=set)  # a worker's: not yet under way again


@dataclass
class Report:
    """What was done to a run, and how it took it."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    recoveries: dict[str, list[float]] = field(  # seconds
        default_factory=lambda: {kind: [] for kind in KINDS}
    )
    unmeasured: int = 0  # strikes into a recovery, or too near to the end


def plan(kills: int, seed: int) -> list[Strike]:
    """Every kind equally often, as far as the number allows, in random order."""
    chance = random.Random(seed)
    kinds = list(KINDS) * (kills // len(KINDS)) + chance.sample(KINDS, kills % len(KINDS))
    chance.shuffle(kinds)
    return [Strike(kind, chance.random() < _OVERLAP) for kind in kinds]


def cause_chaos(
    run: RunDir,
    learner: Sequence[str],
    *,
    workers: int,
    kills: int,
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
    on_games: Callable[[int], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> Report:
    """Bring the run to its end against all odds; `learner` is the command that trains it."""
    with EmbeddedServer(run.path / LOGS / "server.log") as server:
        storm = _Storm(run, server, plan(kills, seed), seed, report)
        try:
            storm.start("learner", learner)
            for name in (f"worker-{n}" for n in range(1, workers + 1)):
                storm.start(name, ("worker", "--run-id", run.id, "--name", name))
            while not storm.is_over() and not should_stop():
                storm.step()
                on_games(storm.view.units * run.config.block)
                time.sleep(_LOOK)
        finally:
            storm.end()
    return storm.report


class _Storm:
    """One run, its processes and their fate."""

    def __init__(
        self,
        run: RunDir,
        server: EmbeddedServer,
        strikes: list[Strike],
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self._logs, self._target = run.path / LOGS, run.config.units
        self._server, self._strikes, self._say = server, strikes, say
        self._chance = random.Random(f"moments {seed}")
        self._children: dict[str, Child] = {}
        self._restarts: dict[str, tuple[float, Callable[[], None]]] = {}  # of what, when and how
        self._pending: list[Recovery] = []
        self._next_units = 0  # the next strike comes once so many units are folded …
        self._next_time: float | None = None  # … at this time, which is then decided
        self._progress = (0, time.monotonic())  # most units folded, and when that was
        self.view = _View(server.url, run)
        self.report = Report()
        self._plan_next()

    def start(self, name: str, arguments: Sequence[str]) -> None:
        self._children[name] = Child(arguments, self._server.url, self._logs / f"{name}.log")

    def step(self) -> None:
        """What is due now."""
        self._restart()
        self.view.look()
        self._note_recoveries()
        if self._is_time_to_strike():
            self._strike(self._strikes.pop(0))
            self._plan_next()
        self._check_progress()

    def is_over(self) -> bool:
        return self._children["learner"].exit_code == 0

    def end(self) -> None:
        """End every process that was started here; the server has its own end."""
        for child in self._children.values():
            child.ask_to_stop()
        for child in self._children.values():
            child.wait()
        self.report.unmeasured += len(self._pending)
        self._pending.clear()

    def _plan_next(self) -> None:
        """The next strike's moment: at random within its share of the units that are left."""
        self._next_time, self._next_units = None, self.view.units
        if self._strikes and self._strikes[0].overlaps:
            return
        left = max(0.0, _LAST_STRIKE * self._target - self.view.units)
        share = left / max(1, len(self._strikes))
        self._next_units += int(share * self._chance.uniform(0.2, 1.0))

    def _is_time_to_strike(self) -> bool:
        units = self.view.units
        if not self._strikes or not units or units < self._next_units:
            return False
        if not self._targets(self._strikes[0].kind):
            return False
        overlaps, in_haste = self._strikes[0].overlaps, units > _LAST_STRIKE * self._target
        if self._pending and not overlaps and not in_haste:
            return False
        if self._next_time is None:
            delay = 0.0 if in_haste else _OVERLAP_DELAY if overlaps else _STRIKE_DELAY
            self._next_time = time.monotonic() + self._chance.uniform(0.0, delay)
        return time.monotonic() >= self._next_time

    def _targets(self, kind: str) -> list[str]:
        """What of that kind is running, so that it can be struck."""
        if kind in ("server", "flush"):
            return ["server"] if self._server.is_running() else []
        alive = [name for name, child in self._children.items() if child.exit_code is None]
        return [name for name in alive if name.startswith(kind)]

    def _strike(self, strike: Strike) -> None:
        recovery = Recovery(strike.kind)
        if strike.kind == "worker":
            what = self._kill_a_worker(recovery)
        elif strike.kind == "learner":
            self._children["learner"].kill()
            what = "killed the learner"
            self._restart_soon("learner", self._children["learner"].start, recovery)
        elif strike.kind == "server":
            self._server.kill()
            what = "killed the server"
            self._restart_soon("server", self._server.start, recovery)
        else:
            self.view.flush()
            what = "flushed the server"
            self._begin(recovery)
        if self._pending:
            for one in (recovery, *self._pending):
                one.measured = False
        self._pending.append(recovery)
        self.report.kills[strike.kind] += 1
        self._say(f"unit {self.view.units:,}: {what}")

    def _kill_a_worker(self, recovery: Recovery) -> str:
        """Kill one that is at work, so that there is something to recover."""
        alive, deadline = self._targets("worker"), time.monotonic() + _BUSY
        while True:
            said = self.view.ready()
            ready = [name for name in alive if said.get(name) == self._children[name].pid]
            self.view.look()
            all_busy = ready and len(self.view.in_hand()) >= len(ready)
            if all_busy or time.monotonic() > deadline:
                break
            time.sleep(_LOOK / 10)
        name = self._chance.choice(ready or alive)
        child = self._children[name]
        recovery.since = time.monotonic()
        child.kill()
        self.view.look()
        self._note_recoveries()  # of others; leases that are there by now do not count for this one
        # Whose they are cannot be seen; those of the others are folded soon.
        recovery.units = {unit for lease in self.view.in_hand() for unit in lease}
        recovery.measured = bool(recovery.units)
        self._restart_soon(name, child.start)
        return f"killed {name}"

    def _restart_soon(
        self, name: str, start: Callable[[], None], recovery: Recovery | None = None
    ) -> None:
        def restart() -> None:
            if recovery is not None:
                self._begin(recovery)
            start()

        when = time.monotonic() + self._chance.uniform(0.0, _RESTART_DELAY)
        self._restarts[name] = (when, restart)

    def _restart(self) -> None:
        """Start what was killed, once its time has come, and what gave up without the others."""
        for name, (when, restart) in list(self._restarts.items()):
            if when <= time.monotonic():
                del self._restarts[name]
                restart()
        for name, child in self._children.items():
            if name not in self._restarts:
                child.revive(self._say)

    def _begin(self, recovery: Recovery) -> None:
        recovery.since = time.monotonic()
        self.view.expect_new_leases()

    def _note_recoveries(self) -> None:
        now, leased = time.monotonic(), self.view.take_new_leases()
        for recovery in list(self._pending):
            if recovery.since is None:
                continue
            if recovery.kind == "worker":
                recovery.units -= leased
                recovery.units = {u for u in recovery.units if u >= self.view.folded}
                recovered = not recovery.units
            else:
                recovered = self.view.has_new_leases
            if recovered:
                self._pending.remove(recovery)
                if recovery.measured:
                    self.report.recoveries[recovery.kind].append(now - recovery.since)
                else:
                    self.report.unmeasured += 1

    def _check_progress(self) -> None:
        most, when = self._progress
        if self.view.units > most:
            self._progress = (self.view.units, time.monotonic())
        elif time.monotonic() - when > _STALLED:
            raise ChaosError(f"nothing was folded for {_STALLED:.0f} s, after {most:,} units")


class _View:
    """What can be seen of a run on its server."""

    def __init__(self, url: str, run: RunDir) -> None:
        self._bus = Bus(connect(url), run.id)
        self._codec = Codec(run.config)
        self._leases: dict[str, range] = {}  # every lease ever seen: its units
        self._generation = ""  # what the names of the learner's current leases begin with
        self._generations: set[str] = set()  # all so far
        self._old_generations: set[str] = set()  # those when new ones were last expected
        self._in_hand: list[str] = []
        self._block = run.config.block
        self.units = 0  # how far the run has ever been
        self.folded = 0  # units folded at the last look
        self._newly_leased: set[int] = set()  # units

    def look(self) -> None:
        """See what is there; a server that is away shows nothing."""
        try:
            queue = self._bus.queue
            waiting = list(queue.get_job_ids())
            taken = self._bus.client.lrange(queue.intermediate_queue_key, 0, -1)
            status = self._bus.status()
            self._in_hand = [name.decode() for name in taken]
            self._meet([name for name in (*waiting, *self._in_hand) if name not in self._leases])
        except LOST:
            return
        if "games" in status:
            self.folded = status["games"] // self._block
        # The status comes a few times a second; the leases tell sooner.
        current = [name for name in (*waiting, *self._in_hand) if self._is_current(name)]
        reached = min((self._leases[name].start for name in current), default=0)
        self.units = max(self.units, self.folded, reached)

    def in_hand(self) -> list[range]:
        """The leases that workers have taken; those of a learner that is gone do not matter."""
        return [self._leases[name] for name in self._in_hand if self._is_current(name)]

    def _is_current(self, name: str) -> bool:
        return name.startswith(f"{self._generation}-") and bool(self._leases.get(name))

    def take_new_leases(self) -> set[int]:
        """The units that were leased since this was last asked."""
        taken, self._newly_leased = self._newly_leased, set()
        return taken

    def ready(self) -> dict[str, int]:
        """The workers that have said that they are there, with their processes."""
        try:
            return {name: said.get("pid", 0) for name, said in self._bus.workers().items()}
        except LOST:
            return {}

    def flush(self) -> None:
        with suppress(*LOST):  # a server that is away has forgotten everything already
            self._bus.client.flushall()

    def expect_new_leases(self) -> None:
        """A learner that begins anew gives its leases other names; see `has_new_leases`."""
        self._old_generations = set(self._generations)

    @property
    def has_new_leases(self) -> bool:
        return bool(self._generations - self._old_generations)

    def _meet(self, names: list[str]) -> None:
        """Note leases that are new."""
        if not names:
            return
        client = self._bus.client
        for name, job in zip(
            names, Job.fetch_many(names, connection=client, serializer=Packed), strict=True
        ):
            self._leases[name] = self._units_of(job)
            if self._leases[name]:
                self._newly_leased.update(self._leases[name])
                self._generation = name.rpartition("-")[0]
                self._generations.add(self._generation)

    def _units_of(self, job: Job | None) -> range:
        """None of it if it is an evaluation, or done in the meantime."""
        if job is None:
            return range(0)
        try:
            lease = self._codec.decode(job.args[0])
        except WireError:
            return range(0)
        return range(lease.first, lease.end) if isinstance(lease, Lease) else range(0)
