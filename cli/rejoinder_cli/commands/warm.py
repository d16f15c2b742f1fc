"""`rejoinder warm`: compile the kernels beforehand, as an image does that is to start at once."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from rejoinder_cli.commands.gateway import gateway_extra
from rejoinder_cli.commands.train import graceful_stop, train_with_workers
from rejoinder_cli.output import JsonFlag, Output

# Batches so short that snapshots travel as patches, too.
_LITTLE = {
    "games": 12,
    "batch": 2,
    "eval_every": 6,
    "eval_games": 2,
    "checkpoint_every": 6,
}
_LOOK = 0.05  # seconds


def warm(
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG",
            help="Shipped configs by name, or TOML files; all shipped ones by default.",
            show_default=False,
        ),
    ] = None,
    gateway: Annotated[
        bool | None,
        typer.Option(help="Those of the gateway, too.", show_default="if it is installed"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compile what learner, workers and gateway run, and keep it on disk.

    Set NUMBA_CPU_NAME=generic for kernels that run on every machine of this architecture, and
    REJOINDER_CACHE_DIR for where they are kept; both also where the kernels are used.
    """
    from rejoinder.kernel.jit import CACHE_DIR
    from rejoinder.run.config import shipped_configs

    output = Output(as_json)
    began = time.perf_counter()
    for config in configs or shipped_configs():
        _train_a_little(config, output)
        output.say(f"{config}: the kernels are there")
    if gateway is None:
        gateway = importlib.util.find_spec("uvicorn") is not None
    if gateway:
        _load_the_gateways()
        output.say("gateway: the kernels are there")
    files = sum(1 for path in CACHE_DIR.rglob("*.nbc"))
    seconds = time.perf_counter() - began
    output.say(f"{files} files in {CACHE_DIR}, in {seconds:.1f} s")
    output.result({"cache": str(CACHE_DIR), "files": files, "seconds": seconds, "gateway": gateway})


def _train_a_little(source: str, output: Output) -> None:
    """A run with a worker, whose deltas the learner checks and folds; then it is gone on with."""
    from rejoinder.run.config import load_config
    from rejoinder.run.rundir import RunDir
    from rejoinder_learner.sequential import train

    config = load_config(source)
    method = config.load_method()
    little = {**_LITTLE, **method.requires, "method": method.quick(config.method)}
    config = config.model_copy(update=little)
    with (
        tempfile.TemporaryDirectory(prefix="rejoinder-") as folder,
        graceful_stop() as should_stop,
    ):
        directory = RunDir.create(Path(folder) / "run", config)
        title = f"compiling {source}"
        result = train_with_workers(
            *(directory, None, 1, title, should_stop, output), mode="ordered", patience=60.0
        )
        directory.continue_with(config.model_copy(update={"games": config.games + 2}))
        train(directory, should_stop=should_stop)
    if not result.finished:
        raise typer.Exit(130)


def _load_the_gateways() -> None:
    with gateway_extra():
        from rejoinder_gateway.kernels import Kernels

    kernels = Kernels()
    kernels.load_aside()
    while kernels.state == "loading":
        time.sleep(_LOOK)
    if kernels.state != "ok":
        raise ValueError(f"the gateway's kernels: {kernels.state}")
