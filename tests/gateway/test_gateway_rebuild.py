"""A game is rebuilt as it was, or not at all."""

from __future__ import annotations

import asyncio
import random
import shutil
import stat
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from gateway_play import BASE, DEAL, Player, settings
from sqlalchemy import update

from rejoinder.config import make_config
from rejoinder.rundir import RunDir
from rejoinder_gateway.app import create_app
from rejoinder_gateway.store import GameRow, Store
from rejoinder_learner.sequential import train

SHORT = {"game": "leduc", "rollouts": 2, "games": 10, "checkpoint_every": 10, "eval_every": 0}


def _train(folder: Path, **fields: Any) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    train(RunDir.create(folder, make_config(SHORT | fields)))


def _change(url: str, **columns: Any) -> None:
    store = Store(url)
    asyncio.run(store.do(lambda db: db.execute(update(GameRow).values(**columns)) and None))
    store.close()


def test_another_run_of_the_same_name_is_no_opponent(tmp_path: Path) -> None:
    runs, database = tmp_path / "runs", f"sqlite:///{tmp_path / 'gateway.db'}"
    _train(runs / "mine")
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "mine"})
    _train(runs / "mine", seed=2)
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player.client = client
        assert player.get().json() == player.game
        answer = player.get("/advice")
        assert answer.status_code == 503
        assert "is another one now" in answer.json()["detail"]
        assert player.post("/resign").json()["outcome"] == "resigned"


def test_the_same_training_done_again_is_the_same_opponent(tmp_path: Path) -> None:
    runs, database = tmp_path / "runs", f"sqlite:///{tmp_path / 'gateway.db'}"
    _train(runs / "mine")
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "mine"})
        advice = player.get("/advice").json()
    _train(runs / "mine")
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player.client = client
        assert player.get("/advice").json() == advice
        player.play_on(random.Random(1))
        assert player.game["over"]


def test_a_log_that_leads_to_another_state_is_not_played_on(tmp_path: Path, runs: Path) -> None:
    database = f"sqlite:///{tmp_path / 'gateway.db'}"
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, DEAL)
        player.play_on(random.Random(1), most=2)
    for position, status in ((32 * "0", 503), (None, 200)):  # None: a game of before
        _change(database, position=position)
        with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
            player.client = client
            answer = player.get()
            assert answer.status_code == status
    assert answer.json() == player.game


def test_the_database_is_its_owners_alone(tmp_path: Path, runs: Path) -> None:
    database = tmp_path / "new" / "gateway.db"
    with TestClient(create_app(settings(runs, f"sqlite:///{database}")), base_url=BASE) as client:
        Player.start(client, DEAL)
        files = list(database.parent.iterdir())
        assert database in files
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
