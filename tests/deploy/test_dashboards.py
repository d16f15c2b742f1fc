"""The dashboards: what is in their files, and what a real Prometheus answers to their queries."""

from __future__ import annotations

import json
import random
import re
import runpy
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from gateway_play import API, DEAL, Player
from monitoring import (
    ROOT,
    Prometheus,
    Series,
    needs_prometheus,
    prometheus,
    promtool,
    rejoinder,
    until,
)

GRAFANA = ROOT / "deploy/grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
BOARDS: list[dict[str, Any]] = [json.loads(file.read_text("utf-8")) for file in FILES]
IDS = [board["uid"] for board in BOARDS]
PLACED = {"timeseries", "stat", "gauge", "heatmap", "table"}

# Queries without an answer in a run that is well, and why.
MAY_BE_EMPTY = {
    'ALERTS{alertname=~"Rejoinder.+",alertstate="firing"}': "nothing is wrong",
}

SELECTOR = r"\b(?:\w+:)?(?:rejoinder_|process_|up\b)[\w:]*(?:{[^}]*})?"  # in a rule


class Query(NamedTuple):
    where: str  # dashboard and panel
    expr: str
    legend: str


def queries(board: dict[str, Any]) -> list[Query]:
    """Every one that the dashboard makes, but for those of its variables."""
    found = [
        Query(f"{board['uid']}: {panel['title']}", target["expr"], target["legendFormat"])
        for panel in board["panels"]
        for target in panel.get("targets", [])
    ]
    for annotation in board["annotations"]["list"]:
        found.append(Query(f"{board['uid']}: {annotation['name']}", annotation["expr"], ""))
    return found


def substituted(expr: str, run: str = ".+", instance: str = ".+") -> str:
    """With the variables filled in as Grafana does it, for a scrape interval of one second."""
    values = {
        "run": run,
        "instance": instance,
        "__rate_interval": "15s",
        "__interval": "5s",
        "__range": "60s",
    }
    filled = re.sub(r"\$\{?(\w+)\}?", lambda found: values[found[1]], expr)
    assert "$" not in filled
    return filled


def escaped(value: str) -> str:
    """As Grafana puts it into a pattern that is in quotes."""
    return re.sub(r"[\\$^*{}\[\]+?.()|]", r"\\\\\g<0>", value)


EVERY_QUERY = [query for board in BOARDS for query in queries(board)]


def test_files_are_those_that_the_source_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(GRAFANA))
    made = runpy.run_path(str(GRAFANA / "make_dashboards.py"))["texts"]()
    there = {file.name: file.read_text("utf-8") for file in FILES}
    assert there == made, "run: python deploy/grafana/make_dashboards.py"


def test_there_are_the_four() -> None:
    assert {file.name for file in FILES} == {
        "training.json",
        "workers.json",
        "learner.json",
        "gateway.json",
    }
    assert {f"rejoinder-{file.stem}" for file in FILES} == set(IDS)
    assert len({board["title"] for board in BOARDS}) == len(BOARDS)


@pytest.mark.parametrize("board", BOARDS, ids=IDS)
def test_panels_have_what_a_reader_needs(board: dict[str, Any]) -> None:
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        if panel["type"] in ("row", "text"):
            continue
        assert panel["type"] in PLACED
        assert panel["title"]
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"]
        if panel["type"] in ("timeseries", "stat", "gauge"):
            fields = panel["fieldConfig"]["defaults"]
            assert fields["unit"]
            first, *others = fields["thresholds"]["steps"]
            assert first["value"] is None
            values = [step["value"] for step in others]
            assert values == sorted(values)


@pytest.mark.parametrize("board", BOARDS, ids=IDS)
def test_every_row_begins_with_a_text_on_how_to_read_it(board: dict[str, Any]) -> None:
    panels = board["panels"]
    assert panels[0]["type"] == "row"
    for panel, following in pairwise(panels):
        assert (panel["type"] == "row") == (following["type"] == "text")
        if following["type"] == "text":
            assert following["options"]["content"].startswith("**How to read it.** ")


@pytest.mark.parametrize("board", BOARDS, ids=IDS)
def test_panels_do_not_overlap(board: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in board["panels"]]
    for place in places:
        assert place["x"] + place["w"] <= 24
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or above, (a, b)


@pytest.mark.parametrize("board", BOARDS, ids=IDS)
def test_one_data_source_and_it_is_the_provisioned_one(board: dict[str, Any]) -> None:
    provisioned = (GRAFANA / "provisioning/datasources/rejoinder.yml").read_text("utf-8")
    (uid,) = re.findall(r"uid: (\S+)", provisioned)
    named = re.findall(r'"uid": "(rejoinder-prometheus|\$\w+)"', json.dumps(board))
    assert set(named) == {uid}
    assert json.dumps(board).count('"type": "prometheus"') == len(named)


@pytest.mark.parametrize("board", BOARDS, ids=IDS)
def test_variables_and_links(board: dict[str, Any]) -> None:
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names == ["run", "instance"]
    led_to = {link["url"].removesuffix("?${run:queryparam}") for link in board["links"]}
    assert led_to == {f"/d/{uid}" for uid in IDS if uid != board["uid"]}


@needs_prometheus
def test_every_query_parses(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{i}", "expr": substituted(query.expr)}
        for i, query in enumerate(EVERY_QUERY)
    ]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}), "utf-8")
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)


# Labels of a learner's series, and what they are at four moments: two runs train with workers and
# one alone, and then they are over, and their processes stay.
def of_run(run: str) -> str:
    return f'{{job="rejoinder-learner", instance="{run}", run="{run}"}}'


OVER = {
    **{f"rejoinder_learner_up{of_run(run)}": "1 1 0 0" for run in ("a", "b", "alone")},
    **{f"rejoinder_learner_window_games{of_run(run)}": "40 21 0 0" for run in ("a", "b")},
    **{f"rejoinder_learner_workers{of_run(run)}": "2 2 0 0" for run in ("a", "b")},
    **{
        f"rejoinder_learner_snapshot_timestamp_seconds{of_run(run)}": "0 10 20 20"
        for run in ("a", "b")
    },
    f"rejoinder_learner_window_games{of_run('alone')}": "0 0 0 0",
    f"rejoinder_learner_workers{of_run('alone')}": "0 0 0 0",
    'rejoinder_worker_up{job="rejoinder-worker", instance="w", run="a"}': "1 1 0 0",
}


@needs_prometheus
@pytest.mark.parametrize(
    ("board", "panel", "then"),
    [
        ("rejoinder-training", "Workers", {"a": 2, "b": 2}),
        ("rejoinder-learner", "Workers", {"a": 2, "b": 2}),
        ("rejoinder-learner", "Age of the newest snapshot", {"a": 5, "b": 5}),
        ("rejoinder-workers", "Workers at work", {"": 1}),
    ],
)
def test_what_is_over_is_not_red(
    tmp_path: Path, board: str, panel: str, then: dict[str, float]
) -> None:
    """Shown while it trains, by run; nothing afterwards, and nothing where nothing is needed."""
    (expr, *_) = (q.expr for q in EVERY_QUERY if q.where == f"{board}: {panel}")
    bare = {"Age of the newest snapshot", "Workers at work"}  # without the name of a metric
    shown = [
        {
            "labels": ("" if panel in bare else "rejoinder_learner_workers")
            + (of_run(run) if run else "{}"),
            "value": value,
        }
        for run, value in then.items()
    ]
    answers(tmp_path, OVER, expr, {"15s": shown, "35s": []})


@needs_prometheus
def test_the_share_of_time_is_that_of_each_learner(tmp_path: Path) -> None:
    """Two learners that are busy half of the time are not one that is busy all the time."""
    tasks = ("fold", "publish", "checkpoint")
    series = {
        f"rejoinder_learner_{task}_seconds_sum{of_run(run)}": "0+1x6"
        for task in tasks
        for run in ("a", "b")
    }
    shares = [q for q in EVERY_QUERY if q.where == "rejoinder-learner: Share of time"]
    assert len(shares) == 1 + len(tasks)
    for query in shares:
        value = 0.3 if query.legend.startswith("in all") else 0.1
        labels = [{"labels": f'{{run="{run}"}}', "value": value} for run in ("a", "b")]
        answers(tmp_path, series, f"round({query.expr}, 0.001)", {"60s": labels})
        assert "{{run}}" in query.legend


def answers(
    folder: Path, series: dict[str, str], expr: str, then: dict[str, list[dict[str, Any]]]
) -> None:
    """What a query gives at some times, with a sample of each series every ten seconds."""
    test = {
        "interval": "10s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": substituted(expr), "eval_time": moment, "exp_samples": samples}
            for moment, samples in then.items()
        ],
    }
    file = folder / "test.json"
    file.write_text(json.dumps({"evaluation_interval": "5s", "tests": [test]}), "utf-8")
    promtool("test", "rules", file)


@needs_prometheus
@pytest.mark.slow
def test_every_query_has_an_answer_in_a_real_run(tmp_path: Path) -> None:
    """Two workers, a learner and a gateway that somebody plays at; then all the queries."""
    run = tmp_path / "runs" / "watched"
    settings = {"games": 10_000_000, "eval_every": 60, "eval_games": 10, "checkpoint_every": 60}
    changes = [word for field in settings.items() for word in ("--set", "{}={}".format(*field))]
    command = ["up", "paper", "--workers", "2", "--port", "0", "--run", str(run), *changes]
    log, targets = tmp_path / "up.log", run / "targets"
    with rejoinder(log, *command), prometheus(tmp_path / "prometheus", [targets]) as watching:
        until(lambda: up(watching) == 4, 180, lambda: (up(watching), log.read_text()))
        (run_id,) = watching.label_values("rejoinder_learner_games", "run")
        with played_at(gateway_address(targets)):
            missing = unanswered(watching, EVERY_QUERY, run_id, seconds=120)
        assert {query.expr for query in missing} <= set(MAY_BE_EMPTY), missing
        for board in BOARDS:
            check_variables(watching, board, run_id)
        check_rules(watching)


def up(watching: Prometheus) -> float:
    return watching.value("sum(up)") or 0


def unanswered(watching: Prometheus, asked: list[Query], run: str, seconds: float) -> set[Query]:
    """Those that have no answer, however long one waits; no result may have a wrong legend."""
    missing = set(asked)
    deadline = time.monotonic() + seconds
    while {query.expr for query in missing} - set(MAY_BE_EMPTY) and time.monotonic() < deadline:
        time.sleep(1)
        for query in list(missing):
            if result := watching.range(substituted(query.expr, escaped(run))):
                check_legend(query, result)
                missing.remove(query)
    return missing


def check_legend(query: Query, result: list[Series]) -> None:
    """What names a line is a label that it has, and no two lines have one name."""
    labels = re.findall(r"{{(\w+)}}", query.legend)
    for series in result:
        assert set(labels) <= set(series["metric"]), query
    names = [tuple(series["metric"][label] for label in labels) for series in result]
    assert len(set(names)) == len(names) or not query.legend, query


def check_variables(watching: Prometheus, board: dict[str, Any], run: str) -> None:
    for variable in board["templating"]["list"]:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert found
        values = watching.label_values(substituted(found[1], escaped(run)), found[2])
        expected = {"rejoinder-workers": 2}.get(board["uid"], 1) if found[2] == "instance" else 1
        assert len(values) == expected, (board["uid"], variable["name"], values)


def check_rules(watching: Prometheus) -> None:
    """Every rule is evaluated without a fault, on series that exist, and none of them fires."""
    rules = watching.rules()
    assert rules
    for rule in rules:
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule
        for selector in re.findall(SELECTOR, rule["query"]):
            # The gateway has not failed, and nothing is on Kubernetes.
            if 'status=~"5.."' not in selector and 'pod!=""' not in selector:
                assert watching.range(selector), (rule["name"], selector)
    assert watching.alerts() == {}


def gateway_address(targets: Path) -> str:
    (file,) = targets.glob("rejoinder-gateway-*.json")
    (target,) = json.loads(file.read_text("utf-8"))[0]["targets"]
    return f"http://{target}"


@contextmanager
def played_at(address: str) -> Iterator[None]:
    """Somebody plays there all the time, with a stream open, and makes mistakes."""
    over = threading.Event()
    failures: list[BaseException] = []

    def play() -> None:
        chance = random.Random(1)
        with httpx2.Client(base_url=address, timeout=60) as client:
            while not over.is_set():
                player = Player.start(client, DEAL)
                with client.stream(
                    "GET", f"{API}/games/{player.id}/events", headers=player.headers
                ):
                    player.play_on(chance, most=200)
                assert client.get(f"{API}/games/nobody").status_code == 404
                over.wait(1)

    def play_and_tell() -> None:
        try:
            play()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=play_and_tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    assert failures == []
