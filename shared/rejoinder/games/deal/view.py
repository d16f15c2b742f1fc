"""What a player sees of a game of Monopoly Deal: readable, immutable, made from the state."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from rejoinder.games.base import States
from rejoinder.games.contract import CHANCE, OVER
from rejoinder.games.deal.cards import (
    COLOURS,
    GIVE_PROPERTY,
    KIND_NAMES,
    MOVE_NAMES,
    SET_SIZE,
    WORTH,
    YIELD,
    given_kind,
)
from rejoinder.games.deal.response import DEFINITIONS, times_counted
from rejoinder.kernel.jit import plain


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class PlayerPiles(_Frozen):
    """The public part of a player."""

    properties: dict[str, int]  # by colour
    complete_sets: list[str]  # colours
    bank: dict[str, int]  # by card
    bank_value: int
    hand_size: int


class ResponseContext(_Frozen):
    """A response phase under way."""

    initiator: int
    responder: int
    action: str  # the move that started it
    owed: int
    paid: int
    responses: list[str]  # so far, in order
    property_doubled: bool  # a property given now counts double
    initiator_before: PlayerPiles  # the initiator's public piles before the action


class DealView(_Frozen):
    """Everything that one player may know now; nothing else."""

    player: int
    hand: dict[str, int]  # own cards by name
    own: PlayerPiles
    opponent: PlayerPiles
    discard: dict[str, int]
    deck_size: int
    turn: int  # turns completed
    streak_player: int
    streak_index: int
    to_move: int | None  # the seat that acts; None while cards are dealt and after the end
    response: ResponseContext | None
    over: bool
    winner: int | None
    sets_needed: int
    response_rule: str  # what a card given counts: plain or ordered


def view(states: States, player: int) -> DealView:
    """What `player` sees of the state."""
    state = states[0]
    mover, winner = int(state["mover"]), int(state["winner"])
    return DealView(
        player=player,
        hand=_by_name(state["hand"][player]),
        own=_piles(state, player),
        opponent=_piles(state, 1 - player),
        discard=_by_name(state["discard"]),
        deck_size=int(state["deck_count"]),
        turn=int(state["turn"]),
        streak_player=int(state["streak_player"]),
        streak_index=int(state["streak_index"]),
        to_move=None if mover in (CHANCE, OVER) else mover,
        response=_response(state) if state["owed"] > 0 else None,
        over=mover == OVER,
        winner=winner if mover == OVER and winner >= 0 else None,
        sets_needed=int(state["sets_needed"]),
        response_rule=DEFINITIONS[int(state["response"])],
    )


def _piles(state: Any, player: int, given: tuple[int, ...] = ()) -> PlayerPiles:
    """The piles of `player`; `given` are money kinds to take out of his bank again."""
    bank = [int(n) for n in state["bank"][player]]
    for kind in given:
        bank[kind] -= 1
    properties = [int(n) for n in state["properties"][player]]
    return PlayerPiles(
        properties={name: n for name, n in zip(COLOURS, properties, strict=True) if n},
        complete_sets=[COLOURS[c] for c in range(3) if properties[c] >= SET_SIZE[c]],
        bank=_by_name(bank),
        bank_value=sum(n * int(w) for n, w in zip(bank, WORTH, strict=True)),
        hand_size=int(state["hand_count"][player]),
    )


def _response(state: Any) -> ResponseContext:
    responder = int(state["mover"])
    moves = [int(m) for m in state["responses"][: state["n_responses"]]]
    before = _piles(
        state, 1 - responder, tuple(plain(given_kind)(move) for move in moves if move != YIELD)
    )
    return ResponseContext(
        initiator=1 - responder,
        responder=responder,
        action=MOVE_NAMES[int(state["initiating"])],
        owed=int(state["owed"]),
        paid=int(state["paid"]),
        responses=[MOVE_NAMES[move] for move in moves],
        property_doubled=plain(times_counted)(state["response"], len(moves), GIVE_PROPERTY) > 1,
        # The card that was played was still in his hand.
        initiator_before=before.model_copy(update={"hand_size": before.hand_size + 1}),
    )


def _by_name(counts: Any) -> dict[str, int]:
    return {KIND_NAMES[kind]: int(n) for kind, n in enumerate(counts) if n}
