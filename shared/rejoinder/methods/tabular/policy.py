"""Policies as players go by them: rows of probabilities, looked up by infoset key.

A `Book` is a policy and, where that knows nothing, another one to fall back on. The fallback is
somebody's finished policy, so its average column is what counts, whoever asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rejoinder.games.contract import infoset_key, random_action
from rejoinder.kernel.jit import hot, lowest_bit, popcount, rule
from rejoinder.kernel.rng import uniform
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.table import EMPTY, find


class Book(NamedTuple):
    """What a player goes by."""

    policy: Any  # Table of `policy_dtype`
    abstraction: Any
    fallback: Any  # the same dtype, so the same actions
    fallback_abstraction: Any


@hot
def sample_book(state: Any, book: Any, column: Any, legal: Any, rng: Any) -> Any:
    """An action by the book; uniformly where it does not know the infoset."""
    row = find(book.policy, infoset_key(state, book.abstraction))
    if row != EMPTY:
        return draw(book.policy.rows[row].policy[column], legal, uniform(rng))
    row = find(book.fallback, infoset_key(state, book.fallback_abstraction))
    if row != EMPTY:
        return draw(book.fallback.rows[row].policy[AVERAGE], legal, uniform(rng))
    return random_action(legal, rng)


@rule
def read_book(state: Any, book: Any, column: Any, legal: Any, strategy: Any) -> Any:
    """Write the book's probability of every action; returns whether its own policy knew them."""
    row = find(book.policy, infoset_key(state, book.abstraction))
    fallback = find(book.fallback, infoset_key(state, book.fallback_abstraction))
    for a in range(len(strategy)):
        if not (legal >> np.uint64(a)) & np.uint64(1):
            strategy[a] = 0.0
        elif row != EMPTY:
            strategy[a] = book.policy.rows[row].policy[column, a]
        elif fallback != EMPTY:
            strategy[a] = book.fallback.rows[fallback].policy[AVERAGE, a]
        else:
            strategy[a] = 1.0 / popcount(legal)
    return row != EMPTY


@hot
def draw(weights: Any, legal: Any, u: Any) -> Any:
    """The legal action at `u` on the line of weights laid end to end, for u in [0, their sum)."""
    chosen = lowest_bit(legal)
    left = legal
    while left:
        a = lowest_bit(left)
        left &= left - np.uint64(1)
        if u >= 0.0 and weights[a] > 0.0:
            chosen = a
        u -= weights[a]
    return chosen
