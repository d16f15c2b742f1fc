"""The database's schema: up, down and up again; nothing stored is lost, nothing foreign touched."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from fastapi.testclient import TestClient
from gateway_play import BASE, Player, settings
from sqlalchemy import Connection, Engine, MetaData, Table, create_engine, insert, inspect, select
from typer.testing import CliRunner

import rejoinder_gateway
from rejoinder.games import GAMES, find_game, queries
from rejoinder.games.session import Session
from rejoinder_cli.main import app as command_line
from rejoinder_gateway.app import create_app
from rejoinder_gateway.decisions import SeatedAgent
from rejoinder_gateway.library import baseline
from rejoinder_gateway.security import hashed
from rejoinder_gateway.store import Base, Store, StoreError, check_database

BEGUN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UNKNOWN = "9999"  # a revision that some later version of Rejoinder might have


@pytest.fixture
def url(database: str) -> str:
    """As SQLAlchemy takes it."""
    return settings(Path("runs"), database).database_url


def test_an_empty_database_becomes_what_the_models_say(url: str) -> None:
    check_database(url)
    assert _differences(url) == []
    assert _revision(url) == ScriptDirectory.from_config(_config()).get_current_head()
    before = _contents(url)
    check_database(url)  # once more changes nothing
    assert _contents(url) == before


def test_the_comparison_notices_a_column_that_is_not_in_the_models(url: str) -> None:
    check_database(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE games ADD COLUMN forgotten INTEGER")
    engine.dispose()
    (difference,) = _differences(url)
    assert (difference[0], difference[3].name) == ("remove_column", "forgotten")


def test_down_to_nothing_and_up_again(url: str) -> None:
    check_database(url)
    _alembic(url, command.downgrade, "base")
    engine = create_engine(url)
    assert set(inspect(engine).get_table_names()) <= {"alembic_version"}
    engine.dispose()
    check_database(url)
    assert _differences(url) == []


def test_every_revision_can_be_reached_and_left(url: str) -> None:
    revisions = [s.revision for s in ScriptDirectory.from_config(_config()).walk_revisions()]
    for revision in reversed(revisions):  # from the oldest on
        _alembic(url, command.upgrade, revision)
        _alembic(url, command.downgrade, "-1")
        _alembic(url, command.upgrade, revision)
        assert _revision(url) == revision
    assert _differences(url) == []


def test_games_of_the_first_revision_are_kept_and_can_be_played_on(runs: Path, url: str) -> None:
    """Brought up to date by the gateway itself, with its own settings of the database."""
    _alembic(url, command.upgrade, "0001")
    played = [_game(f"{k:016x}", seed=k, moves=k) for k in range(4)]
    engine = create_engine(url)
    tables = _tables(engine)
    with engine.begin() as connection:
        for row, moves in played:
            connection.execute(insert(tables["games"]), row)
            if moves:
                connection.execute(insert(tables["moves"]), moves)
        before = {name: _rows(connection, table) for name, table in tables.items()}
    engine.dispose()
    assert before["moves"]
    with TestClient(create_app(settings(runs, url)), base_url=BASE) as client:
        engine = create_engine(url)
        with engine.connect() as connection:
            for name, table in _tables(engine).items():
                kept = [
                    {column.name: row[column.name] for column in tables[name].columns}
                    for row in _rows(connection, table)
                ]
                assert kept == before[name]
        engine.dispose()
        for row, moves in played:
            player = Player(client, {"secret": f"secret {row['id']}", "game": {"id": row["id"]}})
            player.game = player.get().json()
            assert player.game["move_number"] >= len(moves)
            told = [e for e in player.get("/history").json()["events"] if e["actor"] is not None]
            names = [GAMES[row["game"]].moves[move["move"]] for move in moves]
            assert [event["name"] for event in told][: len(moves)] == names
            if not player.game["over"]:
                assert player.move(player.game["legal"][0]["name"]).status_code == 200
                assert player.post("/resign").json()["over"]
            decisions = player.get("/decisions").json()["decisions"]
            stored = [move["decision"] for move in moves if move["decision"]]
            assert [_policy(d) for d in decisions][: len(stored)] == [_policy(d) for d in stored]
            assert player.get("/replay").status_code == 200


def test_going_back_to_the_first_revision_keeps_games_and_moves(url: str) -> None:
    """With the gateway's own connection: on SQLite it has foreign keys on, so that a table that is
    dropped and made anew takes what refers to it along."""
    check_database(url)
    row, moves = _game("0" * 16, seed=3, moves=3)
    store = Store(url)
    tables = _tables(store.engine)
    with store.engine.begin() as connection:
        connection.execute(insert(tables["games"]), row)
        connection.execute(insert(tables["moves"]), moves)
    with store.engine.begin() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
    with store.engine.connect() as connection:
        kept = {name: _rows(connection, table) for name, table in _tables(store.engine).items()}
    store.close()
    assert [game["id"] for game in kept["games"]] == [row["id"]]
    assert [move["move"] for move in kept["moves"]] == [move["move"] for move in moves]


def test_a_database_of_an_unknown_revision_is_refused_and_left_alone(
    url: str, tmp_path: Path
) -> None:
    check_database(url)
    engine = create_engine(url)
    tables = _tables(engine)
    row, moves = _game("0" * 16, seed=1, moves=2)
    with engine.begin() as connection:
        connection.execute(insert(tables["games"]), row)
        connection.execute(insert(tables["moves"]), moves)
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{UNKNOWN}'")
    engine.dispose()
    before = _contents(url)
    with pytest.raises(StoreError) as refused:
        check_database(url)
    (line,) = str(refused.value).splitlines()
    assert line.startswith("database: ")
    assert "another version of Rejoinder" in line
    assert UNKNOWN in line
    given = ["gateway", "--runs", str(tmp_path / "runs"), "--port", "0", "--database", url]
    result = CliRunner().invoke(command_line, given)
    assert result.exit_code == 2
    (told,) = result.stderr.splitlines()
    assert "another version of Rejoinder" in told
    assert _contents(url) == before


def test_a_schema_that_is_not_ours_is_refused_and_left_alone(url: str) -> None:
    """A table called `games` of somebody else's; no revision is noted."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE games (title VARCHAR(20))")
        connection.exec_driver_sql("INSERT INTO games VALUES ('chess')")
    engine.dispose()
    before = _contents(url)["games"]
    with pytest.raises(StoreError, match=r"^database: ") as refused:
        check_database(url)
    assert len(str(refused.value).splitlines()) == 1
    after = _contents(url)
    assert after["games"] == before
    assert "moves" not in after


def test_gateways_that_start_at_once_bring_it_up_to_date_once(url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        for store in threads.map(Store, [url] * 4):
            store.close()
    assert _differences(url) == []


_KILLED = """
import os, sys
from sqlalchemy import Engine, event
from rejoinder_gateway.store import Store

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, *_):
    if statement.startswith("ALTER TABLE games ADD"):
        os._exit(9)

Store(sys.argv[1])
"""


def test_a_kill_between_two_changes_of_the_schema_leaves_it_usable(url: str) -> None:
    killed = subprocess.run([sys.executable, "-c", _KILLED, url])
    assert killed.returncode == 9
    Store(url).close()
    assert _differences(url) == []


def _game(name: str, *, seed: int, moves: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row of revision 0001 and those of its moves: Leduc against the random baseline.

    The game has `moves` moves, or fewer if it is over before; the player has seat 0.
    """
    game, configuration = find_game("leduc")
    session = Session.start(game, game.configurations[configuration], seed=seed)
    mind = SeatedAgent(baseline(game, "random"), None)
    log: list[dict[str, Any]] = []
    while len(log) < moves and session.to_move is not None:
        decision, number = None, len(log)
        if session.to_move == 0:
            move = session.legal()[-1].number
        else:
            move, told = mind.decide(session, seed, number)
            decision = told.model_dump(mode="json")
            for action in decision["actions"]:
                action["legal"] = True  # a field of that time
        log.append(
            {
                "game": name,
                "number": number,
                "actor": session.to_move,
                "move": move,
                "made": BEGUN + timedelta(seconds=number + 1),
                "decision": decision,
            }
        )
        session.apply(move)
    won = session.utilities[0] if session.utilities else None
    row = {
        "id": name,
        "secret_hash": hashed(f"secret {name}"),
        "created": BEGUN,
        "updated": BEGUN + timedelta(seconds=len(log)),
        "finished": BEGUN + timedelta(seconds=len(log)) if session.over else None,
        "game": "leduc",
        "configuration": "leduc",
        "rules": session.rules.model_dump(mode="json"),
        "seed": seed,
        "seat": 0,
        "argmax": False,
        "open": False,
        "opponent": "random",
        "opponent_kind": "baseline",
        "snapshot": None,
        "abstraction": mind.agent.abstraction.name,
        "kernel": queries.engine_version(session.game.dtype),
        "player": {"name": "Zoë ♠"},
        "moves": len(log),
        "outcome": None if won is None else "won" if won > 0 else "lost" if won < 0 else "draw",
        "winner": session.winner,
        "utility": won,
    }
    return row, log


def _policy(decision: dict[str, Any]) -> tuple[str, dict[str, float]]:
    return decision["move"], {a["name"]: a["probability"] for a in decision["actions"]}


def _differences(url: str) -> list[Any]:
    """What the models say otherwise than the database."""
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        found = compare_metadata(context, Base.metadata)
    engine.dispose()
    return list(found)


def _revision(url: str) -> str | None:
    engine = create_engine(url)
    with engine.connect() as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
    engine.dispose()
    return revision


def _alembic(url: str, order: Any, revision: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        config = _config()
        config.attributes["connection"] = connection
        order(config, revision)
    engine.dispose()


def _config() -> Config:
    config = Config()
    folder = Path(rejoinder_gateway.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def _contents(url: str) -> dict[str, Any]:
    """Every table: its columns, its indices, its rows."""
    engine = create_engine(url)
    found = inspect(engine)
    with engine.connect() as connection:
        contents = {
            table.name: (
                [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table.name)],
                sorted(str(index["name"]) for index in found.get_indexes(table.name)),
                _rows(connection, table),
            )
            for table in _reflected(engine).sorted_tables
        }
    engine.dispose()
    return contents


def _tables(engine: Engine) -> dict[str, Table]:
    """The gateway's tables as they are in the database, whatever the models say."""
    found = _reflected(engine).tables
    return {name: found[name] for name in ("games", "moves")}


def _reflected(engine: Engine) -> MetaData:
    metadata = MetaData()
    metadata.reflect(engine)
    return metadata


def _rows(connection: Connection, table: Table) -> list[dict[str, Any]]:
    rows = [dict(row) for row in connection.execute(select(table)).mappings()]
    return sorted(rows, key=lambda row: json.dumps(row, default=str))
