"""Reading a report page in tests: its figures, their data, its tables, what it would fetch."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "link", "img", "path", "use", "rect", "stop", "line", "circle"}


class Page(HTMLParser):
    """A report, taken apart."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.text = Path(path).read_text("utf-8")
        self.fetched: list[str] = []
        self.identifiers: list[str] = []
        self.drawings: dict[str, int] = {}  # SVGs by figure
        self.titles: list[str] = []  # of sections
        self.figures: dict[str, list[dict[str, str]]] = {}  # data by figure, a dict a row
        self.tables: dict[str, list[list[str]]] = {}  # rows by section, heads included
        self._figure = self._section = ""
        self._row: list[str] | None = None
        self._said: list[str] | None = None  # of the cell or title that is open
        self._rows: list[list[str]] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.identifiers += [value for name, value in attrs if name == "id" and value]
        for name in ("src", "href", "xlink:href"):
            value = named.get(name)
            if value and not value.startswith("#"):
                self.fetched.append(value)
        if tag == "figure":
            self._figure = named["id"] or ""
            self.drawings[self._figure] = 0
        elif tag == "svg":
            self.drawings[self._figure] += 1
        elif tag == "table":
            self._rows = []
        elif tag == "tr":
            self._row = []
        elif tag in ("th", "td", "h2"):
            self._said = []

    def handle_data(self, data: str) -> None:
        if self._said is not None:
            self._said.append(data)

    def handle_endtag(self, tag: str) -> None:
        said = " ".join("".join(self._said or []).split())
        if tag in ("th", "td") and self._row is not None:
            self._row.append(said)
            self._said = None
        elif tag == "h2":
            self._section, self._said = said, None
            self.titles.append(said)
        elif tag == "tr" and self._row is not None:
            self._rows.append(self._row)
            self._row = None
        elif tag == "table" and self._figure:
            heads, *rows = self._rows
            self.figures[self._figure] = [dict(zip(heads, row, strict=True)) for row in rows]
        elif tag == "table":
            self.tables[self._section] = self._rows
        elif tag == "figure":
            self._figure = ""
