"""Kuhn strategies written by hand, as policy tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rejoinder.games import GAMES
from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.methods.policies import AVERAGE, LATEST, policy_dtype
from rejoinder.methods.tabular.table import InfosetTable, table_of

KUHN = GAMES["kuhn"]
J, Q, K = 0, 1, 2

Bets = Callable[[int, str], float]  # (card, moves so far as p and b) → probability of a bet


def infosets() -> Iterator[tuple[int, int, str]]:
    """Key, card and moves so far of all twelve; the seat is the parity of the moves."""
    for moves in ("", "p", "b", "pb"):
        for card in (J, Q, K):
            bits = sum(1 << 2 + k for k, move in enumerate(moves) if move == "b")
            seat = len(moves) % 2
            yield card | bits | len(moves) << 5 | seat << 8, card, moves


def table(bets: Bets) -> InfosetTable:
    rows = np.zeros(12, policy_dtype(2))
    for row, (key, card, moves) in zip(rows, infosets(), strict=True):
        bet = bets(card, moves)
        row["key"] = key
        row["policy"][AVERAGE] = (1 - bet, bet)
        row["policy"][LATEST] = (bet, 1 - bet)  # the opposite, which nobody should play
    return table_of(rows)


def player(bets: Bets, *, argmax: bool = False) -> Agent:
    return trained_agent("by hand", KUHN.abstractions[0], table(bets), argmax=argmax)


def equilibrium(alpha: float) -> Bets:
    """Kuhn's family of equilibria, one for each alpha from 0 to 1/3."""
    told = {
        "": (alpha, 0.0, 3 * alpha),
        "pb": (0.0, alpha + 1 / 3, 1.0),
        "p": (1 / 3, 0.0, 1.0),
        "b": (0.0, 1 / 3, 1.0),
    }
    return lambda card, moves: told[moves][card]


def always(move: str) -> Bets:
    def bets(card: int, moves: str) -> float:
        return float(move == "b")

    return bets
