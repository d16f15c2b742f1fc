"""Probes, metrics, the page, the settings and the command."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from gateway_play import API, DEAL, KUHN, Player, free_port, gateway_process, when_ready
from sqlalchemy.exc import SQLAlchemyError
from typer.testing import CliRunner

from rejoinder.games import game_names
from rejoinder_cli.main import app
from rejoinder_gateway import health
from rejoinder_gateway.settings import Settings, SettingsError


def test_probes_and_metrics(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert when_ready(client) == {
        "status": "ready",
        "checks": {"database": "ok", "runs": "ok", "kernels": "ok"},
    }
    Player.start(client, KUHN).move("bet")
    client.get(f"{API}/games/made-up-by-a-client")
    text = client.get("/metrics").text
    route = 'route="/games/{game}/moves"'
    assert f'rejoinder_gateway_requests_total{{method="POST",{route},status="200"}} 1.0' in text
    assert 'rejoinder_gateway_moves_total{by="player"} 1.0' in text
    assert 'rejoinder_gateway_games_total{event="created"} 1.0' in text
    assert "made-up" not in text


def test_the_database_is_asked_once_in_a_while_whether_it_works(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_FRESH", 3600.0)
    store = client.app.state.context.store  # type: ignore[attr-defined]
    asked: list[Any] = []
    do = store.do

    def counted(work: Any) -> Any:
        asked.append(work)
        return do(work)

    monkeypatch.setattr(store, "do", counted)
    for _ in range(20):
        assert client.get("/readyz").json()["checks"]["database"] == "ok"
    assert len(asked) == 1
    monkeypatch.setattr(store, "do", _away)
    assert client.get("/readyz").json()["checks"]["database"] == "ok"
    monkeypatch.setattr(health, "_FRESH", 0.0)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "cannot be used" in answer.json()["checks"]["database"]
    assert "swordfish" not in answer.text


async def _away(_: Any) -> None:
    raise SQLAlchemyError("the password is swordfish")


def test_the_catalogue_names_every_game(client: TestClient) -> None:
    catalogue = client.get(f"{API}/games-catalogue").json()
    names = [c["full_name"] for entry in catalogue for c in entry["configurations"]]
    assert names == game_names() == client.get(f"{API}/").json()["games"]
    deal = catalogue[0]
    assert (deal["name"], deal["baselines"]) == ("deal", ["random", "risk-aware"])
    for entry in catalogue:
        for baseline in entry["baselines"]:
            opponent = {
                "baseline": baseline,
                "configuration": entry["configurations"][-1]["full_name"],
            }
            assert Player.start(client, opponent).game["game"] == entry["name"]


def test_the_page_is_served_with_its_files(client: TestClient) -> None:
    plotly = client.get("/vendor/plotly.min.js")
    assert plotly.headers["content-type"].startswith("text/javascript")
    assert "max-age" in plotly.headers["cache-control"]
    again = {"if-none-match": plotly.headers["etag"]}
    assert client.get("/vendor/plotly.min.js", headers=again).status_code == 304
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-cache"
    assert client.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304
    for path in ("/training", "/vendor/x", "/vendor", "/js", "/js/", "/api"):
        unknown = client.get(path)
        assert unknown.status_code == 404
        assert unknown.headers["content-type"] == "application/problem+json"
    for script in re.findall(r'<script[^>]* src="/?([^":]+)"', page.text):
        assert client.get(f"/{script}").headers["content-type"].startswith("text/javascript")
    assert client.get("/no-such-file.js").status_code == 404


def test_the_api_says_where_to_go_on(client: TestClient) -> None:
    told = client.get(API).json()
    assert told == client.get(f"{API}/").json()
    assert {"openapi", "runs", "games", "status", "page"} <= told["links"].keys()
    answers = {name: client.get(path).status_code for name, path in told["links"].items()}
    assert answers.pop("games") == 405  # it takes new ones
    assert answers.pop("status") in (200, 503)  # kernels may be loading
    assert set(answers.values()) == {200}
    assert isinstance(told["limits"]["body_bytes"], int)


def test_who_watches_need_not_read(client: TestClient) -> None:
    when_ready(client)
    for path in ("/", "/healthz", "/readyz"):
        answer = client.head(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == client.get(path).headers["content-type"]


def test_the_openapi_document_has_problems_and_descriptions(client: TestClient) -> None:
    document = client.get(f"{API}/openapi.json").json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"], path
            assert "HTTPValidationError" not in str(operation)
            assert operation["description"]


def test_settings_come_from_the_environment_and_name_what_is_wrong() -> None:
    environment = {
        "REJOINDER_GATEWAY_PORT": "0",
        "REJOINDER_GATEWAY_HOSTS": "a.example, b.example",
        "REJOINDER_GATEWAY_ADMIN_TOKEN": "a token of some length",
        "PATH": "ignored",
    }
    read = Settings.read(environment, {"rate": 5, "host": None})
    assert (read.port, read.rate, read.host) == (0, 5, "127.0.0.1")
    assert {"a.example", "b.example", "localhost"} <= read.allowed_hosts
    assert "a token" not in repr(read)
    assert read.database_url == "sqlite:///runs/gateway.db"
    assert Settings(database="postgresql://x/y").database_url == "postgresql+psycopg://x/y"
    for field, value in (("PORT", "x"), ("RATE", "-1"), ("MAX_BODY", "1"), ("ADMIN_TOKEN", "abc")):
        with pytest.raises(SettingsError, match=f"REJOINDER_GATEWAY_{field}") as caught:
            Settings.read({f"REJOINDER_GATEWAY_{field}": value})
        assert "abc" not in str(caught.value)


def test_the_command_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    for option, value, named in (
        ("--admin-token", "short", "admin_token"),
        ("--database", "mysql://x/y", "database"),
        ("--database", "nonsense", "database"),
        ("--database", "postgresql://127.0.0.1:1/x", "database"),
        ("--host", "no such host", "no such host"),
    ):
        given = ["gateway", "--runs", str(tmp_path / "runs"), "--port", "0", option, value]
        result = CliRunner().invoke(app, given)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert named in line


@pytest.mark.parametrize("command", ["gateway", "demo"])
def test_a_port_that_is_taken_is_told_with_what_to_do(tmp_path: Path, command: str) -> None:
    where = {"gateway": ["--runs", tmp_path / "runs"], "demo": ["--run", tmp_path / "runs/demo"]}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [command, *map(str, where[command]), "--port", port]
        result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert port in line
    assert "--port" in line
    assert not (tmp_path / "runs" / "demo").exists(), "nothing was trained for it"


@pytest.mark.slow
def test_a_folder_of_runs_that_was_not_there_is_told(tmp_path: Path) -> None:
    """A name that was mistyped looks like a gateway that has lost its runs."""
    command = [sys.executable, "-m", "rejoinder_cli.main", "gateway", "--port", "0"]
    told = []
    for _ in range(2):
        with subprocess.Popen(
            [*command, "--runs", tmp_path / "rums"], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            told.append(process.stdout.readline())
            process.terminate()
    assert told[0].endswith(f"with the runs in {tmp_path / 'rums'}, a new folder\n")
    assert told[1].endswith(f"with the runs in {tmp_path / 'rums'}\n")


@pytest.mark.slow
def test_the_process_ends_at_once_while_kernels_are_compiled(tmp_path: Path) -> None:
    database, new = f"sqlite:///{tmp_path / 'g.db'}", str(tmp_path / "cache")
    with gateway_process(tmp_path / "runs", database, REJOINDER_CACHE_DIR=new) as gateway:
        assert gateway.client.get("/readyz").json()["checks"]["kernels"] == "loading"
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(60) == -signal.SIGTERM


@pytest.mark.slow
def test_the_command_serves_and_ends_when_asked(runs: Path, tmp_path: Path) -> None:
    with gateway_process(runs, f"sqlite:///{tmp_path / 'g.db'}") as gateway:
        assert gateway.address.startswith("http://127.0.0.1:")
        player = Player.start(gateway.client, DEAL)
        answer = player.post("/ticket").json()
        stream = f"{API}/games/{player.id}/events?ticket={answer['ticket']}"
        with gateway.client.stream("GET", stream) as events:
            lines = events.iter_lines()
            assert next(lines) == "event: game"
            told = next(lines)
            assert f'"id":"{player.id}"' in told.replace(" ", "")
            number = player.game["move_number"]
            player.move(player.game["legal"][0]["name"])
            following = next(line for line in lines if line.startswith("data:"))
            assert f'"move_number":{number}' not in following.replace(" ", "")
            assert player.game["view"]["hand"].keys()
        assert gateway.client.get(stream).status_code == 404
        assert gateway.stop() == 0
    assert free_port()
