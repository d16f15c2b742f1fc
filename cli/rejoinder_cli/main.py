"""The `rejoinder` command: puts the commands together and turns errors into one line.

Nothing heavy is imported here or at the top of a command's module: `rejoinder --help` must answer
at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rejoinder_cli.commands import (
    analyse,
    bench,
    chaos,
    clean,
    demo,
    digest,
    evaluate,
    exchange,
    explain,
    exploit,
    forecast,
    games,
    gateway,
    grafana,
    healthy,
    learner,
    play,
    report,
    reproduce,
    solve,
    status,
    study,
    track,
    train,
    up,
    verify,
    warm,
    worker,
)

# The base of what typer raises for bad arguments; it has no public name in every version of typer.
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
TRACEBACK = "REJOINDER_TRACEBACK"  # set in the environment: errors are shown with their origin


class OneLineErrors(TyperGroup):
    """What is wrong is said in one line on standard error; the exit code is the error's, or 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader went away; typer knows what to do
        except (ValueError, OSError, USAGE_ERROR) as error:
            if os.environ.get(TRACEBACK):
                raise
            print(f"rejoinder: {_one_line(error)}", file=sys.stderr)
            raise typer.Exit(getattr(error, "exit_code", 2)) from None


def _one_line(error: Exception) -> str:
    if isinstance(error, USAGE_ERROR):
        message = " ".join(error.format_message().split())
        command = error.ctx.info_name if error.ctx and error.ctx.parent else None
        return f"{command}: {message}" if command else message
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


app = typer.Typer(
    name="rejoinder",
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"rejoinder {version('rejoinder')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train, measure and play CFR policies for games with bounded one-sided responses."""


app.command("demo")(demo.demo)
app.command("games")(games.games)
app.command("solve")(solve.solve)
app.command("train")(train.train)
app.command("up")(up.up)
app.command("learner")(learner.learner)
app.command("worker")(worker.worker)
app.command("gateway")(gateway.gateway)
app.command("grafana")(grafana.grafana)
app.command("warm")(warm.warm)
app.command("healthy")(healthy.healthy)
app.command("status")(status.status)
app.command("workers")(status.workers)
app.command("clean")(clean.clean)
app.command("eval")(evaluate.evaluate)
app.command("exploit")(exploit.exploit)
app.command("analyse")(analyse.analyse)
app.command("explain")(explain.explain)
app.command("play")(play.play)
app.command("digest")(digest.digest)
app.command("verify")(verify.verify)
app.command("chaos")(chaos.chaos)
app.command("report")(report.report)
app.command("export")(exchange.export)
app.command("import")(exchange.import_)
app.command("reproduce")(reproduce.reproduce)
app.command("forecast")(forecast.forecast)
app.command("track")(track.track)
app.command("bench")(bench.bench)
app.add_typer(study.app, name="study")


def main() -> None:
    app()


if __name__ == "__main__":
    main()
