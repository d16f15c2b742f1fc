"""What a run may start from instead of nothing: where another run is now, or a file of another
program.

Invariant: the rows that a run starts from are in its directory, and their SHA-256 is a field of its
config (`start`); so its state after n games stays a function of the config and n.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rejoinder.methods.base import Rows
from rejoinder.run import formats
from rejoinder.run.checkpoints import start_of
from rejoinder.run.config import ConfigError, RunConfig, describe_difference
from rejoinder.run.rundir import RunDir, is_run


class Start(NamedTuple):
    """The rows that a run may start from, and the config of what made them."""

    source: str
    config: RunConfig
    rows: Rows


def read_start(path: Path, report: Callable[[str], None] = lambda _: None) -> Start:
    """The newest state of the run at `path`, or what the file there says."""
    if is_run(path):
        run = RunDir.open(path)
        rows = run.config.load_method().as_start(run.config.task(), run.result(report).rows)
        return Start(str(path), run.config, rows)
    try:
        return Start(str(path), *formats.read(path.read_bytes()))
    except formats.FormatError as error:
        raise formats.FormatError(f"{path}: {error}") from None


def begin(
    config: RunConfig, start: Start, report: Callable[[str], None] = lambda _: None
) -> RunConfig:
    """The config of a run that starts there; refused where the rows would mean something else."""
    there, here = _meaning(start.config), _meaning(config)
    for name in there | here:
        old, new = there.get(name), here.get(name)
        if old != new:
            raise ConfigError(f"{name}: it is {old!r} in {start.source} and {new!r} here")
    if start.config.rules != config.rules:
        same = start.config.model_copy(update={"rules": config.rules})
        told = describe_difference(start.config, same)
        report(f"{start.source} has learned another game: {told}")
    return config.model_copy(update={"start": start_of(start.rows)})


def _meaning(config: RunConfig) -> dict[str, Any]:
    """What rows mean depends on."""
    settings = config.method.meaning_of_rows()
    return {"game": config.game, "abstraction": config.abstraction} | {
        f"method.{name}": value for name, value in settings.items()
    }
