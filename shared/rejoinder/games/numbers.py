"""Building blocks of a game's `observation`: what a player sees, as named pieces of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Pieces: TypeAlias = Mapping[str, Sequence[float]]  # of a fixed length each, in a fixed order


def one_hot(place: int | None, size: int) -> list[float]:
    """A one at the place, if there is one, and zeros elsewhere."""
    return [float(k == place) for k in range(size)]


def counts(by_name: Mapping[str, int], names: Sequence[str]) -> list[float]:
    """How many there are of each name."""
    return [float(by_name.get(name, 0)) for name in names]
