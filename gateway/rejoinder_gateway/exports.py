"""A whole policy, or all results, as files for analysis."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from rejoinder_gateway.schemas import Infoset
from rejoinder_gateway.snapshots import Snapshot

Format = Literal["json", "csv", "parquet"]
MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
_BLOCK = 1_000  # infosets written at once

COLUMNS = {
    "identifier": pa.string(),
    "key": pa.string(),
    "visits": pa.int64(),
    "reach": pa.float64(),
    "action": pa.string(),
    "latest": pa.float64(),
    "average": pa.float64(),
    "regret": pa.float64(),
}


def write(snapshot: Snapshot, form: Format) -> Iterator[bytes]:
    """The file in pieces, so that a big policy never lies in memory twice."""
    if form == "json":
        return _json(snapshot)
    return _csv(snapshot) if form == "csv" else _parquet(snapshot)


def csv_header(columns: Iterable[str]) -> bytes:
    return csv_lines([dict(zip(columns, columns, strict=True))], columns)


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> bytes:
    """A line a row. A cell that a spreadsheet would take for a formula is quoted."""
    text = io.StringIO()
    csv.writer(text).writerows([_harmless(row[name]) for name in columns] for row in rows)
    return text.getvalue().encode()


def json_items(items: Iterable[BaseModel], *, first: bool) -> bytes:
    """Items of a JSON list, a line each."""
    lines = ",\n".join(item.model_dump_json() for item in items)
    return f"{'' if first or not lines else ','}\n{lines}".encode()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value


def _json(snapshot: Snapshot) -> Iterator[bytes]:
    head = {"games": snapshot.games, "digest": snapshot.digest}
    yield json.dumps(head)[:-1].encode() + b', "infosets": ['
    for k, infosets in enumerate(_blocks(snapshot)):
        yield json_items(infosets, first=k == 0)
    yield b"\n]}\n"


def _csv(snapshot: Snapshot) -> Iterator[bytes]:
    yield csv_header(COLUMNS)
    for infosets in _blocks(snapshot):
        yield csv_lines(_rows(infosets), COLUMNS)


def _parquet(snapshot: Snapshot) -> Iterator[bytes]:
    schema = pa.schema(COLUMNS.items())
    sink = _Pieces()
    with pq.ParquetWriter(sink, schema) as writer:
        for infosets in _blocks(snapshot):
            writer.write_table(pa.Table.from_pylist(_rows(infosets), schema))
            yield sink.take()
    yield sink.take()


class _Pieces(io.RawIOBase):
    """A file whose content can be taken away while it is being written."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._waiting.append(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        taken = b"".join(self._waiting)
        self._waiting.clear()
        return taken


def _blocks(snapshot: Snapshot) -> Iterator[list[Infoset]]:
    """Some infosets at a time, in the order in which they were first met."""
    for start in range(0, len(snapshot), _BLOCK):
        yield [snapshot.infoset(r) for r in range(start, min(start + _BLOCK, len(snapshot)))]


def _rows(infosets: list[Infoset]) -> list[dict[str, Any]]:
    """A row for each action."""
    return [
        {
            **infoset.model_dump(include={"identifier", "key", "visits", "reach"}),
            "action": action.name,
            "latest": action.latest,
            "average": action.average,
            "regret": action.regret,
        }
        for infoset in infosets
        for action in infoset.actions
    ]
