"""Sequential training: one process plays every game and folds it. No queue, the same digest.

train
  resume        the newest whole checkpoint, if the run directory has one
  for each game
    play        with the snapshot that the game index asks for
    fold        into the learner's table; a new snapshot after every batch
    measure     now and then: MER, update counts, matches
    save        now and then: a checkpoint
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rejoinder.measure.metrics import play_matches
from rejoinder.measure.warm import warm_up_player
from rejoinder.methods.base import Delta
from rejoinder.run.checkpoints import RunError
from rejoinder.run.rundir import RunDir
from rejoinder_learner.journal import Journal, Report, is_due
from rejoinder_learner.state import Learner, warm_up
from rejoinder_learner.status import Rate, describe
from rejoinder_learner.telemetry import LearnerMetrics

_BEAT = 1.0  # seconds between two words on how it stands


@dataclass(frozen=True)
class TrainResult:
    games: int  # folded in all
    played: int  # of them now
    seconds: float  # for those, evaluations and checkpoints included, compilation not
    digest: str
    finished: bool  # False: stopped before the last game

    @property
    def games_per_second(self) -> float:
        return self.played / self.seconds if self.played else 0.0


def train(
    run: RunDir,
    *,
    on_game: Callable[[int], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    report: Report = lambda _: None,
    telemetry: LearnerMetrics | None = None,
) -> TrainResult:
    """Bring the run to its number of games, from its newest checkpoint or from the start.

    `on_game` hears the games folded so far, first those of the checkpoint; `report` hears what a
    person should know.
    """
    if run.config.order != "index":
        raise RunError(f"{run.path} is a run of unordered mode; sequential training is in order")
    with run.locked():
        return _train(run, on_game, should_stop, report, telemetry or LearnerMetrics(run.id))


def _train(
    run: RunDir,
    on_game: Callable[[int], None],
    should_stop: Callable[[], bool],
    report: Report,
    telemetry: LearnerMetrics,
) -> TrainResult:
    config, journal = run.config, Journal(run, report, telemetry)
    learner, evaluations = journal.resume()
    telemetry.begin(learner.games, config.target, len(learner.rows))
    run.begin_session(from_game=learner.games)
    actor = config.actor()
    warm_up(config)
    warm_up_player(config)
    first, start = learner.games, time.perf_counter()
    notice = Notice(run, report)
    on_game(first)
    for games, policies in evaluations.items():  # left over by a run with workers
        journal.matches(games, play_matches(config, games, config.policy(policies.rows)))
    try:
        while learner.units < config.units and not (should_stop() or run.stop_requested()):
            delta = actor.play(learner.units, learner.snapshot_for(learner.units))
            _fold(learner, delta, telemetry)
            if is_due(config, config.eval_every, learner.units):
                journal.statistics(learner)
                policy = config.policy(learner.policy_rows())
                journal.matches(learner.games, play_matches(config, learner.games, policy))
            last = learner.units >= config.units
            if is_due(config, config.checkpoint_every, learner.units) and not last:
                journal.save(learner)
            journal.poll()
            notice.tell(learner)
            on_game(learner.games)
    finally:
        journal.wait()  # for a checkpoint that is being written
    journal.save_last(learner)
    notice.tell(learner, "finished" if learner.units >= config.units else "stopped")
    telemetry.end()
    return TrainResult(
        games=learner.games,
        played=learner.games - first,
        seconds=time.perf_counter() - start,
        digest=learner.digest(),
        finished=learner.units >= config.units,
    )


class Notice:
    """Says in the run directory how the training stands, as a learner with workers does."""

    def __init__(self, run: RunDir, report: Report) -> None:
        self._run, self._report = run, report
        self._rate, self._told = Rate(), 0.0

    def tell(self, learner: Learner, state: str = "training") -> None:
        """Once a second, and whenever the state is another one."""
        now = time.monotonic()
        if state == "training" and now - self._told < _BEAT:
            return
        self._told = now
        latest: dict[str, Any] = {}
        for record in self._run.metrics()[-2:]:
            latest |= record
        status = describe(
            games=learner.games,
            target=self._run.config.target,
            rate=self._rate.update(learner.games, now),
            metrics=latest,
            workers={},
            figures={
                "state": state,
                "id": self._run.id,
                "fingerprint": self._run.config.fingerprint,
                "counts": self._run.config.counts,
                "utility_unit": self._run.config.load_game().utility_unit,
                "version": learner.units // self._run.config.batch,
                "infosets": len(learner.rows),
            },
        )
        try:
            self._run.write_status(status)
        except OSError as error:
            self._report(f"the status cannot be written: {error.strerror}")


def _fold(learner: Learner, delta: Delta, telemetry: LearnerMetrics) -> None:
    begin = time.perf_counter()
    learner.fold(delta)
    telemetry.folded(
        learner.config.block, learner.games, len(learner.rows), time.perf_counter() - begin
    )
