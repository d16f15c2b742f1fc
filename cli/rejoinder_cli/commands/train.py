"""`rejoinder train CONFIG`: train an agent, from the start or from where a run stopped."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.commands.forecast import ForecastOption
from rejoinder_cli.commands.report import write_report
from rejoinder_cli.forecasts import watcher
from rejoinder_cli.options import (
    LOOPBACK,
    ConfigArgument,
    GamesOption,
    MetricsHostOption,
    MetricsPortOption,
    MetricsTargetsOption,
    Mode,
    ModeOption,
    PatienceOption,
    Plan,
    RedisOption,
    RunOption,
    SeedOption,
    SetOption,
    WorkersOption,
    cores,
    exposure,
    plan,
)
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import open_run

_FEW_SNAPSHOTS = 20  # of a run by blocks; fewer are worth a word

if TYPE_CHECKING:
    from rejoinder.measure.targets import Target
    from rejoinder.run.config import RunConfig
    from rejoinder.run.rundir import RunDir
    from rejoinder.telemetry import Exposure
    from rejoinder_learner.sequential import TrainResult
    from rejoinder_learner.telemetry import LearnerMetrics


AFTER_THIS_GAME = "stopping after this game"


def train(
    config: ConfigArgument,
    workers: WorkersOption = None,
    mode: ModeOption = "ordered",
    redis: RedisOption = None,
    patience: PatienceOption = 60.0,
    games: GamesOption = None,
    seed: SeedOption = None,
    run: RunOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run there.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run there and start again.")
    ] = False,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE_OR_RUN",
            help="Start from a checkpoint in the paper's format, or from a run's newest one.",
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write the report when it is finished.")
    ] = False,
    forecast: ForecastOption = None,
    settings: SetOption = None,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = LOOPBACK,
    metrics_targets: MetricsTargetsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train an agent and leave a run directory."""
    from rejoinder.measure.targets import Target

    output = Output(as_json)
    if mode == "sequential" and workers:
        raise ValueError("--workers: sequential training has none; leave it out, or --mode ordered")
    if forecast and mode == "sequential":
        raise ValueError("--forecast: sequential training shows no status; see rejoinder forecast")
    where = exposure(metrics_port, metrics_host, metrics_targets)
    planned = plan(config, mode, redis, games, seed, run, settings)
    target = Target.parse("--forecast", forecast, planned.config) if forecast else None
    directory = prepare(planned, output, start=start, resume=resume, overwrite=overwrite)
    title = f"training {planned.name}"
    with exposed_metrics(directory, where) as telemetry, graceful_stop() as should_stop:
        if mode == "sequential":
            result = _train_alone(directory, title, should_stop, output, telemetry)
        else:
            count = cores() if workers is None else workers
            result = train_with_workers(
                *(directory, redis, count, title, should_stop, output),
                mode=mode,
                patience=patience,
                telemetry=telemetry,
                targets=metrics_targets,
                target=target,
            )
    print_result(result, directory, output)
    for line in latest_figures(directory, result.games):
        output.say(line)
    if not result.finished:
        again = planned.resume_command("train", workers)
        output.say(f"stopped; to go on: {again} --resume")
    if report and result.finished:
        output.say(f"wrote {write_report([open_run(planned.path, output)], output).page}")
    output.result(
        result_fields(result)
        | {"run": str(planned.path), "fingerprint": directory.config.fingerprint, "mode": mode}
        | latest_exploitability(directory, result.games)
    )
    if not result.finished:
        raise typer.Exit(130)


@contextmanager
def exposed_metrics(directory: RunDir, where: Exposure) -> Iterator[LearnerMetrics]:
    """The metrics of a run's learner, served if that was asked for."""
    from rejoinder.telemetry import LEARNER_JOB, exposed
    from rejoinder_learner.telemetry import LearnerMetrics

    telemetry = LearnerMetrics(directory.id)
    with exposed(telemetry.registry, where, LEARNER_JOB, directory.id):
        yield telemetry


def _train_alone(
    directory: RunDir,
    title: str,
    should_stop: Callable[[], bool],
    output: Output,
    telemetry: LearnerMetrics,
) -> TrainResult:
    from rejoinder_learner.sequential import train as train_sequentially

    with output.progress(title, directory.config.target, directory.config.counts) as update:
        return train_sequentially(
            directory,
            on_game=update,
            should_stop=should_stop,
            report=output.warn,
            telemetry=telemetry,
        )


def train_with_workers(
    directory: RunDir,
    redis: str | None,
    workers: int,
    title: str,
    should_stop: Callable[[], bool],
    output: Output,
    *,
    targets: Path | None = None,
    target: Target | None = None,
    **how: Any,
) -> TrainResult:
    """The learner in this process, workers as children, on the given server or one of its own."""
    from rejoinder.transport.connection import shown
    from rejoinder_cli.live import live_status
    from rejoinder_cli.supervise import Household

    with Household(directory, redis, output.warn, targets) as household:
        household.add_workers(workers)  # their kernels load while ours do
        if workers == 0:
            output.say(f"workers may join: rejoinder worker --redis {shown(household.url)}")

        def stop_or_tend() -> bool:
            household.tend()
            return should_stop()

        with live_status(output, title, watcher(directory, target)) as show:
            return serve_learner(
                directory, household.url, stop_or_tend, show, output, workers=workers, **how
            )


def serve_learner(
    directory: RunDir,
    url: str,
    should_stop: Callable[[], bool],
    show: Callable[[dict[str, Any]], None],
    output: Output,
    *,
    mode: Mode,
    patience: float,
    workers: int = 1,
    telemetry: LearnerMetrics | None = None,
) -> TrainResult:
    """The learner of a run, on a server."""
    from rejoinder.transport.bus import Bus
    from rejoinder.transport.connection import connect, shown
    from rejoinder_learner.main import LearnerService

    service = LearnerService(
        directory,
        Bus(connect(url), directory.id),
        should_stop=should_stop,
        report=output.warn,
        on_status=show,
        patience=patience,
        workers=workers,
        about={"mode": mode, "redis": shown(url)},
        telemetry=telemetry,
    )
    return service.serve()


def print_result(result: TrainResult, run: RunDir, output: Output) -> None:
    counts = run.config.counts
    of_them = "" if result.played == result.games else f", {result.played:,} of them now,"
    output.say(
        f"{result.games:,} {counts}{of_them} in {result.seconds:.1f} s "
        f"({result.games_per_second:.1f} {counts}/s), in {run.path}\ndigest {result.digest}"
    )


def latest_exploitability(directory: RunDir, games: int) -> dict[str, float]:
    """By the last evaluation, where the game is small enough for an exact one.

    Where training has gone on since, `exploitability_after` is the point that it was measured at.
    """
    known = [r for r in directory.metrics() if "exploitability" in r]
    if not known:
        return {}
    earlier = {} if known[-1]["games"] == games else {"exploitability_after": known[-1]["games"]}
    return {"exploitability": known[-1]["exploitability"]} | earlier


def latest_figures(directory: RunDir, games: int) -> list[str]:
    """What was last measured, a line for each figure; of an earlier point if training went on."""
    from rejoinder_cli.live import match_in_words

    config = directory.config
    unit, lines = config.load_game().utility_unit, []

    def when(measured: int) -> str:
        return "" if measured == games else f", after {measured:,} {config.counts}"

    exact = latest_exploitability(directory, games)
    if exact:
        after = int(exact.get("exploitability_after", games))
        lines.append(f"exploitability {exact['exploitability']:.3g} (exact{when(after)})")
    played = [r for r in directory.metrics() if "matches" in r]
    for record in played[-1:]:
        for name, match in record["matches"].items():
            lines.append(match_in_words(name, match, unit) + when(record["games"]))
    return lines


def result_fields(result: TrainResult) -> dict[str, Any]:
    return {
        "games": result.games,
        "seconds": result.seconds,
        "games_per_second": result.games_per_second,
        "digest": result.digest,
        "finished": result.finished,
    }


def prepare(
    planned: Plan,
    output: Output,
    *,
    start: Path | None = None,
    resume: bool,
    overwrite: bool,
) -> RunDir:
    """The run directory to train in; what is already there is never lost by accident."""
    from rejoinder.run.rundir import RunDir, is_run, remove_run
    from rejoinder.run.starts import begin, read_start

    path, config, rows = planned.path, planned.config, None
    if resume and overwrite:
        raise ValueError("--resume and --overwrite exclude each other")
    if start is not None:
        given = read_start(start, output.warn)
        config, rows = begin(config, given, output.warn), given.rows
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
    _warn_of_few_snapshots(config, output)
    return RunDir.create(path, config, rows)


def _warn_of_few_snapshots(config: RunConfig, output: Output) -> None:
    """Blocks of one snapshot learn nothing from each other."""
    snapshots = config.units // config.batch
    if config.block > 1 and snapshots < _FEW_SNAPSHOTS and not config.load_method().requires:
        output.warn(
            f"snapshots: only {snapshots} in {config.target:,} {config.counts}, one after each "
            f"{config.batch * config.block:,}; a smaller method.iterations or batch learns more"
        )


@contextmanager
def graceful_stop(
    how: Callable[[], str] = lambda: AFTER_THIS_GAME,
) -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask for a stop after the game under way; a second one stops at once."""
    asked = False

    def ask(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print(f"{how()}; once more ends at once", file=sys.stderr)

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
