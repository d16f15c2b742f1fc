"""Arguments and options that several commands have."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rejoinder.run.config import RunConfig
    from rejoinder.telemetry import Exposure

REDIS_VARIABLE = "REJOINDER_REDIS"  # how a child learns the server's URL; a password stays unseen
METRICS_VARIABLES = (
    "REJOINDER_METRICS_PORT",
    "REJOINDER_METRICS_HOST",
    "REJOINDER_METRICS_TARGETS",
)

Mode = Literal["ordered", "unordered", "sequential"]

ConfigArgument = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG", help="A shipped config by name, a TOML file, or a run: its config."
    ),
]
GamesOption = Annotated[
    int | None,
    typer.Option(
        "--games",
        "--iterations",
        help="Training length in what the method counts: games, or iterations (rounded up to "
        "whole blocks).",
    ),
]
SeedOption = Annotated[int | None, typer.Option(help="Seed of the run.")]
RunOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Run directory (default: runs/<config>).")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Override a field; may be repeated."),
]
WorkersOption = Annotated[
    int | None, typer.Option(min=0, help="Worker processes (default: one a core).")
]
RedisOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar=REDIS_VARIABLE,
        help="An existing server: redis://, rediss:// (TLS) or unix://; default: one of its own.",
    ),
]
PatienceOption = Annotated[
    float, typer.Option(min=0, help="Seconds that a lost server may stay away.")
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        help="ordered: workers, exact results; unordered: workers, folded on arrival; "
        "sequential: one process, no queue, the same results as ordered."
    ),
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65_535,
        envvar=METRICS_VARIABLES[0],
        help="Serve metrics to Prometheus there; 0: any free port.",
    ),
]
MetricsHostOption = Annotated[
    str, typer.Option(metavar="ADDR", envvar=METRICS_VARIABLES[1], help="The address to do so at.")
]
MetricsTargetsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar=METRICS_VARIABLES[2],
        help="Say in this folder where the metrics are, as Prometheus's file_sd reads it.",
    ),
]
LOOPBACK = "127.0.0.1"


def exposure(port: int | None, host: str, targets: Path | None) -> Exposure:
    """Where a process is to be scraped; it must be possible."""
    from rejoinder.telemetry import Exposure

    where = Exposure(port, host, targets)
    where.check()
    return where


def free_port(option: str, wanted: int) -> int:
    """That port of this machine, or any for 0; it must be free."""
    try:
        with socket.create_server((LOOPBACK, wanted)) as found:
            port: int = found.getsockname()[1]
            return port
    except OSError as error:
        raise ValueError(
            f"{option}: {wanted} cannot be had: {error.strerror}; 0 takes any free one"
        ) from None


def usual_port(option: str, wanted: int | None, usual: int) -> int:
    """The port that was asked for, which must be free; else the usual one, or any if it is not."""
    if wanted is not None:
        return free_port(option, wanted)
    try:
        return free_port(option, usual)
    except ValueError:
        return free_port(option, 0)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Plan:
    """The run that a command line asks for."""

    source: str  # of the config: its name or its file
    config: RunConfig
    changed: list[str]  # what the command line changes in it
    mode: Mode
    path: Path  # of the run directory
    redis: str | None  # URL of the server; None: one of its own

    @property
    def name(self) -> str:
        return Path(self.source).stem

    def arguments(self) -> list[str]:
        """What plans the same run in another command; the server's URL may hold a password."""
        changes = [word for text in self.changed for word in ("--set", text)]
        return [self.source, "--run", str(self.path), "--mode", self.mode, *changes]

    def resume_command(
        self, command: str, workers: int | None = None, more: Sequence[str] = ()
    ) -> str:
        """What to type to go on with the run, for a shell."""
        words = ["rejoinder", command, *self.arguments(), *more]
        words += [] if workers is None else ["--workers", str(workers)]
        if self.redis is None:
            return shlex.join(words)
        # A URL with a password in it is not repeated on the screen.
        url = shlex.quote(self.redis) if "@" not in self.redis else f'"${REDIS_VARIABLE}"'
        return f"{shlex.join(words)} --redis {url}"


def plan(
    config: str,
    mode: Mode,
    redis: str | None,
    games: int | None,
    seed: int | None,
    run: Path | None,
    settings: list[str] | None,
) -> Plan:
    """Read the options that commands which train have in common, and refuse what cannot work."""
    changed = list(settings or [])
    changed += [] if games is None else [f"games={games}"]
    changed += [] if seed is None else [f"seed={seed}"]
    changed += ["order=arrival"] if mode == "unordered" else []
    loaded, usual = load(config, changed)
    if loaded.target != loaded.games:
        print(
            f"{loaded.games:,} {loaded.counts} are rounded up to {loaded.target:,}: "
            f"whole blocks of {loaded.block:,}",
            file=sys.stderr,
        )
    if mode != "unordered" and loaded.order == "arrival":
        raise ValueError(f"order: 'arrival' is what --mode unordered is for, not --mode {mode}")
    if redis is not None and mode != "sequential":
        from rejoinder.transport.connection import connect

        connect(redis).close()
    return Plan(config, loaded, changed, mode, run or usual, redis)


def load(config: str, changed: list[str]) -> tuple[RunConfig, Path]:
    """The config that is meant, and where its run is if nothing else is said."""
    from rejoinder.run.config import load_config, make_config, shipped_configs
    from rejoinder.run.rundir import RunDir, is_run

    path = Path(config)
    if config not in shipped_configs() and is_run(path):
        there = RunDir.open(path).config.model_dump(mode="json")
        return make_config(there, changed, source=config), path
    return load_config(config, changed), Path("runs") / path.stem


def needs_workers(mode: Mode) -> None:
    """Refuse the mode that has none."""
    if mode == "sequential":
        raise ValueError("--mode: a learner has workers; sequential is for `rejoinder train`")
