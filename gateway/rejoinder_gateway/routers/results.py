"""How the finished games ended, for analysis."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy import select

from rejoinder_gateway.context import Admin, Here
from rejoinder_gateway.exports import csv_text
from rejoinder_gateway.schemas import Result, Results
from rejoinder_gateway.store import GameRow

router = APIRouter(prefix="/results", tags=["results"])


@router.get(
    "",
    response_model=Results,
    dependencies=[Admin],
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def results(here: Here, format: Literal["json", "csv"] = "json") -> Response:
    """Outcomes and what the players said of themselves, oldest first."""
    finished = select(GameRow).where(GameRow.finished.is_not(None)).order_by(GameRow.finished)
    rows = await here.store.do(lambda db: db.scalars(finished).all())
    told = [_result(row) for row in rows]
    if format == "json":
        return Response(Results(results=told).model_dump_json(), media_type="application/json")
    text = csv_text([result.model_dump() for result in told], list(Result.model_fields))
    return Response(
        text,
        media_type="text/csv",
        headers={"Content-Disposition": 'attachment; filename="results.csv"'},
    )


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
