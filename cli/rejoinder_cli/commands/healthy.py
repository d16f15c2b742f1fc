"""`rejoinder healthy`: whether a learner or worker of this machine goes on, for health checks.

A process that is stuck still answers at its metrics port, which has a thread of its own. So it is
asked when it last took a step. One that need not take any says nothing of steps: it starts,
compiles its kernels, or has finished its run.
"""

from __future__ import annotations

import time
import urllib.request
from http.client import HTTPException
from typing import Annotated

import typer

from rejoinder_cli.options import LOOPBACK, METRICS_VARIABLES, MetricsHostOption, MetricsPortOption

_STEPS = {f"rejoinder_{part}_last_step_timestamp_seconds" for part in ("learner", "worker")}
_ALIVE = {"rejoinder_learner_up", "rejoinder_worker_up"}
_PATIENCE = 5.0  # seconds for an answer


class Unhealthy(ValueError):
    """The process is away or stuck."""

    exit_code = 1  # 2 is reserved in health checks of containers


def healthy(
    within: Annotated[
        float, typer.Option(min=1, metavar="S", help="Seconds that one step may take.")
    ] = 120.0,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = LOOPBACK,
) -> None:
    """Ask a learner or worker at its metrics port whether it goes on; exit code 1 if not."""
    if not metrics_port:
        raise ValueError(
            "--metrics-port: give the one that the learner or worker was started with "
            f"(--metrics-port, or {METRICS_VARIABLES[0]}); without one it cannot be asked"
        )
    from rejoinder.telemetry import address

    where = address(metrics_host, metrics_port)
    values = _ask(where)
    if any(name.startswith("rejoinder_gateway_") for name, _ in values):
        raise Unhealthy(
            f"{where} is a gateway's: ask that by http://{where}/readyz, "
            "and give --metrics-port of a learner or worker here"
        )
    if not any(name in _ALIVE for name, _ in values):
        raise Unhealthy(
            f"{where} is neither a learner's nor a worker's: give the --metrics-port of one"
        )
    for name, value in values:
        if name in _STEPS and (age := time.time() - value) > within:
            raise Unhealthy(f"{where} is stuck: no step for {age:.0f} seconds")


def _ask(where: str) -> list[tuple[str, float]]:
    """The metrics there: names and values."""
    from prometheus_client.parser import text_string_to_metric_families as parse

    try:
        with urllib.request.urlopen(f"http://{where}/metrics", timeout=_PATIENCE) as answer:
            text = answer.read().decode()
        return [(sample.name, sample.value) for family in parse(text) for sample in family.samples]
    except (OSError, HTTPException, ValueError) as error:
        raise Unhealthy(
            f"{where} does not answer as a learner or worker does at its --metrics-port: {error}"
        ) from None
