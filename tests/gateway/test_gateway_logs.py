"""Games and their logs: what the engine makes of a log is what the API told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import (
    API,
    BASE,
    DEAL,
    KUHN,
    LEDUC,
    GatewayProcess,
    Player,
    gateway_process,
    settings,
    visited,
)
from runtime import eventually
from sqlalchemy import delete, select
from sqlalchemy.orm import Session as Database

from rejoinder.games import GAMES, game_names
from rejoinder.games.session import Session
from rejoinder.run.config import make_config
from rejoinder.run.rundir import RunDir
from rejoinder_gateway.app import create_app
from rejoinder_gateway.store import GameRow, MoveRow, Store, now
from rejoinder_gateway.tables import position
from rejoinder_learner.sequential import train

OPPONENTS = [KUHN, {"run": "kuhn"}, LEDUC, {"run": "leduc"}, DEAL, {"run": "deal"}]


# Every configuration of every game, besides those against which there is a run.
EVERY_OPPONENT = [
    *({"baseline": "random", "configuration": name} for name in game_names()),
    *(opponent for opponent in OPPONENTS if opponent.get("baseline") != "random"),
]


@pytest.mark.slow
def test_1000_games_replayed_from_their_logs_give_the_same_states(
    runs: Path, database: str
) -> None:
    # The game is the same on either database; what may differ is how a value is stored and read
    # back, and 100 games on PostgreSQL have every kind of value many times over.
    games = 1_000 if database.startswith("sqlite") else 100
    asyncio.run(_play_and_compare(create_app(settings(runs, database)), games))


def test_some_games_replayed_from_their_logs_give_the_same_states(
    runs: Path, database: str
) -> None:
    app = create_app(settings(runs, database))
    asyncio.run(_play_and_compare(app, 2 * len(EVERY_OPPONENT)))


async def _play_and_compare(app: FastAPI, games: int) -> None:
    async with visited(app) as client:
        for first in range(0, games, 20):
            await asyncio.gather(
                *(_play_one(app, client, index) for index in range(first, min(first + 20, games)))
            )


async def _play_one(app: FastAPI, client: httpx2.AsyncClient, index: int) -> None:
    """Play a random game, keeping every view, and replay its log on the engine alone."""
    chance = random.Random(index)
    opponent = EVERY_OPPONENT[index % len(EVERY_OPPONENT)]
    body = {"opponent": opponent, "first": "random", "search": 8 * (index % 16 == 0)}
    created = (await client.post(f"{API}/games", json=body)).json()
    headers = {"Authorization": f"Bearer {created['secret']}"}
    game = created["game"]
    told = [game]
    while not game["over"]:
        move = chance.choice(game["legal"])
        answer = await client.post(
            f"{API}/games/{game['id']}/moves",
            headers=headers,
            json={
                "move_number": game["move_number"],
                "move": chance.choice(list(move.values())[:2]),
            },
        )
        game = answer.json()["game"]
        told.append(game)
    row, moves = await app.state.context.store.do(lambda db: _read(db, game["id"]))
    session = _begin(row)
    by_number = {state["move_number"]: state for state in told}
    for made in range(len(moves) + 1):
        if state := by_number.pop(made, None):
            view = session.view(row.seat).model_dump(mode="json")
            assert view == state["view"]
            assert [m.name for m in session.legal()] == [m["name"] for m in state["legal"]]
            assert session.to_move == state["to_move"]
        if made < len(moves):
            assert session.to_move == moves[made].actor
            session.apply(moves[made].move)
    assert not by_number
    assert session.over
    assert list(session.utilities or ()) == game["utilities"]
    table = app.state.context.tables._alive[game["id"]]
    assert table.session.to_json() == session.to_json()


def _read(db: Database, game: str) -> tuple[GameRow, list[MoveRow]]:
    log = select(MoveRow).where(MoveRow.game == game).order_by(MoveRow.number)
    row = db.get(GameRow, game)
    assert row is not None
    return row, list(db.scalars(log))


def _begin(row: GameRow) -> Session:
    game = GAMES[row.game]
    rules = game.rules_type.model_validate(row.rules | _tuples(row.rules))
    return Session.start(game, rules, seed=row.seed)


def _tuples(rules: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) for name, value in rules.items() if isinstance(value, list)}


def test_games_survive_a_restart_on_both_databases(runs: Path, database: str) -> None:
    """Everything a player sees is the same before and after, and the game can go on."""
    players = []
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        for index, opponent in enumerate(OPPONENTS):
            player = Player.start(client, opponent, first="random", player={"name": "Zoë ♠"})
            player.play_on(random.Random(index), most=3)
            players.append(player)
        before = [(p.get().content, p.get("/history").content) for p in players]
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        for player, was in zip(players, before, strict=True):
            player.client = client
            assert (player.get().content, player.get("/history").content) == was
            player.play_on(random.Random(4))
            assert player.game["over"]
            assert player.get("/replay").status_code == 200
        token = {"Authorization": "Bearer administrators-token"}
        results = client.get(f"{API}/results", headers=token).json()["results"]
        mine = {player.id: player.game["outcome"] for player in players}
        told = {r["id"]: r["outcome"] for r in results if r["id"] in mine}
        assert told == mine
        assert {r["player_name"] for r in results if r["id"] in mine} == {"Zoë ♠"}


@pytest.mark.parametrize("search", [0, 20])
def test_an_agent_that_was_to_move_moves_on_just_the_same(
    runs: Path, database: str, search: int
) -> None:
    """Its moves are cut off the log: whoever reads the game finds them made again."""
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = _answered(client, search)
        while player.game["over"]:  # its answer was the last move: another game, then
            player = _answered(client, search)
        before = player.get().content
    store = Store(settings(runs, database).database_url)
    kept = asyncio.run(store.do(lambda db: _cut(db, player.id)))
    store.close()
    assert kept < player.game["move_number"]
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player.client = client
        assert player.get().content == before


def _answered(client: TestClient, search: int = 0) -> Player:
    """A game in which the agent has just replied."""
    player = Player.start(client, {"run": "deal"}, first="agent", search=search)
    chance = random.Random(6)
    player.play_on(chance, most=4)
    while not player.game["over"]:
        events = player.play_on(chance, most=1)[0].json()["events"]
        if any(event["actor"] == 0 for event in events):
            break
    return player


def _cut(db: Database, game: str) -> int:
    """Forget the agent's last moves; returns how many moves are left."""
    row, moves = _read(db, game)
    last = max(m.number for m in moves if m.actor == row.seat)
    db.execute(delete(MoveRow).where(MoveRow.game == game, MoveRow.number > last))
    session = _begin(row)
    for move in moves[: last + 1]:
        session.apply(move.move)
    row.moves, row.position = last + 1, position(session)
    return last + 1


def test_a_move_by_another_gateway_is_a_conflict_and_nothing_is_made_twice(
    runs: Path, database: str
) -> None:
    """Two gateways on one database: the log decides."""
    first, second = (create_app(settings(runs, database)) for _ in range(2))
    with TestClient(first, base_url=BASE) as one, TestClient(second, base_url=BASE) as two:
        player = Player.start(one, DEAL)
        other = Player(two, {"secret": player.secret, "game": player.game})
        assert other.get().json() == player.game
        names = [move["name"] for move in player.game["legal"]]
        assert player.move(names[0]).status_code == 200
        assert other.move(names[-1], 0).status_code == 409
        assert other.get().json() == player.game
        other.game = other.get().json()
        player.post("/resign")
        assert other.move(other.game["legal"][0]["name"]).status_code == 409
        assert other.post("/resign").json() == player.get().json()


def test_a_game_whose_run_is_gone_can_be_read_and_resigned(runs: Path, tmp_path: Path) -> None:
    folder, database = tmp_path / "runs", f"sqlite:///{tmp_path / 'games.db'}"
    shutil.copytree(runs / "leduc", folder / "leduc")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "leduc"})
    shutil.rmtree(folder / "leduc")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player.client = client
        assert player.get().json() == player.game
        assert player.move("raise").status_code == 503
        assert player.get("/advice").status_code == 503
        assert player.get().json() == player.game
        assert player.post("/resign").json()["outcome"] == "resigned"


def test_an_agent_that_is_to_move_and_gone_lets_one_look_and_resign(
    runs: Path, database: str, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs / "deal", folder / "deal")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player = _answered(client)
        while player.game["over"]:
            player = _answered(client)
    store = Store(settings(folder, database).database_url)
    kept = asyncio.run(store.do(lambda db: _cut(db, player.id)))
    store.close()
    shutil.rmtree(folder / "deal")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player.client = client
        player.game = player.get().json()
        assert (player.game["move_number"], player.game["your_turn"]) == (kept, False)
        assert (player.game["to_move"], player.game["legal"]) == (1 - player.game["seat"], [])
        answer = player.move("pass")
        assert (answer.status_code, answer.json()["title"]) == (409, "Not your turn")
        assert player.get("/advice").status_code == 409
        assert player.get().json() == player.game
        assert player.post("/resign").json()["outcome"] == "resigned"
        assert player.get("/replay").status_code == 200


def test_a_run_of_the_same_name_does_not_take_a_game_over(
    runs: Path, database: str, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs / "leduc", folder / "leduc")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "leduc"})
    shutil.rmtree(folder / "leduc")
    other = {"game": "leduc", "seed": 77, "method.rollouts": 2, "games": 60, "checkpoint_every": 20}
    train(RunDir.create(folder / "leduc", make_config(other)))
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player.client = client
        assert player.get().json() == player.game
        for answer in (player.move("raise"), player.get("/advice")):
            assert (answer.status_code, answer.json()["title"]) == (503, "Opponent unavailable")
            assert "another one now" in answer.json()["detail"]
        assert player.get().json() == player.game
        assert player.post("/resign").json()["outcome"] == "resigned"
        Player.start(client, {"run": "leduc"}).play_on(random.Random(1))


def test_the_same_training_done_again_is_the_same_opponent(database: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    config = make_config({"game": "leduc", "method.rollouts": 2, "games": 10, "eval_every": 0})
    train(RunDir.create(runs / "mine", config))
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "mine"})
        advice = player.get("/advice").json()
    shutil.rmtree(runs / "mine")
    train(RunDir.create(runs / "mine", config))
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player.client = client
        assert player.get("/advice").json() == advice
        player.play_on(random.Random(1))
        assert player.game["over"]


@pytest.mark.parametrize("change", ["position", "move"])
def test_a_log_that_leads_elsewhere_by_these_rules_is_not_played_on(
    runs: Path, database: str, change: str
) -> None:
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, DEAL)
        player.play_on(random.Random(1), most=3)

    def tamper(db: Database) -> None:
        row, moves = _read(db, player.id)
        if change == "position":
            row.position = "0" * 32
        else:
            moves[-1].move = 999

    store = Store(settings(runs, database).database_url)
    asyncio.run(store.do(tamper))
    store.close()
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player.client = client
        for answer in (player.get(), player.move("pass"), player.post("/resign")):
            assert (answer.status_code, answer.json()["title"]) == (503, "Other rules")


def test_a_log_from_before_responses_could_be_ordered_is_played_on(
    runs: Path, database: str
) -> None:
    """Its rules do not have the field, and its position is of a state without it."""
    session = Session.start("deal-medium", seed=7)
    for _ in range(5):
        session.apply(session.legal()[0].number)
    assert position(session) == "fe153037d94e36f381961df1b5de68e0", "as it was stored then"

    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, DEAL)
        player.play_on(random.Random(1), most=3)

    def age(db: Database) -> None:
        row, _ = _read(db, player.id)
        row.rules = {name: value for name, value in row.rules.items() if name != "response"}

    store = Store(settings(runs, database).database_url)
    asyncio.run(store.do(age))
    store.close()
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player.client = client
        player.play_on(random.Random(1))
        assert player.game["over"]


def test_a_log_from_before_yields_were_remembered_keeps_its_position() -> None:
    session, choose = Session.start("deal-medium", seed=6), random.Random(6)
    for _ in range(41):
        session.apply(choose.choice(session.legal()).number)
    assert session.states[0]["cannot_refuse"].tolist() == [0, 8]
    assert position(session) == "466d6c94775ec4cfff44d48be16fb938", "as it was stored then"


@pytest.mark.parametrize("opponent", OPPONENTS, ids=str)
def test_a_replay_is_what_the_engine_makes_of_the_log(
    app: FastAPI, client: TestClient, opponent: dict[str, Any]
) -> None:
    """Step by step: who did what, both views after it, and what the agent weighed when it moved."""
    player = Player.start(client, opponent, first="random")
    player.play_on(random.Random(5))
    steps = player.get("/replay").json()["steps"]
    with Database(app.state.context.store.engine) as db:
        row, moves = _read(db, player.id)
    session = _begin(row)
    expected: list[dict[str, Any]] = []

    def note(decision: Any) -> None:
        views = [session.view(seat).model_dump(mode="json") for seat in (0, 1)]
        for event in session.history[len(expected) :]:
            told = decision if event.actor is not None else None
            expected.append(
                {
                    "number": len(expected) + 1,
                    "actor": event.actor,
                    "name": event.name,
                    "views": views,
                    "decision": told,
                }
            )

    note(None)
    for move in moves:
        session.apply(move.move)
        note(move.decision)
        assert (move.decision is None) == (move.actor == row.seat)
    assert steps == expected
    assert steps[-1]["views"][row.seat] == player.game["view"]


def test_a_checkpoint_that_was_thinned_out_gives_way_to_a_later_one(
    runs: Path, tmp_path: Path
) -> None:
    folder, database = tmp_path / "runs", f"sqlite:///{tmp_path / 'games.db'}"
    shutil.copytree(runs / "deal", folder / "deal")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "deal", "snapshot": 20}, first="agent")
        player.play_on(random.Random(1), most=2)
    shutil.rmtree(folder / "deal" / "checkpoints" / "00000020")
    with TestClient(create_app(settings(folder, database)), base_url=BASE) as client:
        player.client = client
        player.play_on(random.Random(2))
        decisions = player.get("/decisions").json()["decisions"]
        assert [d["snapshot"] for d in decisions] == sorted(d["snapshot"] for d in decisions)
        assert {d["snapshot"] for d in decisions} == {20, 40}


@pytest.mark.slow
def test_kill_9_loses_no_acknowledged_move(runs: Path, database: str) -> None:
    chance = random.Random(9)
    with gateway_process(runs, database) as gateway:
        players = [
            Player.start(gateway.client, opponent, first="random")
            for opponent in (DEAL, {"run": "deal"}, {"run": "leduc"})
        ]
        for _ in range(3):
            for player in players:
                player.play_on(chance, most=4)
            _restart_in_mid_move(gateway, players, chance)
        for player in players:
            player.play_on(chance)
            assert player.game["over"]
        assert gateway.stop() == 0
    _agents_played_by_their_streams(runs, database, players)


@pytest.mark.slow
def test_a_move_that_was_stored_and_never_answered_is_made_once(runs: Path, database: str) -> None:
    """The process is killed once the move is in the database; its player has read no answer."""
    store = Store(settings(runs, database).database_url)

    def stored() -> list[tuple[int, int, int]]:
        with Database(store.engine) as db:
            return [(row.number, row.actor, row.move) for row in _read(db, player.id)[1]]

    with contextlib.closing(store), gateway_process(runs, database) as gateway:
        player = Player.start(gateway.client, {"run": "deal"}, first="you")
        number, before = player.game["move_number"], stored()
        legal = [move["name"] for move in player.game["legal"]]
        body = {"move_number": number, "move": legal[0]}
        with _unanswered(gateway, player, body):
            assert eventually(lambda: len(stored()) > len(before), 60)
            gateway.kill()
        written = stored()
        assert written[: len(before)] == before
        assert sum(actor == player.game["seat"] for _, actor, _ in written[len(before) :]) == 1
        gateway.start()
        player.client = gateway.client
        told = player.get().json()
        assert told["move_number"] == len(written)
        again = [player.post("/moves", body) for _ in range(2)]
        assert [answer.status_code for answer in again] == [200, 200]
        assert again[0].json() == again[1].json()
        assert again[0].json()["game"] == told
        assert [e["actor"] for e in again[0].json()["events"]].count(player.game["seat"]) == 1
        other = player.post("/moves", {"move_number": number, "move": legal[1]})
        assert (other.status_code, other.json()["move_number"]) == (409, len(written))
        assert stored() == written, "nothing was made twice"


@contextlib.contextmanager
def _unanswered(gateway: GatewayProcess, player: Player, body: dict[str, Any]) -> Iterator[None]:
    """A move on its way over a connection that nobody reads from."""
    text = json.dumps(body)
    head = [
        f"POST {API}/games/{player.id}/moves HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {player.secret}",
        "Content-Type: application/json",
        f"Content-Length: {len(text)}",
    ]
    port = int(gateway.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join([*head, "", text]).encode())
        yield


def _restart_in_mid_move(gateway: GatewayProcess, players: list[Player], chance: Any) -> None:
    """Send a move, kill without waiting for the answer, and see that either it happened or not."""
    before = [player.game for player in players]
    undecided = next((p for p in players if not p.game["over"]), None)
    if undecided is not None:
        body = {"move_number": undecided.game["move_number"]}
        body["move"] = chance.choice(undecided.game["legal"])["name"]
        path = f"{API}/games/{undecided.id}/moves"
        with contextlib.suppress(httpx2.TransportError):
            gateway.client.post(path, headers=undecided.headers, json=body, timeout=0.002)
    gateway.kill()
    gateway.start()
    for player, was in zip(players, before, strict=True):
        player.client = gateway.client
        now_told = player.get().json()
        if player is undecided and now_told != was:
            assert player.post("/moves", body).json()["game"] == now_told
        else:
            assert now_told == was
        player.game = now_told


def _agents_played_by_their_streams(runs: Path, database: str, players: list[Player]) -> None:
    """Every move of the agent is the one that (seed, move number) gives, restarts or not."""

    async def look() -> None:
        app = create_app(settings(runs, database))
        async with app.router.lifespan_context(app):
            tables = app.state.context.tables
            for player in players:
                table = await tables.open(player.id, player.secret)
                mind, session = await tables.mind(table), table.begin()
                for move in table.moves:
                    if move.actor != table.row.seat:
                        again, _ = mind.decide(session, table.row.seed, move.number)
                        assert again == move.move
                    session.apply(move.move)

    asyncio.run(look())


def test_the_log_is_written_before_the_answer(app: FastAPI, client: TestClient) -> None:
    player = Player.start(client, DEAL)
    for _ in range(4):
        player.move(player.game["legal"][0]["name"])
        with Database(app.state.context.store.engine) as db:
            assert len(_read(db, player.id)[1]) == player.game["move_number"]
            assert _read(db, player.id)[0].updated <= now()
