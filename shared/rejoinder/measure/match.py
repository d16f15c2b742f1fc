"""Matches: two agents, many games, and how sure we are of the result.

Games come in pairs that share one deal with the seats exchanged, so that luck of the cards cancels
(unless one side is to start every game: then each game has its own deal).
The cards of a deal are a stream of their own: the k-th card off the deck is the same in both games
of a pair, whatever was played. The interval treats a pair as one observation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rejoinder.games.base import Game, States
from rejoinder.games.contract import (
    OVER,
    apply,
    current_player,
    resolve_chance,
    start,
    utility,
)
from rejoinder.kernel.jit import copy_record, kernel
from rejoinder.kernel.rng import CHOICES, DEALS, STREAM, open_stream
from rejoinder.measure.agents import Agent
from rejoinder.measure.search import choose_or_search, prepared

Starts = Literal["alternate", "agent", "opponent"]
ALTERNATE, AGENT_STARTS, OPPONENT_STARTS = 0, 1, 2
_STARTS: dict[Starts, int] = {
    "alternate": ALTERNATE,
    "agent": AGENT_STARTS,
    "opponent": OPPONENT_STARTS,
}
Z_95 = 1.959963984540054
_CHUNK = 500  # games between two words on progress
_SEARCHED = 10  # the same where an agent thinks ahead, which may take seconds a game


@dataclass(frozen=True)
class MatchResult:
    """From the first agent's side."""

    games: int
    wins: int
    draws: int
    win_rate: float
    low: float  # 95 % interval of the win rate
    high: float
    mean_utility: float
    utility_error: float  # 95 % half-width of the mean utility

    def __str__(self) -> str:
        return (
            f"{self.win_rate:.2%} won (95 % interval {self.low:.2%} to {self.high:.2%}), "
            f"{self.draws / self.games:.2%} drawn, {self.games} games"
        )


def play_match(
    game: Game,
    template: States,
    agent: Agent,
    opponent: Agent,
    *,
    games: int,
    seed: int,
    starts: Starts = "alternate",
    progress: Callable[[int], None] | None = None,
) -> MatchResult:
    """Play `games` (rounded up to whole pairs); `progress` hears how many are done."""
    if game.players != 2:
        raise ValueError(f"matches are for two players; {game.name} has {game.players}")
    if games < 1:
        raise ValueError(f"games: a match needs at least one game, not {games}")
    games += games % 2
    won = np.zeros(games)
    scratch = (
        np.zeros(1, game.dtype),
        np.zeros(2, STREAM),
        np.zeros(len(agent.abstraction.actions)),
        np.zeros(len(opponent.abstraction.actions)),
    )
    searches = prepared(agent), prepared(opponent)
    chunk = _CHUNK if searches == (None, None) else _SEARCHED
    for low in range(0, games, chunk):
        high = min(low + chunk, games)
        _play_games(
            template,
            *scratch,
            (agent.kind, agent.book, searches[0]),
            (opponent.kind, opponent.book, searches[1]),
            np.uint64(seed % 2**64),
            low,
            high,
            _STARTS[starts],
            game.starts,
            won,
        )
        if progress:
            progress(high)
    return _summary(won)


@kernel
def _play_games(
    template: Any,
    states: Any,
    streams: Any,  # two: the cards, the agents' choices
    weights: Any,
    other_weights: Any,
    agent: Any,  # (kind, book, search)
    opponent: Any,
    seed: Any,
    low: Any,
    high: Any,
    starts: Any,
    beginners: Any,  # seats that begin in turn
    won: Any,  # out: the agent's utility, by game
) -> None:
    state = states[0]
    for g in range(low, high):
        deal = g // 2 if starts == ALTERNATE else g
        open_stream(streams[0], seed, np.uint64(deal), np.uint64(DEALS))
        open_stream(streams[1], seed, np.uint64(g), np.uint64(CHOICES))
        seat = g & 1
        first = deal % beginners
        if starts == AGENT_STARTS:
            seat = first
        elif starts == OPPONENT_STARTS:
            seat = 1 - first
        copy_record(state, template[0])
        start(state, first)
        resolve_chance(state, streams[0])
        mover = current_player(state)
        while mover != OVER:
            if mover == seat:
                move = choose_or_search(state, agent[0], agent[1], agent[2], weights, streams[1])
            else:
                move = choose_or_search(
                    state, opponent[0], opponent[1], opponent[2], other_weights, streams[1]
                )
            apply(state, move)
            resolve_chance(state, streams[0])
            mover = current_player(state)
        won[g] = utility(state, seat)


def _summary(won: np.ndarray[Any, np.dtype[np.float64]]) -> MatchResult:
    games = len(won)
    wins = (won > 0).astype(float)
    rate = float(wins.mean())
    low, high = wilson(rate, _effective_games(wins))
    pairs = won.reshape(-1, 2).mean(axis=1)
    error = Z_95 * float(pairs.std(ddof=1)) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.inf
    return MatchResult(
        games=games,
        wins=int(wins.sum()),
        draws=int((won == 0).sum()),
        win_rate=rate,
        low=low,
        high=high,
        mean_utility=float(won.mean()),
        utility_error=error,
    )


def _effective_games(wins: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Independent games that would tell as much as these pairs do."""
    pairs = wins.reshape(-1, 2).mean(axis=1)
    rate = float(pairs.mean())
    if len(pairs) < 2 or (variance := float(pairs.var(ddof=1))) == 0.0:
        return float(len(pairs))
    return len(pairs) * rate * (1.0 - rate) / variance


def wilson(rate: float, n: float) -> tuple[float, float]:
    """Wilson's score interval, which stays inside [0, 1] and is honest near its ends."""
    z2 = Z_95**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = max(0.0, centre - half) if rate > 0.0 else 0.0  # the ends exactly, not but for rounding
    return low, min(1.0, centre + half) if rate < 1.0 else 1.0


MATCH_KERNELS = (_play_games,)  # what matches are compiled from
