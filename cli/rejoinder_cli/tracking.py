"""Experiment trackers, fed from the metrics of a run.

A tracker gets what `metrics.jsonl` holds, by game index: each evaluation once, in the order of its
games, and whole, that is with the matches, which come later than the rest. What it has got is
kept in the run directory, so whoever tracks the run next goes on from there. It is noted after the
record was handed over: a tracker that is killed between the two gets that one record again.

A run can go back: a worker was caught lying, and what came of its games is undone. Evaluations that
then come out as before are not handed over again. From the first that does not, they all are, and
the tracker is told that what it has from there on is void.

Trainers know nothing of this, so a tracker that is slow, or not there, cannot hold them up.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rejoinder.files import append_line, read_lines
from rejoinder.run.rundir import TRACKING, RunDir

PROJECT = "rejoinder"  # in Weights & Biases, unless WANDB_PROJECT names another
_POLL = 0.5  # seconds between two looks at a run


class Tracker(Protocol):
    """Where figures go."""

    def log(self, games: int, figures: Mapping[str, float]) -> None:
        """Take the figures after so many games."""

    def go_back(self, games: int) -> None:
        """What came of so many games, and of more, is void; it comes anew."""

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
    handed_over = HandedOver(run.path / TRACKING / f"{to}.jsonl", run.id)
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
            for record in handed_over.missing(evaluations(run, finished)):
                games = record["games"]
                if handed_over.has(games):
                    tracker.go_back(games)
                tracker.log(games, figures_of(record))
                handed_over.note(record)
                logged += 1
            if finished or last:
                return logged
            time.sleep(_POLL)
    finally:
        tracker.close()


def evaluations(run: RunDir, finished: bool) -> Iterator[dict[str, Any]]:
    """Those of a run; until it is finished up to the first that is not whole yet."""
    for record in run.metrics():
        if not finished and not {"mer", "matches"} <= record.keys():
            return
        yield record


class HandedOver:
    """What a tracker has got, in a file to which a line is added for each evaluation.

    A line makes all lines before it void that are of as many games or more.
    """

    def __init__(self, path: Path, run: str) -> None:
        self._path, self._run = path, run
        self._digests: dict[int, str] = {}  # of the evaluations, by games

    def missing(self, records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Those that the tracker does not have, or has otherwise."""
        self._digests.clear()
        for line in read_lines(self._path):
            games, digest = line.get("games"), line.get("digest")
            if line.get("id") == self._run and isinstance(games, int) and isinstance(digest, str):
                self._add(games, digest)
        for record in records:
            if self._digests.get(record["games"]) != _digest(record):
                yield record

    def has(self, games: int) -> bool:
        """Whether the tracker has anything of so many games, or of more."""
        return any(known >= games for known in self._digests)

    def note(self, record: Mapping[str, Any]) -> None:
        games, digest = record["games"], _digest(record)
        line = {"id": self._run, "games": games, "digest": digest}
        append_line(self._path, json.dumps(line))
        self._add(games, digest)

    def _add(self, games: int, digest: str) -> None:
        self._digests = {n: d for n, d in self._digests.items() if n < games} | {games: digest}


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def figures_of(record: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of an evaluation but its game index, by names like `matches/random/low`."""
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


class WandbTracker:
    """One run of Weights & Biases a run of ours; its files are in the run directory."""

    def __init__(self, run: RunDir) -> None:
        import wandb

        _wait_for_another_name(run.path / TRACKING / "wandb", f"*run-%Y%m%d_%H%M%S-{run.id}")
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

    def go_back(self, games: int) -> None:
        """Nothing can be taken back there; the newest point of a number of games is the one."""

    def close(self) -> None:
        self._run.finish()


class TensorboardTracker:
    """Event files in the run directory: `tensorboard --logdir RUN/tracking`."""

    def __init__(self, run: RunDir) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary, self._session = Event, Summary, SessionLog
        self._folder = run.path / TRACKING / "tensorboard"
        self._begin_file = partial(EventFileWriter, str(self._folder))
        self._writer: EventFileWriter | None = None

    def log(self, games: int, figures: Mapping[str, float]) -> None:
        values = [self._summary.Value(tag=n, simple_value=v) for n, v in figures.items()]
        self._add(self._event(step=games, summary=self._summary(value=values)))

    def go_back(self, games: int) -> None:
        restart = self._session(status=self._session.START)  # TensorBoard drops what is beyond it
        self._add(self._event(step=games, session_log=restart))

    def close(self) -> None:
        if self._writer is not None:
            with suppress(ValueError):
                self._writer.close()

    def _add(self, event: Any) -> None:
        if self._writer is None:  # no file before there is something to write
            _wait_for_another_name(self._folder, "events.out.tfevents.%s.*")
            self._writer = self._begin_file()
        event.wall_time = time.time()
        self._writer.add_event(event)
        self._writer.flush()


def _wait_for_another_name(folder: Path, names: str) -> None:
    """Trackers name what they write by the second: what is there would be written over, or
    read after what follows it."""
    while any(folder.glob(time.strftime(names))):
        time.sleep(0.05)


TRACKERS: dict[str, Callable[[RunDir], Tracker]] = {
    "wandb": WandbTracker,
    "tensorboard": TensorboardTracker,
}
