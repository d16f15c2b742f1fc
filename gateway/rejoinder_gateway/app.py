"""The gateway's app, put together.

    request → Guard (rate, host, size) → router → library (runs, policies: read-only)
                                                → tables (games) → store (database)
    answer  ← Guard (headers, metrics) ← models of `schemas`, or a problem

Everything that lasts is made when the app starts and closed when it ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from rejoinder_gateway import examples, problems, web
from rejoinder_gateway.analyses import Analyses
from rejoinder_gateway.context import Context
from rejoinder_gateway.forecasts import Forecasts
from rejoinder_gateway.guard import Guard
from rejoinder_gateway.health import Health
from rejoinder_gateway.kernels import Kernels
from rejoinder_gateway.library import Library
from rejoinder_gateway.routers import forecasts, games, policies, responses, results, runs, service
from rejoinder_gateway.security import Limiter, Streams, Tickets, UnderWay
from rejoinder_gateway.settings import Settings
from rejoinder_gateway.store import Store
from rejoinder_gateway.tables import Tables
from rejoinder_gateway.telemetry import Telemetry

VERSION_1 = "/api/v1"


def create_app(settings: Settings) -> FastAPI:
    telemetry = Telemetry()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.context = here = _context(settings, telemetry)
        here.kernels.load_aside()
        try:
            yield
        finally:
            here.kernels.stop_loading()
            here.tables.close()
            here.store.close()

    app = FastAPI(
        title="Rejoinder",
        summary="Status of runs, policies, and play against them.",
        version=metadata.version("rejoinder"),
        openapi_url=f"{VERSION_1}/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses=problems.PROBLEM_RESPONSES,
        redirect_slashes=False,
    )
    problems.install(app)
    examples.install(app)
    for topic in (
        policies,
        responses,
        forecasts,
        games,
        runs,
        results,
        service,
    ):  # routes are tried in this order
        app.include_router(topic.router, prefix=VERSION_1)
    app.include_router(service.probes)
    web.install(app)
    app.add_middleware(Guard, settings=settings, telemetry=telemetry)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Location", "Retry-After"],
        )  # the last one added is the outermost
    return app


def _context(settings: Settings, telemetry: Telemetry) -> Context:
    library = Library(settings.runs, settings.cached_snapshots)
    store = Store(settings.database_url)
    tables = Tables(
        store,
        library,
        telemetry,
        UnderWay(settings.max_games_each),
        cached=settings.cached_games,
        most=settings.max_games,
        max_search=settings.max_search,
    )
    kernels = Kernels()
    return Context(
        settings=settings,
        library=library,
        analyses=Analyses(),
        forecasts=Forecasts(),
        store=store,
        tables=tables,
        telemetry=telemetry,
        kernels=kernels,
        health=Health(store, settings.runs, kernels),
        tickets=Tickets(),
        streams=Streams(settings.max_streams, settings.max_streams_each),
        new_games=Limiter(settings.new_games / 60, max(1.0, settings.new_games)),
    )
