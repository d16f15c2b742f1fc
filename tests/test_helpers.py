"""A learner whose workers have left it alone fails with the reason, instead of waiting for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import runtime
from runtime import BareLiar, Hand, Unattended, hands, kuhn, serve, train_with, worker_process

from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import EmbeddedServer


class Falling(Hand):
    def work(self, *_: Any) -> None:
        raise SystemExit("no more")


class Idle(Hand):
    def step(self) -> None:
        self.halt.wait()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path / "run", kuhn(audit=1.0))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Falling, "falling-0 fell: SystemExit"),
        (BareLiar, "every worker is banned"),
        (Idle, r"no lease was done(.|\n)*idle-0 is at(.|\n)*self.halt.wait"),
    ],
)
def test_threads_that_do_nothing(
    server: EmbeddedServer,
    run: RunDir,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Hand],
    reason: str,
) -> None:
    monkeypatch.setattr(runtime, "_STALLED", 0.3 if kind is Idle else 60.0)
    with pytest.raises(Unattended, match=reason):
        train_with(server, run, hands(server, run, 1, kind))


@pytest.mark.slow
def test_a_process_that_refuses(server: EmbeddedServer, tmp_path: Path, run: RunDir) -> None:
    """As one does whose kernels are others."""
    finished = RunDir.create(tmp_path / "finished", kuhn(games=5))
    train_with(server, finished)
    with (
        worker_process(server.url, finished.id),
        pytest.raises(Unattended, match="is finished already"),
    ):
        serve(server, run)
