"""Positions of Monopoly Deal set up by hand: every pile given, cards by name.

scenario(hands=[["rent green"], ["just say no"]], properties=[["property green"], []])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from rejoinder.games.deal import GAME
from rejoinder.games.deal.cards import KIND_NAMES, KINDS, MONEY_KINDS, SET_SIZE
from rejoinder.games.deal.engine import NOBODY
from rejoinder.games.deal.rules import DealRules, template
from rejoinder.games.session import Session
from rejoinder.kernel import rng

Cards: TypeAlias = Iterable[str]
Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_NONE: tuple[Cards, Cards] = ((), ())
_MOST = 100  # copies of a kind, as in the rules: piles are counted in signed bytes


def scenario(
    *,
    rules: DealRules | None = None,
    hands: Sequence[Cards] = _NONE,
    banks: Sequence[Cards] = _NONE,
    properties: Sequence[Cards] = _NONE,
    deck: Cards = (),
    discard: Cards = (),
    to_move: int = 0,
    streak_index: int = 0,
    turn: int = 0,
) -> Session:
    """A session in which `to_move` is about to choose a main action of his streak.

    The first three piles are given by seat. `deck` is in the order of drawing. The cards are
    those named and no others, whatever copies the rules speak of.
    """
    rules = rules or DealRules()
    deck = list(deck)
    piles = {
        "hand": _by_seat(hands, KINDS, "hands"),
        "bank": _by_seat(banks, MONEY_KINDS, "banks"),
        "properties": _by_seat(properties, len(SET_SIZE), "properties"),
        "deck": _counts(deck, KINDS, "deck"),
        "discard": _counts(discard, KINDS, "discard"),
    }
    _check_copies(piles)
    states = template(rules)
    state = states[0]
    for name, counts in piles.items():
        state[name] = counts
    state["hand_count"] = piles["hand"].sum(axis=1)
    state["deck_count"] = len(deck)
    _check_not_won(state, rules)
    state["mover"] = state["streak_player"] = state["receiver"] = _within("to_move", to_move, 2)
    state["streak_index"] = _within("streak_index", streak_index, rules.streak)
    state["turn"] = _within("turn", turn, rules.turn_cap)
    state["winner"] = NOBODY
    state["hands_dealt"] = 2
    # The stream is never drawn from: `deck` has every card there is.
    return Session(GAME, rules, states, chance=rng.stream(0, 0, rng.DEALS), deck=deck)


def _by_seat(piles: Sequence[Cards], kinds: int, field: str) -> Counts:
    if len(piles) != 2:
        raise ValueError(f"{field}: two piles are needed, one for each seat, not {len(piles)}")
    return np.array([_counts(piles[k], kinds, f"{field}[{k}]") for k in range(2)])


def _counts(cards: Cards, kinds: int, field: str) -> Counts:
    """A pile as counts by kind; only the first `kinds` may lie in it."""
    counts = np.zeros(kinds, np.int64)
    for card in cards:
        if card not in KIND_NAMES[:kinds]:
            problem = "cannot lie there" if card in KIND_NAMES else "is no card"
            raise ValueError(
                f"{field}: {card!r} {problem}; it takes {', '.join(KIND_NAMES[:kinds])}"
            )
        counts[KIND_NAMES.index(card)] += 1
    return counts


def _check_copies(piles: dict[str, Counts]) -> None:
    """No pile may overflow, even with every copy of a kind in it."""
    for kind, name in enumerate(KIND_NAMES):
        copies = sum(int(p[..., kind].sum()) for p in piles.values() if kind < p.shape[-1])
        if copies > _MOST:
            raise ValueError(f"{name}: {copies} copies are more than {_MOST}")


def _check_not_won(state: Any, rules: DealRules) -> None:
    for seat in range(2):
        complete = int((state["properties"][seat] >= SET_SIZE).sum())
        if complete >= rules.sets_needed:
            raise ValueError(
                f"properties[{seat}]: {complete} complete sets have already won "
                f"(sets_needed is {rules.sets_needed})"
            )


def _within(field: str, value: int, limit: int) -> int:
    if not 0 <= value < limit:
        raise ValueError(f"{field}: {value} is not in 0 to {limit - 1}")
    return value
