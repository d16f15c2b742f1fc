"""The database's thread: what shares a commit, and what becomes of failures."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from gateway_play import API, BASE, DEAL, Player, settings, visited
from sqlalchemy import event, func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session as Database

from rejoinder_gateway import tables
from rejoinder_gateway.app import create_app
from rejoinder_gateway.store import GameRow, Store, now


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    opened = Store(settings(Path("runs"), database).database_url)
    yield opened
    opened.close()


def _add(name: str) -> Any:
    fields: dict[str, Any] = {
        "id": name,
        "secret_hash": "",
        "created": now(),
        "updated": now(),
        "game": "kuhn",
        "rules": {},
        "seed": 1,
        "seat": 0,
        "argmax": False,
        "open": False,
        "opponent": "random",
        "opponent_kind": "baseline",
        "abstraction": "none",
        "kernel": "",
        "player": {},
        "moves": 0,
    }
    return lambda db: db.add(GameRow(**fields))


def _count(db: Database) -> int:
    return db.scalar(select(func.count()).select_from(GameRow)) or 0


@asynccontextmanager
async def _held(store: Store) -> AsyncIterator[None]:
    """The thread is busy meanwhile, so that what is asked for in here becomes one batch."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Database) -> None:
        begun.set()
        assert go_on.wait(60)

    busy = asyncio.ensure_future(store.do(wait))
    await asyncio.to_thread(begun.wait, 60)
    yield
    await asyncio.sleep(0)  # all of it is in the queue now
    go_on.set()
    await busy


def test_what_waits_shares_a_commit(store: Store) -> None:
    commits = []
    event.listen(store.engine, "commit", lambda connection: commits.append(connection))

    async def ask() -> int:
        async with _held(store):
            waiting = asyncio.gather(*(store.do(_add(f"{n:016x}")) for n in range(5)))
        await waiting
        return len(commits)

    assert asyncio.run(ask()) == 1
    assert asyncio.run(store.do(_count)) == 5


def test_one_that_fails_takes_nobody_along(store: Store) -> None:
    def fail(_: Database) -> None:
        raise ValueError("mine")

    async def ask() -> list[Any]:
        async with _held(store):
            pieces = [_add("a" * 16), fail, _add("b" * 16)]
            waiting = asyncio.gather(*map(store.do, pieces), return_exceptions=True)
        return await waiting

    answers = asyncio.run(ask())
    assert [type(answer) for answer in answers] == [type(None), ValueError, type(None)]
    assert asyncio.run(store.do(_count)) == 2


def test_a_commit_that_may_have_gone_through_is_not_done_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has, here, and then the answer is lost: all of them are told that something is wrong."""
    commit = Database.commit

    def commit_and_lose(session: Database) -> None:
        commit(session)
        if session.get(GameRow, "a" * 16):
            raise OperationalError("COMMIT", None, Exception("the connection was lost"))

    async def ask() -> list[Any]:
        async with _held(store):
            pieces = [_add("a" * 16), _add("b" * 16)]
            waiting = asyncio.gather(*map(store.do, pieces), return_exceptions=True)
            monkeypatch.setattr(Database, "commit", commit_and_lose)
        return await waiting

    answers = asyncio.run(ask())
    monkeypatch.undo()
    assert [type(answer) for answer in answers] == [OperationalError, OperationalError]
    assert asyncio.run(store.do(_count)) == 2


def test_a_database_that_does_not_answer_is_told_soon(tmp_path: Path, runs: Path) -> None:
    database = tmp_path / "gateway.db"
    app = create_app(settings(runs, f"sqlite:///{database}"))
    with TestClient(app, base_url=BASE) as client:
        player = Player.start(client, DEAL)
        with sqlite3.connect(database, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            ready = client.get("/readyz")
            assert ready.status_code == 503
            assert "has not answered" in ready.text
            assert player.move(player.game["legal"][0]["name"]).status_code == 503
            other.execute("ROLLBACK")
        assert player.move(player.game["legal"][0]["name"]).status_code == 200


def test_a_game_that_is_rebuilt_by_two_at_once_has_one_table(
    tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rebuilds slowly; meanwhile the game is asked for again, moved, and pushed out."""
    app = create_app(settings(runs, f"sqlite:///{tmp_path / 'gateway.db'}", cached_games=1))
    slowly, slow = threading.Event(), threading.Event()

    class Slow(tables.GameTable):
        def __init__(self, *about: Any) -> None:
            super().__init__(*about)
            if len(about) == 2 and not slow.is_set():  # the first that is rebuilt
                slow.set()
                slowly.wait(3)

    async def play() -> None:
        async with visited(app) as client:
            mine = (await client.post(f"{API}/games", json={"opponent": DEAL})).json()
            await client.post(f"{API}/games", json={"opponent": DEAL})  # pushes mine out
            monkeypatch.setattr(tables, "GameTable", Slow)
            path = f"{API}/games/{mine['game']['id']}"
            headers = {"Authorization": f"Bearer {mine['secret']}"}
            reading = asyncio.ensure_future(client.get(path, headers=headers))
            await asyncio.to_thread(slow.wait, 60)
            move = {"move_number": 0, "move": mine["game"]["legal"][0]["name"]}
            moving = asyncio.ensure_future(client.post(f"{path}/moves", headers=headers, json=move))
            await asyncio.wait([moving], timeout=0.5)
            await client.post(f"{API}/games", json={"opponent": DEAL})
            slowly.set()
            await reading
            moved = (await moving).json()["game"]
            assert moved["move_number"] > 0
            assert (await client.get(path, headers=headers)).json() == moved

    asyncio.run(play())


def test_the_database_is_its_owners_alone(tmp_path: Path, runs: Path) -> None:
    database = tmp_path / "new" / "gateway.db"
    with TestClient(create_app(settings(runs, f"sqlite:///{database}")), base_url=BASE) as client:
        Player.start(client, DEAL)
        files = list(database.parent.iterdir())
        assert database in files
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
