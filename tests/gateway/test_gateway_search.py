"""Agents that think ahead, through the API: what they tell, what they may take, who waits."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import ADMIN, API, BASE, DEAL, Player, settings, visited

from rejoinder.measure.search import Searcher, SearchResult
from rejoinder_gateway import tables
from rejoinder_gateway.app import create_app

OPPONENTS = [{"run": "kuhn"}, {"run": "leduc"}, {"run": "deal"}, DEAL]


@pytest.mark.parametrize("opponent", OPPONENTS, ids=str)
def test_a_game_is_played_to_its_end_and_told_with_what_was_found(
    client: TestClient, opponent: dict[str, Any]
) -> None:
    player = Player.start(client, opponent, search=20, first="agent")
    assert player.game["search"] == 20
    player.play_on(random.Random(1))
    decisions = player.get("/decisions").json()["decisions"]
    assert decisions
    for decision in decisions:
        chosen = [a for a in decision["actions"] if a["probability"] == 1.0]
        assert [action["move"] for action in chosen] == [decision["move"]]
        assert sum(a["probability"] for a in decision["actions"]) == 1.0
        assert decision["search"] > 0, "a forced move takes its time as well"
        assert all(isinstance(a["value"], float) for a in decision["actions"])
    headers = {"Authorization": f"Bearer {ADMIN}"}
    results = client.get(f"{API}/results", headers=headers).json()["results"]
    assert [r["search"] for r in results if r["id"] == player.id] == [20]


def test_advice_values_every_legal_move_and_stays_the_same(client: TestClient) -> None:
    player = Player.start(client, {"run": "deal"}, search=40)
    advice = player.get("/advice").json()
    assert advice["search"] > 0
    assert sorted(a["move"] for a in advice["actions"]) == sorted(
        move["name"] for move in player.game["legal"]
    )
    assert all(-1.0 <= a["value"] <= 1.0 for a in advice["actions"])
    assert player.get("/advice").json() == advice


def test_advice_is_thought_out_once_for_a_position(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    thoughts: list[int] = []
    advise = Searcher.advise

    def counted(self: Searcher, states: Any) -> SearchResult:
        thoughts.append(self.samples)
        return advise(self, states)

    monkeypatch.setattr(Searcher, "advise", counted)
    player = Player.start(client, {"run": "deal"}, search=40)
    first = player.get("/advice")
    assert [player.get("/advice").content for _ in range(3)] == 3 * [first.content]
    assert thoughts == [40]
    player.move(first.json()["actions"][0]["move"])
    assert player.game["your_turn"]
    assert player.get("/advice").content != first.content
    assert thoughts == [40, 40]


def test_without_search_nothing_is_valued(client: TestClient) -> None:
    player = Player.start(client, {"run": "deal"})
    assert player.game["search"] == 0
    advice = player.get("/advice").json()
    assert advice["search"] == 0
    assert {action["value"] for action in advice["actions"]} == {None}


def test_more_samples_than_allowed_are_refused(runs: Path, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'games.db'}"
    app = create_app(settings(runs, database, max_search=50))
    with TestClient(app, base_url=BASE) as client:
        assert client.get(f"{API}/").json()["limits"]["search_samples"] == 50
        assert Player.start(client, {"run": "kuhn"}, search=50).game["search"] == 50
        answer = client.post(f"{API}/games", json={"opponent": {"run": "kuhn"}, "search": 51})
        assert (answer.status_code, answer.json()["title"]) == (403, "Too many samples")
        assert answer.json()["search_samples"] == 50
    app = create_app(settings(runs, database, max_search=0))
    with TestClient(app, base_url=BASE) as client:
        answer = client.post(f"{API}/games", json={"opponent": {"run": "kuhn"}, "search": 1})
        assert answer.status_code == 403
        assert Player.start(client, {"run": "kuhn"}).game["search"] == 0


def test_a_lower_limit_wins_over_the_games_that_there_are(runs: Path, tmp_path: Path) -> None:
    """What they have made stays as it is; only what is thought from now on is less."""
    database = f"sqlite:///{tmp_path / 'games.db'}"
    with TestClient(create_app(settings(runs, database)), base_url=BASE) as client:
        player = Player.start(client, {"run": "deal"}, search=40, first="agent", open=True)
        before = player.get("/decisions").json()["decisions"]
        assert all(decision["search"] for decision in before)
    for limit, allowed in ((10, range(1, 40)), (0, range(1))):
        app = create_app(settings(runs, database, max_search=limit))
        with TestClient(app, base_url=BASE) as client:
            player.client = client
            assert player.get().json()["search"] == 40
            assert player.get("/advice").json()["search"] in allowed
            made = len(player.get("/decisions").json()["decisions"])
            while len(player.get("/decisions").json()["decisions"]) == made:
                player.play_on(random.Random(1), 1)
            decisions = player.get("/decisions").json()["decisions"]
            assert decisions[: len(before)] == before
            assert all(decision["search"] in allowed for decision in decisions[made:])
            before = decisions


@pytest.mark.parametrize("wrong", [-1, 1.5, "20", True, 10**7, None])
def test_what_is_no_number_of_samples_is_refused(client: TestClient, wrong: Any) -> None:
    answer = client.post(f"{API}/games", json={"opponent": {"run": "kuhn"}, "search": wrong})
    assert answer.status_code == 422
    assert "search" in answer.text


def test_nobody_waits_for_an_agent_that_thinks(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop answers others while it does; the thought ends only once they were answered."""
    answered, think = threading.Event(), Searcher.think

    def slowly(self: Searcher, states: Any, rng: Any) -> SearchResult:
        assert answered.wait(60), "others had to wait"
        return think(self, states, rng)

    monkeypatch.setattr(Searcher, "think", slowly)

    async def play() -> int:
        async with visited(app) as client:
            body = {"opponent": {"run": "kuhn"}, "search": 20, "first": "agent"}
            begun = asyncio.create_task(client.post(f"{API}/games", json=body))
            other = await client.post(f"{API}/games", json={"opponent": {"run": "kuhn"}})
            assert other.status_code == 201
            assert not begun.done()
            answered.set()
            return (await begun).status_code

    assert asyncio.run(play()) == 201


def test_too_many_thoughts_are_refused_and_change_nothing(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, think = threading.Event(), Searcher.think

    def slowly(self: Searcher, states: Any, rng: Any) -> SearchResult:
        assert refused.wait(60), "nobody was refused"
        return think(self, states, rng)

    monkeypatch.setattr(Searcher, "think", slowly)
    monkeypatch.setattr(tables, "PENDING", 1)

    async def play() -> None:
        async with visited(app) as client:
            body = {"opponent": {"run": "deal"}, "search": 20}
            first, second = [await client.post(f"{API}/games", json=body) for _ in range(2)]
            waiting = asyncio.create_task(_advice(client, first))
            while not app.state.context.tables._pending:
                await asyncio.sleep(0.001)
            busy = await _advice(client, second)
            assert (busy.status_code, busy.json()["title"]) == (503, "Too many thoughts")
            assert busy.headers["retry-after"] == "1"
            agent = await client.post(f"{API}/games", json=body | {"first": "agent"})
            assert agent.status_code == 503
            refused.set()
            assert (await waiting).status_code == 200
            assert (await _advice(client, second)).status_code == 200
            assert app.state.context.tables._pending == 0

    asyncio.run(play())


async def _advice(client: httpx2.AsyncClient, created: httpx2.Response) -> httpx2.Response:
    told = created.json()
    headers = {"Authorization": f"Bearer {told['secret']}"}
    return await client.get(f"{API}/games/{told['game']['id']}/advice", headers=headers)
