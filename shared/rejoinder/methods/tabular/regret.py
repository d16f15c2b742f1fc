"""Regret matching, with the clamps that a game may ask for (paper, section 6.1)."""

from __future__ import annotations

from typing import Any

from rejoinder.kernel.jit import rule
from rejoinder.kernel.masks import count, first, has, rest, some, without

NEGLIGIBLE = 1e-300  # a smaller sum of regrets has no finite inverse


@rule
def match_regrets(regret: Any, legal: Any, strategy: Any) -> None:
    """In proportion to positive regret; uniform where there is none."""
    scale, even = scale_regrets(regret, legal)
    left = legal
    while some(left):
        a = first(left)
        left = rest(left)
        strategy[a] = max(regret[a], 0.0) * scale + even


@rule
def scale_regrets(regret: Any, legal: Any) -> Any:
    """What makes probabilities of positive regrets: a factor, and what is added to each."""
    total = _positive(regret, legal)
    if total > NEGLIGIBLE:
        return 1.0 / total, 0.0
    return 0.0, 1.0 / count(legal)


@rule
def match_clamped(regret: Any, legal: Any, never: Any, passive: Any, strategy: Any) -> None:
    """Regret matching where `never` actions get no weight and `passive` ones none while an active
    action has positive regret. With no weight left the previous strategy stays as it is.
    """
    allowed = without(legal, never)
    active = without(allowed, passive)
    total = _positive(regret, active)
    if total > 0.0:
        allowed = active
    else:
        total = _positive(regret, allowed)
        if total <= 0.0:
            return
    left = legal
    while some(left):
        a = first(left)
        left = rest(left)
        weight = regret[a] if has(allowed, a) else 0.0
        strategy[a] = max(weight, 0.0) / total


@rule
def _positive(regret: Any, actions: Any) -> Any:
    total = 0.0
    left = actions
    while some(left):
        a = first(left)
        left = rest(left)
        total += max(regret[a], 0.0)
    return total
