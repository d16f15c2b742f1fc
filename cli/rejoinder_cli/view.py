"""A player's view of any game as rich panels: made from the fields of the view alone."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from rich.columns import Columns
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

# Told otherwise: by the prompt, by the panels' places, by the end of the game.
_UNSAID = frozenset({"player", "to_move", "over", "winner"})


def panels(view: BaseModel) -> Group:
    """One panel for the view's own fields, and below it one for each part of the view."""
    parts = {name: part for name, part in view if isinstance(part, BaseModel)}
    own = {name: value for name, value in view if name not in parts and name not in _UNSAID}
    return Group(
        _panel("table", own), Columns([_panel(name, dict(part)) for name, part in parts.items()])
    )


def _panel(title: str, fields: dict[str, Any]) -> Panel:
    grid = Table.grid(padding=(0, 2))
    for name, value in fields.items():
        if value is not None:
            grid.add_row(Text(name.replace("_", " "), style="dim"), Text(_words(value)))
    return Panel.fit(grid, title=title.replace("_", " "))


def _words(value: Any) -> str:
    """A value in words: piles of cards are counted, lists are told in order."""
    if isinstance(value, BaseModel):
        return ", ".join(f"{name} {_words(part)}" for name, part in value if part)
    if isinstance(value, dict):
        return ", ".join(f"{count} × {name}" for name, count in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(part) for part in value) or "–"
    return str(value)
