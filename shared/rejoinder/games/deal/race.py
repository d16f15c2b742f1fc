"""RACE: an abstraction of Monopoly Deal that knows how the race for the sets stands.

Its actions are finer than intents where the choice matters, which is the colour of a property that
is laid or given, and coarser where it does not. An infoset is the available actions and

- in a turn: how many properties either player still lacks for the sets needed, the streak index,
  whether one has money in the bank, whether a rent card in hand asks for more than the opponent's
  bank holds, so that he must give properties, and whether the streak can win the game;
- in a response phase: a bucket of what is still due, whether the bank covers it, the properties
  owned by colour, how many the opponent lacks, and whether a property counts double if it is given
  now.

Where an action leaves a choice, the card is a function of what the player sees:

- COLLECT_RENT: the largest amount; ties go to the lowest colour number. A rent card that would
  collect nothing counts as PASS;
- CASH: the highest value, cash before a property whose set is complete;
- GIVE_CASH: what overpays least, as far as one card at a time can tell (see `_payment`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.deal.cards import (
    CASH,
    COLOURS,
    GIVE_BANK,
    GIVE_PROPERTY,
    JUST_SAY_NO,
    MONEY_KINDS,
    PASS,
    PROPERTY,
    RENT_CARD,
    SET_SIZE,
    WORTH,
    YIELD,
)
from rejoinder.games.deal.keys import DOUBLED, Field, doubled, field, identifier
from rejoinder.games.deal.response import (
    bank_value,
    doubling,
    highest_rent,
    response_amount,
    valid_responses,
)
from rejoinder.kernel.jit import kernel, rule

RACE = 3

# Actions.
BUILD = 0  # + colour
SAVE = 3
COLLECT = 4
END = 5
SAY_NO = 6
PAY = 7
GIVE = 8  # + colour
GIVE_NOTHING = 11

RACE_NAMES = (
    *(f"BUILD_{colour.upper()}" for colour in COLOURS),
    "CASH",
    "COLLECT_RENT",
    "PASS",
    "JUST_SAY_NO",
    "GIVE_CASH",
    *(f"GIVE_{colour.upper()}" for colour in COLOURS),
    "YIELD",
)
RACE_RESPONSES = (1 << len(RACE_NAMES)) - (1 << SAY_NO)  # mask of actions

# Bit fields of a key.
_ACTIONS: Field = (0, 12)
_PLAYER: Field = (12, 1)
_THEY_LACK: Field = (13, 4)
# … of a turn
_STREAK: Field = (17, 4)
_I_LACK: Field = (21, 4)
_BANKED: Field = (35, 1)
_STRIKES: Field = (36, 1)
_FINISHES: Field = (37, 1)
# … of a response phase
_DUE: Field = (25, 3)  # its bucket; 0 outside a response phase
_COVERED: Field = (28, 1)
_OWN_SETS: Field = (29, 6)  # two bits a colour: properties owned, capped at the set's size

OUT_OF_REACH = 100  # properties; more than any set has

_DUE_BUCKETS = ("", "1", "2", "3 or 4", "5 or more")

_FROM_BANK = np.uint64(((1 << MONEY_KINDS) - 1) << GIVE_BANK)
_COLOUR_BITS = np.uint64(0b111)


@rule
def race_actions(state: Any) -> Any:
    return _response_actions(state) if state.owed > 0 else _main_actions(state)


@rule
def _main_actions(state: Any) -> Any:
    player = state.mover
    actions = np.uint64(1 << END)
    for colour in range(3):
        owned = state.properties[player, colour]
        if state.hand[player, PROPERTY + colour] > 0:
            action = BUILD + colour if owned < SET_SIZE[colour] else SAVE
            actions |= np.uint64(1) << np.uint64(action)
        if state.hand[player, RENT_CARD + colour] > 0 and owned > 0:
            actions |= np.uint64(1 << COLLECT)
    held = 0
    for kind in range(CASH, RENT_CARD):
        held |= state.hand[player, kind]
    return actions | (np.uint64(held > 0) << np.uint64(SAVE))


@rule
def _response_actions(state: Any) -> Any:
    responses = valid_responses(state)
    return (
        (((responses >> np.uint64(JUST_SAY_NO)) & np.uint64(1)) << np.uint64(SAY_NO))
        | (np.uint64((responses & _FROM_BANK) != 0) << np.uint64(PAY))
        | (((responses >> np.uint64(GIVE_PROPERTY)) & _COLOUR_BITS) << np.uint64(GIVE))
        | (((responses >> np.uint64(YIELD)) & np.uint64(1)) << np.uint64(GIVE_NOTHING))
    )


@rule
def race_key(state: Any) -> Any:
    own = state.mover
    key = race_actions(state)
    key |= np.uint64(own) << np.uint64(_PLAYER[0])
    key |= np.uint64(_lacks(state, 1 - own)) << np.uint64(_THEY_LACK[0])
    if state.owed == 0:
        return key | _turn_bits(state, own)
    due = state.owed - state.paid
    key |= np.uint64(1 + (due > 1) + (due > 2) + (due > 4)) << np.uint64(_DUE[0])
    key |= np.uint64(bank_value(state, own) >= due) << np.uint64(_COVERED[0])
    offered = (key >> np.uint64(GIVE)) & _COLOUR_BITS
    key |= doubling(state, offered > 0) << np.uint64(DOUBLED[0])
    for colour in range(3):
        mine = min(state.properties[own, colour], SET_SIZE[colour])
        key |= np.uint64(mine) << np.uint64(_OWN_SETS[0] + 2 * colour)
    return key


@rule
def _turn_bits(state: Any, own: Any) -> Any:
    turns_left = state.streak - state.streak_index
    return (
        np.uint64(state.streak_index) << np.uint64(_STREAK[0])
        | np.uint64(_lacks(state, own)) << np.uint64(_I_LACK[0])
        | np.uint64(bank_value(state, own) > 0) << np.uint64(_BANKED[0])
        | np.uint64(_strikes(state, own)) << np.uint64(_STRIKES[0])
        | np.uint64(_distance(state, own, True) <= turns_left) << np.uint64(_FINISHES[0])
    )


@rule
def _lacks(state: Any, player: Any) -> Any:
    """Properties that a player must still lay to have the sets needed."""
    return _distance(state, player, False)


@rule
def _distance(state: Any, player: Any, from_hand: Any) -> Any:
    """The same, or with `from_hand` only by sets for which the hand has all that is missing."""
    total, fewest, most = 0, OUT_OF_REACH, 0
    for colour in range(3):
        missing = max(SET_SIZE[colour] - state.properties[player, colour], 0)
        if from_hand and missing > state.hand[player, PROPERTY + colour]:
            missing = OUT_OF_REACH
        total += missing
        fewest = min(fewest, missing)
        most = max(most, missing)
    if state.sets_needed == 1:
        return fewest
    return total - most if state.sets_needed == 2 else total


@rule
def _strikes(state: Any, own: Any) -> Any:
    """Whether a rent in hand would cost the opponent a property, unless he says no."""
    owns = 0
    most: Any = 0
    for colour in range(3):
        owns |= state.properties[1 - own, colour]
        if state.hand[own, RENT_CARD + colour] > 0:
            most = max(most, response_amount(state, own, RENT_CARD + colour))
    return owns > 0 and most > bank_value(state, 1 - own)


@rule
def race_move(state: Any, action: Any) -> Any:
    """The card that an action stands for."""
    if action < SAVE:
        return PROPERTY + np.int64(action) - BUILD
    if action == SAVE:
        return _saving(state)
    if action == COLLECT:
        return highest_rent(state)
    if action == END:
        return PASS
    if action == SAY_NO:
        return JUST_SAY_NO
    if action == PAY:
        return GIVE_BANK + _payment(state.bank[state.mover], state.owed - state.paid)
    if action < GIVE_NOTHING:
        return GIVE_PROPERTY + np.int64(action) - GIVE
    return YIELD


@rule
def _saving(state: Any) -> Any:
    player = state.mover
    best = 0
    most: Any = 0
    for kind in range(MONEY_KINDS - 1, -1, -1):  # cash first
        is_money = kind >= CASH or state.properties[player, kind] >= SET_SIZE[kind]
        if is_money and state.hand[player, kind] > 0 and WORTH[kind] > most:
            best, most = kind, np.int64(WORTH[kind])
    return best


@rule
def _payment(bank: Any, due: Any) -> Any:
    """The money kind to give: the most valuable that does not overpay, while such kinds suffice or
    there are no others; else the least valuable that overpays.
    """
    within, beyond = 0, 0
    most: Any = 0
    least: Any = 100
    sum_within = 0
    for kind in range(MONEY_KINDS):
        if bank[kind] > 0:
            worth = np.int64(WORTH[kind])
            if worth > due:
                if worth < least:
                    least, beyond = worth, kind
            else:
                sum_within += bank[kind] * worth
                if worth > most:
                    most, within = worth, kind
    return within if sum_within >= due or least == 100 else beyond


@kernel
def race_meaning(states: Any, move: Any) -> Any:
    """The action that a legal concrete move counts as."""
    return np.int64(_action_of(states[0], move))


@rule
def _action_of(state: Any, move: Any) -> Any:
    player = state.mover
    if move < CASH:
        return BUILD + move if state.properties[player, move] < SET_SIZE[move] else SAVE
    if move < RENT_CARD:
        return SAVE
    if move < JUST_SAY_NO:
        return COLLECT if response_amount(state, player, move) > 0 else END
    if move == JUST_SAY_NO:
        return SAY_NO
    if move < GIVE_PROPERTY:
        return PAY
    if move < PASS:
        return GIVE + move - GIVE_PROPERTY
    return END if move == PASS else GIVE_NOTHING


def describe_race(key: int) -> dict[str, Any]:
    """What an infoset key of `RACE` says."""
    told: dict[str, Any] = {
        "player": field(key, _PLAYER),
        "actions": [a for a in range(len(RACE_NAMES)) if field(key, _ACTIONS) >> a & 1],
        "opponent_lacks": field(key, _THEY_LACK),
    }
    if due := field(key, _DUE):
        return told | {
            "due": _DUE_BUCKETS[due],
            "bank_covers": bool(field(key, _COVERED)),
            "own_sets": [field(key, _OWN_SETS) >> 2 * c & 3 for c in range(3)],
            **doubled(key),
        }
    return told | {
        "streak_index": field(key, _STREAK),
        "own_lacks": field(key, _I_LACK),
        "has_money": bool(field(key, _BANKED)),
        "rent_takes_property": bool(field(key, _STRIKES)),
        "can_win_now": bool(field(key, _FINISHES)),
    }


def race_identifier(key: int) -> str:
    """The paper's form."""
    told = describe_race(key)
    return identifier(told.pop("player"), "RaceStateAbstraction", told)
