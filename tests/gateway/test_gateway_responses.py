"""Response phases over HTTP: the analysis of the snapshot, made once; poker has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from gateway_play import API

from rejoinder.cfr.rollout import policies
from rejoinder.cfr.table import table_of
from rejoinder.evaluate.agents import trained_agent
from rejoinder.evaluate.analytics import analyse
from rejoinder.rundir import RunDir
from rejoinder_gateway import analyses


@pytest.fixture(autouse=True)
def shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyses, "GAMES", 100)
    monkeypatch.setattr(analyses, "TRAINING_GAMES", 5)


def test_the_analysis_is_that_of_the_checkpoint(client: TestClient, runs: Path) -> None:
    run = RunDir.open(runs / "deal")
    config = run.config
    for games in (20, 60):
        rows = run.checkpoint(games).rows
        agent = trained_agent(
            "deal", config.load_abstraction(), policies(table_of(rows)), argmax=False
        )
        expected = analyse(
            *(config.load_game(), config.rules, agent, rows), games=100, seed=1, training_games=5
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
