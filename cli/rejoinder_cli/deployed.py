"""The files of deploy/ that commands use: in a checkout where they are kept, or in the wheel."""

from __future__ import annotations

from pathlib import Path

RULES = "prometheus/rules.yml"
DASHBOARDS = "grafana/dashboards"

_HERE = Path(__file__).parent
_PLACES = (_HERE / "deploy", _HERE.parents[1] / "deploy")  # in the wheel, in a checkout


def path(name: str) -> Path:
    """A file or folder of deploy/, by its path there."""
    for place in _PLACES:
        if (place / name).exists():
            return place / name
    raise ValueError(f"deploy/{name} did not come with this installation; install it anew")
