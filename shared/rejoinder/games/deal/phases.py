"""Monopoly Deal's response phases as evaluations see them: demands, payments, Just Say No.

Nothing here is part of play. A demand is the rent that is owed; what a move gives counts as cash if
it comes from the bank, whatever card it is, and as property if it is taken from the properties. How
much of the demand it pays is for the rules to say (`response.times_counted`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.deal.cards import (
    GIVE_BANK,
    GIVE_PROPERTY,
    INTENT_RESPONSES,
    JUST_SAY_NO,
    KINDS,
    MOVES,
    PASS,
    WORTH,
    YIELD,
    given_kind,
)
from rejoinder.games.deal.cards import (
    RESPONSES as RESPONSE_MOVES,
)
from rejoinder.games.deal.race import RACE_RESPONSES
from rejoinder.games.deal.response import times_counted
from rejoinder.games.responses import GIVES_CASH, GIVES_PROPERTY, REFUSES, YIELDS, Responses
from rejoinder.kernel.jit import rule
from rejoinder.kernel.rng import below

RESPONSES = Responses(
    kind=np.zeros(MOVES, np.int8),
    actions={
        "none": RESPONSE_MOVES,
        "intent": INTENT_RESPONSES,
        "progress": INTENT_RESPONSES,
        "race": RACE_RESPONSES,
    },
)
RESPONSES.kind[JUST_SAY_NO] = REFUSES
RESPONSES.kind[GIVE_BANK:GIVE_PROPERTY] = GIVES_CASH
RESPONSES.kind[GIVE_PROPERTY:PASS] = GIVES_PROPERTY
RESPONSES.kind[YIELD] = YIELDS


@rule
def demand(state: Any) -> Any:
    return np.int64(state.owed)


@rule
def payment(state: Any, move: Any) -> Any:
    if move < GIVE_BANK or move >= PASS:
        return np.int64(0)
    times = times_counted(state.response, state.n_responses, move)
    return np.int64(WORTH[given_kind(move)] * times)


@rule
def hand_refusal(state: Any, player: Any, rng: Any) -> Any:
    held = state.hand_count[player]
    if state.cannot_refuse[player] == held:  # an empty hand too
        return False
    if state.hand[player, JUST_SAY_NO] > 0 or state.deck[JUST_SAY_NO] == 0:
        return False
    left = below(rng, held)
    for kind in range(KINDS):
        left -= state.hand[player, kind]
        if left < 0:
            state.hand[player, kind] -= 1
            state.deck[kind] += 1
            break
    state.deck[JUST_SAY_NO] -= 1
    state.hand[player, JUST_SAY_NO] += 1
    return True


@rule
def blank_refusals(state: Any, player: Any) -> None:
    """They leave the hand but not its count, so draws and the end of the game stay as they are."""
    state.hand[player, JUST_SAY_NO] = 0
