"""Agents that think ahead, through the API: what they tell, what they may take, who waits."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import ADMIN, API, BASE, DEAL, Player, settings, visited

from rejoinder.evaluate.search import Searcher, Thought
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
    assert any(decision["search"] for decision in decisions)
    for decision in decisions:
        chosen = [a for a in decision["actions"] if a["probability"] == 1.0]
        assert [action["move"] for action in chosen] == [decision["move"]]
        assert sum(a["probability"] for a in decision["actions"]) == 1.0
        if decision["search"]:
            assert len(decision["actions"]) > 1
            assert all(isinstance(a["value"], float) for a in decision["actions"])
        else:  # a forced move
            assert [a["value"] for a in decision["actions"]] == [None]
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
        assert (answer.status_code, answer.json()["title"]) == (422, "Too many samples")
        assert answer.json()["search_samples"] == 50
    app = create_app(settings(runs, database, max_search=0))
    with TestClient(app, base_url=BASE) as client:
        answer = client.post(f"{API}/games", json={"opponent": {"run": "kuhn"}, "search": 1})
        assert answer.status_code == 422
        assert Player.start(client, {"run": "kuhn"}).game["search"] == 0


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

    def slowly(self: Searcher, states: Any, rng: Any) -> Thought:
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
