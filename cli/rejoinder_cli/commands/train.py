"""`rejoinder train CONFIG`: train an agent, from the start or from where a run stopped."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rejoinder_cli.output import JsonFlag, Output

if TYPE_CHECKING:
    from rejoinder.config import RunConfig
    from rejoinder.rundir import RunDir


def train(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="A shipped config by name, or a TOML file.")
    ],
    mode: Annotated[
        Literal["sequential"], typer.Option(help="sequential: one process, no queue.")
    ] = "sequential",
    games: Annotated[int | None, typer.Option(help="Training games.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.")] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run directory (default: runs/<config>).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run there.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run there and start again.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Override a field; may be repeated."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Train an agent and leave a run directory."""
    from rejoinder.config import load_config
    from rejoinder_learner.sequential import train as train_sequentially

    output = Output(as_json)
    overrides = list(settings or [])
    overrides += [] if games is None else [f"games={games}"]
    overrides += [] if seed is None else [f"seed={seed}"]
    loaded = load_config(config, overrides)
    path = run or Path("runs") / Path(config).stem
    directory = _prepare(path, loaded, resume=resume, overwrite=overwrite)
    with (
        graceful_stop() as should_stop,
        output.progress(f"training {Path(config).stem}", loaded.games) as update,
    ):
        result = train_sequentially(
            directory, on_game=update, should_stop=should_stop, report=output.warn
        )
    of_them = "" if result.played == result.games else f", {result.played:,} of them now,"
    output.say(
        f"{result.games:,} games{of_them} in {result.seconds:.1f} s "
        f"({result.games_per_second:.1f} games/s), in {path}\ndigest {result.digest}"
    )
    if not result.finished:
        command = ["rejoinder", "train", config, "--run", str(path), "--resume"]
        command += [word for text in overrides for word in ("--set", text)]
        output.say(f"stopped; to go on: {shlex.join(command)}")
    output.result(
        {
            "games": result.games,
            "seconds": result.seconds,
            "games_per_second": result.games_per_second,
            "digest": result.digest,
            "run": str(path),
            "fingerprint": loaded.fingerprint,
            "mode": mode,
            "finished": result.finished,
        }
    )
    if not result.finished:
        raise typer.Exit(130)


def _prepare(path: Path, config: RunConfig, *, resume: bool, overwrite: bool) -> RunDir:
    """The run directory to train in; what is already there is never lost by accident."""
    from rejoinder.rundir import RunDir, is_run, remove_run

    if resume and overwrite:
        raise ValueError("--resume and --overwrite exclude each other")
    if resume:
        directory = RunDir.open(path)
        directory.continue_with(config)
        return directory
    if is_run(path):
        if not overwrite:
            raise ValueError(
                f"{path} holds a run already: --resume goes on with it, --overwrite deletes it, "
                "--run names another directory"
            )
        remove_run(path)
    return RunDir.create(path, config)


@contextmanager
def graceful_stop() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask for a stop after the game under way; a second one stops at once."""
    asked = False

    def ask(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print("stopping after this game; once more ends at once", file=sys.stderr)

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
