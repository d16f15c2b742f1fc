"""docs/operations.md says what the files in deploy/ do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from composition import ROOT, SECRETS, load

PAGE = (ROOT / "docs/operations.md").read_text("utf-8")
RULES = ROOT / "deploy/prometheus/rules.yml"


def test_every_alert_is_explained_and_no_other() -> None:
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert set(re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)) == alerts


def test_the_recipe_makes_a_rule_object() -> None:
    recipe = re.search(r"\$ (\{ printf .*?; \}) \| kubectl", PAGE, re.DOTALL)
    assert recipe
    told = subprocess.run(["sh", "-c", recipe[1]], cwd=ROOT, capture_output=True, text=True)
    made = yaml.safe_load(told.stdout)
    assert (made["kind"], made["metadata"]["name"]) == ("PrometheusRule", "rejoinder")
    release = yaml.safe_load((ROOT / "deploy/k8s/components/monitoring/release.yaml").read_text())
    assert made["metadata"]["labels"] == release[0]["value"]
    assert made["spec"] == yaml.safe_load(RULES.read_text("utf-8"))


def test_prometheus_takes_the_alertmanager_and_that_what_it_is_told(tmp_path: Path) -> None:
    """The recipe fits the files it goes with; Prometheus's own tools look at it where they are."""
    chapter = PAGE.partition("\n## Alerts\n")[2].partition("\n### ")[0]
    alerting, change, manager = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", chapter, re.S))
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
    assert not alerting.keys() & config.keys()
    (targets,) = alerting["alerting"]["alertmanagers"][0]["static_configs"]
    (service,) = change["services"]
    assert targets["targets"] == [f"{service}:9093"]
    made = load(SECRETS)
    alertmanager = change["services"][service]
    assert set(alertmanager["networks"]) & set(made["services"]["prometheus"]["networks"])
    assert set(alertmanager["networks"]) <= made["networks"].keys()
    assert alertmanager["ports"] == ["127.0.0.1:9093:9093"]
    receivers = {receiver["name"] for receiver in manager["receivers"]}
    routes = [manager["route"], *manager["route"]["routes"]]
    assert {route["receiver"] for route in routes} == receivers
    (tmp_path / "rules.yml").write_bytes(RULES.read_bytes())
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config | alerting), "utf-8")
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(manager), "utf-8")
    for tool, command, file in (
        ("promtool", ("check", "config"), "prometheus.yml"),
        ("amtool", ("check-config",), "alertmanager.yml"),
    ):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here; `apt install prometheus prometheus-alertmanager`")
        checked = [tool, *command, file]
        told = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True)
        assert told.returncode == 0, told.stdout + told.stderr


def test_every_secret_can_be_changed() -> None:
    chapter = PAGE.partition("\n## Changing secrets\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", chapter, re.MULTILINE)) == {*SECRETS, "REDIS_URL"}


def test_the_user_of_the_bus_is_the_one_described() -> None:
    start = (ROOT / "deploy/redis/start.sh").read_text("utf-8")
    described = re.search(r"^  user rejoinder on >PASSWORD (.*)$", PAGE, re.MULTILINE)
    assert described
    assert f"user rejoinder on #$hash {described[1]}\n" in start
    assert "user default off" in PAGE
    assert "\nuser default off\n" in start


def test_limits_and_ports_are_those_of_compose() -> None:
    services = load(SECRETS)["services"]
    for name, limit in re.findall(r"^\| (\w+) \|.*limit ([\d.]+) GB", PAGE, re.MULTILINE):
        size = services[name]["mem_limit"]
        megabytes = int(size[:-1]) * {"m": 1, "g": 1024}[size[-1]]
        assert megabytes == float(limit) * 1024, name
    for port in (port for service in services.values() for port in service.get("ports", ())):
        address, published, _ = port.split(":")
        assert f"http://{address}:{published}" in PAGE


def test_the_bus_leaves_room_in_its_container() -> None:
    config = (ROOT / "deploy/redis/redis.conf").read_text("utf-8")
    most = re.search(r"^maxmemory (\d+)mb$", config, re.MULTILINE)
    assert most
    container = int(load(SECRETS)["services"]["redis"]["mem_limit"].removesuffix("m"))
    assert int(most[1]) <= container * 7 / 8


def test_no_example_puts_a_secret_into_the_list_of_processes() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for line in page.read_text("utf-8").splitlines():
            assert not re.search(
                r"rejoinder .*--redis[ =]\S*:\S*@|rejoinder .*--token[ =]\S", line
            ), f"{page.name}: {line}"


def test_whoever_is_away_in_an_upgrade_is_silenced() -> None:
    silenced = re.search(r"""amtool silence add .*'alertname=~"(.*)"'""", PAGE)
    assert silenced
    missed = re.findall(r"- alert: (\w+Down)$", RULES.read_text("utf-8"), re.MULTILINE)
    assert len(missed) == 2
    for alert in missed:
        assert re.fullmatch(silenced[1], alert)


DOCKER = f"""#!{sys.executable}
import os, re, sys
words = sys.argv[1:]
if words[0] == "compose":
    sys.exit()
assert words.pop(0) == "run"
mounts = {{}}
while words[0].startswith("--"):
    if words.pop(0) == "--volume":
        source, target, *_ = words.pop(0).split(":")
        mounts[target] = os.path.join(os.environ["VOLUMES"], source)  # or an absolute one
image = words.pop(0)
for target, source in mounts.items():
    words = [re.sub(rf"(?<![\\w.]){{target}}\\b", source, word) for word in words]
os.execvp(words[0], words)
"""


def test_a_restored_run_is_what_it_was(tmp_path: Path) -> None:
    """By the page's commands, with processes for containers, on a volume that has gone on since."""
    (tmp_path / "docker").write_text(DOCKER, "utf-8")
    (tmp_path / "docker").chmod(0o755)
    runs, here = tmp_path / "volumes/rejoinder_runs", tmp_path / "here"
    (runs / "paper").mkdir(parents=True)
    here.mkdir()
    chapter = PAGE.partition("## Backup and restore\n")[2]
    backup, restore, *_ = re.findall(r"```console\n(.*?)```", chapter, re.DOTALL)

    def call(block: str) -> int:
        environment = os.environ | {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "VOLUMES": str(runs.parent),
        }
        script = "set -e\n" + re.sub(r"^\$ ", "", block, flags=re.MULTILINE)
        return subprocess.run(["bash", "-c", script], cwd=here, env=environment).returncode

    (runs / "paper/000100.ckpt").write_text("old")
    (runs / "paper/status.json").write_text("then")
    assert call(backup) == 0
    (runs / "paper/000200.ckpt").write_text("newer, and wrong")
    (runs / "paper/status.json").write_text("now")
    (runs / ".hidden").write_text("")
    whole = (here / "runs.tgz").read_bytes()
    (here / "runs.tgz").write_bytes(whole[:-20])
    assert call(restore) != 0
    assert (runs / "paper/000200.ckpt").exists(), "half a backup replaces nothing"
    (here / "runs.tgz").write_bytes(whole)
    assert call(restore) == 0
    there = {p.relative_to(runs).as_posix(): p.read_text() for p in runs.rglob("*") if p.is_file()}
    assert there == {"paper/000100.ckpt": "old", "paper/status.json": "then"}
