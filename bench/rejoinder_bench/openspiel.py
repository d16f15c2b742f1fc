"""Our solvers and OpenSpiel's C++ ones on the same games, in one process on one core.

An iteration means the same on both sides: external and outcome sampling walk once for each player,
full CFR updates each player once. Our sampling is the methods' own, with uniform weights: units are
played, folded and seen by the next unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from rejoinder.games import GAMES
from rejoinder.methods.exact.full import FullSolver
from rejoinder.methods.exact.tree import build_tree
from rejoinder.run.config import make_config
from rejoinder_bench import Result, peers
from rejoinder_bench.measure import one_core, side_by_side

_BLOCK = 10_000  # iterations in a unit of sampling

# name → (our game, algorithm, our iterations, the peer)
_PAIRS: dict[str, tuple[str, str, int, Callable[[], Callable[[], float]]]] = {
    "leduc_es_mccfr": (
        "leduc",
        "external",
        100_000,
        lambda: peers.external_sampling("leduc_poker", 5_000),
    ),
    "leduc_os_mccfr": (
        "leduc",
        "outcome",
        200_000,
        lambda: peers.outcome_sampling("leduc_poker", 15_000),
    ),
    "leduc_cfr": ("leduc", "cfr", 5_000, lambda: peers.full_cfr("leduc_poker", 20)),
    "kuhn_es_mccfr": (
        "kuhn",
        "external",
        500_000,
        lambda: peers.external_sampling("kuhn_poker", 40_000),
    ),
    "kuhn_os_mccfr": (
        "kuhn",
        "outcome",
        500_000,
        lambda: peers.outcome_sampling("kuhn_poker", 40_000),
    ),
    "kuhn_cfr": ("kuhn", "cfr", 500_000, lambda: peers.full_cfr("kuhn_poker", 5_000)),
}


def run(say: Callable[[str], None]) -> Result:
    result = Result()
    with one_core():
        for name, (game, algorithm, iterations, peer) in _PAIRS.items():
            ratio, ours, theirs = side_by_side(_ours(game, algorithm, iterations), peer())
            result.ratios[name] = ratio
            result.figures[f"{name}_ours_per_second"] = ours
            result.figures[f"{name}_openspiel_per_second"] = theirs
            say(f"{name}: {ratio:.1f} times ({ours:,.0f} against {theirs:,.0f} iterations/s)")
    return result


def _ours(name: str, algorithm: str, iterations: int) -> Callable[[], float]:
    if algorithm == "cfr":
        game = GAMES[name]
        solver = FullSolver(build_tree(game, next(iter(game.configurations.values()))), algorithm)
        return _counting(iterations, lambda: solver.run(iterations))
    return _counting(iterations, _sampler(name, algorithm, iterations // _BLOCK))


def _counting(iterations: int, run: Callable[[], None]) -> Callable[[], float]:
    def work() -> float:
        run()
        return iterations

    return work


def _sampler(name: str, method_name: str, units: int) -> Callable[[], None]:
    """Plays units, folds each and plays the next one with what was learned."""
    config = make_config(
        {
            "game": name,
            "method": {"name": method_name, "iterations": _BLOCK, "weighting": "uniform"},
        }
    )
    method, task = config.load_method(), config.task()
    actor, model, snapshot = method.actor(task), method.model(task, None), method.snapshot(task)
    done = itertools.count()

    def run() -> None:
        for unit in itertools.islice(done, units):
            delta = actor.play(unit, snapshot)
            model.fold(unit, [len(delta)], delta)
            snapshot.apply(model.changes())

    return run
