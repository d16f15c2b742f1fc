"""The paper's hand-made opponent for Monopoly Deal (appendix B)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rejoinder.games.deal.abstraction import INTENT, PROGRESS, legal_actions
from rejoinder.games.deal.cards import (
    ABSTRACT_NAMES,
    ATTEMPT_COLLECT_RENT,
    BANK_CASH,
    COMPLETE_PROPERTY_SET,
    GIVE_OPPONENT_PROPERTY,
)
from rejoinder.kernel.jit import rule

AGGRESSIVENESS = 0.5
TEMPERATURE = 2.0

# Pass, yield and other weigh nothing: they are played only when there is nothing else.
_RISK_AWARE = np.zeros(len(ABSTRACT_NAMES))
_RISK_AWARE[: COMPLETE_PROPERTY_SET + 1] = math.exp(AGGRESSIVENESS * TEMPERATURE)
_RISK_AWARE[BANK_CASH] = math.exp((1.0 - AGGRESSIVENESS) * TEMPERATURE)
_RISK_AWARE[ATTEMPT_COLLECT_RENT : GIVE_OPPONENT_PROPERTY + 1] = 0.5 * TEMPERATURE


@rule
def risk_aware(state: Any, abstraction: Any, number: Any, weights: Any) -> None:
    """Prefers property to money by `AGGRESSIVENESS`; knows intents, and no other actions."""
    legal = legal_actions(state, abstraction)
    knows = abstraction in (INTENT, PROGRESS)
    total = 0.0
    for a in range(len(weights)):
        weights[a] = 0.0
        if (legal >> np.uint64(a)) & np.uint64(1) and knows:
            weights[a] = _RISK_AWARE[a]
            total += weights[a]
    if total == 0.0:
        for a in range(len(weights)):
            weights[a] = np.float64((legal >> np.uint64(a)) & np.uint64(1))
