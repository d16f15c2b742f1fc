"""Monopoly Deal: cards, moves and abstract actions, and how they are numbered.

A card is a *kind*; copies of a kind are interchangeable, so every pile is a count by kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.kernel.jit import rule

COLOURS = ("brown", "green", "pink")
SET_SIZE = np.array([2, 3, 3], np.int8)  # properties of a colour that make a complete set
WORTH = np.array([1, 4, 2, 1, 2, 3, 4], np.int8)  # of what can lie in a bank: properties, cash 1–4
# Rent by colour and number owned (capped at the set's size).
RENT = np.array([[0, 1, 2, 2], [0, 2, 4, 7], [0, 1, 2, 4]], np.int8)
HIGHEST_RENT = 7

# Kinds. The first seven are money: they can lie in a bank.
PROPERTY = 0  # + colour
CASH = 3  # + value − 1
RENT_CARD = 7  # + colour
JUST_SAY_NO = 10
KINDS = 11
MONEY_KINDS = 7

KIND_NAMES = (
    *(f"property {colour}" for colour in COLOURS),
    *(f"cash {value}" for value in (1, 2, 3, 4)),
    *(f"rent {colour}" for colour in COLOURS),
    "just say no",
)

# Concrete moves. Playing a card from the hand is the number of its kind.
GIVE_BANK = 11  # + money kind
GIVE_PROPERTY = 18  # + colour
PASS = 21
YIELD = 22
MOVES = 23

RESPONSES = 1 << JUST_SAY_NO | ((1 << PASS) - (1 << GIVE_BANK)) | 1 << YIELD  # mask of moves

MOVE_NAMES = (
    *KIND_NAMES,
    *(f"give bank {KIND_NAMES[kind]}" for kind in range(MONEY_KINDS)),
    *(f"give property {colour}" for colour in COLOURS),
    "pass",
    "yield",
)

# Abstract actions, in the paper's order.
START_NEW_PROPERTY_SET = 0
ADD_TO_PROPERTY_SET = 1
COMPLETE_PROPERTY_SET = 2
BANK_CASH = 3
ATTEMPT_COLLECT_RENT = 4
SAY_NO = 5
GIVE_OPPONENT_CASH = 6
GIVE_OPPONENT_PROPERTY = 7
DO_PASS = 8
DO_YIELD = 9
OTHER = 10

INTENT_RESPONSES = (
    1 << SAY_NO | 1 << GIVE_OPPONENT_CASH | 1 << GIVE_OPPONENT_PROPERTY | 1 << DO_YIELD
)

ABSTRACT_NAMES = (
    "START_NEW_PROPERTY_SET",
    "ADD_TO_PROPERTY_SET",
    "COMPLETE_PROPERTY_SET",
    "CASH",
    "ATTEMPT_COLLECT_RENT",
    "JUST_SAY_NO",
    "GIVE_OPPONENT_CASH",
    "GIVE_OPPONENT_PROPERTY",
    "PASS",
    "YIELD",
    "OTHER",
)


@rule
def rent_for(colour: Any, owned: Any) -> Any:
    """What a rent card charges; properties beyond a complete set do not raise it."""
    return RENT[colour, min(owned, SET_SIZE[colour])]


@rule
def given_kind(move: Any) -> Any:
    """The money kind that a giving move hands over (PROPERTY + colour is the colour)."""
    return move - GIVE_PROPERTY if move >= GIVE_PROPERTY else move - GIVE_BANK
