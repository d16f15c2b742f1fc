"""Evaluations: matches against the baselines, played by workers. The learner never waits for one.

An evaluation is a function of (policies after n games, seed, n). Until its result is here the
learner keeps those policies, and every checkpoint does too, so none is ever missing from a report.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter

import numpy as np

from rejoinder.measure.agents import opponents
from rejoinder.measure.match import whole_deals
from rejoinder.measure.metrics import evaluation_kernel
from rejoinder.methods.base import Rows
from rejoinder.methods.rows import opaque
from rejoinder.run.checkpoints import Policies
from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport.bus import Bus, Order, job_name
from rejoinder.transport.wire import Codec, Evaluation, EvaluationLease, WireError
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.state import Learner

# Seconds after which an evaluation that a worker has taken is given to another one, too; twice as
# many each time, so that long matches do not end up with every worker.
PATIENCE = 4.0
MOST_DOUBLINGS = 10  # of that, however often an evaluation was ordered


class Evaluations:
    """The evaluations that are under way."""

    def __init__(self, bus: Bus, codec: Codec, config: RunConfig, publisher: Publisher) -> None:
        self._bus = bus
        self._codec = codec
        self._config = config
        self._publisher = publisher
        self._opponents = tuple(opponents(config.load_game()))
        self._match_games = whole_deals(config.load_game(), config.eval_games)
        self.sent_bytes = 0  # in leases; the publisher counts those of policies
        self.waiting: dict[int, Policies] = {}  # by games
        self._jobs: dict[int, str] = {}
        self._on_server: set[int] = set()  # whose policies were published
        self._orders: Counter[int] = Counter()  # how often each was ordered
        self._taken: dict[int, float] = {}  # when they were seen to have left the queue

    def start_again(self) -> None:
        """The server may know nothing of those that are waiting."""
        self._orders.clear()
        self._on_server.clear()
        for games in self.waiting:
            self._order(games)

    def order(self, learner: Learner) -> None:
        """Have the policies as they are now evaluated."""
        self.waiting[learner.games] = Policies(learner.head, _kept(learner))
        self._order(learner.games)

    def take(self, evaluation: Evaluation) -> bool:
        """A result; False if nobody is waiting for it."""
        games = evaluation.snapshot.games
        if games not in self.waiting or self.waiting[games].head != evaluation.snapshot.head:
            return False
        played = {name: match["games"] for name, match in evaluation.matches.items()}
        if played != dict.fromkeys(self._opponents, self._match_games):
            raise WireError(f"evaluation: the matches at game {games} are not those ordered")
        # The server first: if it is away, the evaluation is still waited for and ordered again.
        self._bus.withdraw([self._jobs[games]])
        self._bus.drop_snapshots([games], "evaluation")
        del self.waiting[games]
        self._on_server.discard(games)
        self._orders.pop(games)
        return True

    def order_late_ones_again(self, queued: set[str]) -> None:
        now = time.monotonic()
        for games in self.waiting:
            if self._jobs[games] in queued:
                self._taken.pop(games, None)
            elif now - self._taken.setdefault(games, now) > PATIENCE * 2 ** min(
                self._orders[games] - 1, MOST_DOUBLINGS
            ):
                self._order(games)

    def refused(self, job: str) -> None:
        """A worker could not do it: publish it anew and give it to another one.

        At once only the first time; an evaluation that nobody can do is ordered ever more rarely.
        """
        for games in [n for n in self.waiting if self._jobs.get(n) == job]:
            self._on_server.discard(games)
            if self._orders[games] == 1:
                self._order(games)

    def worthless(self, evaluation: Evaluation) -> None:
        """A result that cannot be used: have it made by another worker."""
        if evaluation.snapshot.games in self.waiting:
            self._order(evaluation.snapshot.games)

    def _order(self, games: int) -> None:
        name = SnapshotId(games, self.waiting[games].head)
        if games not in self._on_server:
            self._publisher.publish_for_evaluation(name, self.waiting[games].rows)
            self._on_server.add(games)
        job = job_name(self._bus.run, f"evaluation-{games}-{secrets.token_hex(4)}")
        self._jobs[games] = job
        self._orders[games] += 1
        lease = EvaluationLease(name, self._config.eval_games, evaluation_kernel(self._config))
        message = self._codec.encode(lease)
        self.sent_bytes += len(message)
        self._bus.enqueue([Order(job, message, f"evaluation at game {games}")])
        self._taken.pop(games, None)


def _kept(learner: Learner) -> Rows:
    """The policies as they are now, which later folds do not touch."""
    rows = learner.policy_rows()
    if np.may_share_memory(rows, learner.rows):
        return opaque(rows).copy().view(rows.dtype)  # type: ignore[no-any-return]
    return rows
