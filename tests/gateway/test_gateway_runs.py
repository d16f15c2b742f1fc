"""Runs and their policies over HTTP are what the run directories hold."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import errno
import io
import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from gateway_play import ADMIN, API, BASE, Player, gateway_process, settings

from rejoinder.interop import exports
from rejoinder.run.config import make_config
from rejoinder.run.rundir import RunDir
from rejoinder_gateway import library, snapshots
from rejoinder_gateway.app import create_app
from rejoinder_gateway.routers import runs as runs_router
from rejoinder_learner.sequential import train

AS_ADMIN = {"Authorization": f"Bearer {ADMIN}"}


def test_runs_are_listed_by_name(client: TestClient, runs: Path) -> None:
    listed = client.get(f"{API}/runs").json()["runs"]
    assert [run["name"] for run in listed] == ["deal", "kuhn", "leduc"]
    for told in listed:
        config = RunDir.open(runs / told["name"]).config
        assert told["fingerprint"] == config.fingerprint
        assert (told["state"], told["alive"]) == ("finished", False)
        assert (told["games"], told["target"], told["version"]) == (60, 60, 3)
        assert told["snapshots"] == [20, 40, 60]
        assert told["configuration_rules"] == config.rules.model_dump(mode="json")
        assert "random" in told["matches"]


def test_a_run_tells_its_config_digest_and_history(client: TestClient, runs: Path) -> None:
    directory = RunDir.open(runs / "leduc")
    told = client.get(f"{API}/runs/leduc").json()
    assert told["config"] == directory.config.model_dump(mode="json")
    (session,) = directory.sessions()
    (shown,) = told["provenance"]
    assert shown == {name: session[name] for name in shown}
    assert shown.keys() == {"from_game", "time", "rejoinder", "kernel", "commit"}
    snapshots = client.get(f"{API}/runs/leduc/snapshots").json()["snapshots"]
    assert [s["games"] for s in snapshots] == [20, 40, 60]
    assert [s["newest"] for s in snapshots] == [False, False, True]
    assert snapshots[-1]["digest"] == told["digest"]
    records = client.get(f"{API}/runs/leduc/history").json()["records"]
    assert records == directory.metrics()
    assert isinstance(records[-1]["updates"]["max"], int)
    rates = records[-1]["matches"]["random"]
    assert (type(rates["games"]), rates["utility_error"] > 0) == (int, True)
    assert client.get(f"{API}/runs/leduc/history?after=20").json()["records"] == records[1:]


@pytest.mark.parametrize("name", ["none", "%2e%2e%2f", "kuhn%2f..", "kuhn%00", "%5c", ".lock"])
def test_an_unknown_run_is_a_404_whatever_it_is_called(client: TestClient, name: str) -> None:
    for path in ("", "/history", "/policy", "/policy/x", "/snapshots", "/policy-file"):
        assert client.get(f"{API}/runs/{name}{path}").status_code == 404
    assert client.post(f"{API}/runs/{name}/stop", headers=AS_ADMIN).status_code == 404


@pytest.mark.parametrize("name", ["kuhn", "leduc", "deal"])
def test_the_policy_of_every_infoset_is_that_of_the_checkpoint(
    client: TestClient, runs: Path, name: str
) -> None:
    directory = RunDir.open(runs / name)
    abstraction = directory.config.load_abstraction()
    for games in (20, 60):
        for row in directory.checkpoint(games).rows[:40]:
            key = int(row["key"])
            path = f"{API}/runs/{name}/policy/{abstraction.identifier(key)}?snapshot={games}"
            told = client.get(path).json()
            assert (told["key"], told["snapshot"]) == (f"{key:016x}", games)
            assert (told["visits"], told["reach"]) == (row["updates"], row["reach"])
            assert told["description"] == abstraction.description(key)
            for action in told["actions"]:
                a = abstraction.actions.index(action["name"])
                assert [action["latest"], action["average"]] == row["policy"][:, a].tolist()
                assert action["regret"] == pytest.approx(row["regret"][a] / max(row["count"][a], 1))
            assert sum(a["average"] for a in told["actions"]) == pytest.approx(1.0)
    newest = client.get(f"{API}/runs/{name}/policy/{told['identifier']}").json()
    assert newest["snapshot"] == 60


def test_unknown_infosets_and_snapshots_are_problems(client: TestClient) -> None:
    for path in ("policy/none", "policy?snapshot=7", "policy/none?snapshot=7"):
        answer = client.get(f"{API}/runs/kuhn/{path}")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
    assert client.get(f"{API}/runs/kuhn/policy?snapshot=x").status_code == 422


def test_infosets_can_be_browsed(client: TestClient, runs: Path) -> None:
    def browse(**query: Any) -> dict[str, Any]:
        answer = client.get(f"{API}/runs/deal/policy", params=query)
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page

    rows = RunDir.open(runs / "deal").checkpoint(60).rows
    everything = browse(limit=200)["infosets"]
    total = browse()["total"]
    assert total == len(rows)
    visits = [i["visits"] for i in everything]
    assert visits == sorted(visits, reverse=True)
    by_name = browse(sort="identifier", order="asc", limit=200)["infosets"]
    names = [i["identifier"] for i in by_name]
    assert names == sorted(names)
    regrets = [
        max(a["regret"] for a in i["actions"]) for i in browse(sort="regret", limit=50)["infosets"]
    ]
    assert regrets == sorted(regrets, reverse=True)
    paged = [browse(offset=k, limit=7)["infosets"] for k in range(0, 28, 7)]
    assert [i for page in paged for i in page] == everything[:28]
    often = browse(min_visits=10)
    assert often["total"] == int(np.sum(rows["updates"] >= 10))
    found = browse(search="collect_RENT", limit=200)["infosets"]
    assert found
    assert all("ATTEMPT_COLLECT_RENT" in {a["name"] for a in i["actions"]} for i in found)
    assert browse(search=names[3])["total"] == 1
    assert browse(search="nothing like it")["infosets"] == []
    for wrong in ({"limit": 0}, {"limit": 201}, {"offset": -1}, {"sort": "name"}, {"order": "up"}):
        assert client.get(f"{API}/runs/deal/policy", params=wrong).status_code == 422


@pytest.mark.parametrize("block", [7, 1000])
def test_the_whole_policy_comes_as_a_file(
    client: TestClient, runs: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "_BLOCK", block)
    path = f"{API}/runs/deal/policy-file"
    told = json.loads(client.get(path, params={"format": "json", "snapshot": 40}).content)
    rows = RunDir.open(runs / "deal").checkpoint(40).rows
    assert told["games"] == 40
    assert [i["key"] for i in told["infosets"]] == [f"{int(k):016x}" for k in rows["key"]]
    answer = client.get(path, params={"format": "csv", "snapshot": 40})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="deal-40.csv"'
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    parquet = client.get(path, params={"format": "parquet", "snapshot": 40}).content
    table = pq.read_table(io.BytesIO(parquet)).to_pylist()
    flat = [(i["key"], a["name"], a["average"]) for i in told["infosets"] for a in i["actions"]]
    assert [(r["key"], r["action"], r["average"]) for r in table] == flat
    assert [(r["key"], r["action"], float(r["average"])) for r in lines] == flat
    assert client.get(path, params={"format": "pickle"}).status_code == 422


def test_a_newer_checkpoint_is_served_as_soon_as_it_is_there(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs / "kuhn", folder / "kuhn")
    app = create_app(settings(folder, f"sqlite:///{tmp_path / 'games.db'}"))
    with TestClient(app, base_url=BASE) as client:
        first = client.get(f"{API}/runs/kuhn/policy?limit=1").json()["infosets"][0]
        assert first["snapshot"] == 60
        run = RunDir.open(folder / "kuhn")
        run.continue_with(run.config.model_copy(update={"games": 90}))
        train(run)
        time.sleep(1.1)
        again = client.get(f"{API}/runs/kuhn/policy/{first['identifier']}").json()
        assert again["snapshot"] == 90
        assert again["visits"] > first["visits"]
        assert client.get(f"{API}/runs/kuhn").json()["games"] == 90


def test_a_damaged_checkpoint_is_passed_over(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs / "kuhn", folder / "kuhn")
    (folder / "kuhn" / "checkpoints" / "00000060" / "table.bin").write_bytes(b"nothing")
    (folder / "kuhn" / "status.json").write_text('{"state": 1}')
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("{}")
    app = create_app(settings(folder, f"sqlite:///{tmp_path / 'games.db'}"))
    with TestClient(app, base_url=BASE) as client:
        assert client.get(f"{API}/runs/kuhn/policy").json()["infosets"][0]["snapshot"] == 40
        assert client.get(f"{API}/runs/kuhn/policy?snapshot=60").status_code == 404
        assert [run["name"] for run in client.get(f"{API}/runs").json()["runs"]] == ["kuhn"]
        body = {"opponent": {"run": "kuhn"}}
        assert client.post(f"{API}/games", json=body).json()["game"]["opponent"]["snapshot"] == 40


_LATER = 4e9  # a trainer that has spoken then is alive for as long as a test lasts
_NOW = {"state": "training", "time": _LATER, "games": 61, "target": 90}


@pytest.mark.parametrize(
    "status",
    [
        {"workers": [1]},
        {"games": "x"},
        {"games": -1},
        {"games": 10**400},
        {"target": None},
        {"time": "x"},
        {"time": 10**400},
        {"state": []},
        {"mer": "x"},
        {"version": 1.5},
        {"infosets": {}},
        {"matches": 1},
        {"matches": {"\ud800": 1}},
        {"games_per_second": "fast"},
    ],
)
def test_a_status_that_no_trainer_writes_is_as_good_as_none(
    runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, status: dict[str, Any]
) -> None:
    for name in ("bad", "good"):
        shutil.copytree(runs / "kuhn", tmp_path / name)
    RunDir.open(tmp_path / "bad").write_status(_NOW | status)
    with _serving(tmp_path) as client:
        for _ in range(2):
            listed = client.get(f"{API}/runs").json()["runs"]
            assert [(run["name"], run["state"], run["games"]) for run in listed] == [
                ("bad", "finished", 60),
                ("good", "finished", 60),
            ]
            assert client.get(f"{API}/runs/bad").status_code == 200
            time.sleep(0.3)
    (told,) = [r.getMessage() for r in caplog.records if "cannot be used" in r.getMessage()]
    assert told.startswith("bad: status.json cannot be used")


@pytest.mark.parametrize(
    "line", ['{"mer": "x"}', '{"infosets": {}}', '{"matches": 1}', '{"more": "\\ud800"}']
)
def test_an_evaluation_that_no_trainer_writes_is_left_out(
    runs: Path, tmp_path: Path, line: str
) -> None:
    shutil.copytree(runs / "kuhn", tmp_path / "kuhn")
    run = RunDir.open(tmp_path / "kuhn")
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"games": 80, ' + line[1:] + "\n")
    with _serving(tmp_path) as client:
        records = client.get(f"{API}/runs/kuhn/history").json()["records"]
        assert [record["games"] for record in records] == [20, 40, 60]
        (told,) = client.get(f"{API}/runs").json()["runs"]
        assert (told["mer"], told["infosets"]) == (records[-1]["mer"], records[-1]["infosets"])


def test_what_cannot_be_read_hides_no_run(runs: Path, tmp_path: Path) -> None:
    for name in ("good", "no-checkpoints", "no-metrics", "no-status", "odd-sessions"):
        shutil.copytree(runs / "kuhn", tmp_path / name)
    shutil.rmtree(tmp_path / "no-checkpoints" / "checkpoints")
    (tmp_path / "no-checkpoints" / "checkpoints").touch()
    for file in (tmp_path / "no-metrics/metrics.jsonl", tmp_path / "no-status/status.json"):
        file.unlink(missing_ok=True)
        file.mkdir()
    odd = {"sessions": [{"from_game": "x"}, {"from_game": 0, "commit": 1}, {"kernel": "k"}]}
    (tmp_path / "odd-sessions" / "provenance.json").write_text(json.dumps(odd))
    shutil.copytree(runs / "kuhn", tmp_path / os.fsdecode(b"not-utf8-\xff"))
    with _serving(tmp_path) as client:
        listed = [run["name"] for run in client.get(f"{API}/runs").json()["runs"]]
        assert listed == ["good", "no-checkpoints", "no-metrics", "no-status", "odd-sessions"]
        for name in listed:
            told = client.get(f"{API}/runs/{name}").json()
            assert told["snapshots"] == ([] if name == "no-checkpoints" else [20, 40, 60])
        assert told["provenance"] == [{"kernel": "k"}]
        assert client.get(f"{API}/runs/not-utf8-%ff").status_code == 404


def test_a_game_goes_on_with_the_next_whole_checkpoint(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "leduc", tmp_path / "leduc")
    with _serving(tmp_path) as client:
        player = Player.start(client, {"run": "leduc", "snapshot": 20}, open=True)
    (tmp_path / "leduc" / "checkpoints" / "00000020" / "table.bin").write_bytes(b"nothing")
    with _serving(tmp_path) as client:
        player.client = client
        assert player.move("raise").status_code == 200
        assert player.get("/decisions").json()["decisions"][-1]["snapshot"] == 40
        refused = client.get(f"{API}/runs/leduc/policy?snapshot=20")
        assert (refused.status_code, refused.json()["title"]) == (404, "Damaged snapshot")


def test_a_checkpoint_that_has_just_gone_is_unknown_and_not_damaged(
    runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(runs / "kuhn", tmp_path / "kuhn")
    with _serving(tmp_path) as client:
        assert len(client.get(f"{API}/runs/kuhn/snapshots").json()["snapshots"]) == 3
        shutil.rmtree(tmp_path / "kuhn" / "checkpoints" / "00000040")
        refused = client.get(f"{API}/runs/kuhn/policy?snapshot=40")
        assert (refused.status_code, refused.json()["title"]) == (404, "Unknown snapshot")
        assert refused.json()["snapshots"] == [20, 60]
    assert "is not used" not in caplog.text


@contextmanager
def _serving(runs: Path) -> Iterator[TestClient]:
    app = create_app(settings(runs, f"sqlite:///{runs / 'games.db'}"))
    with TestClient(app, base_url=BASE) as client:
        yield client


def test_only_the_latest_answers_are_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = client.get(f"{API}/runs/leduc/policy?limit=200").json()["infosets"]
    size = max(len(json.dumps(infoset)) for infoset in page)
    monkeypatch.setattr(snapshots, "_ANSWER_BYTES", 4 * size)
    known = client.app.state.context.library  # type: ignore[attr-defined]
    (snapshot,) = known._snapshots.values()
    for infoset in page:
        for asked in (page[0], infoset):
            path = f"{API}/runs/leduc/policy/{asked['identifier']}"
            assert client.get(path).json() == asked
        kept = snapshot._answers
        assert sum(map(len, kept.values())) == snapshot._answer_bytes <= 4 * size
        assert page[0]["identifier"] in kept  # asked for again and again
    assert len(kept) < len(page)
    assert client.get(f"{API}/runs/leduc/policy/unknown").status_code == 404
    assert "unknown" not in kept


def test_a_damaged_checkpoint_is_read_once_until_it_changes(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "_LOOK", 0.0)
    folder = tmp_path / "runs"
    shutil.copytree(runs / "kuhn", folder / "kuhn")
    table = folder / "kuhn" / "checkpoints" / "00000060" / "table.bin"
    whole = table.read_bytes()
    table.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    read: list[int] = []
    checkpoint = RunDir.checkpoint

    def counted(self: RunDir, games: int) -> Any:
        read.append(games)
        return checkpoint(self, games)

    monkeypatch.setattr(RunDir, "checkpoint", counted)
    app = create_app(settings(folder, f"sqlite:///{tmp_path / 'games.db'}", cached_snapshots=1))
    with TestClient(app, base_url=BASE) as client:

        def newest() -> int:
            page = client.get(f"{API}/runs/kuhn/policy?limit=1").json()
            return int(page["infosets"][0]["snapshot"])

        assert [newest() for _ in range(5)] == [40] * 5
        assert client.get(f"{API}/runs/kuhn/policy?snapshot=60").status_code == 404
        assert read == [60, 40]
        (told,) = [r.getMessage() for r in caplog.records if "is not used" in r.getMessage()]
        assert "checkpoint 60 of kuhn" in told
        table.write_bytes(whole)
        assert newest() == 60
        assert read == [60, 40, 60]


def test_a_checkpoint_that_was_written_anew_is_read_anew(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A learner that goes back plays games again, so a checkpoint's number may have a new table."""
    monkeypatch.setattr(library, "_LOOK", 0.0)
    folder = tmp_path / "runs"
    shutil.copytree(runs / "kuhn", folder / "kuhn")
    run = RunDir.open(folder / "kuhn")
    app = create_app(settings(folder, f"sqlite:///{tmp_path / 'games.db'}"))
    with TestClient(app, base_url=BASE) as client:

        def told() -> tuple[int, str, str]:
            page = client.get(f"{API}/runs/kuhn/policy?limit=1").json()
            digest = client.get(f"{API}/runs/kuhn").json()["digest"]
            snapshots = client.get(f"{API}/runs/kuhn/snapshots").json()["snapshots"]
            return page["infosets"][0]["visits"], digest, snapshots[-1]["digest"]

        before = told()
        there = run.checkpoint(60)
        rows = there.rows.copy()
        rows["updates"] += 1000
        run.go_back(40)
        run.save(dataclasses.replace(there, rows=rows))
        after = told()
        assert after[0] == before[0] + 1000
        assert before[1] == before[2] != after[1] == after[2]


def test_the_state_of_a_run_is_told_apart(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_GLANCE", 0.0)
    folder = tmp_path / "runs"
    poker = {"game": "kuhn", "method.rollouts": 2, "games": 60, "checkpoint_every": 20}
    run = RunDir.create(folder / "mine", make_config(poker))
    shutil.copytree(runs / "kuhn", folder / "done")
    app = create_app(settings(folder, f"sqlite:///{tmp_path / 'games.db'}"))
    with TestClient(app, base_url=BASE) as client:

        def say(state: str, games: int, **more: Any) -> None:
            said = {"state": state, "time": _LATER, "games": games, "target": 60}
            run.write_status(said | more)

        def told(name: str = "mine") -> tuple[str, bool]:
            answer = client.get(f"{API}/runs/{name}").json()
            return answer["state"], answer["alive"]

        assert told() == ("new", False)
        run.begin_session(from_game=0)
        assert told() == ("starting", True)
        assert client.post(f"{API}/runs/mine/stop", headers=AS_ADMIN).status_code == 202
        say("waiting for workers", 0)
        assert told() == ("waiting", True)
        say("training", 0)
        assert told() == ("starting", True)
        say("training", 5, games_per_second=2.0)
        assert told() == ("running", True)
        spoke = time.time() - 60
        say("training", 5, time=spoke)
        assert told() == ("starting", True)  # as if this session had begun after it
        os.utime(run.path / "provenance.json", (spoke - 10,) * 2)
        assert told() == ("gone", False)
        run.begin_session(from_game=0)
        assert told() == ("starting", True)
        os.utime(run.path / "provenance.json", (time.time() - 1000,) * 2)
        run.write_status({})
        assert told() == ("stopped", False)  # a trainer that was killed before its first word
        say("stopped", 5)
        assert told() == ("stopped", False)
        train(run)  # says nothing, as sequential training does
        run.write_status({})
        assert told() == ("finished", False)
        assert told("done") == ("finished", False)


def test_nothing_tells_where_a_run_is_trained(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_GLANCE", 0.0)
    folder = tmp_path / "secret-place" / "runs"
    shutil.copytree(runs / "kuhn", folder / "kuhn")
    run = RunDir.open(folder / "kuhn")
    worker = {"games": 7, "leases": 1, "busy_seconds": 0.5, "host": "secret-host", "pid": 4711}
    workers: dict[str, Any] = {"secret-host-4711": worker, "liar": {"games": "secret"}, "odd": 1}
    standing = {"state": "training", "time": _LATER, "games": 61, "target": 90}
    run.write_status(standing | {"workers": workers, "pid": 4711, "id": "secret-id"})
    machine = {platform.platform(), platform.node(), run.sessions()[0]["cpu"]}
    app = create_app(settings(folder, f"sqlite:///{tmp_path / 'games.db'}"))
    with TestClient(app, base_url=BASE) as client:
        told = client.get(f"{API}/runs/kuhn").json()["workers"]
        assert told == [{"games": 7, "leases": 1, "busy_seconds": 0.5}, {}, {}]
        assert type(told[0]["games"]) is int
        paths = ["", "/kuhn", "/kuhn/history", "/kuhn/snapshots", "/kuhn/policy", "/none"]
        for path in (*(f"{API}/runs{path}" for path in paths), f"{API}/", "/metrics", "/readyz"):
            text = client.get(path).text
            assert "secret" not in text
            assert not any(fact in text for fact in machine)


def test_a_stream_tells_only_what_is_new(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_router, "_LOOK", 0.01)
    folder = tmp_path / "runs"
    shutil.copytree(runs / "kuhn", folder / "kuhn")
    known = library.Library(folder, 1)
    run = known.run("kuhn")
    new: list[dict[str, Any]] = [
        {"games": 80, "mer": 0.5},
        {"games": 80, "matches": {"random": {"win_rate": 1.0}}},
        {"games": 100, "mer": 0.25},
    ]

    async def listen() -> list[Any]:
        told: list[Any] = []
        events = runs_router._follow(known, run)
        assert (await anext(events)).event == "status"
        for record in new:
            run.directory.append_metrics(record)
            event = await anext(events)
            while event.event == "status":
                event = await anext(events)
            told.append(event.data)
        return told

    assert asyncio.run(asyncio.wait_for(listen(), 60)) == [new[0], new[0] | new[1], new[2]]


def _another(folder: Path) -> None:
    shutil.rmtree(folder)
    train(RunDir.create(folder, make_config({"game": "kuhn", "method.rollouts": 2, "games": 20})))


@pytest.mark.parametrize("lose", [shutil.rmtree, _another])
def test_a_stream_ends_with_its_run_and_makes_nothing_up(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lose: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(runs_router, "_LOOK", 0.01)
    monkeypatch.setattr(library, "_GLANCE", 0.0)
    shutil.copytree(runs / "kuhn", tmp_path / "kuhn")
    known = library.Library(tmp_path, 1)

    async def listen() -> list[Any]:
        events = runs_router._follow(known, known.run("kuhn"))
        assert (await anext(events)).event == "status"
        lose(tmp_path / "kuhn")
        return [event async for event in events]

    assert asyncio.run(asyncio.wait_for(listen(), 60)) == []


def test_a_run_of_blocks_is_finished_after_its_last_whole_block(tmp_path: Path) -> None:
    fields = {"method.name": "external", "method.iterations": 10, "eval_every": 0}
    run = RunDir.create(tmp_path / "run", make_config({"game": "kuhn", "games": 25, **fields}))
    known = library.Library(tmp_path, 1).run("run")
    assert (known.standing().state, known.standing().target) == ("new", 30)
    train(run)
    for status in ({}, {"state": "stopped", "time": 0.0, "games": "x", "target": 1}):
        run.write_status(status)
        told = library.Library(tmp_path, 1).run("run").standing()
        assert (told.games, told.target, told.state) == (30, 30, "finished")


def test_a_stream_goes_on_when_its_run_gets_more_games(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_router, "_LOOK", 0.01)
    shutil.copytree(runs / "kuhn", tmp_path / "kuhn")
    RunDir.open(tmp_path / "kuhn").write_status({})
    known = library.Library(tmp_path, 1)

    async def listen() -> list[int]:
        events = runs_router._follow(known, known.run("kuhn"))
        targets = [(await anext(events)).data.target]
        run = RunDir.open(tmp_path / "kuhn")
        run.continue_with(run.config.model_copy(update={"games": 90}))
        return [*targets, (await anext(events)).data.target]

    assert asyncio.run(asyncio.wait_for(listen(), 60)) == [60, 90]


@pytest.mark.slow
def test_a_run_in_training_is_followed_and_stopped(tmp_path: Path) -> None:
    """Its stream tells of progress and evaluations; the stop is the administrator's alone."""
    folder = tmp_path / "runs"
    fields = {
        "game": "leduc",
        "method.rollouts": 20,
        "games": 10**6,
        "eval_every": 200,
        "eval_games": 20,
    }
    run = RunDir.create(folder / "live", make_config(fields))
    result: list[Any] = []

    def tell(games: int) -> None:
        status = {"state": "training", "time": _LATER, "games": games, "target": 10**6}
        if games % 100 == 0:
            run.write_status(status)

    trainer = threading.Thread(target=lambda: result.append(train(run, on_game=tell)))
    trainer.start()
    database = f"sqlite:///{tmp_path / 'games.db'}"
    try:
        with gateway_process(folder, database, REJOINDER_GATEWAY_ADMIN_TOKEN=ADMIN) as gateway:
            seen: dict[str, list[Any]] = {"status": [], "record": []}
            with gateway.client.stream("GET", f"{API}/runs/live/events") as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                kind = ""
                for line in stream.iter_lines():
                    if line.startswith("event: "):
                        kind = line.removeprefix("event: ")
                    elif line.startswith("data: "):
                        seen[kind].append(json.loads(line.removeprefix("data: ")))
                    if len(seen["status"]) >= 3 and len(seen["record"]) >= 2:
                        break
            games = [status["games"] for status in seen["status"]]
            assert games == sorted(set(games))
            assert seen["status"][0]["alive"]
            assert all("mer" in record for record in seen["record"])
            path = f"{API}/runs/live/stop"
            assert gateway.client.post(path).status_code == 401
            wrong = {"Authorization": "Bearer wrong"}
            assert gateway.client.post(path, headers=wrong).status_code == 401
            assert trainer.is_alive()
            assert gateway.client.post(path, headers=AS_ADMIN).status_code == 202
            trainer.join(120)
            assert not trainer.is_alive()
            assert not result[0].finished
            assert run.checkpoint_games()[-1] == result[0].games
    finally:
        run.request_stop()
        trainer.join()


def test_stopping_a_run_that_nobody_trains_is_a_conflict(client: TestClient) -> None:
    assert client.post(f"{API}/runs/kuhn/stop", headers=AS_ADMIN).status_code == 409


def test_a_run_that_is_read_only_for_the_gateway_says_so(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the containers; whoever is root may write anywhere, so the disk is played here."""

    def refuse(_: RunDir) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(RunDir, "request_stop", refuse)
    monkeypatch.setattr(library.Run, "standing", lambda _: SimpleNamespace(alive=True))
    answer = client.post(f"{API}/runs/kuhn/stop", headers=AS_ADMIN)
    assert answer.status_code == 503
    assert "read-only" in answer.json()["detail"]
