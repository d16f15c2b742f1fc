"""What trainers have written, read with doubt: a run directory may come from anywhere.

Each model takes what a trainer writes and the gateway tells, and refuses everything else with a
ValueError; whoever reads leaves out what is refused.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import to_json

from rejoinder_gateway.schemas import LARGEST, Count, Figure, whole

# What is told of a worker; its machine and its name are nobody's business.
_WORKER_FIELDS = ("games", "leases", "evaluations", "busy_seconds", "up_seconds")

_COUNTS = ("updates",)  # of an evaluation: by quantile


def _checked_text(value: dict[str, Any]) -> dict[str, Any]:
    """JSON may hold halves of characters, which nothing can be told in."""
    to_json(value)
    return value


JsonText = Annotated[dict[str, Any], AfterValidator(_checked_text)]


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class TrainerStatus(_Written):
    """What the trainer says of itself: `RunDir.standing`."""

    state: str
    alive: bool
    games: Count
    target: Count
    time: float = 0.0
    version: Count | None = None
    games_per_second: float | None = None
    seconds_left: float | None = None
    mer: float | None = None
    exploitability: float | None = None
    matches: JsonText = {}
    infosets: Count | None = None
    workers: dict[str, Any] = {}

    @property
    def figures(self) -> list[dict[str, Figure]]:
        """Of each worker; it may have said anything."""
        return [_figures(about) for about in self.workers.values()]


class Session(_Written):
    """Of the provenance: when a trainer began, and with what. Where is nobody's business."""

    from_game: Count = 0
    time: str | None = None
    rejoinder: str | None = None
    kernel: str | None = None
    commit: str | None = None


class Record(_Written):
    """An evaluation; what else is in it is told as it is."""

    model_config = ConfigDict(extra="allow")

    games: Count
    mer: float | None = None
    exploitability: float | None = None
    matches: dict[str, Any] = {}
    infosets: Count | None = None


def record(written: dict[str, Any]) -> dict[str, Any]:
    """An evaluation as it was written, if it can be told; counts are whole numbers."""
    Record.model_validate(written)
    counts = {
        name: {key: whole(value) for key, value in written[name].items()}
        for name in _COUNTS
        if isinstance(written.get(name), dict)
    }
    return _checked_text(written | counts)


def _figures(about: Any) -> dict[str, Figure]:
    told = about if isinstance(about, dict) else {}
    return {f: told[f] for f in _WORKER_FIELDS if _is_figure(told.get(f))}


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= LARGEST
