"""Monopoly Deal, the rules: a record and small functions on it.

A turn is one main action with its whole response phase; a streak is a run of turns by one player.
`_respond` and the functions of `response.py` are the bounded one-sided response phase: while
`owed > 0` only the responder acts. The precise reading of every rule is in docs/rules.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games import contract
from rejoinder.games.deal.cards import (
    CASH,
    GIVE_PROPERTY,
    HIGHEST_RENT,
    JUST_SAY_NO,
    KINDS,
    MONEY_KINDS,
    PASS,
    PROPERTY,
    RENT_CARD,
    SET_SIZE,
    WORTH,
    YIELD,
    given_kind,
)
from rejoinder.games.deal.response import (
    response_amount,
    response_complete,
    times_counted,
    valid_responses,
)
from rejoinder.kernel.jit import rule
from rejoinder.kernel.rng import below, mix

STATE = np.dtype(
    [
        # cards, counted by kind
        ("hand", "i1", (2, KINDS)),  # by seat
        ("bank", "i1", (2, MONEY_KINDS)),  # by seat: money kinds only
        ("properties", "i1", (2, 3)),  # by seat and colour
        ("deck", "i1", (KINDS,)),  # what is left; its order is chance
        ("discard", "i1", (KINDS,)),
        ("hand_count", "i2", (2,)),  # sums of `hand`
        ("deck_count", "i2"),  # sum of `deck`
        # whose move it is
        ("mover", "i1"),  # the seat that acts now, or CHANCE, or OVER
        ("winner", "i1"),  # a seat, or NOBODY
        ("streak_player", "i1"),  # whose streak it is
        ("streak_index", "i1"),  # turns he has completed in it
        ("turn", "i2"),  # turns completed in the game
        # chance: cards on their way from the deck
        ("due", "i2"),  # cards still to be drawn
        ("receiver", "i1"),  # the seat that gets them
        ("hands_dealt", "i1"),  # seats that have their first hand
        # response phase; owed is 0 outside it
        ("owed", "i1"),
        ("paid", "i1"),  # what the cards given so far count
        ("initiating", "i1"),  # the move that started it
        ("n_responses", "i1"),
        ("responses", "i1", (HIGHEST_RENT + 1,)),  # moves so far, in order
        # what everybody knows of hidden cards; no rule of play looks at it
        ("cannot_refuse", "i2", (2,)),  # by seat: cards in hand that are surely no Just Say No
        # rules
        ("sets_needed", "i1"),
        ("hand_size", "i1"),
        ("draw", "i1"),
        ("streak", "i1"),  # turns in a streak at most
        ("turn_cap", "i2"),
        # what a card given counts, by response.py; of two bytes, so that no byte is padding
        ("response", "i2"),
    ],
    align=True,
)
NOBODY = -1


@rule
def start(state: Any, first_player: Any) -> None:
    """Nothing dealt yet; `deck` holds every card (the template sees to that)."""
    state.streak_player = first_player
    state.streak_index = 0
    state.turn = 0
    state.winner = NOBODY
    state.hands_dealt = 0
    state.receiver = 0
    state.due = state.hand_size
    state.mover = contract.CHANCE


@rule
def current_player(state: Any) -> Any:
    return np.int64(state.mover)


@rule
def utility(state: Any, player: Any) -> Any:
    if state.winner == NOBODY:
        return 0.0
    return 1.0 if state.winner == player else -1.0


@rule
def legal_moves(state: Any) -> Any:
    """Mask of the concrete moves of the acting player."""
    if state.owed > 0:
        return valid_responses(state)
    moves = np.uint64(1 << PASS)
    for kind in range(JUST_SAY_NO):
        moves |= np.uint64(state.hand[state.mover, kind] > 0) << np.uint64(kind)
    return moves


@rule
def apply(state: Any, move: Any) -> None:
    if state.mover == contract.CHANCE:
        _receive(state, move)
    elif state.owed > 0:
        _respond(state, move)
    else:
        _play(state, move)


@rule
def _play(state: Any, move: Any) -> None:
    """A main action."""
    player = state.mover
    if move == PASS:
        _end_turn(state, True)
        return
    state.hand[player, move] -= 1
    state.hand_count[player] -= 1
    # Nobody else knows whether it was one of those, so it may have been.
    state.cannot_refuse[player] = max(state.cannot_refuse[player] - 1, 0)
    if move < CASH:
        colour = move - PROPERTY
        state.properties[player, colour] += 1
        if state.properties[player, colour] == SET_SIZE[colour] and (
            complete_sets(state, player) >= state.sets_needed
        ):
            state.winner = player
            state.turn += 1
            state.mover = contract.OVER
            return
    elif move < RENT_CARD:
        state.bank[player, move] += 1
    else:
        state.discard[move] += 1
        amount = response_amount(state, player, move)
        if amount > 0:
            state.owed = amount
            state.paid = 0
            state.initiating = move
            state.n_responses = 0
            state.mover = 1 - player
            return
    _end_turn(state, False)


@rule
def _respond(state: Any, move: Any) -> None:
    """One card of a response; given cards go to the initiator's bank."""
    responder = state.mover
    initiator = 1 - responder
    place = state.n_responses
    state.responses[place] = move
    state.n_responses += 1
    if move == JUST_SAY_NO:
        state.hand[responder, JUST_SAY_NO] -= 1
        state.hand_count[responder] -= 1
        state.discard[JUST_SAY_NO] += 1
    elif move == YIELD:  # which is legal only without a Just Say No
        state.cannot_refuse[responder] = state.hand_count[responder]
    else:
        kind = given_kind(move)
        if move >= GIVE_PROPERTY:
            state.properties[responder, kind] -= 1
        else:
            state.bank[responder, kind] -= 1
        state.bank[initiator, kind] += 1
        state.paid += WORTH[kind] * times_counted(state.response, place, move)
    if response_complete(state, move):
        state.owed = 0
        state.paid = 0
        for k in range(state.n_responses):
            state.responses[k] = 0
        state.n_responses = 0
        state.initiating = 0
        _end_turn(state, False)


@rule
def _end_turn(state: Any, passed: Any) -> None:
    state.turn += 1
    if state.turn >= state.turn_cap or (
        state.deck_count == 0 and state.hand_count[0] == 0 and state.hand_count[1] == 0
    ):
        state.mover = contract.OVER
    elif not passed and state.streak_index + 1 < state.streak:
        state.streak_index += 1
        state.mover = state.streak_player
    else:
        _begin_streak(state, 1 - state.streak_player)


@rule
def _begin_streak(state: Any, player: Any) -> None:
    """Draw `draw` cards, with an empty hand a whole new one, or what the deck still has."""
    state.streak_player = player
    state.streak_index = 0
    due = state.draw if state.hand_count[player] > 0 else state.hand_size
    state.due = min(due, state.deck_count)
    state.receiver = player
    state.mover = contract.CHANCE if state.due > 0 else player


@rule
def _receive(state: Any, kind: Any) -> None:
    """A card of `kind` leaves the deck; when all that were due have, play goes on."""
    state.deck[kind] -= 1
    state.deck_count -= 1
    state.hand[state.receiver, kind] += 1
    state.hand_count[state.receiver] += 1
    state.due -= 1
    if state.due == 0:
        if state.hands_dealt == 2:
            state.mover = state.streak_player
            return
        state.hands_dealt += 1
        if state.hands_dealt == 1:
            state.receiver = 1
            state.due = state.hand_size
        else:
            _begin_streak(state, state.streak_player)


@rule
def chance_outcomes(state: Any, probabilities: Any) -> Any:
    for kind in range(KINDS):
        probabilities[kind] = state.deck[kind] / state.deck_count
    return KINDS


@rule
def sample_outcome(state: Any, rng: Any) -> Any:
    return _pick(state.deck, below(rng, state.deck_count))


@rule
def resolve_chance(state: Any, rng: Any) -> Any:
    # One division at the end is cheaper than one a card, but the products must stay finite.
    reach, ways, all_ways = 1.0, 1.0, 1.0
    while state.mover == contract.CHANCE:
        kind = sample_outcome(state, rng)
        ways *= state.deck[kind]
        all_ways *= state.deck_count
        if all_ways > 1e200:
            reach *= ways / all_ways
            ways, all_ways = 1.0, 1.0
        _receive(state, kind)
    return reach * (ways / all_ways)


@rule
def observed(state: Any, move: Any, player: Any) -> Any:
    """A drawn card is seen by whoever draws it; everything else is played in the open."""
    if state.mover == contract.CHANCE and state.receiver != player:
        return contract.HIDDEN
    return move


@rule
def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    """Deal the other hand anew from that hand and the deck together.

    Those of its cards that are surely no Just Say No come first, and are none.
    """
    other = 1 - player
    for kind in range(KINDS):
        state.deck[kind] += state.hand[other, kind]
        state.hand[other, kind] = 0
    left = state.deck_count + state.hand_count[other]
    refusals = state.deck[JUST_SAY_NO]  # the last kind of a pile
    for n in range(state.hand_count[other]):
        among = left - refusals if n < state.cannot_refuse[other] else left
        kind = _pick(state.deck, below(rng, among))
        state.deck[kind] -= 1
        state.hand[other, kind] += 1
        left -= 1


@rule
def _pick(cards: Any, n: Any) -> Any:
    """The kind of the n-th card of a pile."""
    kind = 0
    upto = 0
    for k in range(KINDS - 1):  # no early exit: a mispredicted branch costs more than the sum
        upto += cards[k]
        kind += n >= upto
    return kind


@rule
def complete_sets(state: Any, player: Any) -> Any:
    complete = 0
    for colour in range(3):
        complete += state.properties[player, colour] >= SET_SIZE[colour]
    return complete


@rule
def view_key(state: Any, player: Any) -> Any:
    """64-bit hash of everything that `player` sees now."""
    key = mix(np.uint64(player))
    for kind in range(KINDS):
        key = mix(key ^ np.uint64(state.hand[player, kind]))
        key = mix(key ^ np.uint64(state.discard[kind]))
    for seat in range(2):
        key = mix(key ^ np.uint64(state.hand_count[seat]))
        for kind in range(MONEY_KINDS):
            key = mix(key ^ np.uint64(state.bank[seat, kind]))
        for colour in range(3):
            key = mix(key ^ np.uint64(state.properties[seat, colour]))
    key = mix(key ^ np.uint64(state.turn))
    key = mix(key ^ np.uint64(state.streak_player * 16 + state.streak_index))
    key = mix(key ^ np.uint64(state.owed * 16 + state.initiating))
    for k in range(state.n_responses):
        key = mix(key ^ np.uint64(state.responses[k]))
    return key
