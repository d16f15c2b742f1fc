"""The determinism contract, by experiment: the same SHA-256, whatever happens to the deltas.

For each lag of the paper's experiment, and for every other method on Leduc poker, the sequential
run says what the digest must be. Against it: ordered runs with real
worker processes in several numbers; deltas that are duplicated, delayed and shuffled on the way;
runs that stop while leases are under way, and go on with another number of workers.
"""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rejoinder.methods import METHODS
from rejoinder.run.config import RunConfig, load_config, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder_bench import Result, system
from rejoinder_learner.main import LearnerService
from rejoinder_learner.sequential import train

# A session: its workers, and the messages of deltas after which it stops (None: at the end).
Session = tuple[int, int | None]

_GAMES = 200
_ROLLOUTS = 4
_ITERATIONS = 100  # in a unit of the other methods
_LAGS = (0, 1, 2)
_WORKERS = {0: (1, 2, 5), 1: (1, 2, 5), 2: (2, 7)}  # by lag
_DISTURBED_WORKERS = 4
_STOPS: dict[int, Sequence[Session]] = {
    0: ((2, 3), (4, None)),
    1: ((2, 4), (7, 9), (1, 5), (4, None)),
    2: ((4, 11), (2, None)),
}


def run(say: Callable[[str], None]) -> Result:
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
        for case, config in _configs().items():
            wanted = train(RunDir.create(Path(name) / f"{case}, sequential", config)).digest
            say(f"{case}, sequential: {wanted}")
            for n, (what, sessions, bus_type) in enumerate(_attempts(config.lag)):
                digest = _train(Path(name) / f"{case}, {n}", config, sessions, bus_type)
                verdicts.append(digest == wanted)
                verdict = "the same" if verdicts[-1] else f"NOT THE SAME: {digest}"
                say(f"{case}, {what}: {verdict}")
    return Result(
        ratios={"equal_over_runs": sum(verdicts) / len(verdicts)},
        figures={"runs": len(verdicts), "equal": sum(verdicts), "methods": len(METHODS)},
        ok=all(verdicts),
    )


def _configs() -> dict[str, RunConfig]:
    """What is trained, by what it is called."""
    quiet = {"eval_every": 0, "games": _GAMES, "checkpoint_every": _GAMES // 4}
    first, *others = METHODS
    made = {
        f"{first}, lag {lag}": load_config(
            "paper", quiet | {"lag": lag, "method.rollouts": _ROLLOUTS}
        )
        for lag in _LAGS
    }
    for name in others:
        made[name] = make_config(
            quiet
            | {"game": "leduc", "method.name": name, "method.iterations": _ITERATIONS}
            | {"games": _GAMES * _ITERATIONS, "checkpoint_every": _GAMES * _ITERATIONS // 4}
        )
    return made


def _attempts(lag: int) -> Iterator[tuple[str, Sequence[Session], type[CountingBus]]]:
    for count in _WORKERS[lag]:
        yield f"ordered, {count} workers", [(count, None)], CountingBus
    count = _DISTURBED_WORKERS
    yield f"deltas in disorder, {count} workers", [(count, None)], DisorderlyBus
    told = ", then ".join(str(count) for count, _ in _STOPS[lag])
    yield f"stopped and resumed, {told} workers", _STOPS[lag], DisorderlyBus


def _train(
    folder: Path, config: RunConfig, sessions: Sequence[Session], bus_type: type[CountingBus]
) -> str:
    """Train with real worker processes; returns the digest at the end."""
    directory = RunDir.create(folder / "run", config)
    digest = ""
    for count, stop in sessions:
        with (
            EmbeddedServer(folder / "server.log") as server,
            system.workers(count, server.url, directory.id, folder) as processes,
        ):
            bus = bus_type(connect(server.url), directory.id, stop)
            bus.must_end = functools.partial(system.any_died, processes)
            digest = LearnerService(directory, bus, should_stop=bus.is_enough).serve().digest
            if system.any_died(processes):
                raise RuntimeError(f"a worker died: {system.last_words(folder, count)}")
    return digest


class CountingBus(Bus):
    """A bus that knows when it has brought enough."""

    def __init__(self, client: object, run: str, stop: int | None) -> None:
        super().__init__(client, run)
        self._stop = stop
        self._brought = 0
        self.must_end: Callable[[], bool] = lambda: False  # for another reason

    def is_enough(self) -> bool:
        return self.must_end() or (self._stop is not None and self._brought >= self._stop)

    def receive(self, seconds: float, count: int = 64) -> list[bytes]:
        messages = super().receive(seconds, count)
        self._brought += len(messages)
        return messages


class DisorderlyBus(CountingBus):
    """A bus that brings messages late, twice, and in any order."""

    def __init__(self, client: object, run: str, stop: int | None) -> None:
        super().__init__(client, run, stop)
        self._random = random.Random(1)
        self._late: list[bytes] = []

    def receive(self, seconds: float, count: int = 64) -> list[bytes]:
        here = self._late + super().receive(seconds / 4, count)
        here += [message for message in here if self._random.random() < 0.5]
        self._random.shuffle(here)
        held = self._random.randint(0, len(here))
        self._late, here = here[:held], here[held:]
        return here
