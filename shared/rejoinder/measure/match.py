"""Matches: an agent a seat, many games, and how sure we are of what each of them wins.

The games of a deal share its cards, with the agents moved on by one seat from game to game until
each has had every seat, so that luck of the cards and of the seat cancels (unless one side is to
start every game: then each game has its own deal). Two agents play mirrored pairs.
The cards of a deal are a stream of their own: the k-th card off the deck is the same in all games
of a deal, whatever was played. The intervals treat a deal as one observation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import literal_unroll

from rejoinder.games.base import Game, States
from rejoinder.games.contract import (
    OVER,
    apply,
    current_player,
    resolve_chance,
    start,
    utility,
)
from rejoinder.kernel.jit import copy_record, kernel, rule
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
    """What one of the agents won. A win is a positive utility, a draw one of zero."""

    games: int
    mean_utility: float
    utility_error: float  # 95 % half-width of the mean utility; infinite of a single deal
    unit: str  # what utility counts
    counts_wins: bool  # whether the rest means something in this game
    wins: int
    draws: int
    win_rate: float
    low: float  # 95 % interval of the win rate
    high: float

    def __str__(self) -> str:
        won = f", {self.wins_in_words}" if self.counts_wins else ""
        return f"{self.utility_in_words}{won}, {self.games:,} games"

    @property
    def utility_in_words(self) -> str:
        error = f" ± {self.utility_error:.4f}" if math.isfinite(self.utility_error) else ""
        return f"{self.mean_utility:+.4f}{error} {self.unit} a game"

    @property
    def wins_in_words(self) -> str:
        return (
            f"{self.win_rate:.2%} won (95 % interval {self.low:.2%} to {self.high:.2%}), "
            f"{self.draws / self.games:.2%} drawn"
        )


def play_match(
    game: Game,
    template: States,
    agents: Sequence[Agent],
    *,
    games: int,
    seed: int,
    starts: Starts = "alternate",
    progress: Callable[[int], None] | None = None,
) -> tuple[MatchResult, ...]:
    """Play `games` (rounded up to whole deals); a result for each agent.

    The agents sit in their order, the first one in every seat in turn. With `starts` it has the
    seat that begins ("agent"), or the one after it does ("opponent"). `progress` hears how many
    games are done.
    """
    if len(agents) != game.players:
        raise ValueError(f"{game.name} has {game.players} players, not {len(agents)}")
    if games < 1:
        raise ValueError(f"games: a match needs at least one game, not {games}")
    games = whole_deals(game, games)
    won = np.zeros((games, game.players))
    states, streams = np.zeros(1, game.dtype), np.zeros(2, STREAM)
    players = tuple(
        (agent.kind, agent.own_lookup(), prepared(agent), np.zeros(len(agent.abstraction.actions)))
        for agent in agents
    )
    chunk = _SEARCHED if any(player[2] for player in players) else _CHUNK
    for low in range(0, games, chunk):
        high = min(low + chunk, games)
        _play_games(
            template,
            states,
            streams,
            players,
            np.uint64(seed % 2**64),
            low,
            high,
            _STARTS[starts],
            game.starts,
            won,
        )
        if progress:
            progress(high)
    return tuple(_summary(game, won[:, k]) for k in range(game.players))


def whole_deals(game: Game, games: int) -> int:
    """So many games that no deal is cut short: every agent has every seat."""
    return games + -games % game.players


def seated(game: Game, agent: Agent, others: Sequence[Agent]) -> tuple[Agent, ...]:
    """An agent and who plays against it, one a seat; a single opponent takes all other seats."""
    if len(others) == 1:
        others = [others[0]] * (game.players - 1)
    if len(others) != game.players - 1:
        raise ValueError(
            f"{game.name} has {game.players} players: name one opponent for all other seats or "
            f"{game.players - 1}, not {len(others)}"
        )
    return (agent, *others)


@kernel
def _play_games(
    template: Any,
    states: Any,
    streams: Any,  # two: the cards, the agents' choices
    players: Any,  # of each agent: (kind, lookup, search, weights)
    seed: Any,
    low: Any,
    high: Any,
    starts: Any,
    beginners: Any,  # seats that begin in turn
    won: Any,  # out: utilities, by game and agent
) -> None:
    state = states[0]
    seats = len(players)
    for g in range(low, high):
        deal = g // seats if starts == ALTERNATE else g
        open_stream(streams[0], seed, np.uint64(deal), np.uint64(DEALS))
        open_stream(streams[1], seed, np.uint64(g), np.uint64(CHOICES))
        first = deal % beginners
        seat = g % seats  # of the first agent; the others follow in their order
        if starts == AGENT_STARTS:
            seat = first
        elif starts == OPPONENT_STARTS:
            seat = (first + seats - 1) % seats
        copy_record(state, template[0])
        start(state, first)
        resolve_chance(state, streams[0])
        mover = current_player(state)
        while mover != OVER:
            apply(state, _choose_as(players, (mover + seats - seat) % seats, state, streams[1]))
            resolve_chance(state, streams[0])
            mover = current_player(state)
        for k in range(seats):
            won[g, k] = utility(state, (seat + k) % seats)


@rule
def _choose_as(players: Any, k: Any, state: Any, rng: Any) -> Any:
    """The move of the k-th agent. The loop is unrolled: each agent may be of a type of its own."""
    move = np.int64(0)
    index = 0
    for player in literal_unroll(players):
        if index == k:
            move = np.int64(
                choose_or_search(state, player[0], player[1], player[2], player[3], rng)
            )
        index += 1  # noqa: SIM113 (what is unrolled cannot be enumerated)
    return move


def _summary(game: Game, won: np.ndarray[Any, np.dtype[np.float64]]) -> MatchResult:
    wins = (won > 0).astype(float)
    rate = float(wins.mean())
    low, high = wilson(rate, _effective_games(wins, game.players))
    deals = won.reshape(-1, game.players).mean(axis=1)
    error = Z_95 * float(deals.std(ddof=1)) / math.sqrt(len(deals)) if len(deals) > 1 else math.inf
    return MatchResult(
        games=len(won),
        mean_utility=float(won.mean()),
        utility_error=error,
        unit=game.utility_unit,
        counts_wins=game.counts_wins,
        wins=int(wins.sum()),
        draws=int((won == 0).sum()),
        win_rate=rate,
        low=low,
        high=high,
    )


def _effective_games(wins: np.ndarray[Any, np.dtype[np.float64]], seats: int) -> float:
    """Independent games that would tell as much as these deals do."""
    deals = wins.reshape(-1, seats).mean(axis=1)
    rate = float(deals.mean())
    if len(deals) < 2 or (variance := float(deals.var(ddof=1))) == 0.0:
        return float(len(deals))
    return len(deals) * rate * (1.0 - rate) / variance


def wilson(rate: float, n: float) -> tuple[float, float]:
    """Wilson's score interval, which stays inside [0, 1] and is honest near its ends."""
    z2 = Z_95**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = max(0.0, centre - half) if rate > 0.0 else 0.0  # the ends exactly, not but for rounding
    return low, min(1.0, centre + half) if rate < 1.0 else 1.0


MATCH_KERNELS = (_play_games,)  # what matches are compiled from
