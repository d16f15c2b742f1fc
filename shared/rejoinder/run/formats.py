"""Checkpoint files of other programs, by the name of their format. A format belongs to a game.

It is a module that the game names (`Game.checkpoint_format`), with

    NAME                   as `rejoinder export --format` takes it
    write(config, rows)    the file of a run's rows
    read(content)          what a file says: a config, and the learner's rows

What one of the two cannot say is refused by a `FormatError`.
"""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from rejoinder.games import GAMES
from rejoinder.games.base import Game
from rejoinder.methods.base import Rows
from rejoinder.run.config import Learning, RunConfig


class FormatError(ValueError):
    """Something that cannot be read, or not be written; the message is one line that names it."""


class Format(Protocol):
    """What a format's module has."""

    NAME: str

    def write(self, config: Learning, rows: Rows) -> bytes: ...

    def read(self, content: bytes) -> tuple[RunConfig, Rows]: ...


def formats() -> dict[str, Format]:
    """Every format that a game has, by name."""
    found = (format_of(game) for game in GAMES.values())
    return {form.NAME: form for form in found if form is not None}


def format_of(game: Game) -> Format | None:
    """The format that belongs to a game."""
    path = game.checkpoint_format
    return None if path is None else cast(Format, importlib.import_module(path))


def read(content: bytes) -> tuple[RunConfig, Rows]:
    """What a file says, in whichever format it is."""
    refusals = []
    for name, form in formats().items():
        try:
            return form.read(content)
        except FormatError as error:
            refusals.append((name, error))
    if len(refusals) == 1:
        raise refusals[0][1]
    raise FormatError("; ".join(f"as {name}: {error}" for name, error in refusals))
