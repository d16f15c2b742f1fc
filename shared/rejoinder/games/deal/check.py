"""Whether a record is a position of Monopoly Deal: what must be true of each of them.

Nothing is played again, so the conditions are necessary, not sufficient: a position that passes
may be one that no sequence of moves leads to. It is one that every rule can deal with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rejoinder.games.base import States
from rejoinder.games.contract import CHANCE, OVER
from rejoinder.games.deal.cards import (
    GIVE_BANK,
    JUST_SAY_NO,
    KIND_NAMES,
    KINDS,
    PASS,
    RENT_CARD,
    SET_SIZE,
    WORTH,
    given_kind,
    rent_for,
)
from rejoinder.games.deal.engine import NOBODY
from rejoinder.games.deal.response import times_counted
from rejoinder.games.deal.rules import DealRules, template
from rejoinder.kernel.jit import plain

_RULES = ("sets_needed", "hand_size", "draw", "streak", "turn_cap", "response")
_PILES = ("hand", "bank", "properties", "deck", "discard")
_NO_PHASE = ("owed", "paid", "initiating", "n_responses")  # all 0 outside a response phase


def check(states: States, rules: DealRules) -> str | None:
    """The first thing that is wrong, beginning with the field's name; None if nothing is."""
    state, whole = states[0], template(rules)[0]
    for part in (_cards, _turn, _phase, _chance, _end):
        for problem in part(state, whole):
            return problem
    return None


def _cards(state: Any, whole: Any) -> Iterator[str]:
    """The rules are the run's, and every card of the deck is in one place."""
    for name in _RULES:
        if state[name] != whole[name]:
            yield f"{name}: the rules say {whole[name]}, not {state[name]}"
    for name in _PILES:
        if (state[name] < 0).any():
            yield f"{name}: there cannot be fewer than no cards"
    copies = np.zeros(KINDS, np.int64)
    for name in _PILES:
        pile = state[name].astype(np.int64)
        pile = pile.sum(axis=0) if pile.ndim == 2 else pile
        copies[: len(pile)] += pile
    for kind in np.flatnonzero(copies != whole["deck"]):
        yield (
            f"deck: all piles together have {copies[kind]} of {KIND_NAMES[kind]!r}, "
            f"but the rules say {whole['deck'][kind]}"
        )
    if (state["discard"][:RENT_CARD] > 0).any():
        yield "discard: only rent cards and Just Say No are ever discarded"
    if (state["hand_count"] != state["hand"].sum(axis=1, dtype=np.int64)).any():
        yield "hand_count: it must be the number of cards in each hand"
    if state["deck_count"] != state["deck"].sum(dtype=np.int64):
        yield "deck_count: it must be the number of cards in the deck"
    others = state["hand_count"] - state["hand"][:, JUST_SAY_NO]
    if (state["cannot_refuse"] < 0).any() or (state["cannot_refuse"] > others).any():
        yield "cannot_refuse: a hand must have so many cards that are no Just Say No"


def _turn(state: Any, whole: Any) -> Iterator[str]:
    """Whose move it is, and how far the game has come."""
    if state["mover"] not in (0, 1, CHANCE, OVER):
        yield "mover: a seat is needed, or chance (-1), or the end (-2)"
    if state["streak_player"] not in (0, 1):
        yield "streak_player: a seat is needed"
    if not 0 <= state["streak_index"] < whole["streak"]:
        yield f"streak_index: it is in 0 to {whole['streak'] - 1}"
    if not 0 <= state["turn"] <= whole["turn_cap"]:
        yield f"turn: it is in 0 to {whole['turn_cap']}"
    if state["streak_index"] > state["turn"]:
        yield "turn: there were fewer turns than in this streak alone"
    played = sum(int(state[name].sum()) for name in ("bank", "properties", "discard"))
    refused = int(state["discard"][JUST_SAY_NO])
    under_way = int(state["owed"] > 0)
    if played - refused > state["turn"] + under_way:
        yield "turn: more cards have been played than there were turns"
    if refused > int(state["discard"][RENT_CARD:JUST_SAY_NO].sum()) - under_way:
        yield "discard: there were more Just Say No than rents"


def _phase(state: Any, whole: Any) -> Iterator[str]:
    """The response phase, if there is one: who owes what to whom, and what was given."""
    n = int(state["n_responses"])
    if not 0 <= n < len(state["responses"]):
        yield f"n_responses: it is in 0 to {len(state['responses']) - 1}"
        return
    if state["responses"][n:].any():
        yield "responses: those that are still to come must be 0"
    if state["owed"] == 0:
        for name in _NO_PHASE:
            if state[name] != 0:
                yield f"{name}: it must be 0 outside a response phase"
        if state["mover"] in (0, 1) and state["mover"] != state["streak_player"]:
            yield "mover: outside a response phase it is the player of the streak"
        return
    initiator, card = int(state["streak_player"]), int(state["initiating"])
    if state["mover"] != 1 - initiator:
        yield "mover: in a response phase it is the other player"
    if not RENT_CARD <= card < JUST_SAY_NO or state["discard"][card] == 0:
        yield "initiating: a rent card that lies on the discard pile is needed"
        return
    colour = card - RENT_CARD
    if state["owed"] != plain(rent_for)(colour, int(state["properties"][initiator, colour])):
        yield "owed: it must be the rent of the initiator's properties"
    given = [int(move) for move in state["responses"][:n]]
    if not all(GIVE_BANK <= move < PASS for move in given):
        yield "responses: a phase that goes on has seen only cards given"
        return
    kinds = [int(plain(given_kind)(move)) for move in given]
    counts = sum(
        int(WORTH[kind]) * plain(times_counted)(whole["response"], place, move)
        for place, (kind, move) in enumerate(zip(kinds, given, strict=True))
    )
    if state["paid"] != counts or state["paid"] >= state["owed"]:
        yield "paid: it must be what the cards given count, and less than what is owed"
    if any(kinds.count(kind) > state["bank"][initiator, kind] for kind in kinds):
        yield "bank: the initiator must have the cards that were given"


def _chance(state: Any, _: Any) -> Iterator[str]:
    """Cards on their way from the deck."""
    if state["mover"] != CHANCE:
        if state["due"] != 0:
            yield "due: no card is due while somebody else is to move"
        if state["hands_dealt"] != 2:
            yield "hands_dealt: both hands are dealt before anybody moves"
        if state["receiver"] != state["streak_player"]:
            yield "receiver: the last to draw was the player of the streak"
        return
    if not 1 <= state["due"] <= state["deck_count"]:
        yield "due: some of the cards in the deck must be due"
    if state["receiver"] not in (0, 1):
        yield "receiver: a seat is needed"
    if state["hands_dealt"] not in (0, 1, 2):
        yield "hands_dealt: it is in 0 to 2"
    if state["owed"] != 0:
        yield "owed: nothing is owed while cards are drawn"


def _end(state: Any, whole: Any) -> Iterator[str]:
    """A game that has been won or drawn is over, and no other is."""
    complete = (state["properties"] >= SET_SIZE).sum(axis=1)
    has_won = [seat for seat in range(2) if complete[seat] >= whole["sets_needed"]]
    if list(has_won) != ([int(state["winner"])] if state["winner"] != NOBODY else []):
        yield "winner: it must be the seat that has the sets needed, or nobody (-1)"
    out_of_cards = state["deck_count"] == 0 and not state["hand_count"].any()
    drawn = state["turn"] == whole["turn_cap"] or (out_of_cards and state["owed"] == 0)
    if (state["mover"] == OVER) != bool(has_won or drawn):
        yield "mover: the game is over exactly when somebody has won, or nobody can go on"
    if state["mover"] == OVER and state["owed"] != 0:
        yield "owed: nothing is owed after the end"
