"""How the finished games ended, for analysis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from sqlalchemy import Select, select, tuple_

from rejoinder.interop.exports import MEDIA_TYPES, csv_header, csv_lines, json_items
from rejoinder_gateway.context import Admin, Here
from rejoinder_gateway.schemas import Result, Results
from rejoinder_gateway.store import GameRow, Store

router = APIRouter(prefix="/results", tags=["results"])

_BLOCK = 1_000  # games read and written at once
_Block = list[Result]


@router.get(
    "",
    response_class=StreamingResponse,
    dependencies=[Admin],
    responses={200: {"model": Results, "content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def results(here: Here, format: Literal["json", "csv"] = "json") -> StreamingResponse:
    """Outcomes and what the players said of themselves, oldest first."""
    blocks = _blocks(here.store)
    first = await anext(blocks)  # before the answer begins: a database that is away is a problem
    return StreamingResponse(
        _json(first, blocks) if format == "json" else _csv(first, blocks),
        media_type=MEDIA_TYPES[format],
        headers={"Content-Disposition": f'attachment; filename="results.{format}"'},
    )


async def _json(first: _Block, later: AsyncIterator[_Block]) -> AsyncIterator[bytes]:
    yield b'{"results": [' + json_items(first, first=True)
    async for block in later:
        yield json_items(block, first=False)
    yield b"\n]}\n"


async def _csv(first: _Block, later: AsyncIterator[_Block]) -> AsyncIterator[bytes]:
    columns = list(Result.model_fields)
    yield csv_header(columns) + csv_lines(map(vars, first), columns)
    async for block in later:
        yield csv_lines(map(vars, block), columns)


async def _blocks(store: Store) -> AsyncIterator[_Block]:
    """All finished games, some at a time; the first block is empty if there are none."""
    place = (GameRow.finished, GameRow.id)
    finished = select(GameRow).where(GameRow.finished.is_not(None)).order_by(*place).limit(_BLOCK)
    following = finished
    while True:
        rows = await _read(store, following)
        yield [_result(row) for row in rows]
        if len(rows) < _BLOCK:
            return
        following = finished.where(tuple_(*place) > (rows[-1].finished, rows[-1].id))


async def _read(store: Store, query: Select[GameRow]) -> Sequence[GameRow]:
    return await store.do(lambda db: db.scalars(query).all())


def _result(row: GameRow) -> Result:
    assert row.finished is not None, "only finished games are asked for"
    return Result(
        **{
            name: getattr(row, name)
            for name in Result.model_fields
            if name not in ("player_name", "created", "finished")
        },
        player_name=row.player.get("name"),
        created=row.created.isoformat(),
        finished=row.finished.isoformat(),
    )
