"""A Prometheus for the processes of one machine: the machine's own program, with settings of ours.

Everything of it is in the run directory: the settings and the rules, written anew at each start,
and the data, which stay. It finds what to scrape in the folder of targets.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from rejoinder.files import write_atomically
from rejoinder.run.rundir import PROMETHEUS, TARGETS
from rejoinder_cli import deployed
from rejoinder_cli.options import LOOPBACK

VARIABLE = "REJOINDER_PROMETHEUS"
PORT = 9090  # where a Prometheus usually is
LAST_SCRAPE = 6.0  # seconds within which everything has been scraped once more

_SETTINGS = """\
# Written by `rejoinder up --prometheus` at each start.
global:
  scrape_interval: 5s
  evaluation_interval: 15s
rule_files: [{rules}]
scrape_configs:
  - job_name: rejoinder # each target names its own
    file_sd_configs:
      - files: [{targets}]
        refresh_interval: 5s
"""


def find_prometheus() -> str:
    """The program: the one that the environment names, or the machine's."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or "prometheus")
    if found is not None:
        return found
    if named:
        raise ValueError(f"{VARIABLE}: {named} is no program")
    raise ValueError(
        "--prometheus: there is no prometheus on this machine; apt install prometheus, or get it "
        f"from https://prometheus.io/download and name it in {VARIABLE}"
    )


def prometheus_command(program: str, run: Path, port: int) -> list[str]:
    """What starts it for the run in that directory; its settings are written before."""
    folder = run / PROMETHEUS
    folder.mkdir(exist_ok=True)
    (run / TARGETS).mkdir(exist_ok=True)  # for it to watch
    rules, settings = folder / "rules.yml", folder / "prometheus.yml"
    write_atomically(rules, deployed.path(deployed.RULES).read_bytes())
    targets = run.resolve() / TARGETS / "*.json"
    text = _SETTINGS.format(rules=_quoted(rules.resolve()), targets=_quoted(targets))
    write_atomically(settings, text.encode())
    return [
        program,
        f"--config.file={settings}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=warn",
    ]


def _quoted(path: Path) -> str:
    return json.dumps(str(path))  # which YAML reads as well
