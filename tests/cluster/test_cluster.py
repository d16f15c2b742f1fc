"""Several machines: hosts are cut off, come back and vanish, and the result does not change.

The machines are network namespaces. Learner and Redis server are on one, each worker has one of its
own. The run lasts as long as the disturbances do; then it is asked to stop, and what it has learned
by then must be what undisturbed sequential training has learned after as many games.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hosts
import pytest
from hosts import Host, Network
from runtime import eventually

from rejoinder.run.checkpoints import digest
from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import _executable
from rejoinder_learner.planner import SHORTEST_DEADLINE
from rejoinder_learner.sequential import train

pytestmark = pytest.mark.slow

CONFIG = "tiny"
SETTINGS = {"games": 10**6, "method.rollouts": 2, "batch": 8, "eval_every": 500, "eval_games": 20}
PORT = 6379
PATIENCE = 60.0  # seconds until something must have happened; others may have the machine
TRIES = 5


@pytest.fixture
def network() -> Iterator[Network]:
    if why := hosts.missing():
        pytest.skip(why)
    before = hosts.namespaces()
    with Network() as network:
        yield network
    assert hosts.namespaces() == before


def test_hosts_and_their_processes_are_gone_after_a_failure(tmp_path: Path) -> None:
    if why := hosts.missing():
        pytest.skip(why)
    with suppress(ZeroDivisionError), Network() as network:
        process = network.host("short-lived").start(["sleep", "600"], tmp_path / "log")
        raise ZeroDivisionError
    assert process.poll() is not None
    assert hosts.namespaces() == set()


class Cluster:
    """A run on several hosts."""

    def __init__(self, network: Network, folder: Path) -> None:
        self._network, self._folder = network, folder
        self.config = load_config(CONFIG, SETTINGS)
        self.run = RunDir.create(folder / "run", self.config)
        self.head = network.host("head")
        password = secrets.token_hex(16)
        self._url = f"redis://:{password}@{self.head.address}:{PORT}/0"
        (folder / "server.conf").write_text(
            f"bind {self.head.address}\nport {PORT}\nrequirepass {password}\n"
            f'save ""\nappendonly no\ndir {folder}\n'
        )
        self.head.start([_executable(), folder / "server.conf"], folder / "server.log")
        wait_for("the server", lambda: "eady to accept" in self.log("server"))
        changes = [
            word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")
        ]
        self.learner = self.head.rejoinder(
            *("learner", CONFIG, "--run", str(self.run.path), *changes, "--redis", self._url),
            log=folder / "learner.log",
        )

    def add_worker(self, name: str) -> Host:
        """A host of its own with a worker on it, which has the host's name."""
        host = self._network.host(name)
        host.rejoinder(
            "worker", "--redis", self._url, "--name", name, log=self._folder / f"{name}.log"
        )
        return host

    def status(self) -> dict[str, Any]:
        assert self.learner.poll() is None, self.log("learner")
        return self.run.status()

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def played(self, worker: str) -> int:
        """Games that a worker says it has played; 0 while the learner does not know of it."""
        said: int = self.status().get("workers", {}).get(worker, {}).get("games", 0)
        return said

    def until_played(self, worker: str, more_than: int = 0) -> None:
        wait_for(f"{worker} to play", lambda: self.played(worker) > more_than)

    def until_forgotten(self, worker: str) -> None:
        """Nobody has heard of it for longer than a lease may take, and the others go on."""
        since = time.monotonic()
        wait_for(f"{worker} to be missed", lambda: worker not in self.status()["workers"])
        assert time.monotonic() - since > SHORTEST_DEADLINE
        self.until_folded(4 * self.config.batch)

    def until_folded(self, more: int) -> None:
        """More games than can have been under way."""
        games = self.status()["games"] + more
        wait_for("games to be folded", lambda: self.status()["games"] >= games)

    def stop(self) -> int:
        """Have the learner save and end; returns the games it has folded."""
        self.run.request_stop()
        self.learner.wait(PATIENCE)
        return max(self.run.checkpoint_games())


def test_hosts_that_are_cut_off_come_back_or_vanish_change_nothing(
    network: Network, tmp_path: Path
) -> None:
    cluster = Cluster(network, tmp_path)
    near, doomed = cluster.add_worker("near"), cluster.add_worker("doomed")
    if not network.packets_are_disturbed:
        warnings.warn("tc has no netem here: no packets are delayed or lost", stacklevel=1)
    for name in ("near", "doomed"):
        cluster.until_played(name)

    # A worker's host is cut off until the worker has noticed, which takes longer than a lease may.
    process = cluster.status()["workers"]["near"]["pid"]
    cut_off_and_connect(cluster, near, until="trying again")
    for _ in range(TRIES):  # it may have been between two leases
        if cluster.status()["leased_again"] == 0:
            cut_off_and_connect(cluster, near)
    assert cluster.status()["leased_again"] > 0
    assert cluster.status()["workers"]["near"]["pid"] == process  # it was never started again

    # Another one vanishes; a new host joins later.
    doomed.vanish()
    cluster.until_forgotten("doomed")
    cluster.add_worker("late")
    cluster.until_played("late")

    # The learner's host itself is cut off, from everybody.
    cluster.head.cut_off()
    wait_for("the learner to miss its workers", lambda: not cluster.status()["workers"])
    cluster.head.connect()
    for name in ("near", "late"):
        cluster.until_played(name)
    cluster.until_folded(4 * cluster.config.batch)

    games = cluster.stop()
    assert cluster.run.status()["quarantined"] == 0
    assert cluster.run.status()["state"] == "stopped"
    alone = load_config(CONFIG, SETTINGS | {"games": games})
    undisturbed = train(RunDir.create(tmp_path / "alone", alone))
    checkpoint = cluster.run.checkpoint(games)
    assert digest(alone.fingerprint, games, checkpoint.rows) == undisturbed.digest


def cut_off_and_connect(cluster: Cluster, worker: Host, until: str = "") -> None:
    """A host is away until everybody has noticed, its worker (by what it says) too; then back."""
    played = cluster.played(worker.name)
    worker.cut_off()
    cluster.until_forgotten(worker.name)
    wait_for(f"{worker.name} to notice", lambda: until in cluster.log(worker.name))
    worker.connect()
    cluster.until_played(worker.name, more_than=played)


def wait_for(what: str, condition: Callable[[], object]) -> None:
    assert eventually(condition, PATIENCE), f"waited too long for {what}"
