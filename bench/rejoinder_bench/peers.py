"""OpenSpiel's solvers as the peer: C++ code driven iteration by iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def load_pyspiel() -> Any:
    try:
        import pyspiel
    except ImportError:
        raise ValueError(
            "OpenSpiel is not installed; get it with: pip install 'rejoinder[bench]'"
        ) from None
    return pyspiel


def external_sampling(game: str, iterations: int) -> Callable[[], float]:
    """External-sampling MCCFR; one iteration updates both players."""
    spiel = load_pyspiel()
    solver = spiel.ExternalSamplingMCCFRSolver(spiel.load_game(game), 1)
    return _repeat(solver.run_iteration, iterations)


def outcome_sampling(game: str, iterations: int) -> Callable[[], float]:
    spiel = load_pyspiel()
    solver = spiel.OutcomeSamplingMCCFRSolver(spiel.load_game(game), seed=1)
    return _repeat(solver.run_iteration, iterations)


def full_cfr(game: str, iterations: int) -> Callable[[], float]:
    spiel = load_pyspiel()
    solver = spiel.CFRSolver(spiel.load_game(game))
    return _repeat(solver.evaluate_and_update_policy, iterations)


def _repeat(step: Callable[[], Any], times: int) -> Callable[[], float]:
    def work() -> float:
        for _ in range(times):
            step()
        return times

    return work
