"""A whole policy, or all results, as files for analysis."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from rejoinder_gateway.snapshots import Snapshot

Format = Literal["json", "csv", "parquet"]
MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
_BLOCK = 500  # infosets written at once

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


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows with a header. A cell that a spreadsheet would take for a formula is quoted."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_harmless(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value


def _json(snapshot: Snapshot) -> Iterator[bytes]:
    head = {"games": snapshot.games, "digest": snapshot.digest}
    yield json.dumps(head)[:-1].encode() + b', "infosets": ['
    for k, infoset in enumerate(snapshot.all_infosets()):
        yield (b",\n" if k else b"\n") + infoset.model_dump_json().encode()
    yield b"\n]}\n"


def _csv(snapshot: Snapshot) -> Iterator[bytes]:
    yield csv_text([], list(COLUMNS)).encode()
    for rows in _blocks(snapshot):
        yield csv_text(rows, list(COLUMNS)).split("\r\n", 1)[1].encode()


def _parquet(snapshot: Snapshot) -> Iterator[bytes]:
    schema = pa.schema(COLUMNS.items())
    sink = _Pieces()
    with pq.ParquetWriter(sink, schema) as writer:
        for rows in _blocks(snapshot):
            writer.write_table(pa.Table.from_pylist(rows, schema))
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


def _blocks(snapshot: Snapshot) -> Iterator[list[dict[str, Any]]]:
    """A row for each action, some infosets at a time."""
    block: list[dict[str, Any]] = []
    for count, infoset in enumerate(snapshot.all_infosets(), 1):
        shared = infoset.model_dump(include={"identifier", "key", "visits", "reach"})
        for action in infoset.actions:
            block.append(
                {
                    **shared,
                    "action": action.name,
                    "latest": action.latest,
                    "average": action.average,
                    "regret": action.regret,
                }
            )
        if count % _BLOCK == 0:
            yield block
            block = []
    yield block
