"""What the routes have at hand: made once when the app starts, and typed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from rejoinder_gateway.analyses import Analyses
from rejoinder_gateway.forecasts import Forecasts
from rejoinder_gateway.health import Health
from rejoinder_gateway.kernels import Kernels
from rejoinder_gateway.library import Library, Run
from rejoinder_gateway.security import (
    Limiter,
    Streams,
    Tickets,
    check_admin,
    client_network,
)
from rejoinder_gateway.settings import Settings
from rejoinder_gateway.store import Store
from rejoinder_gateway.tables import GameTable, Tables
from rejoinder_gateway.telemetry import Telemetry

PING = 15.0  # seconds between two signs of life of a stream


@dataclass(frozen=True)
class Context:
    settings: Settings
    library: Library
    analyses: Analyses
    forecasts: Forecasts
    store: Store
    tables: Tables
    telemetry: Telemetry
    kernels: Kernels
    health: Health
    tickets: Tickets
    streams: Streams
    new_games: Limiter


def context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


async def _here(request: Request) -> Context:
    """FastAPI would run a plain function in a thread, for every request."""
    return context(request)


Here = Annotated[Context, Depends(_here)]

_game_secret = HTTPBearer(
    auto_error=False, scheme_name="game secret", description="The secret of the game."
)
_admin_token = HTTPBearer(
    auto_error=False, scheme_name="admin token", description="The gateway's admin token."
)
GameSecret = Annotated[HTTPAuthorizationCredentials | None, Depends(_game_secret)]
_AdminToken = Annotated[HTTPAuthorizationCredentials | None, Depends(_admin_token)]


def game_secret(request: Request) -> str | None:
    """As the dependency reads it."""
    scheme, secret = get_authorization_scheme_param(request.headers.get("authorization"))
    return secret if scheme.lower() == "bearer" and secret else None


async def _run(here: Here, run: str) -> Run:
    return here.library.run(run)


async def _table(request: Request, game: str, secret: GameSecret) -> GameTable:
    return await context(request).tables.open(game, secret.credentials if secret else None)


async def _admin(here: Here, token: _AdminToken) -> None:
    expected = here.settings.admin_token
    check_admin(
        token.credentials if token else None, expected.get_secret_value() if expected else None
    )


async def _stream(here: Here, request: Request) -> AsyncIterator[None]:
    with here.streams.one_more(client_network(request.scope)):
        yield


TheRun = Annotated[Run, Depends(_run)]
TheTable = Annotated[GameTable, Depends(_table)]
Admin = Depends(_admin)
Stream = Depends(_stream)
