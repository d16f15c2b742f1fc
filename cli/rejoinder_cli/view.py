"""A game as the terminal shows it to the person who plays it.

Any game can be shown by the fields of its views. A game may bring a view of its own: a module
(`Game.terminal`) with a function `terminal_view(game, rules, person)`, whose result has the methods
of `TerminalView`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rejoinder.games.base import Game
    from rejoinder.games.session import Event, Session

# Told otherwise: by the prompt, by the panels' places, by the end of the game.
_UNSAID = frozenset({"player", "to_move", "over", "winner"})


def terminal_view(session: Session, person: int) -> TerminalView:
    """How the session's game is shown to the person at a seat."""
    game = session.game
    if game.terminal is None:
        return TerminalView(game, person)
    own: TerminalView = importlib.import_module(game.terminal).terminal_view(
        game, session.rules, person
    )
    return own


class TerminalView:
    """Shows any game."""

    def __init__(self, game: Game, person: int) -> None:
        self.game = game
        self.person = person

    def rules(self) -> str:
        return f"{self.game.title}."

    def screen(self, view: Any) -> RenderableType:
        """What the person sees when they are asked for a move."""
        return panels(view)

    def move(self, view: Any, number: int) -> str:  # noqa: ARG002 (other games need it)
        """A move that they may choose."""
        return self.game.moves[number]

    def events(self, before: Any, events: Sequence[Event]) -> list[str]:  # noqa: ARG002
        """What happened since they saw `before` (None: the beginning), as they saw it."""
        return [f"{self.who(event)}: {event.name}" for event in events if event.number >= 0]

    def end(self, own: Any, agents: Any) -> RenderableType:  # noqa: ARG002
        """The table after the end, by their view and the agent's."""
        return Group(Text("What the agent saw:"), panels(agents))

    def who(self, event: Event) -> str:
        return {None: "drawn", self.person: "you"}.get(event.actor, "agent")


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
        return ", ".join(n if k == 1 else f"{k} × {n}" for n, k in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(part) for part in value) or "–"
    return str(value)
