"""Play: a game, what its player sees of it, his moves, and what the agent thinks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ValidationError

from rejoinder_gateway import presenter
from rejoinder_gateway.context import (
    PING,
    GameSecret,
    Here,
    Stream,
    TheTable,
    context,
    game_secret,
)
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import (
    LARGEST,
    Advice,
    Created,
    Decisions,
    Events,
    GameState,
    Move,
    Moved,
    NewGame,
    Replay,
    Ticket,
)
from rejoinder_gateway.security import TICKET_SECONDS, client_network
from rejoinder_gateway.tables import GameTable, unknown_game

router = APIRouter(prefix="/games", tags=["play"])


class _MoveRoute(APIRoute):
    """The short way for a move.

    FastAPI's solving of dependencies takes a good part of its time, and a well-formed move needs
    none of it; whatever is not goes the usual way, and is refused there.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        usual = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if request.headers.get("content-type") != "application/json":
                return await usual(request)
            try:
                wanted = Move.model_validate_json(await request.body())
            except ValidationError:
                return await usual(request)
            here = context(request)
            table = await here.tables.open(request.path_params["game"], game_secret(request))
            return await move(here, table, wanted)

        return handle


@router.post("", status_code=201, response_model=Created)
async def create(here: Here, request: Request, wanted: NewGame) -> Response:
    """A new game. If the agent begins, it has moved already."""
    who = client_network(request.scope)
    here.new_games.check(who)
    secret, table = await here.tables.create(wanted, who)
    made = Created(secret=secret, game=presenter.game_state(table))
    return _json(made, 201, {"Location": f"/api/v1/games/{table.row.id}"})


@router.get("/{game}", response_model=GameState)
async def state(table: TheTable) -> Response:
    """The game as its player sees it."""
    return _json(presenter.game_state(table))


async def move(here: Here, table: TheTable, wanted: Move) -> Response:
    """Make a move; the agent's replies come with the answer. Sending it twice is harmless."""
    number = await here.tables.act(table, wanted.move_number, wanted.move)
    return _json(Moved(game=presenter.game_state(table), events=table.told_since(number)))


router.add_api_route(
    "/{game}/moves",
    move,
    methods=["POST"],
    response_model=Moved,
    route_class_override=_MoveRoute,
)


@router.get("/{game}/advice", response_model=Advice)
async def advice(here: Here, table: TheTable) -> Response:
    """What the agent would do in the player's place."""
    return _json(await here.tables.advice(table))


@router.get("/{game}/decisions")
async def decisions(table: TheTable) -> Decisions:
    """The agent's own policy at each of its moves: after the end, or in an open game."""
    if not (table.over or table.row.open):
        raise Problem(
            403, "Still hidden", "the agent's decisions are shown after the game, or in an open one"
        )
    return Decisions(decisions=[d for d in table.decisions if d is not None])


@router.get("/{game}/history")
async def history(
    table: TheTable,
    after: Annotated[int, Query(ge=0, le=LARGEST, description="Only later events.")] = 0,
) -> Events:
    """Everything that happened, as the player saw it."""
    return Events(events=table.told[after:])


@router.get("/{game}/replay")
async def replay(table: TheTable) -> Replay:
    """A finished game step by step, with both players' views."""
    if not table.over:
        raise Problem(403, "Still hidden", "a game can be replayed once it is over")
    return await asyncio.to_thread(presenter.replay, table)


@router.post("/{game}/resign", response_model=GameState)
async def resign(here: Here, table: TheTable) -> Response:
    """Give the game up. Once it is over this changes nothing."""
    await here.tables.resign(table)
    return _json(presenter.game_state(table))


@router.post("/{game}/ticket", status_code=201)
async def ticket(here: Here, table: TheTable) -> Ticket:
    """A pass for the event stream, for those who cannot send a header."""
    return Ticket(ticket=here.tickets.issue(table.row.id), seconds=int(TICKET_SECONDS))


async def _watched(
    here: Here,
    game: str,
    secret: GameSecret,
    ticket: Annotated[str | None, Query(max_length=100)] = None,
) -> GameTable:
    if secret is not None:
        return await here.tables.open(game, secret.credentials)
    if ticket is None or not here.tickets.redeem(ticket, game):
        raise unknown_game()
    return await here.tables.open_for_ticket(game)


@router.get("/{game}/events", response_class=EventSourceResponse, dependencies=[Stream])
async def events(table: Annotated[GameTable, Depends(_watched)]) -> AsyncIterator[ServerSentEvent]:
    """`game` with the whole state whenever it has changed, `ping`; ends with the game."""
    async for event in _follow(table):
        yield event


async def _follow(table: GameTable) -> AsyncIterator[ServerSentEvent]:
    told = None

    def has_changed() -> bool:
        return table.gone or presenter.game_state(table) != told

    while not table.gone:  # who connects again gets the table that took its place
        now = presenter.game_state(table)
        if now == told:
            yield ServerSentEvent(event="ping", data={})
        else:
            told = now
            yield ServerSentEvent(event="game", data=now)
        if now.over:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PING), table.changed:
                # It may have changed while the last event was being sent.
                await table.changed.wait_for(has_changed)


def _json(model: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Straight to bytes: the model has been checked when it was made."""
    return Response(model.model_dump_json(), status, headers, media_type="application/json")
