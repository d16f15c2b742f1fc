"""What a run may start from instead of nothing: where another run is now, or a paper's file.

Invariant: the rows that a run starts from are in its directory, and their SHA-256 is a field of its
config (`start`); so its state after n games stays a function of the config and n.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rejoinder.interop import paper
from rejoinder.run.checkpoints import Rows, start_of
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
        return Start(str(path), run.config, run.result(report).rows)
    try:
        return Start(str(path), *paper.read(path.read_bytes()))
    except paper.PaperError as error:
        raise paper.PaperError(f"{path}: {error}") from None


def begin(
    config: RunConfig, start: Start, report: Callable[[str], None] = lambda _: None
) -> RunConfig:
    """The config of a run that starts there; refused where the rows would mean something else."""
    for name in ("game", "abstraction", "averaging", "kept_policies"):
        there, here = getattr(start.config, name), getattr(config, name)
        if there != here:
            field = "buffer_size" if name == "kept_policies" else name
            raise ConfigError(f"{field}: it is {there!r} in {start.source} and {here!r} here")
    if start.config.rules != config.rules:
        same = start.config.model_copy(update={"rules": config.rules})
        told = describe_difference(start.config, same)
        report(f"{start.source} has learned another game: {told}")
    return config.model_copy(update={"start": start_of(start.rows)})
