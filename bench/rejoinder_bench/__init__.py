"""Side-by-side benchmarks: every figure is a ratio to a peer measured in the same run.

`BENCHES` maps a name to the module that has `run(say) -> Result`; modules load when asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

BENCHES = {
    "openspiel": "our solvers over OpenSpiel's C++ ones, on Kuhn and Leduc poker",
    "kernel": "Monopoly Deal decisions over OpenSpiel's Leduc iterations, and training games",
    "startup": "process start to the first training game, over `import numba` alone",
    "determinism": "one digest for sequential and ordered training, whatever the workers do",
    "runtime": "ordered over unordered training, the whole system over bare kernels",
    "learner": "games that one learner takes in, and what publishing a big table costs",
    "table": "five million infosets: memory, pauses for checkpoints, entries folded a second",
    "gateway": "policy queries and moves over HTTP, over a bare FastAPI route",
    "capacity": "predicted games a second, and the bottleneck, over what can be measured here",
    "search": "how long an agent thinks ahead before a move, over the 100 ms that it may",
    "forecast": "intervals of forecasts that held, over all whose end is known",
    "crowd": "200 workers that come, go and die: nothing lost, memory bounded",
}


@dataclass
class Result:
    """What a benchmark found."""

    ratios: dict[str, float] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)  # the raw numbers behind them
    ok: bool = True  # False: something that must be true was not

    def judge(self, truths: Mapping[str, bool], say: Callable[[str], None]) -> None:
        """Say what must be true, and whether it is."""
        for what, holds in truths.items():
            say(f"{what}: {'yes' if holds else 'NO'}")
            self.ok &= holds


def run_bench(name: str, say: Callable[[str], None], config: str | None = None) -> Result:
    """Run a benchmark by name, some of them on a config; `say` hears of its progress."""
    if name not in BENCHES:
        raise ValueError(f"no benchmark is called {name!r}; there are {', '.join(BENCHES)}")
    run: Callable[..., Result] = import_module(f"rejoinder_bench.{name}").run
    if config is None:
        return run(say)
    if "config" not in inspect.signature(run).parameters:
        raise ValueError(f"--config: the benchmark {name} has no choice of config")
    return run(say, config)
