"""A view of Monopoly Deal as numbers."""

from __future__ import annotations

from rejoinder.games.deal.cards import COLOURS, KIND_NAMES, MONEY_KINDS, MOVE_NAMES
from rejoinder.games.deal.rules import DealRules
from rejoinder.games.deal.view import DealView, PlayerPiles
from rejoinder.games.numbers import Pieces, counts, one_hot


def observation(_: DealRules, view: DealView) -> Pieces:
    response = view.response
    action = MOVE_NAMES.index(response.action) if response else None
    return {
        "seat": one_hot(view.player, 2),
        "to_move": [view.to_move == view.player],
        "hand": counts(view.hand, KIND_NAMES),
        **_piles("own", view.own),
        **_piles("opponent", view.opponent),
        "discard": counts(view.discard, KIND_NAMES),
        "deck": [view.deck_size],
        "turn": [view.turn],
        "streak": [view.streak_player == view.player, view.streak_index],
        "response": [response.owed, response.paid] if response else [0, 0],
        "initiating": one_hot(action, len(MOVE_NAMES)),
        "over": [view.over],
    }


def _piles(whose: str, piles: PlayerPiles) -> Pieces:
    return {
        f"{whose}_properties": counts(piles.properties, COLOURS),
        f"{whose}_bank": counts(piles.bank, KIND_NAMES[:MONEY_KINDS]),
        f"{whose}_hand_size": [piles.hand_size],
    }
