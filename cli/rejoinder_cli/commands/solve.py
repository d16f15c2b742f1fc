"""`rejoinder solve GAME`: an equilibrium of a game small enough to enumerate."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder_cli.output import JsonFlag, Output


def solve(
    name: Annotated[
        str, typer.Argument(metavar="GAME", help="kuhn, leduc, deal-micro, …; see `games`.")
    ],
    algorithm: Annotated[
        str, typer.Option(help="cfr, cfr+, lcfr, dcfr, es-mccfr or os-mccfr.")
    ] = "cfr+",
    iterations: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000,
    abstraction: Annotated[
        str, typer.Option(help="Solve the game as this abstraction shows it.")
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Of the sampling algorithms.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Solve a small game and measure how exploitable the answer is."""
    from rejoinder.games import find_game
    from rejoinder.measure.solve import solve as run_solver

    output = Output(as_json)
    game, configuration = find_game(name)
    with output.progress(f"{algorithm} on {name}", iterations, "iterations") as update:
        solution = run_solver(
            game,
            configuration,
            algorithm,
            iterations,
            abstraction=game.abstraction(abstraction),
            seed=seed,
            progress=update,
        )
    found = solution.measured
    output.say(
        f"{name}, {iterations:,} iterations of {algorithm} in {solution.seconds:.3g} s: "
        f"value {found.value:.6f} for seat 0, NashConv {found.nash_conv:.3g}, "
        f"exploitability {found.exploitability:.3g}"
    )
    if solution.real is not found:
        output.say(
            f"in the real game, which {abstraction} does not show: exploitability "
            f"{solution.real.exploitability:.3g}"
        )
    output.result(
        {
            "game": name,
            "algorithm": algorithm,
            "iterations": iterations,
            "abstraction": abstraction,
            "value": found.value,
            "nash_conv": found.nash_conv,
            "exploitability": found.exploitability,
            "real_exploitability": solution.real.exploitability,
            "infosets": solution.infosets,
            "seconds": solution.seconds,
        }
    )
