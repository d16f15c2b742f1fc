"""A real Prometheus for tests, and Rejoinder's processes for it to look at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_play import free_port

from rejoinder.transport.server import end_with_parent

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/rules.yml"

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL),
    reason="no Prometheus here; `apt install prometheus` (prometheus and promtool on the PATH)",
)

Series = dict[str, Any]  # of a result: `metric`, the labels, and `values`, pairs of time and text


def promtool(*arguments: str | Path) -> str:
    """What promtool has to say; it must be content."""
    told = subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


class Prometheus:
    """The API of one that runs."""

    def __init__(self, address: str) -> None:
        self.address = address

    def range(self, expr: str, seconds: int = 30) -> list[Series]:
        """Every second's values in the last ones; what is no number is left out."""
        now = time.time()
        found = self._get("query_range", query=expr, start=now - seconds, end=now, step=1)
        kept = []
        for series in found["result"]:
            values = [(t, float(v)) for t, v in series["values"] if v != "NaN"]
            if values:
                kept.append({"metric": series["metric"], "values": values})
        return kept

    def value(self, expr: str) -> float | None:
        """The only value now, if there is one."""
        result = self._get("query", query=expr)["result"]
        return float(result[0]["value"][1]) if result else None

    def label_values(self, selector: str, label: str) -> set[str]:
        found = self._get("series", **{"match[]": selector})
        return {series[label] for series in found if label in series}

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def alerts(self, state: str = "firing") -> dict[str, dict[str, str]]:
        """The labels of the alerts, by name."""
        found = self._get("alerts")["alerts"]
        return {a["labels"]["alertname"]: a["labels"] for a in found if a["state"] == state}

    def targets(self) -> list[dict[str, str]]:
        return [target["labels"] for target in self._get("targets")["activeTargets"]]

    def _get(self, what: str, **parameters: Any) -> Any:
        url = f"{self.address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None


@contextmanager
def prometheus(folder: Path, targets: list[Path]) -> Iterator[Prometheus]:
    """One that looks every second at whatever is announced in some folders, with the real rules."""
    files = [str(place / "*.json") for place in targets]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {
                "job_name": "rejoinder",
                "file_sd_configs": [{"files": files, "refresh_interval": "1s"}],
            }
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(json.dumps(config), "utf-8")  # JSON is YAML
    port = free_port()
    command = [
        str(PROMETHEUS),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with process(folder / "prometheus.log", command) as running:
        address = f"http://127.0.0.1:{port}"
        until(lambda: _is_ready(address), 120, lambda: (folder / "prometheus.log").read_text())
        assert running.poll() is None
        yield Prometheus(address)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def rejoinder(log: Path, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command as a process of its own."""
    command = [sys.executable, "-m", "rejoinder_cli.main", *map(str, arguments)]
    with process(log, command) as running:
        yield running


@contextmanager
def process(log: Path, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as words:
        running = subprocess.Popen(
            command, stdout=words, stderr=words, env=os.environ, preexec_fn=end_with_parent
        )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def until(
    condition: Callable[[], object], seconds: float, words: Callable[[], object] = lambda: ""
) -> float:
    """Wait until it is true; returns how long that took. `words` say what is there if it is not."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, words()
        time.sleep(0.2)
    return time.monotonic() - began
