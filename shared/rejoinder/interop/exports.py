"""A whole policy as a file for analysis: JSON, CSV or Parquet; and the pieces of such files.

They hold what a policy does and why, not what a learner needs to go on: that is a checkpoint, or a
checkpoint file of another program (see `run.formats`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel

from rejoinder.measure.infosets import Infoset, Policy

Format = Literal["json", "csv", "parquet"]
MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
_BLOCK = 1_000  # infosets written at once

COLUMNS = {
    "identifier": "string",
    "key": "string",
    "visits": "int64",
    "reach": "float64",
    "action": "string",
    "latest": "float64",
    "average": "float64",
    "regret": "float64",
}


def write(policy: Policy, form: Format) -> Iterator[bytes]:
    """The file in pieces, so that a big policy never lies in memory twice."""
    if form == "json":
        return _json(policy)
    return _csv(policy) if form == "csv" else _parquet(policy)


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


def _json(policy: Policy) -> Iterator[bytes]:
    head = {"games": policy.games, "digest": policy.digest}
    yield json.dumps(head)[:-1].encode() + b', "infosets": ['
    for k, infosets in enumerate(_blocks(policy)):
        yield json_items(infosets, first=k == 0)
    yield b"\n]}\n"


def _csv(policy: Policy) -> Iterator[bytes]:
    yield csv_header(COLUMNS)
    for infosets in _blocks(policy):
        yield csv_lines(_rows(infosets), COLUMNS)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Parquet needs {error.name}: install it by pip install 'rejoinder[gateway]'"
        ) from None
    return pyarrow, pyarrow.parquet


def _parquet(policy: Policy) -> Iterator[bytes]:
    pa, pq = _arrow()
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    sink = _Pieces()
    with pq.ParquetWriter(sink, schema) as writer:
        for infosets in _blocks(policy):
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


def _blocks(policy: Policy) -> Iterator[list[Infoset]]:
    """Some infosets at a time, in the order in which they were first met."""
    for start in range(0, len(policy), _BLOCK):
        yield policy.infosets(slice(start, start + _BLOCK))


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
