"""The response phase: what an action demands, what may be answered, when it is over.

Three questions define a response-triggering card: is a response required, which are valid now, is
it complete. Rent is the one there is; another one answers them here, beside its kind and names in
`cards.py` and the intent of playing it in `abstraction.py`. A phase carries its context in the
state: the initiating move, what is owed and paid, and the responses so far (the initiator's state
before it is today's state with those responses taken back).

A fourth question is the rules' to choose: what does a card given count. Under PLAIN, the paper's,
it is its worth, so that only which cards are given matters. Under ORDERED a property given as the
first card counts double, so that their order does too. Every card counts at least 1 under any
definition, which is what bounds a phase by what is owed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.deal.cards import (
    GIVE_BANK,
    GIVE_PROPERTY,
    JUST_SAY_NO,
    MONEY_KINDS,
    RENT_CARD,
    WORTH,
    YIELD,
    rent_for,
)
from rejoinder.kernel.jit import rule

# Definitions of what a card given counts, and what the rules call them.
PLAIN, ORDERED = 0, 1
DEFINITIONS = ("plain", "ordered")


@rule
def response_amount(state: Any, initiator: Any, move: Any) -> Any:
    """What the opponent would owe; 0 means that no response is required."""
    colour = move - RENT_CARD
    return rent_for(colour, state.properties[initiator, colour])


@rule
def highest_rent(state: Any) -> Any:
    """The rent card in the mover's hand that asks most; ties go to the lowest colour number."""
    player = state.mover
    best = 0
    most: Any = 0
    for colour in range(3):
        if state.hand[player, RENT_CARD + colour] > 0:
            amount = response_amount(state, player, RENT_CARD + colour)
            if amount > most:
                best, most = colour, np.int64(amount)
    return RENT_CARD + best


@rule
def bank_value(state: Any, player: Any) -> Any:
    value = 0
    for kind in range(MONEY_KINDS):
        value += state.bank[player, kind] * WORTH[kind]
    return value


@rule
def valid_responses(state: Any) -> Any:
    """Mask of moves: any card of the bank or the properties, Just Say No; else only to yield."""
    responder = state.mover
    moves = np.uint64(state.hand[responder, JUST_SAY_NO] > 0) << np.uint64(JUST_SAY_NO)
    for kind in range(MONEY_KINDS):
        moves |= np.uint64(state.bank[responder, kind] > 0) << np.uint64(GIVE_BANK + kind)
    for colour in range(3):
        owned = np.uint64(state.properties[responder, colour] > 0)
        moves |= owned << np.uint64(GIVE_PROPERTY + colour)
    return moves if moves else np.uint64(1 << YIELD)


@rule
def times_counted(definition: Any, place: Any, move: Any) -> Any:
    """How many times its worth a card counts that is given as number `place` (from 0)."""
    return 2 if definition == ORDERED and place == 0 and move >= GIVE_PROPERTY else 1


@rule
def doubling(state: Any, offered: Any) -> Any:
    """1: a property counts double if it is given now; 2: and the bank covers the debt; else 0.

    `offered` tells whether one can be given.
    """
    if not offered or times_counted(state.response, state.n_responses, GIVE_PROPERTY) == 1:
        return np.uint64(0)
    return np.uint64(1 + (bank_value(state, state.mover) >= state.owed))


@rule
def response_complete(state: Any, move: Any) -> Any:
    """Whether the phase is over after `move` (already applied)."""
    return state.paid >= state.owed or move in (JUST_SAY_NO, YIELD)
