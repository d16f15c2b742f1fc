"""`rejoinder verify RUN`: whether a run is what it claims to be."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument

if TYPE_CHECKING:
    from rejoinder_learner.verify import Problem, Verification


def verify(
    run: RunArgument,
    sample: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the games that are played again.")
    ] = 0.05,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Which games those are (default: fresh randomness).")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check a run's ledger and checkpoints, and play part of its games again."""
    from rejoinder.run.rundir import RunDir
    from rejoinder_learner.verify import choose, read, recompute

    output = Output(as_json)
    seed = secrets.randbits(32) if seed is None else seed
    directory = RunDir.open(run)
    with output.working("reading the ledger and the checkpoints"):
        found = read(directory)
    chosen = choose(found, sample, seed)
    with output.progress("playing again", sum(map(len, chosen)), "units") as update:
        recompute(found, chosen, update)
    for note in found.notes:
        output.warn(note)
    output.say(_verdict(found, len(chosen), sample, seed))
    output.result(
        {
            "verified": found.holds,
            "games": found.games(len(found.records)),
            "checkpoints": found.checkpoints,
            "recomputed": found.games(found.recomputed),
            "segments": len(chosen),
            "compared": found.compared,
            "not_checkable": found.games(found.not_checkable),
            "problems": [problem._asdict() for problem in found.problems],
            "notes": found.notes,
            "sample": sample,
            "seed": seed,
            "run": str(run),
            "fingerprint": directory.config.fingerprint,
        }
    )
    if not found.holds:
        raise typer.Exit(1)


def _verdict(found: Verification, segments: int, sample: float, seed: int) -> str:
    played, left_out = found.games(found.recomputed), found.games(found.not_checkable)
    game = found.run.config.counts.removesuffix("s")
    lines = [
        f"ledger: {_count(found.games(len(found.records)), game)}, {_state(found, 'ledger')}",
        f"checkpoints: {found.checkpoints}, {_state(found, 'checkpoint')}",
        f"played again: {_count(played, game)} in {_count(segments, 'segment')}, "
        f"{_state(found, 'recomputation')} (--sample {sample:g} --seed {seed})",
    ]
    if found.not_checkable:
        lines.append(
            f"not checkable: {_count(left_out, game)}, played with snapshots that are "
            "neither kept nor among what was played again"
        )
    if found.holds:
        return "\n".join([*lines, f"{found.run.path} is what it claims, as far as was checked"])
    problems = sorted(found.problems, key=lambda problem: problem.game)
    lines += [f"wrong: {_problem_line(problem, game)}" for problem in problems]
    first = f"first at {game} {problems[0].game:,}"
    return "\n".join([*lines, f"{found.run.path} is NOT what it claims, {first}"])


def _state(found: Verification, part: str) -> str:
    wrong = sum(problem.part == part for problem in found.problems)
    if wrong:
        return _count(wrong, "problem")
    if part == "ledger":
        return "chained without a break, each with the snapshot it must have"
    if part == "checkpoint":
        return "each whole and where the ledger leads to"
    tables = (
        f", the same tables at {_count(found.compared, 'checkpoint')}" if found.compared else ""
    )
    return f"the same deltas{tables}"


def _problem_line(problem: Problem, game: str) -> str:
    if problem.part == "checkpoint":
        return f"the checkpoint at {game} {problem.game:,} {problem.what}"
    return f"{problem.part}, {game} {problem.game:,}: {problem.what}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
