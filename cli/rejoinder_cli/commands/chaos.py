"""`rejoinder chaos`: kill everything again and again, and see whether the result is the same."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.commands.train import graceful_stop
from rejoinder_cli.options import ConfigArgument, SetOption, load, plan
from rejoinder_cli.output import JsonFlag, Output

if TYPE_CHECKING:
    from rejoinder.run.rundir import RunDir
    from rejoinder_cli.chaos import Report

UNITS_PER_KILL = 80
CHECKPOINT_EVERY = 25  # units; so that a learner is sometimes killed while it writes one


def chaos(
    config: ConfigArgument = "paper",
    kills: Annotated[int, typer.Option(min=0, help="How often something is killed.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Decides what is killed, and when.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    games: Annotated[
        int | None,
        typer.Option(
            "--games",
            "--iterations",
            min=1,
            help=f"Training length (default: {UNITS_PER_KILL} units for every kill).",
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the run there (default: do not).")
    ] = None,
    settings: SetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Kill workers, learner and server at random during a run; its result must be the same.

    It fails, too, if the run is over before all kills were made.
    """
    from rejoinder.run.rundir import RunDir
    from rejoinder_cli.chaos import cause_chaos

    output = Output(as_json)
    block = load(config, list(settings or []))[0].block
    games = games or UNITS_PER_KILL * max(kills, 1) * block
    changed = [f"games={games}", f"checkpoint_every={CHECKPOINT_EVERY * block}", *(settings or [])]
    with _scratch(output) as scratch, graceful_stop() as stop:
        planned = plan(config, "ordered", None, None, None, run or scratch / "run", changed)
        directory = RunDir.create(planned.path, planned.config)
        undisturbed = RunDir.create(scratch / "undisturbed", planned.config)
        _train_undisturbed(undisturbed, stop, output)
        target, counts = planned.config.target, planned.config.counts
        with output.progress(f"chaos in {planned.name}", target, counts) as update:
            report = cause_chaos(
                directory,
                ["learner", *planned.arguments()],
                workers=workers,
                kills=kills,
                seed=seed,
                should_stop=stop,
                on_games=update,
                report=output.say,
            )
        if stop():
            raise typer.Exit(130)
        result = _compare(directory, undisturbed) | _figures(report)
        result |= {"asked": kills, "seed": seed}
        few = _too_few(result, counts)
        output.say("\n".join([_verdict(result, counts), *few]))
        output.result(result | {"run": str(run) if run else None})
        if not result["equal"]:
            raise typer.Exit(1)
    if few:  # nothing went wrong, so nothing is kept
        raise typer.Exit(1)


@contextmanager
def _scratch(output: Output) -> Iterator[Path]:
    """A folder that is gone afterwards, unless somebody must look into it."""
    folder = Path(tempfile.mkdtemp(prefix="rejoinder-chaos-"))
    keep = False
    try:
        yield folder
    except (OSError, typer.Exit) as error:
        keep = getattr(error, "exit_code", 1) != 130
        raise
    finally:
        if keep:
            output.warn(f"what went wrong can be seen in {folder}")
        else:
            shutil.rmtree(folder)


def _train_undisturbed(run: RunDir, stop: Callable[[], bool], output: Output) -> None:
    """What the result must be: the same config, in one process, without a queue."""
    from rejoinder_learner.sequential import train

    target, counts = run.config.target, run.config.counts
    with output.progress("undisturbed, for comparison", target, counts) as update:
        result = train(run, on_game=update, should_stop=stop, report=output.warn)
    if not result.finished:
        raise typer.Exit(130)


def _compare(run: RunDir, undisturbed: RunDir) -> dict[str, Any]:
    """Whether the run ended as the undisturbed one, down to its ledger and its evaluations."""
    from rejoinder_cli.runs import OpenRun
    from rejoinder_learner.verify import read

    digests = [OpenRun(one, one.result()).digest for one in (run, undisturbed)]
    problems = [f"{p.part}, game {p.game:,}: {p.what}" for p in read(run).problems]
    same_ledger = run.ledger().tobytes() == undisturbed.ledger().tobytes()
    same_metrics = run.metrics() == undisturbed.metrics()
    return {
        "equal": digests[0] == digests[1] and same_ledger and same_metrics and not problems,
        "digest": digests[0],
        "expected": digests[1],
        "games": run.result().games,
        "problems": problems,
        "ledger_equal": same_ledger,
        "metrics_equal": same_metrics,
    }


def _figures(report: Report) -> dict[str, Any]:
    recoveries = {
        kind: {"max": max(seconds, default=None), "all": [round(s, 3) for s in seconds]}
        for kind, seconds in report.recoveries.items()
    }
    return {"kills": report.kills, "recoveries": recoveries, "unmeasured": report.unmeasured}


def _too_few(result: dict[str, Any], counts: str) -> list[str]:
    """That fewer kills were made than asked for, which proves less, and what to do."""
    made, asked = sum(result["kills"].values()), result["asked"]
    if made >= asked:
        return []
    return [
        f"only {made} of {asked} kills were made: the run is too short for them; "
        f"give it more than {result['games']:,} {counts}, by --{counts}"
    ]


def _verdict(result: dict[str, Any], counts: str) -> str:
    kills = ", ".join(f"{kind} {number}" for kind, number in result["kills"].items())
    times = ", ".join(
        f"{kind} {seconds['max']:.1f} s"
        for kind, seconds in result["recoveries"].items()
        if seconds["max"] is not None
    )
    lines = [f"{result['games']:,} {counts}, {sum(result['kills'].values())} kills ({kills})"]
    lines += [f"slowest recovery: {times}"] if times else []
    lines += result["problems"]
    lines += [f"digest {result['digest']}"]
    if result["equal"]:
        return "\n".join([*lines, "the same as undisturbed: digest, ledger and evaluations"])
    parts = [
        *(["digest"] if result["digest"] != result["expected"] else []),
        *(["ledger"] if not result["ledger_equal"] or result["problems"] else []),
        *(["evaluations"] if not result["metrics_equal"] else []),
    ]
    return "\n".join([*lines, f"NOT the same as undisturbed: {', '.join(parts)} differ"])
