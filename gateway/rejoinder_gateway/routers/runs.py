"""Runs: how they stand, how they got there, and a stream of both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from rejoinder_gateway.context import Admin, Here, Stream, TheRun
from rejoinder_gateway.library import Library, Run
from rejoinder_gateway.problems import Problem, log
from rejoinder_gateway.schemas import (
    Accepted,
    History,
    Largest,
    RunDetail,
    RunList,
    RunSummary,
)

router = APIRouter(prefix="/runs", tags=["runs"])

PING = 15.0  # seconds between two signs of life
_LOOK = 0.5  # seconds between two looks at the run directory
# What is told of a worker and of a session; their machines and names are nobody's business.
_WORKER_FIELDS = ("games", "leases", "evaluations", "busy_seconds", "up_seconds")
_SESSION_FIELDS = ("from_game", "time", "rejoinder", "kernel", "commit")


@router.get("")
async def runs(here: Here) -> RunList:
    """All runs of this gateway."""
    return RunList(runs=[summary(run) for run in here.library.runs()])


@router.get("/{run}")
async def run(here: Here, run: TheRun) -> RunDetail:
    """One run, with its config and where it comes from."""
    return RunDetail(
        **dict(summary(run)),
        config=run.directory.config.model_dump(mode="json"),
        digest=await _digest(here.library, run),
        provenance=[
            {field: session[field] for field in _SESSION_FIELDS if field in session}
            for session in run.directory.sessions()
        ],
    )


@router.get("/{run}/history")
async def history(
    run: TheRun,
    after: Annotated[int, Query(ge=-1, le=Largest, description="Only later game indices.")] = -1,
) -> History:
    """The evaluations by game index."""
    return History(records=[r for r in run.metrics() if r["games"] > after])


@router.get("/{run}/events", response_class=EventSourceResponse, dependencies=[Stream])
async def events(run: TheRun) -> AsyncIterator[ServerSentEvent]:
    """`status` when something has changed, `record` for a new evaluation, `ping`."""
    async for event in _follow(run):
        yield event


@router.post("/{run}/stop", status_code=202, dependencies=[Admin])
async def stop(run: TheRun) -> Accepted:
    """Ask the trainer to write a checkpoint and stop."""
    if not run.standing()["alive"]:
        raise Problem(409, "Not training", "nobody is training this run now")
    try:
        run.directory.request_stop()
    except OSError as error:
        log.warning("%s cannot be stopped from here: %s", run.name, error)
        detail = "the runs are read-only for this gateway; stop the learner itself"
        raise Problem(503, "Cannot stop", detail) from None
    return Accepted(status="stopping")


def summary(run: Run) -> RunSummary:
    """By what the trainer last said, and where it said nothing by what it wrote."""
    config = run.directory.config
    said = run.standing()
    running = said["state"] == "running"
    latest: dict[str, Any] = next(iter(run.metrics()[-1:]), {})
    rated: dict[str, Any] = next((r for r in reversed(run.metrics()) if r.get("win_rates")), {})
    return RunSummary(
        name=run.name,
        game=config.game,
        configuration_rules=config.rules.model_dump(mode="json"),
        abstraction=config.abstraction,
        fingerprint=config.fingerprint,
        state=said["state"],
        alive=said["alive"],
        games=said["games"],
        target=said["target"],
        games_per_second=said.get("games_per_second") if running else None,
        seconds_left=said.get("seconds_left") if running else None,
        version=said.get("version", said["games"] // config.batch),
        mer=said.get("mer", latest.get("mer")),
        win_rates=said.get("win_rates") or rated.get("win_rates", {}),
        infosets=said.get("infosets", latest.get("infosets")),
        workers=[_figures(about) for about in said.get("workers", {}).values()],
        snapshots=run.checkpoints(),
        checkpointed=_checkpointed(run),
    )


def _checkpointed(run: Run) -> float | None:
    try:
        return (run.directory.path / "checkpoints").stat().st_mtime
    except OSError:
        return None


def _figures(about: Any) -> dict[str, float]:
    """Of a worker; it may have said anything."""
    told = about if isinstance(about, dict) else {}
    return {f: told[f] for f in _WORKER_FIELDS if isinstance(told.get(f), int | float)}


async def _digest(library: Library, run: Run) -> str | None:
    try:
        return (await library.snapshot(run)).digest
    except Problem:
        return None


async def _follow(run: Run) -> AsyncIterator[ServerSentEvent]:
    """What changes, at most twice a second, for as long as anybody listens."""
    told: RunSummary | None = None
    records = run.metrics()  # the listener can ask for those
    pinged = time.monotonic()
    while True:
        now = summary(run)
        if now != told:
            told = now
            yield ServerSentEvent(event="status", data=now)
        if (newest := run.metrics()) is not records:
            before, records = {r["games"]: r for r in records}, newest
            for record in newest:
                if before.get(record["games"]) != record:  # new, or its win rates have come
                    yield ServerSentEvent(event="record", data=record)
        if time.monotonic() - pinged >= PING:
            pinged = time.monotonic()
            yield ServerSentEvent(event="ping", data={})
        await asyncio.sleep(_LOOK)
