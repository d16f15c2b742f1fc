"""What Kuhn and Leduc poker share: two private cards, open betting, and what a player sees.

Their states have `card`, the private cards by order of play, and `first`, the seat that acts first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games import queries
from rejoinder.games.base import States
from rejoinder.games.contract import CHANCE, HIDDEN, OVER
from rejoinder.games.numbers import Pieces, one_hot
from rejoinder.kernel.jit import rule

NO_CARD = -1
_MOST_CARDS = 16


@rule
def seat_of(state: Any, order: Any) -> Any:
    """The seat of the first (0) or second (1) to act."""
    return np.int64(state.first ^ order)


@rule
def observed(state: Any, move: Any, player: Any) -> Any:
    """A private card is seen by its owner; all else is open."""
    if state.card[1] == NO_CARD:
        receiver = seat_of(state, 0 if state.card[0] == NO_CARD else 1)
        return move if receiver == player else HIDDEN
    return move


def differs_from_play(
    states: States, *, first: int, cards: list[int], moves: list[int]
) -> str | None:
    """Play the cards and the moves from the start: the same state must come out, or why not."""
    again, start = np.zeros(1, states.dtype), np.zeros(1, states.dtype)
    if first not in (0, 1):
        return "first: a seat is needed"
    queries.start(again, start, first)
    while (mover := queries.current_player(again)) != OVER:
        dealt, due = mover == CHANCE, cards if mover == CHANCE else moves
        if not due:
            break
        number = due.pop(0)
        if number not in (
            _possible(again) if dealt else queries.bits(queries.legal_actions(again, 0))
        ):
            return f"{'card' if dealt else 'moves'}: {number} is not possible there"
        queries.apply(again, number)
    if cards or moves:
        return f"{'card' if cards else 'moves'}: there are more than the game has come to"
    for name in states.dtype.names or ():
        if not np.array_equal(states[0][name], again[0][name]):
            there, here = again[0][name].tolist(), states[0][name].tolist()
            return f"{name}: the cards and moves lead to {there}, not {here}"
    return None


def _possible(states: States) -> list[int]:
    """The outcomes that chance may have now."""
    probabilities = np.zeros(_MOST_CARDS)
    queries.chance_outcomes(states, probabilities)
    return [int(outcome) for outcome in np.flatnonzero(probabilities)]


def card_name(card: int, names: tuple[str, ...]) -> str | None:
    return None if card == NO_CARD else names[card]


class PokerView(BaseModel):
    """Everything that one player may know now."""

    model_config = ConfigDict(frozen=True)

    player: int
    card: str | None
    public_card: str | None
    first_player: int
    moves: list[str]  # so far, in order
    to_move: int | None
    over: bool
    opponent_card: str | None  # shown at the end
    chips_won: float | None  # at the end

    @classmethod
    def of(
        cls,
        states: States,
        player: int,
        *,
        card: str | None,
        opponent_card: str | None,
        public: str | None,
        moves: list[str],
    ) -> Self:
        mover = queries.current_player(states)
        over = mover == OVER
        won = np.zeros(2)
        if over:
            queries.utilities(states, won)
        return cls(
            player=player,
            card=card,
            public_card=public,
            first_player=int(states[0]["first"]),
            moves=moves,
            to_move=None if mover in (CHANCE, OVER) else mover,
            over=over,
            opponent_card=opponent_card if over else None,
            chips_won=float(won[player]) if over else None,
        )


def observation(
    moves: tuple[str, ...], cards: tuple[str, ...], max_decisions: int
) -> Callable[[Any, PokerView], Pieces]:
    """How a view is observed in a game with these moves and cards."""

    def card(name: str | None) -> list[float]:
        return one_hot(None if name is None else cards.index(name), len(cards))

    def observe(_: Any, view: PokerView) -> Pieces:
        played: list[int | None] = [moves.index(name) for name in view.moves]
        played += [None] * (max_decisions - len(played))
        return {
            "seat": one_hot(view.player, 2),
            "to_move": [view.to_move == view.player],
            "first": [view.first_player == view.player],
            "card": card(view.card),
            "public_card": card(view.public_card),
            "opponent_card": card(view.opponent_card),
            "moves": [number for move in played for number in one_hot(move, len(moves))],
            "over": [view.over],
        }

    return observe
