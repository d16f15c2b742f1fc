"""Forecasts against what then happened: how many of their intervals held.

The paper's experiment goes on to 4,000 games, with several seeds. After 400 to 3,000 of them it is
forecast when targets that are not reached yet will be, from what was measured until then. An
interval held if the target was reached inside it. It failed if that was outside, or if the run has
passed its end without the target. If the run has not, and the target was not reached, nobody knows:
such a case does not count.

Cases of one run share its evaluations, so they are far from independent. An interval without an end
can hardly fail, so those that have one are judged by themselves as well, where there are enough.
Training is bit-exact: the figures do not depend on the machine but for the last digits of a fit.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rejoinder.measure.forecast import COVERAGE, MER, Series, fan
from rejoinder.measure.targets import Target
from rejoinder.run.config import RunConfig, load_config
from rejoinder.run.rundir import RunDir
from rejoinder_bench import Result
from rejoinder_learner.sequential import train

_SEEDS = (1, 2, 3, 4, 5)
_GAMES = 4_000
_KNOWN = range(400, 3_001, 100)
_TARGETS = {
    MER: (0.05, 0.04, 0.03, 0.02, 0.015, 0.01, 0.008, 0.006, 0.005, 0.004),
    "risk-aware": (0.87, 0.88, 0.89, 0.9, 0.91, 0.92),
    "random": (0.99, 0.995, 0.9975),
}
_ENOUGH = COVERAGE - 0.05
_MANY = 100  # cases, to judge a share by


class Case(NamedTuple):
    """A forecast whose interval is known to have held or failed."""

    held: bool
    endless: bool


def run(say: Callable[[str], None]) -> Result:
    cases: dict[str, list[Case]] = {what: [] for what in _TARGETS}
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as name:
        for seed in _SEEDS:
            directory = RunDir.create(Path(name) / str(seed), _config(seed))
            train(directory)
            records = directory.metrics()
            say(f"seed {seed}: trained {_GAMES:,} games")
            for what, values in _TARGETS.items():
                series = Target(what, values[0]).series(records)
                cases[what] += _cases(series, values)
    result = Result(figures={"runs": len(_SEEDS), "games_a_run": _GAMES})
    for what, found in cases.items():
        _report(what, found, result, say)
    return result


def _config(seed: int) -> RunConfig:
    return load_config("paper", {"seed": seed, "games": _GAMES})


def _cases(series: Series, targets: tuple[float, ...]) -> Iterator[Case]:
    end = series.games[-1]
    for games in _KNOWN:
        known = series.up_to(games)
        curves = fan(known)
        for target in targets:
            if known.reached(target) < math.inf:
                continue
            said, was = curves.reaches(target), series.reached(target)
            if was < math.inf or said.high < end:
                yield Case(said.low <= was <= said.high, math.isinf(said.high))


def _report(what: str, cases: list[Case], result: Result, say: Callable[[str], None]) -> None:
    bounded = [case for case in cases if not case.endless]
    all_held, bounded_held = (sum(case.held for case in some) for some in (cases, bounded))
    share = all_held / max(len(cases), 1)
    say(
        f"{what}: {all_held} of {len(cases)} held ({share:.0%}); of the {len(bounded)} that have "
        f"an end, {bounded_held}"
    )
    result.ratios[f"{what}_held_over_cases"] = share
    result.figures |= {
        f"{what}_cases": len(cases),
        f"{what}_with_end": len(bounded),
        f"{what}_with_end_held": bounded_held,
    }
    result.judge({f"{what}: at least {_ENOUGH:.0%}": share >= _ENOUGH}, say)
    if len(bounded) >= _MANY:
        enough = bounded_held >= _ENOUGH * len(bounded)
        result.judge({f"{what}: at least {_ENOUGH:.0%} of those with an end": enough}, say)
