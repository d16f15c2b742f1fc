"""Sequential training: one process plays every game and folds it. No queue, the same digest.

train
  resume        the newest whole checkpoint, if the run directory has one
  for each game
    play        with the snapshot that the game index asks for
    fold        into the learner's table; a new snapshot after every batch
    measure     now and then: MER, update counts, win rates
    save        now and then: a checkpoint
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rejoinder.actor import Actor
from rejoinder.config import RunConfig
from rejoinder.jit import KERNEL_VERSION
from rejoinder.metrics import measure
from rejoinder.rundir import RunDir, RunError
from rejoinder_learner.state import Learner


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
    report: Callable[[str], None] = lambda _: None,
) -> TrainResult:
    """Bring the run to its number of games, from its newest checkpoint or from the start.

    `on_game` hears the games folded so far, first those of the checkpoint; `report` hears what a
    person should know.
    """
    with run.locked():
        return _train(run, on_game, should_stop, report)


def _train(
    run: RunDir,
    on_game: Callable[[int], None],
    should_stop: Callable[[], bool],
    report: Callable[[str], None],
) -> TrainResult:
    config = run.config
    learner = _resume(run, report)
    actor = Actor(config)
    warm_up(config)
    first, start = learner.games, time.perf_counter()
    on_game(first)
    while learner.games < config.games and not should_stop():
        learner.fold(actor.play(learner.games, learner.policy_for(learner.games)))
        last = learner.games == config.games
        if _is_due(learner.games, config.eval_every, last):
            run.append_metrics(measure(config, learner.games, learner.rows, learner.policy()))
        if _is_due(learner.games, config.checkpoint_every) and not last:
            run.save(learner.checkpoint())
        on_game(learner.games)
    run.save(learner.checkpoint())
    return TrainResult(
        games=learner.games,
        played=learner.games - first,
        seconds=time.perf_counter() - start,
        digest=learner.digest(),
        finished=learner.games >= config.games,
    )


def _resume(run: RunDir, report: Callable[[str], None]) -> Learner:
    checkpoint = run.newest_checkpoint(report)
    learner = Learner(run.config, checkpoint)
    if learner.games > run.config.games:
        raise RunError(
            f"games: {run.path} has {learner.games} games already; {run.config.games} are fewer"
        )
    if checkpoint and checkpoint.kernel != KERNEL_VERSION:
        report(
            f"the checkpoint was made by kernels {checkpoint.kernel} and goes on with "
            f"{KERNEL_VERSION}: the digest may differ from that of an uninterrupted run"
        )
    run.drop_metrics_after(learner.games)
    run.begin_session(from_game=learner.games)
    return learner


def _is_due(games: int, every: int, last: bool = False) -> bool:
    """At every so many games, and at the last one if asked; 0 means never."""
    return every > 0 and (last or games % every == 0)


def warm_up(config: RunConfig) -> None:
    """Have every kernel of the loop compiled or loaded, by a game that leaves no trace."""
    quick = config.model_copy(update={"rollouts": 1, "eval_games": 2})
    learner = Learner(quick)
    learner.fold(Actor(quick).play(0, learner.policy_for(0)))
    if config.eval_every:
        measure(quick, 1, learner.rows, learner.policy())
