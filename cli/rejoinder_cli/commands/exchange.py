"""`rejoinder export RUN` and `rejoinder import FILE`: policies for others, and from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rejoinder_cli.options import GamesOption, SeedOption, SetOption
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument

if TYPE_CHECKING:
    from rejoinder.run.checkpoints import Checkpoint
    from rejoinder.run.config import RunConfig


def export(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="paper|json|csv|parquet",
            help="paper: the paper's checkpoint, with all that a learner needs to go on; json, "
            "csv, parquet: the policy, for analysis. Default: csv or parquet if FILE is called "
            "so, else the checkpoint format of the game, or json where it has none.",
        ),
    ] = None,
    snapshot: Annotated[
        int | None,
        typer.Option(min=0, help="Games, or iterations, of the checkpoint (default: the newest)."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file that is there.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the policy of a run into a file."""
    from rejoinder.files import write_atomically
    from rejoinder.run.checkpoints import digest
    from rejoinder.run.rundir import RunDir

    output = Output(as_json)
    opened = RunDir.open(run)
    counts = opened.config.counts
    form = _format(opened.config, out, form)
    there = opened.checkpoint_games()
    if snapshot is not None and snapshot not in there:
        known = ", ".join(map(str, there)) or "none"
        one = counts.removesuffix("s")
        raise ValueError(f"{run} has no checkpoint at {one} {snapshot}; there are {known}")
    checkpoint = opened.result(output.warn) if snapshot is None else opened.checkpoint(snapshot)
    if out.exists() and not overwrite:
        raise ValueError(f"{out} is there already; --overwrite replaces it")
    write_atomically(out, _content(opened.config, checkpoint, form))
    what = f"{len(checkpoint.rows):,} infosets after {checkpoint.games:,} {counts}"
    output.say(f"wrote {out}: {what}, as {form}")
    output.result(
        {
            "file": str(out),
            "format": form,
            "games": checkpoint.games,
            "counts": counts,
            "infosets": len(checkpoint.rows),
            "digest": digest(opened.config.fingerprint, checkpoint.games, checkpoint.rows),
        }
    )


def _format(config: RunConfig, out: Path, asked: str | None) -> str:
    """The format that is asked for, or that the file's name says; they must not contradict.

    The checkpoints of games are JSON, so `.json` does not say whether one is meant.
    """
    from rejoinder.interop import exports
    from rejoinder.run.formats import format_of, formats

    checkpoints = formats()
    if asked is not None and asked not in (*checkpoints, *exports.MEDIA_TYPES):
        known = ", ".join([*checkpoints, *exports.MEDIA_TYPES])
        raise ValueError(f"--format: there is no {asked!r}; there are {known}")
    named = out.suffix.lower().removeprefix(".")
    if asked is None:
        if named in exports.MEDIA_TYPES and named != "json":
            return named
        own = format_of(config.load_game())
        return "json" if own is None else own.NAME
    written = "json" if asked in checkpoints else asked
    if named in exports.MEDIA_TYPES and named != written:
        raise ValueError(
            f"--format: {asked} does not go with the name {out.name}; "
            f"call the file {out.stem}.{written}, or leave --format out"
        )
    return asked


def _content(config: RunConfig, checkpoint: Checkpoint, form: str) -> Iterator[bytes]:
    from rejoinder.interop import exports
    from rejoinder.measure.infosets import Policy
    from rejoinder.run.formats import formats

    checkpoints = formats()
    if form in checkpoints:
        return iter([checkpoints[form].write(config, checkpoint.rows)])
    return exports.write(Policy(config, checkpoint), cast(exports.Format, form))


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A checkpoint as in the paper.")],
    run: Annotated[Path, typer.Option(metavar="DIR", help="The run directory to make.")],
    games: GamesOption = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a run that starts from a checkpoint in the paper's format."""
    from rejoinder.run.config import make_config
    from rejoinder.run.rundir import RunDir, is_run
    from rejoinder.run.starts import begin, read_start

    output = Output(as_json)
    if is_run(file):
        raise ValueError(f"{file} is a run, not a file; `rejoinder train CONFIG --from` takes it")
    start = read_start(file)
    changed = list(settings or [])
    changed += [] if games is None else [f"games={games}"]
    changed += [] if seed is None else [f"seed={seed}"]
    config = make_config(start.config.model_dump(mode="json"), changed, source=str(file))
    made = RunDir.create(run, begin(config, start, output.warn), start.rows)
    output.say(
        f"made {run}: {len(start.rows):,} infosets; to train on: rejoinder train {run} --resume"
    )
    output.result(
        {
            "run": str(run),
            "infosets": len(start.rows),
            "start": made.config.start,
            "fingerprint": made.config.fingerprint,
        }
    )
