"""What the abstractions of Monopoly Deal share: bit fields of keys, and the names of infosets."""

from __future__ import annotations

import hashlib
import json
from typing import Any

Field = tuple[int, int]  # of a key: offset and width

DOUBLED: Field = (56, 2)  # in every abstraction; 0 in the paper's game, see `response.doubling`


def field(key: int, where: Field) -> int:
    return (key >> where[0]) & ((1 << where[1]) - 1)


def doubled(key: int) -> dict[str, bool]:
    """Nothing where it is not so: the paper's information sets keep the paper's words."""
    doubling = field(key, DOUBLED)
    return {"property_doubled": True, "bank_covers": doubling == 2} if doubling else {}


def identifier(player: int, name: str, content: dict[str, Any]) -> str:
    """The paper's form: {player}@{abstraction}@{md5 of the compact JSON}."""
    compact = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{player}@{name}@{hashlib.md5(compact.encode(), usedforsecurity=False).hexdigest()}"
