"""`rejoinder solve GAME`: an equilibrium of a game small enough to enumerate.

Solving is training by one of the methods, in one process, and leaves a run like any other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.commands.train import graceful_stop, prepare
from rejoinder_cli.options import Plan
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OpenRun, open_run
from rejoinder_cli.wording import described

if TYPE_CHECKING:
    from rejoinder.measure.best_response import Exploitability
    from rejoinder.run.config import RunConfig
    from rejoinder.run.rundir import RunDir
    from rejoinder_learner.sequential import TrainResult

_BLOCK = 100  # iterations in a unit
_EVALUATIONS = 20  # of a run that is kept


def solve(
    name: Annotated[
        str, typer.Argument(metavar="GAME", help="kuhn, leduc, deal-micro, …; see `games`.")
    ],
    algorithm: Annotated[
        str, typer.Option(help="cfr, cfr+, lcfr, dcfr, es-mccfr, os-mccfr or cs-mccfr.")
    ] = "cfr+",
    iterations: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000,
    abstraction: Annotated[
        str, typer.Option(help="Solve the game as this abstraction shows it.")
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Of the sampling algorithms.")] = 1,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Leave a run there, to be played with.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run there.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run there and start again.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the strategy.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Solve a small game and measure how exploitable the answer is."""
    output = Output(as_json)
    if run is None and (resume or overwrite):
        raise ValueError("--resume and --overwrite are about a run: name it with --run")
    block = _block_of(run) if run and resume else min(_BLOCK, iterations)
    config = _config(name, algorithm, iterations, abstraction, seed, block, kept=run is not None)
    if config.target != iterations:
        output.warn(
            f"{iterations:,} iterations are rounded up to {config.target:,}: units of {block}"
        )
    with _place(run) as path:
        planned = Plan(name, config, [], "sequential", path, None)
        directory = prepare(planned, output, resume=resume, overwrite=overwrite)
        result = _train(directory, f"{algorithm} on {name}", output)
        opened = open_run(path, output)
        shown, real = _measure(opened)
        strategy = _strategy(opened)
    output.say(
        f"{name}, {result.games:,} iterations of {algorithm} in {result.seconds:.3g} s: "
        f"value {shown.value:.6f} for seat 0, NashConv {shown.nash_conv:.3g}, "
        f"exploitability {shown.exploitability:.3g}"
    )
    if real is not shown:
        output.say(
            f"in the real game, which {abstraction} does not show: exploitability "
            f"{real.exploitability:.3g}"
        )
    if show:
        _show(strategy, output)
    if run:
        output.say(f"a run in {run}, digest {result.digest}")
    if not result.finished:
        output.say("stopped; --resume goes on" if run else "stopped")
    output.result(
        {
            "game": name,
            "algorithm": algorithm,
            "iterations": result.games,
            "abstraction": abstraction,
            "value": shown.value,
            "nash_conv": shown.nash_conv,
            "exploitability": shown.exploitability,
            "real_exploitability": real.exploitability,
            "infosets": len(strategy),
            "seconds": result.seconds,
            "digest": result.digest,
            "finished": result.finished,
        }
        | ({"run": str(run)} if run else {})
        | ({"strategy": strategy} if show else {})
    )
    if not result.finished:
        raise typer.Exit(130)


def _block_of(run: Path) -> int:
    """A run that is gone on with keeps its units."""
    from rejoinder.run.rundir import RunDir

    return RunDir.open(run).config.block


def _config(
    name: str,
    algorithm: str,
    iterations: int,
    abstraction: str,
    seed: int,
    block: int,
    kept: bool,
) -> RunConfig:
    """What is trained: by the method that has the algorithm, always with the newest strategy."""
    from rejoinder.games import find_game
    from rejoinder.methods import METHODS
    from rejoinder.methods.exact.tree import why_not_enumerable
    from rejoinder.run.config import make_config

    game, configuration = find_game(name)
    game.abstraction(abstraction)
    if why := why_not_enumerable(game, game.configurations[configuration]):
        raise ValueError(why)
    known = {
        solver: {"name": method.name, **settings}
        for method in METHODS.values()
        for solver, settings in method.solvers.items()
    }
    if algorithm not in known:
        raise ValueError(f"algorithm: no {algorithm!r}; there are {', '.join(known)}")
    every = max(block, iterations // _EVALUATIONS) if kept else 0
    return make_config(
        {
            "game": game.name,
            "rules": configuration,
            "abstraction": abstraction,
            "seed": seed,
            "method": {**known[algorithm], "iterations": block},
            "batch": 1,
            "lag": 0,
            "games": iterations,
            "eval_every": every,
            "checkpoint_every": every,
        },
        source=f"solve {name}",
    )


@contextmanager
def _place(run: Path | None) -> Iterator[Path]:
    """Where the run is; without a name it is gone afterwards."""
    if run is not None:
        yield run
        return
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
        yield Path(folder) / "run"


def _train(directory: RunDir, title: str, output: Output) -> TrainResult:
    from rejoinder_learner.sequential import train

    with (
        graceful_stop(lambda: "stopping after this unit") as should_stop,
        output.progress(title, directory.config.target, "iterations") as update,
    ):
        return train(directory, on_game=update, should_stop=should_stop, report=output.warn)


def _measure(opened: OpenRun) -> tuple[Exploitability, Exploitability]:
    """The policy's worth in the game as it is shown to it, and in the real game."""
    from rejoinder.measure.best_response import both_exploitabilities

    config = opened.run.config
    policy = config.policy(opened.run.policy_rows(opened.checkpoint))
    game, abstraction = config.load_game(), config.load_abstraction()
    ((real, shown),) = both_exploitabilities(game, config.rules, abstraction, [policy])
    return (real, real) if shown == real else (shown, real)


def _strategy(opened: OpenRun) -> list[dict[str, Any]]:
    """The average strategy: what is known at each infoset, and the probability of each action."""
    from rejoinder.kernel.masks import actions_in
    from rejoinder.methods.policies import AVERAGE

    abstraction = opened.run.config.load_abstraction()
    strategy = []
    for row in opened.learned:
        key = int(row["key"])
        actions = [(a, abstraction.actions[a]) for a in actions_in(row["legal"])]
        strategy.append(
            {
                "infoset": abstraction.identifier(key),
                "description": abstraction.description(key),
                "policy": {word: float(row["policy"][AVERAGE, a]) for a, word in actions},
            }
        )
    return sorted(strategy, key=lambda infoset: described(infoset["description"]))


def _show(strategy: list[dict[str, Any]], output: Output) -> None:
    from rich.table import Table

    table = Table("infoset", "strategy")
    for infoset in strategy:
        parts = [f"{action} {p:.4f}" for action, p in infoset["policy"].items()]
        table.add_row(described(infoset["description"]), "  ".join(parts))
    output.console.print(table)
