"""When a run reaches a target, by the curve that is fitted to its evaluations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from rejoinder.measure.targets import Target, measured
from rejoinder_gateway.context import Here, TheRun
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import Forecast

router = APIRouter(prefix="/runs/{run}", tags=["runs"])

_What = Annotated[
    str,
    Query(
        min_length=1,
        max_length=120,
        description="`mer`, `exploitability` (where it is exact) or an opponent: `random`, …",
    ),
]
_Value = Annotated[
    float,
    Query(
        allow_inf_nan=False,
        description="The figure to get to; against an opponent a win rate, or the mean utility "
        "where the game counts no wins.",
    ),
]


@router.get("/forecast")
async def forecast(here: Here, run: TheRun, what: _What, target: _Value) -> Forecast:
    """After how many games, in what time and how surely a run reaches a target.

    What `rejoinder forecast` says. Too few evaluations are a problem (409).
    """
    config = run.directory.config
    if what not in (known := measured(config)):
        raise _invalid("query.what", f"there are {', '.join(known)}")
    try:
        wanted = Target.of("query.target", what, target, config)
    except ValueError as error:
        raise _invalid(*str(error).split(": ", 1)) from None
    return await here.forecasts.of(run, wanted)


def _invalid(field: str, problem: str) -> Problem:
    errors = [{"field": field, "problem": problem}]
    return Problem(422, "Invalid request", f"{field}: {problem}", errors=errors)
