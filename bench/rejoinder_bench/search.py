"""Thinking ahead: how long a move takes with the default number of samples.

The yardstick is the 100 ms that a person does not notice. Times are of the processor, so that they
say what search takes and not what else the machine does; those of the wall clock are beside them.
Forced moves, which take nothing, are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder.measure.agents import trained_agent
from rejoinder.measure.search import SAMPLES, Searcher, searching
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import load_config
from rejoinder_bench import Result
from rejoinder_bench.measure import one_core
from rejoinder_learner.state import Learner

_GAMES = 40
_GAMES_BEFORE = 200
_LIMIT_MS = 100.0


def run(say: Callable[[str], None]) -> Result:
    agent = _agent()
    with one_core():
        next(_times(agent, 0))  # compile
        times = [times for game in range(_GAMES) for times in _times(agent, game)]
    result = Result(figures={"samples": SAMPLES, "moves": len(times)})
    for clock, taken in zip(("processor", "wall"), zip(*times, strict=True), strict=True):
        *_, p99 = statistics.quantiles(taken, n=100)
        result.figures[f"{clock}_ms_median"] = statistics.median(taken)
        result.figures[f"{clock}_ms_p99"] = p99
        say(f"{clock} time of a move: median {statistics.median(taken):.1f} ms, p99 {p99:.1f} ms")
    result.ratios["move_p99_over_100_ms"] = result.figures["processor_ms_p99"] / _LIMIT_MS
    result.judge({"a move takes less than 100 ms": result.ratios["move_p99_over_100_ms"] < 1}, say)
    return result


def _agent() -> Searcher:
    """The paper's configuration after some games."""
    config = load_config("paper")
    actor, learner = config.actor(), Learner(config)
    while learner.games < _GAMES_BEFORE:
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))
    plain = trained_agent(
        "paper", config.load_abstraction(), table_of(learner.policy_rows()), argmax=False
    )
    agent = searching(plain, config.load_game(), SAMPLES)
    assert isinstance(agent, Searcher)
    return agent


def _times(agent: Searcher, game: int) -> Iterator[tuple[float, float]]:
    """Milliseconds, processor and wall, of each move of a game of the agent against itself."""
    session = Session.start("deal-medium", seed=1, index=game)
    choices = rng.stream(1, game, rng.CHOICES)
    while not session.over:
        processor, wall = time.thread_time(), time.perf_counter()
        thought = agent.think(session.states, choices)
        taken = time.thread_time() - processor, time.perf_counter() - wall
        if thought.samples:
            yield 1000 * taken[0], 1000 * taken[1]
        session.apply(thought.move)
