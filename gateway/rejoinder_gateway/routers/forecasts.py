"""When a run reaches a target, by the curve that is fitted to its evaluations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from rejoinder.measure.targets import MER, Target, measured_against
from rejoinder_gateway.context import Here, TheRun
from rejoinder_gateway.library import Run
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import Forecast

router = APIRouter(prefix="/runs/{run}", tags=["runs"])

_Mer = Annotated[
    float | None,
    Query(gt=0, allow_inf_nan=False, description="A maximum expected regret to get to."),
]
_WinRate = Annotated[
    float | None,
    Query(gt=0, lt=1, allow_inf_nan=False, description="A win rate to get to."),
]
_Opponent = Annotated[
    str | None,
    Query(min_length=1, max_length=120, description="Whom to win against: `random`, …"),
]


@router.get("/forecast")
async def forecast(
    here: Here,
    run: TheRun,
    mer: _Mer = None,
    win_rate: _WinRate = None,
    opponent: _Opponent = None,
) -> Forecast:
    """After how many games, in what time and how surely: `mer`, or `win_rate` with `opponent`.

    What `rejoinder forecast` says. Too few evaluations are a problem (409).
    """
    return await here.forecasts.of(run, _target(run, mer, win_rate, opponent))


def _target(run: Run, mer: float | None, win_rate: float | None, opponent: str | None) -> Target:
    if mer is not None and win_rate is None and opponent is None:
        return Target(MER, mer)
    if win_rate is not None and mer is None and opponent is not None:
        known = measured_against(run.directory.config)
        if opponent not in known:
            raise _invalid("query.opponent", f"there are {', '.join(known)}")
        return Target(opponent, win_rate)
    raise _invalid("query", "name one target, mer=0.05 or win_rate=0.85&opponent=random")


def _invalid(field: str, problem: str) -> Problem:
    errors = [{"field": field, "problem": problem}]
    return Problem(422, "Invalid request", f"{field}: {problem}", errors=errors)
