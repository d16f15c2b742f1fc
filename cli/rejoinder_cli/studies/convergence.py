"""Training many runs for what they come to: in several processes, each run once and for all.

A run is sequential training without a run directory: by the determinism contract any other mode
would come to the same. What is found is a line in a file, under a key of all that it depends on;
only this process writes it. A run that is cut short leaves nothing.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from rejoinder.files import append_line, read_lines
from rejoinder.measure.metrics import play_matches
from rejoinder.measure.warm import warm_up_player
from rejoinder.methods.learned import max_expected_regret
from rejoinder.run.config import RunConfig
from rejoinder.transport.server import end_with_parent
from rejoinder_cli.studies.throughput import cores
from rejoinder_learner.journal import is_due
from rejoinder_learner.state import Learner, warm_up


@dataclass(frozen=True)
class Task:
    """A run, and the games against each baseline at its end."""

    config: RunConfig
    tests: int

    @property
    def key(self) -> str:
        """Of all that the result depends on, the kernels included."""
        config = self.config
        measured = f"{config.games}/{config.eval_every}x{config.eval_games}/{self.tests}"
        return f"{config.fingerprint}/{measured}/{config.kernel}"


@dataclass(frozen=True)
class Trained:
    """What a run came to."""

    batch: int
    lag: int
    seed: int
    digest: str
    mer: float
    strengths: dict[str, float]  # at the end, by opponent (see `strength`)
    curve: list[dict[str, Any]]  # games, mer and strengths of each evaluation, the last included

    def on_the_way(self, opponent: str) -> float:
        """The strength over all evaluations: what is learned sooner counts longer."""
        return statistics.fmean(point["strengths"][opponent] for point in self.curve)


def train_all(
    tasks: Mapping[str, Task], path: Path, update: Callable[[int], None]
) -> dict[str, Trained]:
    """All of them, by key; those in the file are not trained again."""
    found = {line["key"]: Trained(**line["trained"]) for line in read_lines(path)}
    missing = [task for key, task in tasks.items() if key not in found]
    update(len(tasks) - len(missing))
    if missing:
        _warm_up(missing[0].config)  # before many compile the same
        for task, trained in _in_processes(missing):
            append_line(path, json.dumps({"key": task.key, "trained": asdict(trained)}))
            found[task.key] = trained
            update(sum(key in found for key in tasks))
    return found


def _warm_up(config: RunConfig) -> None:
    warm_up(config)
    warm_up_player(config)


def _in_processes(tasks: list[Task]) -> Any:
    """Pairs of a task and what it came to, as they are done."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(
        min(cores(), len(tasks)), mp_context=context, initializer=_begin, initargs=(stop,)
    ) as pool:
        futures = {pool.submit(_train, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # a run that has failed, or Ctrl-C: nobody needs the others
            stop.set()
            pool.shutdown(cancel_futures=True)


_stop: Event  # in a process of the pool: its run is not wanted any more


def _begin(stop: Event) -> None:
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    end_with_parent()


class Stopped(Exception):
    """A run was cut short."""


def _train(task: Task) -> Trained:
    return train(task, should_stop=_stop.is_set)


def train(task: Task, should_stop: Callable[[], bool] = lambda: False) -> Trained:
    """Play and fold all games, and evaluate on the way as the config says."""
    config = task.config
    last = config.model_copy(update={"eval_games": task.tests})
    actor, learner, curve = config.actor(), Learner(config), []
    while learner.units < config.units:
        if should_stop():
            raise Stopped
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))
        if is_due(config, config.eval_every, learner.units):
            at = last if learner.units == config.units else config
            curve.append(_evaluate(at, learner))
    return Trained(
        batch=config.batch,
        lag=config.lag,
        seed=config.seed,
        digest=learner.digest(),
        mer=curve[-1]["mer"],
        strengths=curve[-1]["strengths"],
        curve=curve,
    )


def _evaluate(config: RunConfig, learner: Learner) -> dict[str, Any]:
    results = play_matches(config, learner.games, config.policy(learner.policy_rows()))
    return {
        "games": learner.games,
        "mer": max_expected_regret(learner.learned),
        "strengths": {name: strength(result) for name, result in results.items()},
    }


def strength(match: Mapping[str, Any]) -> float:
    """What a match is summed up as: the win rate, or the mean utility where none is counted."""
    return float(match["win_rate"] if "win_rate" in match else match["mean_utility"])
