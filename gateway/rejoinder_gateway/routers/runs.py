"""Runs: how they stand, how they got there, and a stream of both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from rejoinder.games.responses import Responses
from rejoinder_gateway.context import PING, Admin, Here, Stream, TheRun
from rejoinder_gateway.library import Library, Run
from rejoinder_gateway.problems import Problem, log
from rejoinder_gateway.schemas import (
    LARGEST,
    Accepted,
    History,
    RunDetail,
    RunList,
    RunSummary,
)

router = APIRouter(prefix="/runs", tags=["runs"])

_LOOK = 0.5  # seconds between two looks at the run directory


@router.get("")
async def runs(here: Here) -> RunList:
    """All runs of this gateway."""
    told = (run.read("summary", summary, run) for run in here.library.runs())
    return RunList(runs=[run for run in told if run is not None])


@router.get("/{run}")
async def run(here: Here, run: TheRun) -> RunDetail:
    """One run, with its config and where it comes from."""
    return RunDetail(
        **dict(summary(run)),
        config=run.directory.config.model_dump(mode="json"),
        has_responses=run.game.capability(Responses) is not None,
        digest=await _digest(here.library, run),
        provenance=[session.model_dump(exclude_unset=True) for session in run.sessions()],
    )


@router.get("/{run}/history")
async def history(
    run: TheRun,
    after: Annotated[int, Query(ge=-1, le=LARGEST, description="Only later game indices.")] = -1,
) -> History:
    """The evaluations by game index."""
    return History(records=[r for r in run.metrics() if r["games"] > after])


@router.get("/{run}/events", response_class=EventSourceResponse, dependencies=[Stream])
async def events(here: Here, run: TheRun) -> AsyncIterator[ServerSentEvent]:
    """`status` when something has changed, `record` for a new evaluation, `ping`.

    Ends when the run is gone, or another one has its name.
    """
    async for event in _follow(here.library, run):
        yield event


@router.post("/{run}/stop", status_code=202, dependencies=[Admin])
async def stop(run: TheRun) -> Accepted:
    """Ask the trainer to write a checkpoint and stop."""
    if not run.standing().alive:
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
    running = said.state == "running"
    records = run.metrics()
    latest: dict[str, Any] = records[-1] if records else {}
    rated: dict[str, Any] = next((r for r in reversed(records) if r.get("matches")), {})
    return RunSummary(
        name=run.name,
        game=config.game,
        configuration_rules=config.rules.model_dump(mode="json"),
        abstraction=config.abstraction,
        fingerprint=config.fingerprint,
        state=said.state,  # type: ignore[arg-type] # pydantic looks
        alive=said.alive,
        games=said.games,
        target=said.target,
        games_per_second=said.games_per_second if running else None,
        seconds_left=said.seconds_left if running else None,
        version=_first_known(said.version, said.games // (config.batch * config.block)),
        mer=_first_known(said.mer, latest.get("mer")),
        exploitability=_first_known(said.exploitability, latest.get("exploitability")),
        matches=said.matches or rated.get("matches", {}),
        utility_unit=config.load_game().utility_unit,
        infosets=_first_known(said.infosets, latest.get("infosets")),
        workers=said.figures,
        snapshots=run.checkpoints(),
        checkpointed=_checkpointed(run),
    )


def _first_known(said: Any, written: Any) -> Any:
    """What the trainer says, or else what it wrote."""
    return written if said is None else said


def _checkpointed(run: Run) -> float | None:
    try:
        return (run.directory.path / "checkpoints").stat().st_mtime
    except OSError:
        return None


async def _digest(library: Library, run: Run) -> str | None:
    try:
        return (await library.snapshot(run)).digest
    except Problem:
        return None


async def _follow(library: Library, run: Run) -> AsyncIterator[ServerSentEvent]:
    """What changes, at most twice a second, for as long as the run is there."""
    told: RunSummary | None = None
    records = run.metrics()  # the listener can ask for those
    pinged = time.monotonic()
    while True:
        now, newest = summary(run), run.metrics()
        there = _again(library, run)  # looked for after it was read, so nothing is made up
        if there is None:
            return
        run = there
        if now != told:
            told = now
            yield ServerSentEvent(event="status", data=now)
        if newest is not records:
            before, records = {r["games"]: r for r in records}, newest
            for record in newest:
                if before.get(record["games"]) != record:  # new, or its matches have come
                    yield ServerSentEvent(event="record", data=record)
        if time.monotonic() - pinged >= PING:
            pinged = time.monotonic()
            yield ServerSentEvent(event="ping", data={})
        await asyncio.sleep(_LOOK)


def _again(library: Library, run: Run) -> Run | None:
    """The run as it is now, perhaps with more games to play; None if it is gone."""
    try:
        now = library.run(run.name, at_once=True)
    except Problem:
        return None
    return now if now.directory.id == run.directory.id else None
