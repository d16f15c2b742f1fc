"""docs/operations.md says what the files in deploy/ do."""

from __future__ import annotations

import re
import subprocess

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
    assert made["spec"] == yaml.safe_load(RULES.read_text("utf-8"))


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
