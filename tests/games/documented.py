"""The example of docs/games.md as a package, found as every game is."""

from __future__ import annotations

import functools
import re
import sys
import tempfile
from pathlib import Path

from rejoinder.games import discover
from rejoinder.games.base import Game

PAGE = Path(__file__).parents[2] / "docs/games.md"
_PARENT = "documented_games"
_folder = tempfile.TemporaryDirectory()  # to the end: identities of kernels are read from sources


def documented_code() -> str:
    """The one block that is fenced as `py`: test_docs runs those that are fenced as `python`."""
    (code,) = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(code)


@functools.cache
def documented_game() -> Game:
    """Made once in a process: compiled code chooses its functions by the dtype of the state."""
    package = Path(_folder.name) / _PARENT / "pennies"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(documented_code(), "utf-8")
    sys.path.insert(0, _folder.name)
    try:
        return discover([str(package.parent)], _PARENT)["pennies"]
    finally:
        sys.path.remove(_folder.name)
