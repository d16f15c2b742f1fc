"""Whether the gateway works, what it offers, what it counts."""

from __future__ import annotations

from importlib import metadata

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from rejoinder.games import GAMES, game_names
from rejoinder.games.base import Game
from rejoinder.measure.agents import opponents
from rejoinder_gateway.catalogue import full_name
from rejoinder_gateway.context import Here
from rejoinder_gateway.examples import CATALOGUE_ENTRY
from rejoinder_gateway.schemas import (
    About,
    AbstractionInfo,
    CatalogueEntry,
    Configuration,
    Readiness,
    Status,
)

probes = APIRouter(tags=["service"])
router = APIRouter(tags=["service"])


@probes.head("/healthz", include_in_schema=False)
@probes.get("/healthz")
async def healthz() -> Status:
    """The process answers."""
    return Status(status="ok")


@probes.head("/readyz", include_in_schema=False)
@probes.get("/readyz", responses={503: {"model": Readiness}})
async def readyz(here: Here, response: Response) -> Readiness:
    """Everything that it needs is there."""
    checks = await here.health.checks()
    ready = all(said == "ok" for said in checks.values())
    response.status_code = 200 if ready else 503
    return Readiness(status="ready" if ready else "not ready", checks=checks)


@probes.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(here: Here) -> Response:
    """For Prometheus."""
    here.telemetry.streams.set(here.streams.open)
    return Response(here.telemetry.text(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("", include_in_schema=False)
@router.get("/")
async def about(here: Here, request: Request) -> About:
    """What this is, where to go on, and how much of it anybody may have."""
    settings = here.settings
    document = str(request.app.openapi_url)
    api = document.rpartition("/")[0]
    return About(
        name="rejoinder",
        version=metadata.version("rejoinder"),
        links={
            "openapi": document,
            "runs": f"{api}/runs",
            "games": f"{api}/games",
            "games_catalogue": f"{api}/games-catalogue",
            "status": "/readyz",
            "metrics": "/metrics",
            "page": "/",
        },
        games=game_names(),
        limits={
            "body_bytes": settings.max_body,
            "requests_per_second": settings.rate,
            "requests_at_once": settings.burst,
            "new_games_per_minute": settings.new_games,
            "games_under_way": settings.max_games,
            "your_games_under_way": settings.max_games_each,
            "streams": settings.max_streams,
            "your_streams": settings.max_streams_each,
            "search_samples": settings.max_search,
        },
    )


@router.get(
    "/games-catalogue",
    responses={200: {"content": {"application/json": {"example": [CATALOGUE_ENTRY]}}}},
)
async def catalogue() -> list[CatalogueEntry]:
    """The games that can be played, with their configurations and baselines."""
    return [_entry(game) for game in GAMES.values()]


def _entry(game: Game) -> CatalogueEntry:
    return CatalogueEntry(
        name=game.name,
        title=game.title,
        players=game.players,
        moves=list(game.moves),
        baselines=list(opponents(game)),
        configurations=[
            Configuration(
                name=name,
                full_name=full_name(game, name),
                rules=rules.model_dump(mode="json"),
            )
            for name, rules in game.configurations.items()
        ],
        abstractions=[
            AbstractionInfo(name=a.name, actions=list(a.actions)) for a in game.abstractions
        ],
    )
