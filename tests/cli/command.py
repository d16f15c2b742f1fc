"""Running the `rejoinder` command in tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from rejoinder_cli.main import app


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)


def run_json(*arguments: str | Path) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout.splitlines()[-1])
    assert isinstance(value, dict)
    return value


def refused(*arguments: str | Path) -> str:
    """The one line on standard error of a command that must fail."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rejoinder: ")
    return line
