"""What a worker tells Prometheus. Told a few times a lease, never in the middle of a game.

What happened in a lease's games is read off their deltas, all at once: an entry is a decision, its
legal actions are what was rolled out, and actions that only a responder has tell a response.
"""

from __future__ import annotations

import time
from functools import partial

from prometheus_client import Counter, Gauge, Histogram

from rejoinder.run.config import RunConfig
from rejoinder.telemetry import new_registry
from rejoinder.transport.wire import Deltas, Evaluation, EvaluationLease, Lease, Message, Refusal

GAMES, EVALUATION = "games", "evaluation"  # kinds of leases
DONE, REFUSED = "done", "refused"  # outcomes
MAX_RUNS = 50  # whose series are kept; a worker may live through any number of runs

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_ANSWERS = {Deltas: "deltas", Evaluation: "evaluation", Refusal: "refusal"}


class WorkerMetrics:
    """Everything that one worker process has to say, whichever runs it works on."""

    def __init__(self) -> None:
        registry = self.registry = new_registry()

        def counter(name: str, help_: str, *labels: str) -> Counter:
            return Counter(f"rejoinder_worker_{name}", help_, ("run", *labels), registry=registry)

        def gauge(name: str, help_: str) -> Gauge:
            return Gauge(f"rejoinder_worker_{name}", help_, ("run",), registry=registry)

        self.up = gauge("up", "1 while it works on a run, 0 while it waits for one")
        self.last_step = gauge("last_step_timestamp_seconds", "When it last looked around")
        self.games = counter("games", "Training games played")
        self.decisions = counter("decisions", "Decisions in them", "role")
        self.rollouts = counter("rollouts", "Rollouts played")
        self.response_phases = counter("response_phases", "Response phases that began")
        self.leases = counter("leases", "Leases worked on", "kind", "outcome")
        self.lease_seconds = Histogram(
            "rejoinder_worker_lease_seconds",
            "Time of a lease, snapshot and delivery included",
            ("run", "kind"),
            buckets=_SECONDS,
            registry=registry,
        )
        self.busy = counter("busy_seconds", "Time spent on leases")
        self.received = counter("received_bytes", "Messages read", "kind")
        self.sent = counter("sent_bytes", "Messages sent", "kind")
        self.snapshot_games = gauge("snapshot_games", "Games of the snapshot in use")
        self._runs: list[str] = []  # the last one is the latest
        self.wait()

    def work_on(self, run: str, config: RunConfig) -> RunMetrics:
        """The worker has found a run."""
        if run in self._runs:
            self._runs.remove(run)
        self._runs.append(run)
        for forgotten in self._runs[:-MAX_RUNS]:
            self._forget(forgotten)
        del self._runs[:-MAX_RUNS]
        self.up.remove_by_labels({"run": ""})
        self.last_step.clear()  # its kernels may have to be compiled first
        self.up.labels(run).set(1)
        return RunMetrics(self, run, config)

    def wait(self) -> None:
        """The worker has no run, or none any more."""
        for run in self._runs[-1:]:
            self.up.labels(run).set(0)
        self.up.labels("").set(0)
        self.last_step.clear()

    def step(self, run: str = "") -> None:
        """It is not stuck; without a run: it looks for one."""
        self.last_step.labels(run).set(time.time())

    def _forget(self, run: str) -> None:
        for metric in vars(self).values():
            if isinstance(metric, Counter | Gauge | Histogram):
                metric.remove_by_labels({"run": run})


class RunMetrics:
    """The same for one run; its series are there from the start, so that rates begin at zero."""

    def __init__(self, metrics: WorkerMetrics, run: str, config: RunConfig) -> None:
        self._config = config
        self._step = partial(metrics.step, run)
        self._games = metrics.games.labels(run)
        self._initiator = metrics.decisions.labels(run, "initiator")
        self._responder = metrics.decisions.labels(run, "responder")
        self._rollouts = metrics.rollouts.labels(run)
        self._phases = metrics.response_phases.labels(run)
        self._busy = metrics.busy.labels(run)
        self._snapshot_games = metrics.snapshot_games.labels(run)
        kinds, outcomes = (GAMES, EVALUATION), (DONE, REFUSED)
        self._seconds = {kind: metrics.lease_seconds.labels(run, kind) for kind in kinds}
        self._leases = {
            (kind, outcome): metrics.leases.labels(run, kind, outcome)
            for kind in kinds
            for outcome in outcomes
        }
        self._received = {k: metrics.received.labels(run, k) for k in ("snapshot", "lease")}
        self._sent = {kind: metrics.sent.labels(run, kind) for kind in _ANSWERS.values()}

    def step(self) -> None:
        self._step()

    def received_lease(self, size: int) -> None:
        self._received["lease"].inc(size)

    def received_snapshot(self, size: int) -> None:
        self._received["snapshot"].inc(size)

    def played(self, deltas: Deltas) -> None:
        """The units of a lease."""
        config = self._config
        work = config.load_method().work(config.task(), deltas.entries, deltas.counts)
        self._games.inc(len(deltas.counts) * config.block)
        self._initiator.inc(len(deltas.entries) - work.responses)
        self._responder.inc(work.responses)
        self._phases.inc(work.phases)
        self._rollouts.inc(work.rollouts)
        self._snapshot_games.set(deltas.snapshot.games)

    def ended(
        self, lease: Lease | EvaluationLease | None, answer: Message, size: int, seconds: float
    ) -> None:
        """A lease has been answered; what could not be read counts as one of games."""
        kind = EVALUATION if isinstance(lease, EvaluationLease) else GAMES
        outcome = REFUSED if isinstance(answer, Refusal) else DONE
        self._leases[kind, outcome].inc()
        self._seconds[kind].observe(seconds)
        self._busy.inc(seconds)
        self._sent[_ANSWERS[type(answer)]].inc(size)
