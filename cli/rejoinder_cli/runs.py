"""Runs as the commands see them: opened, with what their newest checkpoint knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rejoinder.checkpoints import Checkpoint
    from rejoinder.evaluate.agents import Agent
    from rejoinder.rundir import RunDir
    from rejoinder_cli.output import Output

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
OptionalRunArgument = Annotated[
    Path | None, typer.Argument(metavar="[RUN]", help="A run directory.", show_default=False)
]


@dataclass(frozen=True)
class OpenRun:
    """A run and its newest whole checkpoint."""

    run: RunDir
    checkpoint: Checkpoint

    @property
    def digest(self) -> str:
        from rejoinder.checkpoints import digest

        return digest(self.run.config.fingerprint, self.checkpoint.games, self.checkpoint.rows)

    def agent(self, argmax: bool) -> Agent:
        """The agent that this run has trained."""
        from rejoinder.cfr.rollout import policies
        from rejoinder.cfr.table import table_of
        from rejoinder.evaluate.agents import trained_agent

        policy = policies(table_of(self.checkpoint.rows))
        abstraction = self.run.config.load_abstraction()
        return trained_agent(str(self.run.path), abstraction, policy, argmax=argmax)


def open_run(path: Path, output: Output) -> OpenRun:
    """The run at `path`; damaged checkpoints are warned of."""
    from rejoinder.rundir import RunDir

    run = RunDir.open(path)
    return OpenRun(run, run.result(output.warn))
