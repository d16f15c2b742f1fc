"""Experiment trackers, fed from the metrics of a run.

A tracker gets what `metrics.jsonl` holds, by game index: each evaluation once, in the order of its
games, and whole, that is with the win rates, which come later than the rest. How far it has got is
kept in the run directory, so whoever tracks the run next goes on from there. It is noted after the
record was handed over: a tracker that is killed between the two gets that one record again.

Trainers know nothing of this, so a tracker that is slow, or not there, cannot hold them up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from rejoinder.files import read_json, write_json
from rejoinder.rundir import TRACKING, RunDir

PROJECT = "rejoinder"  # in Weights & Biases, unless WANDB_PROJECT names another
_POLL = 0.5  # seconds between two looks at a run


class Tracker(Protocol):
    """Where figures go."""

    def log(self, games: int, figures: Mapping[str, float]) -> None:
        """Take the figures after so many games."""

    def close(self) -> None:
        """Write out what is still in memory."""


def track(
    run: RunDir,
    to: str,
    *,
    follow: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Hand over what a tracker does not have yet; returns how many evaluations that were.

    With `follow` also what comes until the run is finished.
    """
    if to not in TRACKERS:
        raise ValueError(f"--to: no tracker is called {to!r}; there are {', '.join(TRACKERS)}")
    (run.path / TRACKING).mkdir(exist_ok=True)
    state = run.path / TRACKING / f"{to}.json"
    try:
        tracker = TRACKERS[to](run)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--to {to} needs {error.name}: install it by pip install 'rejoinder[{to}]'"
        ) from None
    logged = 0
    try:
        while True:
            finished, last = _is_finished(run), not follow or should_stop()  # before the look
            for record in evaluations(run, after=_done(state, run), finished=finished):
                tracker.log(record["games"], figures_of(record))
                write_json(state, {"id": run.id, "games": record["games"]})
                logged += 1
            if finished or last:
                return logged
            time.sleep(_POLL)
    finally:
        tracker.close()


def evaluations(run: RunDir, after: int, finished: bool) -> Iterator[dict[str, Any]]:
    """Those beyond so many games; until it is finished up to the first that is not whole yet."""
    for record in run.metrics():
        if record["games"] > after:
            if not finished and not {"mer", "win_rates"} <= record.keys():
                return
            yield record


def figures_of(record: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of an evaluation but its game index, by names like `win_rates/random/low`."""
    flat: dict[str, float] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                add(f"{name}/{key}", inner)
        elif isinstance(value, int | float):
            flat[name] = float(value)

    for name, value in record.items():
        if name != "games":
            add(name, value)
    return flat


def _is_finished(run: RunDir) -> bool:
    state: str = RunDir.open(run.path).standing()["state"]
    return state == "finished"


def _done(state: Any, run: RunDir) -> int:
    """The games up to which the tracker has everything; another run's state does not count."""
    known = read_json(state)
    games = known.get("games")
    return games if known.get("id") == run.id and isinstance(games, int) else -1


class WandbTracker:
    """One run of Weights & Biases a run of ours; its files are in the run directory."""

    def __init__(self, run: RunDir) -> None:
        import wandb

        try:
            self._run = wandb.init(
                id=run.id,
                resume="allow",
                name=run.path.resolve().name,
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                config=run.config.model_dump(mode="json") | {"fingerprint": run.config.fingerprint},
                dir=run.path / TRACKING,
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.Error as error:
            raise ValueError(
                f"Weights & Biases: {error} WANDB_MODE=offline does without an account."
            ) from None
        self._run.define_metric("games")
        self._run.define_metric("*", step_metric="games")

    def log(self, games: int, figures: Mapping[str, float]) -> None:
        self._run.log({"games": games, **figures})

    def close(self) -> None:
        self._run.finish()


class TensorboardTracker:
    """Event files in the run directory: `tensorboard --logdir RUN/tracking`."""

    def __init__(self, run: RunDir) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._writer = EventFileWriter(str(run.path / TRACKING / "tensorboard"))

    def log(self, games: int, figures: Mapping[str, float]) -> None:
        values = [self._summary.Value(tag=n, simple_value=v) for n, v in figures.items()]
        summary = self._summary(value=values)
        self._writer.add_event(self._event(wall_time=time.time(), step=games, summary=summary))
        self._writer.flush()

    def close(self) -> None:
        with suppress(ValueError):
            self._writer.close()


TRACKERS: dict[str, Callable[[RunDir], Tracker]] = {
    "wandb": WandbTracker,
    "tensorboard": TensorboardTracker,
}
