"""What a player sees, as numbers: named pieces of a fixed length.

Invariant: they are made from the player's view and from nothing else, so what is hidden from him
cannot be in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rejoinder.games import queries
from rejoinder.games.base import Game, Rules, States
from rejoinder.games.deal.cards import COLOURS, MONEY_KINDS
from rejoinder.games.deal.view import DealView, PlayerPiles
from rejoinder.games.poker import PokerView

LIMIT = 10_000.0  # no number is beyond it, either way

Pieces = Mapping[str, Sequence[float]]
Vector = np.ndarray[Any, np.dtype[np.float32]]


class Observer:
    """Observes the states of one game under some rules."""

    def __init__(self, game: Game, rules: Rules) -> None:
        if game.name not in _PIECES:
            known = ", ".join(_PIECES)
            raise ValueError(f"game: {game.name} cannot be told in numbers yet; these can: {known}")
        self._game, self._most = game, game.max_decisions(rules)
        states = np.zeros(1, game.dtype)
        queries.start(states, game.template(rules), 0)
        self.sizes = {name: len(part) for name, part in self.pieces(states, 0).items()}

    @property
    def size(self) -> int:
        return sum(self.sizes.values())

    def pieces(self, states: States, player: int) -> Pieces:
        view = self._game.view(states, player)
        return _PIECES[self._game.name](self._game, self._most, view)

    def vector(self, states: States, player: int) -> Vector:
        """The pieces one after the other."""
        return np.concatenate([np.asarray(p, "f4") for p in self.pieces(states, player).values()])


def _deal(game: Game, _: int, view: DealView) -> Pieces:
    response = view.response
    action = game.moves.index(response.action) if response else None
    return {
        "seat": _one_hot(view.player, 2),
        "to_move": [view.to_move == view.player],
        "hand": _counts(view.hand, game.outcomes),
        **_piles("own", game, view.own),
        **_piles("opponent", game, view.opponent),
        "discard": _counts(view.discard, game.outcomes),
        "deck": [view.deck_size],
        "turn": [view.turn],
        "streak": [view.streak_player == view.player, view.streak_index],
        "response": [response.owed, response.paid] if response else [0, 0],
        "initiating": _one_hot(action, len(game.moves)),
        "over": [view.over],
    }


def _piles(whose: str, game: Game, piles: PlayerPiles) -> Pieces:
    return {
        f"{whose}_properties": _counts(piles.properties, COLOURS),
        f"{whose}_bank": _counts(piles.bank, game.outcomes[:MONEY_KINDS]),
        f"{whose}_hand_size": [piles.hand_size],
    }


def _poker(game: Game, most: int, view: PokerView) -> Pieces:
    played = [game.moves.index(name) for name in view.moves]
    moves = [_one_hot(move, len(game.moves)) for move in played]
    moves += [_one_hot(None, len(game.moves))] * (most - len(played))
    return {
        "seat": _one_hot(view.player, 2),
        "to_move": [view.to_move == view.player],
        "first": [view.first_player == view.player],
        "card": _card(view.card, game),
        "public_card": _card(view.public_card, game),
        "opponent_card": _card(view.opponent_card, game),
        "moves": [number for move in moves for number in move],
        "over": [view.over],
    }


def _card(name: str | None, game: Game) -> list[float]:
    return _one_hot(None if name is None else game.outcomes.index(name), len(game.outcomes))


def _one_hot(place: int | None, size: int) -> list[float]:
    return [float(k == place) for k in range(size)]


def _counts(by_name: Mapping[str, int], names: Sequence[str]) -> list[float]:
    return [float(by_name.get(name, 0)) for name in names]


_PIECES: dict[str, Callable[[Game, int, Any], Pieces]] = {
    "deal": _deal,
    "kuhn": _poker,
    "leduc": _poker,
}
