"""What the agent of a run does in response phases, and what they are worth."""

from __future__ import annotations

from fastapi import APIRouter

from rejoinder_gateway.context import Here, TheRun
from rejoinder_gateway.routers.policies import Games
from rejoinder_gateway.schemas import ResponseAnalysis

router = APIRouter(prefix="/runs/{run}", tags=["policies"])


@router.get("/responses")
async def responses(here: Here, run: TheRun, snapshot: Games = None) -> ResponseAnalysis:
    """Rent charged, cancelled and paid; regret, entropy and value by role; what can be exploited.

    From games of the agent against itself, a function of the snapshot alone. Whoever asks first
    waits some seconds; a game without response phases is a problem.
    """
    return await here.analyses.of(run, await here.library.snapshot(run, snapshot))
