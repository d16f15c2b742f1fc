"""Response phases, an optional capability: what evaluations may ask of a game that has them.

In a response phase an action has handed control to an opponent, who must act alone until a fixed
condition is met. A *demand* is what they are asked for; a *refusal* is a card that ends the phase
at once. Nothing here is part of play: no solver asks it.

A game that has response phases lists a `Responses` among its capabilities and implements the stubs
below for its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction, Game
from rejoinder.games.stubs import Stubs

# What a move of a response phase does.
NO_RESPONSE, REFUSES, GIVES_CASH, GIVES_PROPERTY, YIELDS = range(5)
RESPONSE_NAMES = ("", "refuse", "give cash", "give property", "yield")


@dataclass(frozen=True, eq=False)
class Responses:
    """The moves and actions of response phases, as whoever counts them needs it."""

    kind: np.ndarray[Any, np.dtype[np.int8]]  # by concrete move; NO_RESPONSE for those of main play
    actions: Mapping[str, int]  # by abstraction: mask of the actions that exist in phases alone


def response_actions(game: Game, abstraction: Abstraction) -> int:
    """Mask of the actions that exist in response phases alone; 0 where there are none."""
    responses = game.capability(Responses)
    return responses.actions[abstraction.name] if responses else 0


def demand(state: Any) -> Any:
    """What the acting player is asked for in a response phase (its size); 0 outside one."""


def payment(state: Any, move: Any) -> Any:
    """What a move of a response phase, about to be applied, counts in units of the demand."""


def hand_refusal(state: Any, player: Any, rng: Any) -> Any:
    """Exchange a random card of a hand without a refusal for one of the deck's refusals.

    Returns whether it could be done; if not, nothing has changed.
    """


def blank_refusals(state: Any, player: Any) -> None:
    """Turn the refusals in a hand into cards that count as cards and do nothing."""


implement = Stubs(
    "response phases",
    {demand: None, payment: None, hand_refusal: None, blank_refusals: None},
).implement
