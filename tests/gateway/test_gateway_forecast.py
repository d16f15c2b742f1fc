"""Forecasts over HTTP: those of the command line; what cannot be said is a problem in a line."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import API, visited
from typer.testing import CliRunner

from rejoinder.measure.targets import Target, Told, foresee
from rejoinder_cli.main import app as commands
from rejoinder_gateway import forecasts

PATH = f"{API}/runs/kuhn/forecast"


@pytest.fixture
def runs(runs: Path, tmp_path: Path) -> Path:
    """A folder of its own with the run `kuhn`, which was measured often and is under way."""
    shutil.copytree(runs / "kuhn", tmp_path / "runs" / "kuhn")
    measure(tmp_path / "runs" / "kuhn", [evaluation(n) for n in range(50, 1_001, 50)])
    status = {"state": "running", "games": 1_000, "target": 5_000, "games_per_second": 50.0}
    said = status | {"time": time.time() + 3600, "workers": {}}  # alive for as long as this lasts
    (tmp_path / "runs" / "kuhn" / "status.json").write_text(json.dumps(said), "utf-8")
    return tmp_path / "runs"


def evaluation(games: int) -> dict[str, Any]:
    rate = 0.7 - 8 / games
    matches = {"random": {"mean_utility": rate, "utility_error": 0.02}}
    regret = 0.01 + 5 / games
    return {"games": games, "mer": regret, "exploitability": regret, "matches": matches}


def measure(run: Path, records: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run / "metrics.jsonl").write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("what", "target"),
    [
        ("mer", 0.0125),
        ("mer", 0.02),
        ("mer", 0.005),
        ("exploitability", 0.0125),
        ("random", 0.695),
    ],
    ids=["expected", "reached", "never", "exploitability", "utility"],
)
def test_it_is_what_the_command_says(
    client: TestClient, runs: Path, what: str, target: float
) -> None:
    told = client.get(PATH, params={"what": what, "target": target})
    assert told.status_code == 200, told.text
    asked = ["forecast", str(runs / "kuhn"), f"{what}={target}", "--json"]
    said = CliRunner().invoke(commands, asked)
    command = json.loads(said.stdout)
    assert told.json() == {"at": command["at"], **command["forecasts"][0]}


def test_the_curve_and_the_speed(client: TestClient) -> None:
    told = client.get(PATH, params={"what": "mer", "target": 0.0125}).json()
    assert told["games"] == pytest.approx(2_000, rel=0.05)
    assert told["low"] <= told["games"] <= told["high"]
    for seconds, games in {
        "seconds": "games",
        "seconds_low": "low",
        "seconds_high": "high",
    }.items():
        assert told[seconds] == pytest.approx((told[games] - 1_000) / 50)
    assert told["chance"] == 1.0
    assert client.get(PATH, params={"what": "mer", "target": 0.02}).json()["reached"] == 500


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ({"target": 0.1}, "query.what: Field required"),
        ({"what": "mer"}, "query.target: Field required"),
        ({"what": "mer", "target": 0}, "query.target: the target must be above 0, not 0"),
        ({"what": "mer", "target": "inf"}, "query.target: Input should be a finite number"),
        ({"what": "mer", "target": "much"}, "query.target: Input should be a valid number"),
        ({"what": "nobody", "target": 1}, "query.what: there are mer, exploitability, random"),
    ],
)
def test_a_target_that_is_none(client: TestClient, asked: dict[str, Any], detail: str) -> None:
    refused = client.get(PATH, params=asked)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["detail"].startswith(detail)
    assert refused.json()["errors"][0]["field"] == detail.partition(":")[0]


@pytest.mark.parametrize(
    "records",
    [[], [evaluation(n) for n in range(10, 80, 10)], [{"games": n} for n in range(10, 990, 10)]],
    ids=["none", "few", "nothing in them"],
)
def test_too_few_evaluations(client: TestClient, runs: Path, records: list[dict[str, Any]]) -> None:
    measure(runs / "kuhn", records)
    there = len([record for record in records if "mer" in record])
    questions: dict[str, dict[str, Any]] = {
        "MER": {"what": "mer", "target": 0.01},
        "mean utility against random": {"what": "random", "target": 0.9},
    }
    for name, asked in questions.items():
        refused = client.get(PATH, params=asked)
        assert (refused.status_code, refused.json()["title"]) == (409, "No forecast yet")
        needed = f"{name}: a forecast needs 8 evaluations, and there are {there}"
        assert refused.json()["detail"].startswith(f"{needed} (`eval_every` of a run's config")


def test_what_no_trainer_writes_is_left_out(client: TestClient, runs: Path) -> None:
    measured = [evaluation(n) for n in range(50, 1_001, 50)]
    expected = client.get(PATH, params={"what": "mer", "target": 0.0125}).json()
    strange: list[dict[str, Any]] = [
        {"games": 0, "mer": 1.0},
        {"games": 25, "mer": None},
        {"games": 26, "mer": 1e999},
    ]
    measure(runs / "kuhn", [*strange, *measured])
    assert client.get(PATH, params={"what": "mer", "target": 0.0125}).json() == expected
    rated: dict[str, Any] = {"games": 27, "matches": {"random": 7}}
    measure(runs / "kuhn", [rated, *measured])
    asked: dict[str, Any] = {"what": "random", "target": 0.695}
    assert client.get(PATH, params=asked).status_code == 200


def test_it_is_made_anew_when_there_is_a_new_evaluation(
    client: TestClient, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Target] = []

    def counted(series: Any, target: Target) -> Told:
        made.append(target)
        return foresee(series, target)

    monkeypatch.setattr(forecasts, "foresee", counted)
    first, again = (
        client.get(PATH, params={"what": "mer", "target": 0.0125}).json() for _ in range(2)
    )
    assert first == again
    assert len(made) == 1
    measure(runs / "kuhn", [evaluation(n) for n in range(50, 1_051, 50)])
    assert client.get(PATH, params={"what": "mer", "target": 0.0125}).json() != first
    assert len(made) == 2


def test_others_are_answered_meanwhile_and_too_many_come_back(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()

    def slowly(series: Any, target: Target) -> Told:
        assert refused.wait(60), "nobody was refused"
        return foresee(series, target)

    monkeypatch.setattr(forecasts, "foresee", slowly)
    monkeypatch.setattr(forecasts, "WAITING", 2)

    async def ask() -> None:
        async with visited(app) as client:

            async def of(mer: float) -> httpx2.Response:
                return await client.get(PATH, params={"what": "mer", "target": mer})

            waiting = [asyncio.create_task(of(mer)) for mer in (0.011, 0.012)]
            while app.state.context.forecasts.work.waiting < 2:
                await asyncio.sleep(0.001)
            assert (await client.get(f"{API}/runs")).status_code == 200
            busy = await of(0.013)
            assert (busy.status_code, busy.json()["title"]) == (503, "Too many forecasts")
            assert int(busy.headers["retry-after"]) > 0
            refused.set()
            answers = await asyncio.gather(*waiting)
            assert [answer.status_code for answer in answers] == [200, 200]

    asyncio.run(ask())


def test_an_unknown_run_is_a_problem(client: TestClient) -> None:
    unknown = client.get(f"{API}/runs/none/forecast", params={"what": "mer", "target": 0.1})
    assert (unknown.status_code, unknown.json()["title"]) == (404, "Unknown run")
