"""Clamps of regret matching, an optional capability of an abstraction (paper, section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clamps:
    """Masks of actions that regret matching treats apart."""

    never: int = 0  # actions that get no weight
    passive: int = 0  # actions that get none while an active one has positive regret
