"""A gateway to test: runs to serve, databases, players, and the gateway as a process."""

from __future__ import annotations

import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from rejoinder.run.config import load_config, make_config
from rejoinder.run.rundir import RunDir
from rejoinder_gateway.settings import Settings
from rejoinder_learner.sequential import train

ADMIN = "administrators-token"
API = "/api/v1"
BASE = "http://127.0.0.1"
KUHN = {"baseline": "random", "configuration": "kuhn"}
LEDUC = {"baseline": "random", "configuration": "leduc"}
DEAL = {"baseline": "risk-aware", "configuration": "deal-medium"}


def make_runs(folder: Path) -> None:
    """A trained run of every game: `kuhn`, `leduc` and `deal`, with several checkpoints."""
    poker = {
        "method.rollouts": 2,
        "games": 60,
        "checkpoint_every": 20,
        "eval_every": 20,
        "eval_games": 4,
    }
    train(RunDir.create(folder / "kuhn", make_config(poker | {"game": "kuhn"})))
    train(RunDir.create(folder / "leduc", make_config(poker | {"game": "leduc"})))
    train(RunDir.create(folder / "deal", load_config("paper", poker)))


def settings(runs: Path, database: str, **fields: Any) -> Settings:
    """Without limits of rate, which tests of their own look at."""
    unlimited = {"rate": 0, "new_games": 0, "admin_token": ADMIN}
    return Settings.model_validate({"runs": runs, "database": database, **unlimited, **fields})


class Player:
    """Somebody with the secret of a game."""

    def __init__(self, client: httpx2.Client, created: dict[str, Any]) -> None:
        self.client = client
        self.secret: str = created["secret"]
        self.id: str = created["game"]["id"]
        self.game: dict[str, Any] = created["game"]

    @classmethod
    def start(cls, client: httpx2.Client, opponent: dict[str, Any], **fields: Any) -> Player:
        answer = client.post(f"{API}/games", json={"opponent": opponent, **fields})
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"] == f"{API}/games/{answer.json()['game']['id']}"
        return cls(client, answer.json())

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}

    def get(self, path: str = "") -> httpx2.Response:
        return self.client.get(f"{API}/games/{self.id}{path}", headers=self.headers)

    def post(self, path: str, body: Any = None) -> httpx2.Response:
        return self.client.post(f"{API}/games/{self.id}{path}", headers=self.headers, json=body)

    def move(self, move: str | int, number: int | None = None) -> httpx2.Response:
        number = self.game["move_number"] if number is None else number
        answer = self.post("/moves", {"move_number": number, "move": move})
        if answer.status_code == 200:
            self.game = answer.json()["game"]
        return answer

    def play_on(self, chance: random.Random, most: int = 10_000) -> list[httpx2.Response]:
        """Random moves to the end, or so many."""
        answers: list[httpx2.Response] = []
        while not self.game["over"] and len(answers) < most:
            answers.append(self.move(chance.choice(self.game["legal"])["name"]))
            assert answers[-1].status_code == 200, answers[-1].text
        return answers


def when_ready(client: httpx2.Client) -> dict[str, Any]:
    """What the gateway says of its readiness once kernels are loaded, or compiled."""
    until = time.monotonic() + 600
    while (answer := client.get("/readyz")).status_code == 503 and time.monotonic() < until:
        time.sleep(0.1)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


@asynccontextmanager
async def visited(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """The app under way in this very loop, and a client that may ask many things at once."""
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=BASE) as client,
    ):
        yield client


class GatewayProcess:
    """`rejoinder gateway` as a process of its own, which may be killed and started again."""

    def __init__(self, runs: Path, database: str, **environment: str) -> None:
        self._command = [sys.executable, "-m", "rejoinder_cli.main", "gateway", "--json"]
        self._command += ["--runs", str(runs), "--database", database, "--port", "0"]
        limits = {"REJOINDER_GATEWAY_RATE": "0", "REJOINDER_GATEWAY_NEW_GAMES": "0"}
        self._environment = os.environ | limits | environment
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address: str = json.loads(self.process.stdout.readline())["address"]
        # On a new machine the first move waits for its kernels.
        self.client = httpx2.Client(base_url=self.address, timeout=300)

    def kill(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As Ctrl-C would; returns the exit code."""
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@contextmanager
def gateway_process(runs: Path, database: str, **environment: str) -> Iterator[GatewayProcess]:
    started = GatewayProcess(runs, database, **environment)
    try:
        yield started
    finally:
        started.kill()


@contextmanager
def postgresql() -> Iterator[str]:
    """A server of its own, as a user who is not root; the URL of an empty database."""
    binaries = _postgresql_binaries()
    folder = Path(tempfile.mkdtemp(prefix="rejoinder-postgresql-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    quiet: dict[str, Any] = {"cwd": "/", "stdout": subprocess.DEVNULL, **who}
    data = folder / "data"
    create: list[str | Path] = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "rejoinder",
        "-A",
        "trust",
        "-N",
    ]
    subprocess.run([*create, "-E", "UTF8", "--locale=C"], check=True, **quiet)
    port = free_port()
    serve: list[str | Path] = [
        binaries / "postgres",
        "-D",
        data,
        "-p",
        str(port),
        "-k",
        folder,
        "-c",
        "fsync=off",
    ]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*serve, "-h", "127.0.0.1"], stderr=log, **quiet)
    try:
        _wait_for(port)
        yield f"postgresql://rejoinder@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # fast shutdown
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _postgresql_binaries() -> Path:
    places = [Path(p).parent for p in (shutil.which("initdb"),) if p]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    pytest.skip("no PostgreSQL server here; `apt install postgresql` (or initdb on the PATH)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    import psycopg

    until = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(f"postgresql://rejoinder@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
