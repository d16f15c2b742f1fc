"""Event streams of games over real HTTP: who gets one, what it tells, and when it ends."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from gateway_play import (
    API,
    DEAL,
    KUHN,
    GatewayProcess,
    Player,
    gateway_process,
    settings,
    when_ready,
)
from sqlalchemy import Engine, create_engine

from rejoinder_gateway.context import PING

MOST = 2  # streams at once
SECONDS = 60.0  # that anything may take


@pytest.fixture(scope="module")
def process(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One that has its kernels: on a new machine they take longer than a test waits."""
    database = f"sqlite:///{tmp_path_factory.mktemp('streams') / 'gateway.db'}"
    limit = {"REJOINDER_GATEWAY_MAX_STREAMS": str(MOST)}
    with gateway_process(runs, database, **limit) as started:
        when_ready(started.client)
        yield started


@pytest.fixture
def gateway(process: GatewayProcess) -> Iterator[GatewayProcess]:
    """With no stream open; and a test must leave none behind."""
    _wait_until(lambda: _open_streams(process.client) == 0)
    yield process
    _wait_until(lambda: _open_streams(process.client) == 0)


@pytest.mark.parametrize("by", ["ticket", "secret"])
@pytest.mark.parametrize("opponent", [KUHN, {"run": "leduc"}, DEAL], ids=str)
def test_a_stream_tells_every_move_and_ends_with_the_game(
    gateway: GatewayProcess, opponent: dict[str, Any], by: str
) -> None:
    player = Player.start(gateway.client, opponent, first="random")
    chance = random.Random(1)
    with _stream(player, by) as events:
        assert next(events) == ("game", player.game)
        while not player.game["over"]:
            player.play_on(chance, most=1)
            assert next(events) == ("game", player.game)
        assert list(events) == []


@pytest.mark.parametrize("by", ["ticket", "secret"])
def test_a_stream_of_a_finished_game_tells_it_once_and_ends(
    gateway: GatewayProcess, by: str
) -> None:
    played, resigned = (Player.start(gateway.client, KUHN) for _ in range(2))
    played.play_on(random.Random(1))
    resigned.game = resigned.post("/resign").json()
    for player in (played, resigned):
        with _stream(player, by) as events:
            assert list(events) == [("game", player.game)]


def test_resigning_is_told_to_every_listener_and_ends_their_streams(
    gateway: GatewayProcess,
) -> None:
    player = Player.start(gateway.client, DEAL)
    with _stream(player, "ticket") as one, _stream(player, "secret") as other:
        assert next(one) == next(other) == ("game", player.game)
        resigned = player.post("/resign").json()
        assert resigned["over"]
        assert list(one) == list(other) == [("game", resigned)]


def test_a_refused_or_repeated_move_is_no_event(gateway: GatewayProcess) -> None:
    player = Player.start(gateway.client, DEAL)
    with _stream(player, "secret") as events:
        assert next(events) == ("game", player.game)
        number, chosen = player.game["move_number"], player.game["legal"][0]["name"]
        assert player.move("nonsense").status_code == 422
        assert player.move(chosen, number + 1).status_code == 409
        assert player.move(chosen).status_code == 200
        assert next(events) == ("game", player.game)
        assert player.move(chosen, number).status_code == 200
        resigned = player.post("/resign").json()
        assert list(events) == [("game", resigned)]


def test_a_ticket_opens_one_stream_once(gateway: GatewayProcess) -> None:
    player, other = (Player.start(gateway.client, KUHN) for _ in range(2))
    ticket = player.post("/ticket").json()["ticket"]
    for wrong in (
        f"{other.id}/events?ticket={ticket}",
        f"{player.id}/events?ticket={ticket}x",
        f"{player.id}/events?ticket={ticket[:-1]}",
        f"{player.id}/events?ticket=",
        f"{player.id}/events?ticket={player.secret}",
        f"{player.id}/events",
        f"0000000000000000/events?ticket={ticket}",
    ):
        _refused(gateway.client, f"{API}/games/{wrong}")
    path = f"{API}/games/{player.id}/events?ticket={ticket}"
    with gateway.client.stream("GET", path) as answer:
        assert answer.status_code == 200
        assert next(_parsed(answer)) == ("game", player.game)
        _refused(gateway.client, path)
    _refused(gateway.client, path)


def test_the_secret_of_another_game_opens_nothing(gateway: GatewayProcess) -> None:
    player, other = (Player.start(gateway.client, KUHN) for _ in range(2))
    path = f"{API}/games/{player.id}/events"
    for headers in (other.headers, {"Authorization": "Bearer wrong"}, {}):
        _refused(gateway.client, path, headers)


def test_a_stream_is_not_stored_on_the_way(gateway: GatewayProcess) -> None:
    player = Player.start(gateway.client, KUHN)
    path = f"{API}/games/{player.id}/events"
    with gateway.client.stream("GET", path, headers=player.headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert re.search(r"no-(cache|store)", answer.headers["cache-control"])
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_place_is_free_again_once_a_listener_has_gone(gateway: GatewayProcess) -> None:
    player = Player.start(gateway.client, DEAL)
    path = f"{API}/games/{player.id}/events"
    for _ in range(3):  # those that are refused take no place
        _refused(gateway.client, f"{path}?ticket=wrong")
    for _ in range(3):
        with _stream(player, "secret") as kept:
            assert next(kept) == ("game", player.game)
            with _stream(player, "ticket") as gone:
                assert next(gone) == ("game", player.game)
                full = gateway.client.get(path, headers=player.headers)
                assert (full.status_code, full.json()["title"]) == (503, "Too many streams")
                assert _open_streams(gateway.client) == MOST
            _wait_until(lambda: _opens(player))
            player.play_on(random.Random(2), most=1)
            assert next(kept) == ("game", player.game)  # the other one never noticed
        _wait_until(lambda: _open_streams(gateway.client) == 0)  # it may take a while to notice


def test_a_place_is_free_again_once_the_game_is_over(gateway: GatewayProcess) -> None:
    player = Player.start(gateway.client, KUHN)
    with _stream(player, "secret") as one, _stream(player, "secret") as other:
        assert next(one) == next(other) == ("game", player.game)
        player.play_on(random.Random(1))
        assert list(one)[-1] == list(other)[-1] == ("game", player.game)
        _wait_until(lambda: _open_streams(gateway.client) == 0)


@pytest.mark.slow
def test_streams_end_when_the_gateway_is_asked_to(runs: Path, tmp_path: Path) -> None:
    with (
        gateway_process(runs, f"sqlite:///{tmp_path / 'gateway.db'}") as gateway,
        httpx2.Client(base_url=gateway.address, timeout=SECONDS) as client,  # `stop` closes its own
    ):
        player = Player.start(client, KUHN)
        with _stream(player, "secret") as events:
            assert next(events) == ("game", player.game)
            assert gateway.stop() == 0


def test_a_move_that_cannot_be_stored_ends_the_stream(runs: Path, database: str) -> None:
    """Nobody knows then where the game stands; whoever listens has to ask anew."""
    engine = create_engine(settings(runs, database).database_url)
    with gateway_process(runs, database) as gateway:
        player = Player.start(gateway.client, DEAL)
        chosen = player.game["legal"][0]["name"]
        with _stream(player, "secret") as events:
            assert next(events) == ("game", player.game)
            with _without_moves(engine):
                assert player.move(chosen).status_code == 503
            assert list(events) == []
        _goes_on(player, chosen)
    engine.dispose()


def test_a_connection_that_is_cut_in_mid_move_ends_the_stream(
    runs: Path, postgresql_url: str
) -> None:
    """The gateway waits for a lock in the middle of its transaction when its backend is ended."""
    with (
        gateway_process(runs, postgresql_url) as gateway,
        psycopg.connect(postgresql_url) as locker,
        psycopg.connect(postgresql_url, autocommit=True) as admin,
        ThreadPoolExecutor(1) as elsewhere,
    ):
        player = Player.start(gateway.client, DEAL)
        chosen = player.game["legal"][0]["name"]
        with _stream(player, "secret") as events:
            assert next(events) == ("game", player.game)
            locker.execute("LOCK TABLE moves IN ACCESS EXCLUSIVE MODE")
            moving = elsewhere.submit(player.move, chosen)
            try:
                _wait_until(lambda: _cut(admin))
                answer = moving.result(SECONDS)
            finally:
                locker.rollback()
            assert answer.status_code == 503
            assert "postgres" not in answer.text.lower()
            assert list(events) == []
        _goes_on(player, chosen)


def _goes_on(player: Player, chosen: str) -> None:
    """The move was not made; it can be made now, and a new stream tells it."""
    assert player.get().json() == player.game
    with _stream(player, "ticket") as events:
        assert next(events) == ("game", player.game)
        assert player.move(chosen).status_code == 200
        assert next(events) == ("game", player.game)


@contextmanager
def _without_moves(engine: Engine) -> Iterator[None]:
    """The table of moves has another name for a while."""
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE moves RENAME TO lost")
    yield
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE lost RENAME TO moves")


def _cut(admin: psycopg.Connection[Any]) -> bool:
    """End the backend that waits for a lock, if there is one."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    found = admin.execute(f"{waiting} AND wait_event_type = 'Lock'").fetchall()
    for (pid,) in found:
        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return bool(found)


@contextmanager
def _stream(player: Player, by: str) -> Iterator[Iterator[tuple[str, Any]]]:
    path, headers = f"{API}/games/{player.id}/events", player.headers
    if by == "ticket":
        path += f"?ticket={player.post('/ticket').json()['ticket']}"
        headers = {}
    with player.client.stream("GET", path, headers=headers, timeout=2 * SECONDS) as answer:
        assert answer.status_code == 200
        yield _parsed(answer)


def _parsed(answer: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """The events by name and data, without pings: after some of them nobody waits any longer."""
    name, pings = "", 0
    for line in answer.iter_lines():
        field, _, value = line.partition(":")
        if field == "event":
            name = value.strip()
            pings += name == "ping"
            assert pings * PING < SECONDS
        elif field == "data" and name != "ping":
            yield name, json.loads(value)


def _refused(client: httpx2.Client, path: str, headers: dict[str, str] | None = None) -> None:
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (404, "Unknown game")


def _opens(player: Player) -> bool:
    path = f"{API}/games/{player.id}/events"
    with player.client.stream("GET", path, headers=player.headers) as answer:
        return answer.status_code == 200


def _open_streams(client: httpx2.Client) -> int:
    (told,) = re.findall(r"^rejoinder_gateway_streams (\S+)$", client.get("/metrics").text, re.M)
    return int(float(told))


def _wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.02)
