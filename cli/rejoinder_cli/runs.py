"""Runs as the commands see them: opened, with what their newest checkpoint knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rejoinder.measure.agents import Agent
    from rejoinder.run.checkpoints import Checkpoint
    from rejoinder.run.rundir import RunDir
    from rejoinder_cli.output import Output

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
MOST_SAMPLES = 1_000_000  # a move: seconds, and thousands of them would be hours
SearchOption = Annotated[
    int,
    typer.Option(
        "--search",
        metavar="SAMPLES",
        min=0,
        max=MOST_SAMPLES,
        help="The agent tries its moves out in so many samples before each; 0: it plays by its "
        "policy. 2000 is a good number.",
    ),
]
ATTACK_SAMPLES, ATTACK_GAMES = 200, 2_000
AttackSamplesOption = Annotated[
    int,
    typer.Option(
        min=0,
        help="Of the attacker who thinks ahead, for each move; 0: no such attacker.",
    ),
]
AttackGamesOption = Annotated[int, typer.Option(min=2, help="Games against that attacker.")]
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
        from rejoinder.run.checkpoints import digest

        return digest(self.run.config.fingerprint, self.checkpoint.games, self.checkpoint.rows)

    @property
    def learned(self) -> Any:
        """The infosets as readers take them."""
        return self.run.learned(self.checkpoint.rows)

    def agent(self, argmax: bool, search: int = 0) -> Agent:
        """The agent that this run has trained; with `search`, thinking ahead."""
        from rejoinder.measure.agents import trained_agent
        from rejoinder.measure.search import searching

        policy = self.run.config.policy(self.run.policy_rows(self.checkpoint))
        abstraction = self.run.config.load_abstraction()
        agent = trained_agent(str(self.run.path), abstraction, policy, argmax=argmax)
        return searching(agent, self.run.config.load_game(), search)


def open_run(path: Path, output: Output) -> OpenRun:
    """The run at `path`; damaged checkpoints are warned of."""
    from rejoinder.run.rundir import RunDir

    run = RunDir.open(path)
    return OpenRun(run, run.result(output.warn))
