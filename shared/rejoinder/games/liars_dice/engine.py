"""Liar's Dice: hidden dice, rising bids, one challenge.

Both players roll their dice in secret. In turn they bid "at least q dice show face f", counting the
dice of both; the highest face is wild and counts as every face. A bid must be higher than the last
one: more dice, or as many of a higher face. Instead of bidding a player may call the other a liar;
the dice are shown, and the bidder wins if the bid was true, else the caller.

These are the rules of OpenSpiel's `liars_dice` with its default bidding rule ("reset-face").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games import contract
from rejoinder.kernel.jit import rule
from rejoinder.kernel.rng import below

MOST_DICE, MOST_FACES = 2, 6  # of a player, of a die
BIDS = 2 * MOST_DICE * MOST_FACES
LIAR = BIDS  # bids are numbered from the lowest to the highest
NO_DIE, NO_BID = -1, -1

STATE = np.dtype(
    [
        ("bids", "<u4"),  # mask of the bids so far; they rise, so the mask has their order
        ("dice", "i1", (2, MOST_DICE)),  # faces from 0, by order of play, a player's own from the
        # lowest to the highest; NO_DIE before the roll
        ("rolled", "i1"),  # dice rolled so far
        ("last", "i1"),  # the highest bid, or NO_BID
        ("n_moves", "i1"),
        ("called", "i1"),  # whether somebody was called a liar, which ends the game
        ("first", "i1"),  # the seat that bids first
        ("per_player", "i1"),  # rules: dice of each player
        ("faces", "i1"),  # rules: faces of a die
    ],
    align=True,
)


@rule
def start(state: Any, first_player: Any) -> None:
    state.bids = 0
    for k in range(2):
        for d in range(MOST_DICE):
            state.dice[k, d] = NO_DIE
    state.rolled = 0
    state.last = NO_BID
    state.n_moves = 0
    state.called = 0
    state.first = first_player


@rule
def current_player(state: Any) -> Any:
    if state.rolled < 2 * state.per_player:
        return contract.CHANCE
    if state.called:
        return contract.OVER
    return seat_of(state, state.n_moves & 1)


@rule
def seat_of(state: Any, order: Any) -> Any:
    """The seat of the first (0) or second (1) to bid."""
    return np.int64(state.first ^ order)


@rule
def utility(state: Any, player: Any) -> Any:
    """The caller made the last move; the bidder the one before."""
    bidder = seat_of(state, state.n_moves & 1)
    quantity, face = state.last // MOST_FACES + 1, state.last % MOST_FACES
    is_true = matching(state, 0, face) + matching(state, 1, face) >= quantity
    return 1.0 if is_true == (bidder == player) else -1.0


@rule
def matching(state: Any, order: Any, face: Any) -> Any:
    """Dice of a player that count as `face`."""
    found = 0
    for d in range(state.per_player):
        found += state.dice[order, d] == face or state.dice[order, d] == state.faces - 1
    return found


@rule
def legal_actions(state: Any, abstraction: Any) -> Any:
    legal = np.uint64(0) if state.last == NO_BID else np.uint64(1) << np.uint64(LIAR)
    for bid in range(state.last + 1, 2 * state.per_player * MOST_FACES):
        if bid % MOST_FACES < state.faces:
            legal |= np.uint64(1) << np.uint64(bid)
    return legal


@rule
def apply(state: Any, move: Any) -> None:
    if state.rolled < 2 * state.per_player:
        order = state.rolled // state.per_player
        state.dice[order, state.rolled % state.per_player] = move
        state.rolled += 1
        _sort(state, order)
        return
    state.n_moves += 1
    if move == LIAR:
        state.called = 1
    else:
        state.bids |= np.uint32(1) << np.uint32(move)
        state.last = move


@rule
def _sort(state: Any, order: Any) -> None:
    """Which die was rolled first does not matter, so the state does not keep it."""
    low, high = state.dice[order, 0], state.dice[order, 1]
    if high != NO_DIE and high < low:
        state.dice[order, 0] = high
        state.dice[order, 1] = low


@rule
def infoset_key(state: Any, abstraction: Any) -> Any:
    """Bit fields: the bids, the own dice, the seat."""
    own = state.n_moves & 1
    key = np.uint64(state.bids) | np.uint64(state.dice[own, 0]) << np.uint64(BIDS)
    key |= np.uint64(state.dice[own, 1] + 1) << np.uint64(BIDS + 3)
    return key | np.uint64(seat_of(state, own)) << np.uint64(BIDS + 6)


@rule
def observed(state: Any, move: Any, player: Any) -> Any:
    """A die is seen by its owner; bids are open."""
    if state.rolled < 2 * state.per_player:
        owner = seat_of(state, state.rolled // state.per_player)
        return move if owner == player else contract.HIDDEN
    return move


@rule
def chance_outcomes(state: Any, probabilities: Any) -> Any:
    for face in range(MOST_FACES):
        probabilities[face] = 1.0 / state.faces if face < state.faces else 0.0
    return MOST_FACES


@rule
def sample_outcome(state: Any, rng: Any) -> Any:
    return below(rng, state.faces)


@rule
def resolve_chance(state: Any, rng: Any) -> Any:
    reach = 1.0
    while state.rolled < 2 * state.per_player:
        apply(state, sample_outcome(state, rng))
        reach /= state.faces
    return reach


@rule
def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    other = 1 - (state.first ^ player)
    for d in range(state.per_player):
        if state.dice[other, d] != NO_DIE:
            state.dice[other, d] = below(rng, state.faces)
    _sort(state, other)


contract.implement(
    STATE,
    start=start,
    current_player=current_player,
    utility=utility,
    legal_actions=legal_actions,
    apply=apply,
    infoset_key=infoset_key,
    observed=observed,
    chance_outcomes=chance_outcomes,
    sample_outcome=sample_outcome,
    resolve_chance=resolve_chance,
    shuffle_hidden=shuffle_hidden,
)
