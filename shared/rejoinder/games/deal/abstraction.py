"""Abstractions of Monopoly Deal: what a policy sees, and the card that an intent stands for.

Abstract actions are intents. An abstraction is a 64-bit key made of bit fields; `INTENT` is the
paper's (available intents, streak index), `PROGRESS` adds the public race: both players' set
progress, bank buckets, what is still owed, and whether a Just Say No is in hand. Both tell, where
a property counts double if it is given now, that it does, and whether the bank covers the debt.
`RACE` has actions and a module of its own.

The greedy resolver turns an intent into a card. Its choices, all functions of what the player sees:

- rent: the largest amount; ties go to the lowest colour number (brown, green, pink);
- CASH: the highest value, cash before a surplus property;
- START, ADD: the colour with the fewest still missing, then the most of it in hand;
- COMPLETE: the colour with the highest full rent;
- give cash, give property: the card worth least; ties go to the lowest number; where a property
  counts double, the one worth least that settles the debt so, if there is one;
- OTHER: the rent card held most often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.contract import CONCRETE
from rejoinder.games.deal.cards import (
    ABSTRACT_NAMES,
    ADD_TO_PROPERTY_SET,
    ATTEMPT_COLLECT_RENT,
    BANK_CASH,
    CASH,
    COMPLETE_PROPERTY_SET,
    DO_PASS,
    DO_YIELD,
    GIVE_BANK,
    GIVE_OPPONENT_CASH,
    GIVE_OPPONENT_PROPERTY,
    GIVE_PROPERTY,
    JUST_SAY_NO,
    MONEY_KINDS,
    OTHER,
    PASS,
    PROPERTY,
    RENT,
    RENT_CARD,
    SAY_NO,
    SET_SIZE,
    START_NEW_PROPERTY_SET,
    WORTH,
    YIELD,
)
from rejoinder.games.deal.engine import legal_moves, view_key
from rejoinder.games.deal.keys import DOUBLED, doubled, field, identifier
from rejoinder.games.deal.race import RACE, race_actions, race_key, race_move
from rejoinder.games.deal.response import (
    bank_value,
    doubling,
    highest_rent,
    times_counted,
    valid_responses,
)
from rejoinder.kernel.jit import kernel, rule

INTENT = 1
PROGRESS = 2

# Bit fields of a key: offset and width.
_ACTIONS = (0, 11)
_STREAK = (11, 4)
_PLAYER = (15, 1)
_OWN_SETS = (16, 6)  # two bits a colour: properties owned, capped at the set's size
_HIS_SETS = (22, 6)
_OWN_BANK = (28, 2)  # bucket of the bank's value
_HIS_BANK = (30, 2)
_TO_PAY = (32, 3)  # still owed in this response phase
_HOLDS_NO = (35, 1)

# Concrete responses by intent, as masks.
_SAYING_NO = np.uint64(1 << JUST_SAY_NO)
_FROM_BANK = np.uint64(((1 << MONEY_KINDS) - 1) << GIVE_BANK)
_FROM_PROPERTIES = np.uint64(0b111 << GIVE_PROPERTY)
_YIELDING = np.uint64(1 << YIELD)

# The intent of playing a property, by colour and number owned: complete before start, so that a
# set of one would be completed at once; beyond a complete set it is money.
_PROPERTY_INTENT = np.full((3, 128), BANK_CASH, np.int8)
for _colour in range(3):
    for _owned in range(SET_SIZE[_colour]):
        if _owned + 1 == SET_SIZE[_colour]:
            _PROPERTY_INTENT[_colour, _owned] = COMPLETE_PROPERTY_SET
        elif _owned == 0:
            _PROPERTY_INTENT[_colour, _owned] = START_NEW_PROPERTY_SET
        else:
            _PROPERTY_INTENT[_colour, _owned] = ADD_TO_PROPERTY_SET


@rule
def legal_actions(state: Any, abstraction: Any) -> Any:
    if abstraction == CONCRETE:
        return legal_moves(state)
    if abstraction == RACE:
        return race_actions(state)
    return _response_intents(state) if state.owed > 0 else _main_intents(state)


@rule
def _main_intents(state: Any) -> Any:
    player = state.mover
    intents = np.uint64(1 << DO_PASS)
    for colour in range(3):
        owned = state.properties[player, colour]
        if state.hand[player, PROPERTY + colour] > 0:
            intents |= np.uint64(1) << np.uint64(_PROPERTY_INTENT[colour, owned])
        if state.hand[player, RENT_CARD + colour] > 0:
            intents |= np.uint64(1 << ATTEMPT_COLLECT_RENT if owned > 0 else 1 << OTHER)
    held = 0
    for kind in range(CASH, RENT_CARD):
        held |= state.hand[player, kind]
    return intents | (np.uint64(held > 0) << np.uint64(BANK_CASH))


@rule
def _response_intents(state: Any) -> Any:
    responses = valid_responses(state)
    return (
        (np.uint64((responses & _SAYING_NO) != 0) << np.uint64(SAY_NO))
        | (np.uint64((responses & _FROM_BANK) != 0) << np.uint64(GIVE_OPPONENT_CASH))
        | (np.uint64((responses & _FROM_PROPERTIES) != 0) << np.uint64(GIVE_OPPONENT_PROPERTY))
        | (np.uint64((responses & _YIELDING) != 0) << np.uint64(DO_YIELD))
    )


@rule
def infoset_key(state: Any, abstraction: Any) -> Any:
    if abstraction == CONCRETE:
        return view_key(state, state.mover)
    if abstraction == RACE:
        return race_key(state)
    legal = legal_actions(state, abstraction)
    offered = (legal >> np.uint64(GIVE_OPPONENT_PROPERTY)) & np.uint64(1)
    key = legal | (doubling(state, offered > 0) << np.uint64(DOUBLED[0]))
    key |= np.uint64(state.streak_index) << np.uint64(_STREAK[0])
    key |= np.uint64(state.mover) << np.uint64(_PLAYER[0])
    if abstraction == PROGRESS:
        key |= _progress_bits(state)
    return key


@rule
def _progress_bits(state: Any) -> Any:
    own = state.mover
    other = 1 - own
    bits = np.uint64(0)
    for colour in range(3):
        mine = min(state.properties[own, colour], SET_SIZE[colour])
        his = min(state.properties[other, colour], SET_SIZE[colour])
        bits |= np.uint64(mine) << np.uint64(_OWN_SETS[0] + 2 * colour)
        bits |= np.uint64(his) << np.uint64(_HIS_SETS[0] + 2 * colour)
    bits |= np.uint64(_bank_bucket(state, own)) << np.uint64(_OWN_BANK[0])
    bits |= np.uint64(_bank_bucket(state, other)) << np.uint64(_HIS_BANK[0])
    bits |= np.uint64(state.owed - state.paid) << np.uint64(_TO_PAY[0])
    return bits | (np.uint64(state.hand[own, JUST_SAY_NO] > 0) << np.uint64(_HOLDS_NO[0]))


@rule
def _bank_bucket(state: Any, player: Any) -> Any:
    """0: empty, 1: up to 2, 2: up to 6, 3: more."""
    value = bank_value(state, player)
    return (value > 0) + (value > 2) + (value > 6)


@rule
def resolve(state: Any, abstraction: Any, action: Any) -> Any:
    if abstraction == CONCRETE:
        return np.int64(action)
    if abstraction == RACE:
        return race_move(state, action)
    if action <= COMPLETE_PROPERTY_SET:
        return _choose_property(state, action)
    if action == BANK_CASH:
        return _choose_cash(state)
    if action == ATTEMPT_COLLECT_RENT:
        return highest_rent(state)
    if action == SAY_NO:
        return JUST_SAY_NO
    if action == GIVE_OPPONENT_CASH:
        return _choose_bank_payment(state)
    if action == GIVE_OPPONENT_PROPERTY:
        return _choose_property_payment(state)
    if action == DO_PASS:
        return PASS
    if action == DO_YIELD:
        return YIELD
    return _choose_other(state)


@rule
def _choose_property(state: Any, intent: Any) -> Any:
    player = state.mover
    best = 0
    best_score: Any = -1
    for colour in range(3):
        owned = state.properties[player, colour]
        held = state.hand[player, PROPERTY + colour]
        if held > 0 and _PROPERTY_INTENT[colour, owned] == intent:
            if intent == COMPLETE_PROPERTY_SET:
                score = np.int64(RENT[colour, SET_SIZE[colour]])
            else:
                score = 128 * (3 - (SET_SIZE[colour] - owned)) + held
            if score > best_score:
                best, best_score = colour, score
    return PROPERTY + best


@rule
def _choose_cash(state: Any) -> Any:
    player = state.mover
    for value in range(4, 0, -1):
        kind = CASH + value - 1
        if state.hand[player, kind] > 0:
            return _surplus_above(state, value, kind)
    return _surplus_above(state, 0, 0)


@rule
def _surplus_above(state: Any, value: Any, kind: Any) -> Any:
    """A surplus property in hand worth more than `value`, or `kind`."""
    player = state.mover
    for colour in range(3):
        if (
            state.hand[player, PROPERTY + colour] > 0
            and state.properties[player, colour] >= SET_SIZE[colour]
            and WORTH[colour] > value
        ):
            kind, value = PROPERTY + colour, np.int64(WORTH[colour])
    return kind


@rule
def _choose_bank_payment(state: Any) -> Any:
    return GIVE_BANK + _least_worth(state.bank[state.mover], 0)


@rule
def _choose_property_payment(state: Any) -> Any:
    times = times_counted(state.response, state.n_responses, GIVE_PROPERTY)
    settles = (state.owed + 1) // 2 if times > 1 else 0
    return GIVE_PROPERTY + _least_worth(state.properties[state.mover], settles)


@rule
def _least_worth(pile: Any, enough: Any) -> Any:
    """The money kind worth least in a pile that has some, rather of those worth `enough`.

    PROPERTY + colour is the colour.
    """
    best = 0
    least: Any = 100
    for kind in range(len(pile)):
        loss = np.int64(WORTH[kind]) + 10 * (WORTH[kind] < enough)
        if pile[kind] > 0 and loss < least:
            best, least = kind, loss
    return best


@rule
def _choose_other(state: Any) -> Any:
    player = state.mover
    best = 0
    most: Any = 0
    for colour in range(3):
        held = state.hand[player, RENT_CARD + colour]
        if held > most and state.properties[player, colour] == 0:
            best, most = colour, np.int64(held)
    return RENT_CARD + best


@kernel
def meaning(states: Any, move: Any) -> Any:
    """The intent that a legal concrete move counts as."""
    return np.int64(_intent_of(states[0], move))


@rule
def _intent_of(state: Any, move: Any) -> Any:
    player = state.mover
    if move < CASH:
        return np.int64(_PROPERTY_INTENT[move, state.properties[player, move]])
    if move < RENT_CARD:
        return BANK_CASH
    if move < JUST_SAY_NO:
        return ATTEMPT_COLLECT_RENT if state.properties[player, move - RENT_CARD] > 0 else OTHER
    if move == JUST_SAY_NO:
        return SAY_NO
    if move < GIVE_PROPERTY:
        return GIVE_OPPONENT_CASH
    if move < PASS:
        return GIVE_OPPONENT_PROPERTY
    return DO_PASS if move == PASS else DO_YIELD


def describe_intent(key: int) -> dict[str, Any]:
    """What an infoset key of `INTENT` says, in the paper's terms."""
    actions = [a for a in range(len(ABSTRACT_NAMES)) if field(key, _ACTIONS) >> a & 1]
    told = {
        "player": field(key, _PLAYER),
        "streak_index": field(key, _STREAK),
        "actions": actions,
    }
    return told | doubled(key)


def describe_progress(key: int) -> dict[str, Any]:
    """What an infoset key of `PROGRESS` says besides."""
    return describe_intent(key) | {
        "own_sets": [field(key, _OWN_SETS) >> 2 * c & 3 for c in range(3)],
        "opponent_sets": [field(key, _HIS_SETS) >> 2 * c & 3 for c in range(3)],
        "own_bank": field(key, _OWN_BANK),
        "opponent_bank": field(key, _HIS_BANK),
        "to_pay": field(key, _TO_PAY),
        "holds_just_say_no": bool(field(key, _HOLDS_NO)),
    }


def intent_identifier(key: int) -> str:
    """The paper's identifier: {player}@{abstraction}@{md5 of the compact JSON}."""
    told = describe_intent(key)
    content = {
        "opponent": {},
        "player": {"actions": told["actions"]},
        "streak_idx": told["streak_index"],
        **doubled(key),
    }
    return identifier(told["player"], "IntentStateAbstraction", content)


def progress_identifier(key: int) -> str:
    """The same form for the richer abstraction."""
    told = describe_progress(key)
    content = {
        "opponent": {"bank": told["opponent_bank"], "sets": told["opponent_sets"]},
        "player": {
            "actions": told["actions"],
            "bank": told["own_bank"],
            "just_say_no": told["holds_just_say_no"],
            "sets": told["own_sets"],
        },
        "streak_idx": told["streak_index"],
        "to_pay": told["to_pay"],
        **doubled(key),
    }
    return identifier(told["player"], "ProgressStateAbstraction", content)
