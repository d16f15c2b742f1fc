"""Staleness: what B and L cost in strength, and what they buy in speed.

Unit u (a game, or a block of iterations) is played with the snapshot of version max(0, u // B − L),
so it may know nothing of the (L + 1)·B units before it: that is its staleness, and also the number
of units that can be under way at once. More of it keeps more workers busy, and each unit teaches
less. Lengths are whole units, told in what the method counts.

- Strength is a function of the config alone. Every cell (B, L) of the grid is trained with several
  seeds, one process a core, and meets the baselines on the way and at the end. Intervals are over
  seeds; differences from the config's own B and L are of the same seed, which means the same deals.
- Speed is measured with a real server and real workers where this machine has a core for each of
  them, with the two smallest lags; and predicted by the capacity model, for all cells, from costs
  measured on this machine. The two are never mixed: every figure says which one it is. The model
  is of units that are games; nothing is predicted for blocks.

A lag that no unit of the run can tell from a shorter one (the first snapshot is out of reach) is
trained as that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rejoinder.files import write_json
from rejoinder.run.config import RunConfig, load_config
from rejoinder_cli.studies import convergence, throughput
from rejoinder_cli.studies.convergence import Trained
from rejoinder_cli.studies.estimate import Estimate, estimate

CELLS, RATES, COSTS, RESULT = "cells.jsonl", "rates.jsonl", "costs.json", "staleness.json"
TIMED_LAGS = 2  # the smallest ones, whose speed is measured

# A bar, from its title, its length and its unit; the function it gives is told what is done.
Progress = Callable[[str, int, str], AbstractContextManager[Callable[[int], None]]]


class Cell(NamedTuple):
    """A choice of the two."""

    batch: int
    lag: int

    @property
    def window(self) -> int:
        """Units that a unit may know nothing of, itself included."""
        return (self.lag + 1) * self.batch


@dataclass(frozen=True)
class Grid:
    """What is asked."""

    config: RunConfig  # of all cells, but for B, L and the seed; its own are the reference
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    workers: tuple[int, ...]
    tests: int  # games against each baseline at the end
    predict: bool = True  # speeds; False: because the costs that this needs take half a minute
    measure: bool = True  # speeds; False: because others use this machine

    @property
    def reference(self) -> Cell | None:
        own = Cell(self.config.batch, self.config.lag)
        return own if own in self.cells else None

    @property
    def opponent(self) -> str:
        """The baseline that is the hardest to beat."""
        return next(iter(self.config.load_game().baselines), "random")

    def run(self, cell: Cell, seed: int) -> RunConfig:
        """What is trained; a lag beyond the first snapshot is like one that just reaches it."""
        lag = min(cell.lag, (self.config.units - 1) // cell.batch)
        return self._changed(cell.batch, lag, seed)

    def timed(self, cell: Cell) -> RunConfig:
        """What is timed or predicted."""
        return self._changed(cell.batch, cell.lag, self.seeds[0])

    def _changed(self, batch: int, lag: int, seed: int) -> RunConfig:
        return self.config.model_copy(update={"batch": batch, "lag": lag, "seed": seed})


def make_grid(
    source: str,
    changed: list[str],
    *,
    batches: Iterable[int],
    lags: Iterable[int],
    seeds: int,
    workers: Iterable[int],
    evaluations: tuple[int, int],  # on the way: how many, and the games of each
    tests: int,
    **speeds: bool,
) -> Grid:
    """A grid of all pairs, each of which the config must allow."""
    config = load_config(source, changed)
    if config.order != "index":
        raise ValueError("order: staleness is a choice only where games are folded by index")
    cells = tuple(Cell(batch, lag) for batch in batches for lag in lags)
    for cell in cells:
        load_config(source, [*changed, f"batch={cell.batch}", f"lag={cell.lag}"])
    last = load_config(source, [*changed, f"seed={config.seed + seeds - 1}"]).seed
    for count in workers:
        if count < 1:
            raise ValueError(f"workers: there must be at least one, not {count}")
    often, games = evaluations
    changes = {
        "games": config.target,
        "eval_every": max(1, config.units // often) * config.block,
        "eval_games": games,
    }
    return Grid(
        config.model_copy(update=changes),
        cells,
        seeds=tuple(range(config.seed, last + 1)),
        workers=tuple(workers),
        tests=tests,
        **speeds,
    )


def run(
    grid: Grid, folder: Path, *, retime: bool, progress: Progress, say: Callable[[str], None]
) -> dict[str, Any]:
    """Train what is not there yet, time it, and say what comes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    trained = _train(grid, folder / CELLS, progress)
    speeds = _time(grid, folder, retime, progress, say)
    result = _result(grid, trained, speeds)
    write_json(folder / RESULT, result)
    return result


def _train(grid: Grid, path: Path, progress: Progress) -> dict[tuple[Cell, int], Trained]:
    tasks = {
        (cell, seed): convergence.Task(grid.run(cell, seed), grid.tests)
        for seed in grid.seeds
        for cell in grid.cells
    }
    distinct = {task.key: task for task in tasks.values()}
    with progress("training", len(distinct), "runs") as update:
        found = convergence.train_all(distinct, path, update)
    return {where: found[task.key] for where, task in tasks.items()}


def _time(
    grid: Grid, folder: Path, retime: bool, progress: Progress, say: Callable[[str], None]
) -> dict[Cell, dict[int, throughput.Speed]]:
    """What is trained a second of each cell, by workers; costs first: others disturb them least."""
    costs = None
    if grid.predict and grid.config.block > 1:
        say("speeds are not predicted: the capacity model is of methods whose unit is a game")
    elif grid.predict:
        costs = throughput.known_costs(folder / COSTS, grid.config, retime, say)
    lags = sorted({cell.lag for cell in grid.cells})[:TIMED_LAGS]
    wanted = [
        throughput.Timing(grid.timed(cell), workers)
        for workers in grid.workers
        for cell in grid.cells
        if grid.measure and throughput.fits_here(workers) and cell.lag in lags
    ]
    with progress("timing", len(wanted), "runs") as update:
        measured = throughput.time_all(wanted, folder / RATES, retime, update)
    return {
        cell: {
            workers: throughput.speed(grid.timed(cell), workers, measured, costs)
            for workers in grid.workers
        }
        for cell in grid.cells
    }


def _result(
    grid: Grid,
    trained: dict[tuple[Cell, int], Trained],
    speeds: dict[Cell, dict[int, throughput.Speed]],
) -> dict[str, Any]:
    """Everything that was found, as JSON has it."""
    reference, game = grid.reference, grid.config.load_game()
    described = []
    for cell in grid.cells:
        runs = [trained[cell, seed] for seed in grid.seeds]
        rates = [one.strengths[grid.opponent] for one in runs]
        own = rates if reference is None else _end_rates(grid, trained, reference)
        differences = [rate - other for rate, other in zip(rates, own, strict=True)]
        described.append(
            {
                "batch": cell.batch,
                "lag": cell.lag,
                "window": cell.window,
                "strength": _plain(estimate(rates)),
                "strength_by_seed": rates,
                "difference": None if reference is None else _plain(estimate(differences)),
                "strengths": {
                    name: _plain(estimate([one.strengths[name] for one in runs]))
                    for name in runs[0].strengths
                },
                "on_the_way": _plain(estimate([one.on_the_way(grid.opponent) for one in runs])),
                "mer": _plain(estimate([one.mer for one in runs])),
                "curve": _mean_curve(runs, grid.opponent),
                "digests": [one.digest for one in runs],
                "speed": {str(w): speed._asdict() for w, speed in speeds[cell].items()},
            }
        )
    return {
        "game": game.title,
        "games": grid.config.games,
        "counts": grid.config.counts,
        "unit": grid.config.block,
        "opponent": grid.opponent,
        "strength_is": "win rate" if game.counts_wins else f"{game.utility_unit} a game",
        "tests": grid.tests,
        "seeds": list(grid.seeds),
        "workers": list(grid.workers),
        "reference": None if reference is None else reference._asdict(),
        "others": _most_others(speeds),
        "cells": described,
    }


def _most_others(speeds: dict[Cell, dict[int, throughput.Speed]]) -> float | None:
    """The most cores that other programs used beside a measurement."""
    known = [speed.others for by_workers in speeds.values() for speed in by_workers.values()]
    return max((others for others in known if others is not None), default=None)


def _end_rates(grid: Grid, trained: dict[tuple[Cell, int], Trained], cell: Cell) -> list[float]:
    return [trained[cell, seed].strengths[grid.opponent] for seed in grid.seeds]


def _mean_curve(runs: list[Trained], opponent: str) -> list[dict[str, float]]:
    """Over seeds, at each evaluation."""
    return [
        {
            "games": points[0]["games"],
            "strength": estimate([point["strengths"][opponent] for point in points]).mean,
            "mer": estimate([point["mer"] for point in points]).mean,
        }
        for points in zip(*(one.curve for one in runs), strict=True)
    ]


def _plain(found: Estimate) -> dict[str, float | None]:
    return found._asdict()
