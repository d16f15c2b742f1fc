"""Our solvers and OpenSpiel's C++ ones on the same games, in one process on one core.

An iteration means the same on both sides: external and outcome sampling walk once for each player,
full CFR updates each player once.
"""

from __future__ import annotations

from collections.abc import Callable

from rejoinder.games import GAMES
from rejoinder.methods.exact.full import FullSolver
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.tabular.sampling import SamplingSolver
from rejoinder_bench import Result, peers
from rejoinder_bench.measure import one_core, side_by_side

# name → (our game, algorithm, our iterations, the peer)
_PAIRS: dict[str, tuple[str, str, int, Callable[[], Callable[[], float]]]] = {
    "leduc_es_mccfr": (
        "leduc",
        "es-mccfr",
        100_000,
        lambda: peers.external_sampling("leduc_poker", 5_000),
    ),
    "leduc_os_mccfr": (
        "leduc",
        "os-mccfr",
        200_000,
        lambda: peers.outcome_sampling("leduc_poker", 15_000),
    ),
    "leduc_cfr": ("leduc", "cfr", 5_000, lambda: peers.full_cfr("leduc_poker", 20)),
    "kuhn_es_mccfr": (
        "kuhn",
        "es-mccfr",
        500_000,
        lambda: peers.external_sampling("kuhn_poker", 40_000),
    ),
    "kuhn_os_mccfr": (
        "kuhn",
        "os-mccfr",
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
    game = GAMES[name]
    rules = next(iter(game.configurations.values()))
    tree = build_tree(game, rules)
    solver: FullSolver | SamplingSolver
    if algorithm == "cfr":
        solver = FullSolver(tree, algorithm)
    else:
        solver = SamplingSolver(
            game, rules, game.abstractions[0], algorithm, infosets=len(tree.form.infosets)
        )

    def work() -> float:
        solver.run(iterations)
        return iterations

    return work
