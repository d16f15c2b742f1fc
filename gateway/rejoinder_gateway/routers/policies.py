"""Policies: of an infoset, of a state, a page of them, or all in a file."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from rejoinder.interop import exports
from rejoinder.measure.infosets import Infoset
from rejoinder_gateway.context import Here, Stream, TheRun, context
from rejoinder_gateway.lookup import look_up
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import (
    LARGEST,
    Found,
    InfosetPage,
    Lookup,
    PolicyFile,
    SnapshotList,
    SnapshotName,
)
from rejoinder_gateway.snapshots import SEARCHED, Sort
from rejoinder_gateway.snapshots import Query as Wanted

router = APIRouter(prefix="/runs/{run}", tags=["policies"])

Games = Annotated[
    int | None,
    Query(ge=0, le=LARGEST, description="Games of the checkpoint; the newest without it."),
]


@router.get("/snapshots")
async def snapshots(run: TheRun) -> SnapshotList:
    """The checkpoints that are there."""
    games = run.checkpoints()
    return SnapshotList(
        snapshots=[
            SnapshotName(games=n, digest=run.digest_of(n), newest=n == games[-1]) for n in games
        ]
    )


@router.get("/policy")
async def browse(
    here: Here,
    run: TheRun,
    snapshot: Games = None,
    search: Annotated[str, Query(max_length=100)] = "",
    min_visits: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    sort: Sort = "visits",
    order: Literal["desc", "asc"] = "desc",
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> InfosetPage:
    """Infosets by what they are called and what can be done there."""
    known = await here.library.snapshot(run, snapshot)
    wanted = Wanted(search, min_visits, sort, order == "desc")
    total, page = await asyncio.to_thread(known.find, wanted, offset, limit)
    searched = min(len(known), SEARCHED) if search else len(known)
    return InfosetPage(total=total, searched=searched, offset=offset, limit=limit, infosets=page)


@router.post("/policy/lookup")
async def lookup(here: Here, run: TheRun, given: Lookup, snapshot: Games = None) -> Found:
    """The policy of the player to move in a state that is sent along."""
    return look_up(run, await here.library.snapshot(run, snapshot), given.state)


@router.get(
    "/policy/{identifier}",
    response_model=Infoset,
    openapi_extra={
        "parameters": [
            {"name": "run", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "identifier", "in": "path", "required": True, "schema": {"type": "string"}},
            {
                "name": "snapshot",
                "in": "query",
                "schema": {"type": "integer", "minimum": 0, "maximum": LARGEST},
                "description": "Games of the checkpoint; the newest without it.",
            },
        ]
    },
)
async def policy(request: Request) -> Response:
    """The policy of one infoset.

    The one path that has to be fast: it takes its parameters by itself, and the answer is kept as
    bytes.
    """
    library = context(request).library
    run = library.run(request.path_params["run"])
    known = await library.snapshot(run, _games(request) if request.scope["query_string"] else None)
    answer = known.answer(request.path_params["identifier"])
    if answer is None:
        raise Problem(404, "Unknown infoset", "the policy has met no infoset of that identifier")
    return Response(answer, media_type="application/json")


@router.get(
    "/policy-file",
    response_class=StreamingResponse,
    dependencies=[Stream],
    responses={
        200: {
            "model": PolicyFile,
            "content": {
                exports.MEDIA_TYPES[kind]: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("csv", "parquet")
            },
        }
    },
)
async def policy_file(
    here: Here, run: TheRun, format: exports.Format = "json", snapshot: Games = None
) -> StreamingResponse:
    """The whole policy; CSV and Parquet have a row for each action of each infoset."""
    known = await here.library.snapshot(run, snapshot)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in run.name)
    return StreamingResponse(
        exports.write(known, format),
        media_type=exports.MEDIA_TYPES[format],
        headers={"Content-Disposition": f'attachment; filename="{name}-{known.games}.{format}"'},
    )


def _games(request: Request) -> int | None:
    """The query's snapshot, checked."""
    given = request.query_params.getlist("snapshot")
    if not given:
        return None
    if not (re.fullmatch(r"[0-9]{1,16}", given[-1]) and int(given[-1]) <= LARGEST):
        detail = "query.snapshot: a number of games is needed"
        raise Problem(422, "Invalid request", detail, errors=[{"field": "query.snapshot"}])
    return int(given[-1])
