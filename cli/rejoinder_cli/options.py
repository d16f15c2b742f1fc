"""Arguments and options that several commands have."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rejoinder.config import RunConfig

REDIS_VARIABLE = "REJOINDER_REDIS"  # how a child learns the server's URL; a password stays unseen

Mode = Literal["ordered", "unordered", "sequential"]

ConfigArgument = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A shipped config by name, or a TOML file.")
]
GamesOption = Annotated[int | None, typer.Option(help="Training games.")]
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


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def overrides(
    mode: Mode, games: int | None, seed: int | None, settings: list[str] | None
) -> list[str]:
    """Everything that the command line changes in a config."""
    changed = list(settings or [])
    changed += [] if games is None else [f"games={games}"]
    changed += [] if seed is None else [f"seed={seed}"]
    changed += ["order=arrival"] if mode == "unordered" else []
    return changed


def read_config(config: str, mode: Mode, changed: list[str]) -> RunConfig:
    """The config, which must be one that the mode can train."""
    from rejoinder.config import load_config

    loaded = load_config(config, changed)
    if mode != "unordered" and loaded.order == "arrival":
        raise ValueError(f"order: 'arrival' is what --mode unordered is for, not --mode {mode}")
    return loaded


def resume_command(
    command: str,
    config: str,
    path: Path,
    mode: Mode,
    changed: list[str],
    redis: str | None,
    workers: int | None = None,
) -> str:
    """What to type to go on with a run, for a shell."""
    words = ["rejoinder", command, config, "--run", str(path), "--mode", mode]
    words += [word for text in changed for word in ("--set", text)]
    words += [] if workers is None else ["--workers", str(workers)]
    if redis is None:
        return shlex.join(words)
    # A URL with a password in it is not repeated on the screen.
    url = shlex.quote(redis) if "@" not in redis else f'"${REDIS_VARIABLE}"'
    return f"{shlex.join(words)} --redis {url}"


def check_server(redis: str | None) -> None:
    """Refuse a server that cannot be used before anything else is done."""
    if redis is not None:
        from rejoinder.bus import connect

        connect(redis).close()


def run_path(config: str, run: Path | None) -> Path:
    return run or Path("runs") / Path(config).stem
