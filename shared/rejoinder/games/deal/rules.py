"""The rules of Monopoly Deal that can be chosen, and the named configurations."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from rejoinder.games.base import Rules, States
from rejoinder.games.deal.cards import (
    CASH,
    COLOURS,
    HIGHEST_RENT,
    JUST_SAY_NO,
    PROPERTY,
    RENT_CARD,
    SET_SIZE,
)
from rejoinder.games.deal.engine import STATE
from rejoinder.games.deal.response import DEFINITIONS

# Piles are counted in signed bytes, and a bank may hold every copy of a kind.
Copies = Annotated[int, Field(ge=0, le=100)]


class DealRules(Rules):
    """One configuration. The defaults are the paper's (Table 1)."""

    property_copies: tuple[Copies, Copies, Copies] = (10, 10, 10)
    """Property cards of each colour: brown, green, pink."""
    cash_copies: tuple[Copies, Copies, Copies, Copies] = (10, 0, 10, 0)
    """Cash cards worth 1, 2, 3 and 4."""
    rent_copies: tuple[Copies, Copies, Copies] = (10, 10, 10)
    """Rent cards of each colour."""
    just_say_no: Copies = 3
    """Just Say No cards."""
    sets_needed: int = Field(default=2, ge=1, le=3)
    """Complete sets that win."""
    hand_size: int = Field(default=5, ge=1, le=60)
    """Cards dealt to each player; also drawn by a player whose hand is empty."""
    draw: int = Field(default=2, ge=0, le=60)
    """Cards drawn at the start of a streak."""
    streak: int = Field(default=2, ge=1, le=15)
    """Turns in a streak at most."""
    turn_cap: int = Field(default=250, ge=1, le=10_000)
    """Turns after which the game is a draw."""
    response: Literal["plain", "ordered"] = "plain"
    """What a card given counts: its worth, or a property given first twice as much."""

    @field_validator("property_copies", "cash_copies", "rent_copies", mode="before")
    @classmethod
    def _as_tuple(cls, given: Any) -> Any:
        """TOML has lists; everything else about the fields is strict."""
        return tuple(given) if isinstance(given, list) else given

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        possible = [
            name
            for name, copies, size in zip(COLOURS, self.property_copies, SET_SIZE, strict=True)
            if copies >= size
        ]
        if self.sets_needed > len(possible):
            raise ValueError(
                f"sets_needed: {self.sets_needed} sets cannot be completed with property_copies "
                f"{self.property_copies}, which allow {len(possible)}"
            )
        if 2 * self.hand_size > self.cards:
            raise ValueError(
                f"hand_size: two hands of {self.hand_size} need more than the deck's {self.cards} "
                "cards"
            )
        return self

    @property
    def cards(self) -> int:
        """Cards in the whole deck."""
        return (
            sum(self.property_copies)
            + sum(self.cash_copies)
            + sum(self.rent_copies)
            + self.just_say_no
        )


# Small enough to enumerate, with debts that take several cards: the order of them can matter.
_MICRO_DEBTS = DealRules(
    property_copies=(3, 2, 1),
    cash_copies=(0, 0, 0, 0),
    rent_copies=(0, 1, 0),
    just_say_no=0,
    sets_needed=1,
    hand_size=2,
    draw=1,
    streak=1,
    turn_cap=6,
)

CONFIGURATIONS: dict[str, DealRules] = {
    "medium": DealRules(),
    "small": DealRules(sets_needed=1),
    "large": DealRules(sets_needed=3),
    "tiny": DealRules(
        property_copies=(5, 5, 5),
        cash_copies=(5, 0, 0, 0),
        rent_copies=(0, 0, 0),
        just_say_no=0,
        sets_needed=1,
        hand_size=3,
        draw=1,
        streak=1,
    ),
    # Small enough to enumerate, with every kind of decision: build, bank, charge, refuse, pay.
    "micro": DealRules(
        property_copies=(3, 0, 1),
        cash_copies=(1, 0, 0, 0),
        rent_copies=(1, 0, 0),
        just_say_no=1,
        sets_needed=1,
        hand_size=2,
        draw=1,
        streak=1,
        turn_cap=6,
    ),
    "ordered": DealRules(response="ordered"),
    "micro-plain": _MICRO_DEBTS,
    "micro-ordered": _MICRO_DEBTS.model_copy(update={"response": "ordered"}),
}


def template(rules: DealRules) -> States:
    """A state with the full deck and these rules, ready for `start`."""
    made = np.zeros(1, STATE)
    state = made[0]
    state["deck"][PROPERTY : PROPERTY + 3] = rules.property_copies
    state["deck"][CASH : CASH + 4] = rules.cash_copies
    state["deck"][RENT_CARD : RENT_CARD + 3] = rules.rent_copies
    state["deck"][JUST_SAY_NO] = rules.just_say_no
    state["deck_count"] = rules.cards
    for name in ("sets_needed", "hand_size", "draw", "streak", "turn_cap"):
        state[name] = getattr(rules, name)
    state["response"] = DEFINITIONS.index(rules.response)
    return made


def max_decisions(rules: DealRules) -> int:
    """Every turn is a main action and at most one response for each unit owed, and the last."""
    return rules.turn_cap * (1 + HIGHEST_RENT + 1)
