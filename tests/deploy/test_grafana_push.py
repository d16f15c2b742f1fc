"""`rejoinder grafana push`, against a stand-in for Grafana that checks every call."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from grafana_stub import TOKEN, Canned, Stub, grafana
from typer.testing import CliRunner, Result

from rejoinder_cli import deployed, prometheus
from rejoinder_cli.grafana import SCRAPE_INTERVAL, UID
from rejoinder_cli.main import app

SOURCE = f"/api/datasources/uid/{UID}"
HEALTH = f"{SOURCE}/health"
FILES = sorted(deployed.path(deployed.DASHBOARDS).glob("*.json"))
DASHBOARDS = [json.loads(file.read_text("utf-8")) for file in FILES]
SAVES = [("POST", "/api/dashboards/db")] * len(DASHBOARDS)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with grafana() as running:
        yield running
        assert running.faults == []


def push(url: str, *more: str, token: str | None = TOKEN) -> Result:
    environment = {"REJOINDER_GRAFANA_TOKEN": token, "REJOINDER_TRACEBACK": None}
    arguments = ["grafana", "push", "--url", url, *more]
    result = CliRunner().invoke(app, arguments, env=environment)
    if token:
        assert token not in result.output
    return result


def refused(result: Result, exit_code: int) -> str:
    """The one line that a failed push has to say."""
    assert result.exit_code == exit_code, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("rejoinder: ")
    return line.removeprefix("rejoinder: ")


def test_first_push_makes_everything(stub: Stub) -> None:
    result = push(stub.url, "--prometheus-url", "http://prometheus:9090/", "--json")
    assert result.exit_code == 0, result.output
    assert stub.made == [
        ("GET", SOURCE),
        ("POST", "/api/datasources"),
        ("GET", "/api/folders"),
        ("POST", "/api/folders"),
        *SAVES,
        ("GET", HEALTH),
    ]
    assert stub.bodies("POST", "/api/datasources") == [
        {
            "uid": "rejoinder-prometheus",
            "name": "Rejoinder",
            "type": "prometheus",
            "access": "proxy",
            "url": "http://prometheus:9090",
            "jsonData": {"httpMethod": "POST", "timeInterval": "5s"},
        }
    ]
    assert stub.bodies("POST", "/api/folders") == [{"title": "Rejoinder"}]
    assert stub.bodies("POST", "/api/dashboards/db") == [
        {
            "dashboard": dashboard | {"id": None},
            "folderUid": "folder0",
            "message": "rejoinder grafana push",
            "overwrite": True,
        }
        for dashboard in DASHBOARDS
    ]
    assert json.loads(result.stdout.splitlines()[-1]) == {
        "data_source": "created",
        "prometheus": "http://prometheus:9090",
        "folder": "Rejoinder",
        "dashboards": {d["uid"]: f"{stub.url}/d/{d['uid']}/slug" for d in DASHBOARDS},
        "reached": True,
    }


def test_second_push_changes_nothing_but_versions(stub: Stub) -> None:
    assert push(stub.url, "--prometheus-url", "http://prometheus:9090").exit_code == 0
    before = stub.data_sources[UID]
    saved = {uid: board | {"version": 2} for uid, board in stub.dashboards.items()}
    stub.calls.clear()
    result = push(stub.url)
    assert result.exit_code == 0, result.output
    assert "the data source was updated: http://prometheus:9090" in result.stdout
    assert stub.made == [
        ("GET", SOURCE),
        ("PUT", SOURCE),
        ("GET", "/api/folders"),
        *SAVES,
        ("GET", HEALTH),
    ]
    assert stub.data_sources[UID] == before | {"version": 2}
    assert list(stub.data_sources) == [UID]
    assert stub.folders == {"folder0": "Rejoinder"}
    assert stub.dashboards == saved


def test_what_a_person_has_set_in_the_data_source_stays(stub: Stub) -> None:
    push(stub.url)
    theirs = {
        "name": "Ours",
        "isDefault": True,
        "basicAuth": True,
        "basicAuthUser": "ada",
        "jsonData": {"httpMethod": "GET", "timeInterval": "30s", "manageAlerts": True},
    }
    stub.data_sources[UID] |= theirs
    assert push(stub.url, "--prometheus-url", "https://metrics.example:9443/p").exit_code == 0
    there = stub.data_sources[UID]
    assert there["url"] == "https://metrics.example:9443/p"
    assert {name: there[name] for name in theirs} == theirs


def test_a_provisioned_data_source_is_left_alone(stub: Stub) -> None:
    push(stub.url, "--prometheus-url", "http://prometheus:9090")
    stub.data_sources[UID]["readOnly"] = True
    stub.calls.clear()
    result = push(stub.url)
    assert result.exit_code == 0, result.output
    assert "left as it is: http://prometheus:9090" in result.stdout
    assert ("PUT", SOURCE) not in stub.made
    line = refused(push(stub.url, "--prometheus-url", "http://other:9090"), 2)
    assert line.startswith("--prometheus-url: the data source rejoinder-prometheus is provisioned")


def test_folder_is_found_by_its_title(stub: Stub) -> None:
    stub.folders |= {"a": "Rejoinder", "b": "Games"}
    assert push(stub.url, "--folder", "Games").exit_code == 0
    assert {board["folder"] for board in stub.dashboards.values()} == {"b"}
    assert ("POST", "/api/folders") not in stub.made


def test_grafana_below_a_path() -> None:
    with grafana("/tools/grafana") as stub:
        result = push(f"{stub.url}/")
        assert result.exit_code == 0, result.output
        assert f"{stub.url}/d/rejoinder-training/slug" in result.stdout
        assert stub.faults == []


def test_grafana_that_does_not_reach_prometheus(stub: Stub) -> None:
    stub.reaches_prometheus = False
    result = push(stub.url)
    assert result.exit_code == 1
    told = " ".join(result.stderr.split())
    assert "does not reach Prometheus at http://127.0.0.1:9090: dial tcp" in told
    assert "--prometheus-url" in told
    assert len(stub.dashboards) == len(DASHBOARDS)


def test_older_grafana_cannot_say_whether_it_reaches_prometheus(stub: Stub) -> None:
    stub.canned["GET", HEALTH] = Canned.json(404, {"message": "Not found"})
    assert push(stub.url).exit_code == 0


EVERY_CALL = [
    ("GET", SOURCE),
    ("POST", "/api/datasources"),
    ("GET", "/api/folders"),
    ("POST", "/api/folders"),
    ("POST", "/api/dashboards/db"),
    ("PUT", SOURCE),
]


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: f"{call[0]} {call[1]}")
@pytest.mark.parametrize(
    ("status", "said", "exit_code", "told"),
    [
        (400, "Cannot save provisioned dashboard", 2, "Grafana refuses"),
        (401, "Invalid API key", 2, "--token: Grafana does not know this token (401: Invalid"),
        (403, "Access denied", 2, "--token: its service account may not write"),
        (404, "Not found", 4, "there is no API for"),
        (405, "Method not allowed", 4, "there is no API for"),
        (409, "exists already", 2, "is in conflict with another one (409: exists already)"),
        (412, "A dashboard with the same name exists", 2, "in conflict with another one (412: A"),
        (422, "validation failed", 2, "(422: validation failed)"),
        (500, "database is locked", 4, "Grafana failed at"),
        (503, "", 4, "(503)"),
    ],
)
def test_refusals_are_told_in_one_line(
    stub: Stub, call: tuple[str, str], status: int, said: str, exit_code: int, told: str
) -> None:
    if (status, call) == (404, EVERY_CALL[0]):
        return  # it is not there yet, that is all
    if call[0] == "PUT":
        push(stub.url)  # so that there is something to update
    stub.canned[call] = Canned.json(status, {"message": said})
    line = refused(push(stub.url), exit_code)
    assert told in line
    assert said in line
    assert stub.made[-1] == call  # nothing is tried after it


def test_a_token_that_is_repeated_by_the_server_is_not_told(stub: Stub) -> None:
    stub.canned["GET", SOURCE] = Canned.json(401, {"message": f"no such token: {TOKEN}"})
    assert "no such token: …" in refused(push(stub.url), 2)


def test_update_of_a_data_source_that_changes_meanwhile(stub: Stub) -> None:
    push(stub.url)
    stub.canned["GET", SOURCE] = Canned.json(200, stub.data_sources[UID] | {"version": 0})
    assert "(409: Datasource has already been updated by someone else)" in refused(
        push(stub.url), 2
    )


def test_a_data_source_of_the_same_name(stub: Stub) -> None:
    stub.data_sources["theirs"] = {"uid": "theirs", "name": "Rejoinder"}
    assert "same name already exists" in refused(push(stub.url), 2)


@pytest.mark.parametrize(
    "body",
    [b"<html>Welcome</html>", b"", b'"text"', b"<p>a message for you</p>", b"null", b"[1"],
)
@pytest.mark.parametrize("status", [200, 401, 404, 502])
def test_answers_that_are_not_grafanas(stub: Stub, body: bytes, status: int) -> None:
    stub.canned["GET", SOURCE] = Canned(status, body)
    line = refused(push(stub.url), 4)
    assert line.startswith(f"{stub.url}: ")
    assert "not Grafana's API" in line or (status == 502 and "(502)" in line)
    assert stub.made == [("GET", SOURCE)]


def test_redirects_are_not_followed(stub: Stub) -> None:
    stub.canned["GET", SOURCE] = Canned(302, b"", {"location": f"{stub.url}/api/elsewhere"})
    assert "leads elsewhere" in refused(push(stub.url), 2)
    assert stub.made == [("GET", SOURCE)]


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert refused(push(f"http://127.0.0.1:{port}"), 4).endswith("nothing answers there")


def test_a_server_that_does_not_speak_tls(stub: Stub) -> None:
    assert "TLS" in refused(push(stub.url.replace("http:", "https:")), 4)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("127.0.0.1:3000", "--url: an address such as"),
        ("ftp://host", "--url: an address such as"),
        ("http://", "--url: an address such as"),
        ("http://host:port", "--url: an address such as"),
        ("http://[half", "--url: an address such as"),
        ("http://admin:secret@host", "--url: an address without user and password"),
        ("http://host/?orgId=1", "--url: an address without ? and #"),
    ],
)
def test_addresses_that_are_none(url: str, told: str) -> None:
    line = refused(push(url), 2)
    assert line.startswith(told)
    assert "secret" not in line


def test_address_of_prometheus_is_checked_first(stub: Stub) -> None:
    line = refused(push(stub.url, "--prometheus-url", "prometheus:9090"), 2)
    assert line.startswith("--prometheus-url: an address such as")
    assert stub.calls == []


@pytest.mark.parametrize("token", [None, "", " \n"])
def test_a_token_is_needed(stub: Stub, token: str | None) -> None:
    assert "REJOINDER_GRAFANA_TOKEN" in refused(push(stub.url, token=token), 2)
    assert stub.calls == []


@pytest.mark.parametrize("token", ["glsa_a\nX-Org: 2", "glsa_ä", "two words"])
def test_tokens_that_cannot_be_sent(stub: Stub, token: str) -> None:
    assert refused(push(stub.url, token=token), 2).startswith("--token: a token has")
    assert stub.calls == []


def test_token_of_a_file_with_a_last_newline(stub: Stub) -> None:
    assert push(stub.url, token=f"{TOKEN}\n").exit_code == 0


def test_files_are_found_in_a_wheel_and_in_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(__file__).parents[2] / "deploy"
    assert deployed.path(deployed.RULES) == here / "prometheus/rules.yml"
    monkeypatch.setattr(deployed, "_PLACES", (tmp_path,))
    with pytest.raises(ValueError, match=r"deploy/prometheus/rules\.yml did not come"):
        deployed.path(deployed.RULES)
    (tmp_path / "prometheus").mkdir()
    (tmp_path / "prometheus/rules.yml").touch()
    assert deployed.path(deployed.RULES) == tmp_path / "prometheus/rules.yml"


def test_every_prometheus_scrapes_as_often_as_the_dashboards_count_on() -> None:
    """Rates are taken over four intervals: with a longer one they would have no value."""
    deploy = Path(__file__).parents[2] / "deploy"
    provisioned = (deploy / "grafana/provisioning/datasources/rejoinder.yml").read_text("utf-8")
    monitors = (deploy / "k8s/components/monitoring/servicemonitors.yaml").read_text("utf-8")
    assert re.findall(r"timeInterval: (\w+)", provisioned) == [SCRAPE_INTERVAL]
    assert re.findall(r"^ +interval: (\w+)", monitors, re.MULTILINE) == [SCRAPE_INTERVAL] * 3
    for settings in (
        (deploy / "prometheus/prometheus.yml").read_text("utf-8"),
        Path(prometheus.__file__).read_text("utf-8"),
    ):
        assert re.findall(r"scrape_interval: (\w+)", settings) == [SCRAPE_INTERVAL]
