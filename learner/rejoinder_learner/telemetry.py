"""What a learner tells Prometheus. Told when something is folded, published or saved, and with
every status.

A few parts of a learner keep totals of their own (`Inbox.duplicates`, …). Those reach the counters
with the status, a few times a second, as what has been added since.
"""

from __future__ import annotations

import time
from collections import Counter as Totals
from collections.abc import Mapping
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from rejoinder.telemetry import new_registry

# Buckets, in seconds: folding some games, publishing a patch or a table, writing a checkpoint.
_FOLD = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5)
_PUBLISH = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0)
_CHECKPOINT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class LearnerMetrics:
    """Everything that the trainer of one run has to say.

    What is counted is there from the start, so that rates begin at zero; a snapshot, a measurement
    or an evaluation is there once there is one, and the last step only while there will be a next.
    """

    def __init__(self, run: str) -> None:
        registry = self.registry = new_registry()
        self._run = run
        self._seen: Totals[str] = Totals()  # totals that are in the counters

        def counter(name: str, help_: str, *labels: str) -> Counter:
            return Counter(f"rejoinder_learner_{name}", help_, ("run", *labels), registry=registry)

        def gauge(name: str, help_: str, *labels: str) -> Gauge:
            return Gauge(f"rejoinder_learner_{name}", help_, ("run", *labels), registry=registry)

        def histogram(name: str, help_: str, buckets: tuple[float, ...]) -> Histogram:
            full = f"rejoinder_learner_{name}"
            made = Histogram(full, help_, ("run",), buckets=buckets, registry=registry)
            return made.labels(run)

        self._up = gauge("up", "1 while it trains").labels(run)
        self._last_step = gauge("last_step_timestamp_seconds", "When it last looked around")
        self._games_folded = counter("games_folded", "Games folded by this process").labels(run)
        self._games = gauge("games", "Games in the table").labels(run)
        self._target = gauge("target_games", "Games the run is to have").labels(run)
        self._infosets = gauge("infosets", "Rows of the table").labels(run)
        self._fold_seconds = histogram("fold_seconds", "One folding of consecutive games", _FOLD)
        self._publish_seconds = histogram("publish_seconds", "One snapshot", _PUBLISH)
        self._checkpoint_seconds = histogram("checkpoint_seconds", "One checkpoint", _CHECKPOINT)
        self._checkpoint_failures = counter(
            "checkpoint_failures", "Checkpoints the disk did not take"
        ).labels(run)
        self._checkpoints_refused = gauge(
            "checkpoints_refused", "Checkpoints the disk did not take since the last that it took"
        ).labels(run)
        self._checkpoint_games = gauge("checkpoint_games", "Games of the newest checkpoint").labels(
            run
        )
        self._snapshot_version = gauge("snapshot_version", "Newest published version")
        self._snapshot_time = gauge("snapshot_timestamp_seconds", "When it was published")
        self._mer = gauge("mer", "Max expected regret at the last measurement")
        self._utility = gauge("mean_utility", "What a game was worth, last evaluation", "opponent")
        self._utility_error = gauge(
            "mean_utility_error", "Half-width of its 95 % interval", "opponent"
        )
        self._win_rate = gauge(
            "win_rate_ratio", "Last evaluation, where the game counts wins", "opponent"
        )
        self._received = counter("received_bytes", "Messages from workers").labels(run)

        deltas = counter("deltas", "Games whose deltas came", "outcome")
        sent = counter("sent_bytes", "Messages to workers", "kind")
        self._deltas = {name: deltas.labels(run, name) for name in ("accepted", "banned")}
        self._totals = {
            "duplicates": deltas.labels(run, "duplicate"),
            "stale": deltas.labels(run, "late"),
            "quarantined": counter("quarantined", "Messages put into quarantine").labels(run),
            "audited": counter("audited", "Games replayed by audits").labels(run),
            "leased_again": counter("games_leased_again", "Games leased again").labels(run),
            "snapshot_bytes": sent.labels(run, "snapshot"),
            "lease_bytes": sent.labels(run, "lease"),
        }
        self._levels = {
            "games": self._games,
            "target": self._target,
            "infosets": self._infosets,
            "outstanding": gauge("leased_games", "Games leased and not here yet").labels(run),
            "queued": gauge("queue_depth", "Leases waiting for a worker").labels(run),
            "unfolded": gauge("unfolded_games", "Games here that wait for an earlier one").labels(
                run
            ),
            "window": gauge("window_games", "Games that may be under way").labels(run),
            "workers": gauge("workers", "Workers that have shown a sign of life").labels(run),
            "banned": gauge("banned_workers", "Workers expelled").labels(run),
        }

    def begin(self, games: int, target: int, infosets: int) -> None:
        """It trains, from so many games on."""
        self._up.set(1)
        self._games.set(games)
        self._target.set(target)
        self._infosets.set(infosets)

    def step(self) -> None:
        """It is not stuck."""
        self._last_step.labels(self._run).set(time.time())

    def end(self) -> None:
        self._up.set(0)
        self._last_step.clear()

    def received(self, size: int) -> None:
        self._received.inc(size)

    def deltas(self, outcome: str, games: int) -> None:
        """Games that were `accepted`, or that somebody sent who is `banned`."""
        self._deltas[outcome].inc(games)

    def folded(self, new: int, games: int, infosets: int, seconds: float) -> None:
        self.step()  # the only one of sequential training
        self._games_folded.inc(new)
        self._fold_seconds.observe(seconds)
        self._games.set(games)
        self._infosets.set(infosets)

    def published(self, version: int, seconds: float) -> None:
        self._publish_seconds.observe(seconds)
        self._snapshot_version.labels(self._run).set(version)
        self._snapshot_time.labels(self._run).set(time.time())

    def saved(self, games: int, seconds: float) -> None:
        self._checkpoint_seconds.observe(seconds)
        self._checkpoints_refused.set(0)
        self.has_checkpoint(games)

    def not_saved(self) -> None:
        self._checkpoint_failures.inc()
        self._checkpoints_refused.inc()

    def has_checkpoint(self, games: int) -> None:
        self._checkpoint_games.set(games)

    def measured(self, record: Mapping[str, Any]) -> None:
        """A line of the run's metrics: the table's statistics, matches, or both."""
        if isinstance(mer := record.get("mer"), float):
            self._mer.labels(self._run).set(mer)
        gauges = {
            "mean_utility": self._utility,
            "utility_error": self._utility_error,
            "win_rate": self._win_rate,
        }
        for opponent, match in record.get("matches", {}).items():
            for name, gauge in gauges.items():
                if isinstance(figure := match.get(name), float):
                    gauge.labels(self._run, opponent).set(figure)

    def tell(self, status: Mapping[str, Any], **more: int) -> None:
        """What a status says; `more` are the levels and totals that it leaves out."""
        known = {**status, **more}
        for name, level in self._levels.items():
            value = known[name]
            level.set(len(value) if isinstance(value, list | dict) else value)
        for name, counter in self._totals.items():
            counter.inc(known[name] - self._seen[name])
            self._seen[name] = known[name]
