"""Response phases over HTTP: the analysis of the snapshot, made once; poker has none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import API, BASE, settings, visited

from rejoinder.measure.agents import trained_agent
from rejoinder.measure.analytics import Analysis, analyse
from rejoinder.methods.tabular.rollout import policy_rows
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.rundir import RunDir
from rejoinder_gateway import analyses
from rejoinder_gateway.app import create_app


@pytest.fixture(autouse=True)
def shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyses, "GAMES", 100)
    monkeypatch.setattr(analyses, "ATTACK_GAMES", 4)
    monkeypatch.setattr(analyses, "SAMPLES", 5)


def test_the_analysis_is_that_of_the_checkpoint(client: TestClient, runs: Path) -> None:
    run = RunDir.open(runs / "deal")
    config = run.config
    for games in (20, 60):
        rows = run.checkpoint(games).rows
        agent = trained_agent(
            "deal", config.load_abstraction(), table_of(policy_rows(rows)), argmax=False
        )
        expected = analyse(
            *(config.load_game(), config.rules, agent, rows),
            games=100,
            seed=1,
            attack_games=4,
            samples=5,
        )
        told = client.get(f"{API}/runs/deal/responses", params={"snapshot": games}).json()
        assert told.pop("snapshot") == games
        assert told.pop("digest") == client.get(f"{API}/runs/deal/snapshots").json()["snapshots"][
            run.checkpoint_games().index(games)
        ].pop("digest")
        assert told == expected.model_dump(mode="json")
    newest = client.get(f"{API}/runs/deal/responses").json()
    assert newest["snapshot"] == 60


def test_it_is_made_once_for_a_snapshot(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client.get(f"{API}/runs/deal/responses")
    assert first.status_code == 200

    def again(*_: object, **__: object) -> None:
        raise AssertionError("it was known already")

    monkeypatch.setattr(analyses, "analyse", again)
    assert client.get(f"{API}/runs/deal/responses").content == first.content


def test_it_is_kept_for_longer_than_the_snapshot(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for one snapshot after another costs an analysis of each, once."""
    made: list[int] = []
    monkeypatch.setattr(analyses, "analyse", _counted(made))
    database = f"sqlite:///{tmp_path / 'games.db'}"
    app = create_app(settings(runs, database, cached_snapshots=1))
    with TestClient(app, base_url=BASE) as client:
        for _ in range(3):
            for games in (20, 40, 60):
                told = client.get(f"{API}/runs/deal/responses", params={"snapshot": games})
                assert told.json()["snapshot"] == games
    assert len(made) == 3


def test_the_oldest_ones_are_dropped(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(analyses, "analyse", _counted(made))
    client.app.state.context.analyses.work.kept = 2  # type: ignore[attr-defined] # FastAPI's
    for games in (20, 40, 60, 60, 40, 20):
        client.get(f"{API}/runs/deal/responses", params={"snapshot": games})
    assert len(made) == 4


def test_who_would_wait_for_too_many_others_is_told_to_come_back(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()

    def slowly(*given: Any, **fields: Any) -> Analysis:
        assert refused.wait(60), "nobody was refused"
        return analyse(*given, **fields)

    monkeypatch.setattr(analyses, "analyse", slowly)
    monkeypatch.setattr(analyses, "WAITING", 2)

    async def ask() -> None:
        async with visited(app) as client:

            async def of(games: int) -> httpx2.Response:
                return await client.get(f"{API}/runs/deal/responses", params={"snapshot": games})

            waiting = [asyncio.create_task(of(20)) for _ in range(2)]
            while app.state.context.analyses.work.waiting < 2:
                await asyncio.sleep(0.001)
            busy = await of(40)
            assert (busy.status_code, busy.json()["title"]) == (503, "Too many analyses")
            assert int(busy.headers["retry-after"]) > 0
            refused.set()
            first, second = await asyncio.gather(*waiting)
            assert first.status_code == 200
            assert first.content == second.content
            assert (await of(40)).status_code == 200

    asyncio.run(ask())


def _counted(made: list[int]) -> Callable[..., Analysis]:
    def counted(*given: Any, **fields: Any) -> Analysis:
        made.append(fields["games"])
        return analyse(*given, **fields)

    return counted


def test_poker_has_no_response_phases(client: TestClient) -> None:
    for name in ("kuhn", "leduc"):
        refused = client.get(f"{API}/runs/{name}/responses")
        assert refused.status_code == 404
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["title"] == "No response phases"
        assert refused.json()["detail"] == "this game has no response phases"


def test_unknown_runs_and_snapshots_are_problems(client: TestClient) -> None:
    assert client.get(f"{API}/runs/none/responses").json()["title"] == "Unknown run"
    unknown = client.get(f"{API}/runs/deal/responses", params={"snapshot": 21})
    assert (unknown.status_code, unknown.json()["title"]) == (404, "Unknown snapshot")
