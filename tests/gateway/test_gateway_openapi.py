"""Schemathesis reads the OpenAPI document and tries what it allows and what it does not.

All its checks must pass: no 5xx, every answer as documented, what is valid accepted, what is not
refused. A real process is asked; every operation on games has a game and a secret of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from gateway_play import ADMIN, API, DEAL, Player, gateway_process, when_ready

from rejoinder_gateway import schemas

# Answers to what the document's schemas allow but the rules of a game do not.
_BY_THE_RULES = ["2xx", "404", "409", "422"]
_GAME_PATHS = ("", "/moves", "/advice", "/decisions", "/history", "/replay", "/resign", "/ticket")


@pytest.mark.slow
def test_schemathesis_finds_nothing(runs: Path, tmp_path: Path, database: str) -> None:
    with gateway_process(runs, database, REJOINDER_GATEWAY_ADMIN_TOKEN=ADMIN) as gateway:
        when_ready(gateway.client)  # before, /readyz answers 503, as it should
        operations = [_with_token(f"{API}/results"), _with_token(f"{API}/runs/{{run}}/stop")]
        for path in (*_GAME_PATHS, "/events"):
            player = Player.start(gateway.client, DEAL, open=path == "/decisions")
            if path == "/replay":
                player.post("/resign")
            operations.append(_with_game(path, player))
        for path in ("/policy/lookup", "/forecast"):
            operations.append(_about(f"{API}/runs/{{run}}{path}", _BY_THE_RULES))
        operations.append(_about(f"{API}/runs/{{run}}/events"))  # which never ends
        config = tmp_path / "schemathesis.toml"
        config.write_text(_toml(operations), "utf-8")
        url = f"{gateway.address}{API}/openapi.json"
        examples = "15" if database.startswith("sqlite") else "5"  # the routes are the same ones
        words = [*("--config-file", str(config)), "run", url, *("-n", examples, "--seed", "1")]
        words += ["--generation-database", "none", "--no-color"]
        found = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
        assert gateway.process.poll() is None
        assert gateway.client.get("/readyz").status_code == 200


def test_the_document_says_limits_in_the_words_of_json_schema(app: FastAPI) -> None:
    """Pydantic writes `ge` where it does not understand a limit, and nobody else reads that."""
    unread = {"ge", "le", "gt", "lt", "min_length", "max_length", "multiple_of"}

    def search(part: Any, path: str) -> list[str]:
        if isinstance(part, list):
            return [found for k, item in enumerate(part) for found in search(item, f"{path}/{k}")]
        if not isinstance(part, dict):
            return []
        here = [f"{path}/{name}" for name in part if name in unread]
        return here + [found for k, item in part.items() for found in search(item, f"{path}/{k}")]

    assert search(app.openapi(), "") == []


def test_every_request_and_every_answer_has_an_example(app: FastAPI) -> None:
    document = app.openapi()
    models = document["components"]["schemas"]
    without, seen = [], 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = [a for status, a in operation["responses"].items() if status[0] == "2"]
            for part in (*answers, operation.get("requestBody", {})):
                told = part.get("content", {}).get("application/json")
                if told is None:
                    continue
                name = told["schema"].get("$ref", "").rpartition("/")[2]
                seen += 1
                if not (told.get("example") or models.get(name, {}).get("examples")):
                    without.append(f"{method} {path}")
    assert without == []
    assert seen > 25


def test_every_example_is_one_of_its_model(app: FastAPI) -> None:
    """In the document itself, which must not have lost what is null; with nothing besides."""
    document = app.openapi()
    catalogue = document["paths"][f"{API}/games-catalogue"]["get"]["responses"]["200"]
    shown = {"CatalogueEntry": catalogue["content"]["application/json"]["example"]}
    for name, schema in document["components"]["schemas"].items():
        shown[name] = [*shown.get(name, []), *schema.get("examples", [])]
    for name, examples in shown.items():
        for example in examples:
            read = getattr(schemas, name).model_validate(example)
            assert read.model_dump(mode="json", exclude_unset=True) == example, name
    assert sum(map(len, shown.values())) > 25


def _about(path: str, expected: list[str] | None = None) -> dict[str, Any]:
    about: dict[str, Any] = {"include-path": path, "max-stream-events": 1, "request-timeout": 10}
    if expected:
        about["checks"] = {"positive_data_acceptance": {"expected-statuses": expected}}
    return about


def _with_token(path: str) -> dict[str, Any]:
    return _about(path) | {"headers": {"Authorization": f"Bearer {ADMIN}"}}


def _with_game(path: str, player: Player) -> dict[str, Any]:
    """Without the secret the answer is 404, not 401: nobody is to learn which games there are."""
    about = _about(f"{API}/games/{{game}}{path}", _BY_THE_RULES if path == "/moves" else None)
    checks = about.setdefault("checks", {})
    for expects_401 in ("ignored_auth", "missing_required_header"):
        checks[expects_401] = {"enabled": False}
    return about | {"headers": player.headers, "parameters": {"game": player.id}}


def _toml(operations: list[dict[str, Any]]) -> str:
    """JSON's strings and lists are TOML's too; tables are written inline."""
    return (
        "".join(
            "[[operations]]\n" + "".join(f"{k} = {_value(v)}\n" for k, v in about.items())
            for about in operations
        )
        + '[parameters]\nrun = "kuhn"\n'
    )


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)
