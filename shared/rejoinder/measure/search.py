"""Search at play time: an agent that tries its moves out before it makes one.

For the player to move, in order:

1. Deal what they cannot see anew, among all that agrees with what they see and may know, each as
   likely as it is by the rules (docs/search.md says where that is not quite so).
2. Play each move that is still in question to the end of the game from there, everybody going by
   the agent's policy. All moves get the same deal and the same luck, so that what tells them apart
   is the moves. One such game is a *sample*.
3. When each has had its share of samples, give up the worse half of the moves (sequential halving:
   Karnin, Koren and Somekh, 2013), and go on with the rest until one is left.

Ties go to the move that the policy likes better. A forced move takes no samples, unless the search
is *steady*: then it takes as many as a choice, since who waits would learn from the time that there
was none.

Invariant: the result is a function of the policy, the stream, the number of samples and what the
player to move sees. Hidden cards are overwritten before anything looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rejoinder.games import queries
from rejoinder.games.base import Game, States
from rejoinder.games.contract import (
    DECIDE,
    OVER,
    apply,
    begin_option,
    current_player,
    infoset_key,
    legal_actions,
    legal_moves,
    pending_move,
    resolve,
    resolve_chance,
    shuffle_hidden,
    utility,
)
from rejoinder.kernel.jit import copy_record, kernel, rule
from rejoinder.kernel.masks import first, several
from rejoinder.kernel.rng import CHOICES, REDEALS, STREAM, mix, next_u64, open_stream, stream
from rejoinder.measure.agents import SAMPLE, Agent, choose, fill
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.policy import sample_rows

SAMPLES = 2_000  # a move, where nobody says otherwise: some milliseconds
ANYWHERE = -1  # as the mask of moves where an agent thinks
_TIE = 1e-6  # what the policy's liking counts for: less than any sample


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    move: int
    values: dict[int, float]  # by legal move: the mean utility of its samples; empty if it had none
    samples: int  # that were played, of all moves together


@dataclass(frozen=True)
class Searcher(Agent):
    """An agent that tries its moves out by the policy of another, whose other fields it has."""

    game: Game
    samples: int  # a move, about: each round gives every move the same number, at least one
    steady: bool = False  # whether forced moves take them, too
    where: int = ANYWHERE  # it thinks where all its moves are in this mask, else goes by the policy

    def think(self, states: States, rng: Any) -> SearchResult:
        """Try the moves out, with randomness from `rng`."""
        search = self.prepare()
        weights = np.zeros(len(self.abstraction.actions))
        move = int(_think(states, self.kind, self.own_lookup(), search, weights, rng))
        tried = np.flatnonzero(search.tried)
        values = {int(m): float(search.won[m] / search.tried[m]) for m in tried}
        return SearchResult(move, values, int(search.tried.sum()))

    def advise(self, states: States) -> SearchResult:
        """The same with randomness that is a function of what the player to move sees."""
        key = int(queries.infoset_key(states, self.game.concrete.argument()))
        return self.think(states, stream(key, 0, CHOICES))

    def probabilities(self, states: States) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The action that the move it advises counts as; nothing else has a chance."""
        move, meaning = self.advise(states).move, self.abstraction.meaning
        out = np.zeros(len(self.abstraction.actions))
        out[move if meaning is None else int(meaning(states, move))] = 1.0
        return out

    def choose(self, states: States, rng: Any) -> int:
        return self.think(states, rng).move

    def prepare(self) -> Search:
        """Room to work in."""
        moves = len(self.game.moves)
        return Search(
            self.samples,
            self.steady,
            np.array([self.where >> move & 1 for move in range(moves)], np.bool_),
            self.game.concrete.argument(),
            np.zeros(moves, np.bool_),
            np.zeros(2, self.game.dtype),
            np.zeros(4, STREAM),
            np.zeros(moves),
            np.zeros(moves),
            np.zeros(moves, np.int64),
        )


def searching(
    agent: Agent, game: Game, samples: int, *, steady: bool = False, where: int = ANYWHERE
) -> Agent:
    """The agent thinking ahead with so many samples a move; with none, as it is."""
    if samples < 0:
        raise ValueError(f"search: a number of samples is needed, not {samples}")
    if samples == 0:
        return agent
    return Searcher(
        *(agent.name, agent.kind, agent.abstraction, agent.lookup, agent.fallback_abstraction),
        *(game, samples, steady, where),
    )


def check_goes_by_policy(*agents: Agent) -> None:
    """Refuse agents that search, where play goes by the policy alone."""
    for agent in agents:
        if isinstance(agent, Searcher):
            raise ValueError(f"search: {agent.name} searches; here play goes by the policy alone")


class Search(NamedTuple):
    """A search as compiled code takes it: how long, and where to work."""

    samples: Any
    steady: Any
    where: Any  # by move: it thinks where all its moves are among these
    concrete: Any  # the concrete abstraction's argument
    left: Any  # scratch: the moves still in question
    states: Any  # scratch, two: a deal, and a game played out from it
    streams: Any  # scratch, four: chance and choices, as they were after the deal and as they go on
    liking: Any  # scratch: the policy's probability of each move
    won: Any  # out, by move: the sum of its samples' utilities
    tried: Any  # out, by move: its samples


def prepared(agent: Agent) -> Search | None:
    """What `choose_or_search` needs for an agent; None for those that do not search."""
    return agent.prepare() if isinstance(agent, Searcher) else None


def count_moves(
    agent: Agent,
    game: Game,
    positions: States,
    times: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How often any agent makes each move in each position, asked so many times.

    Its randomness is a function of the seed and of what the player to move sees.
    """
    counts = np.zeros((len(positions), len(game.moves)), np.int64)
    search, weights = prepared(agent), np.zeros(len(agent.abstraction.actions))
    rng, concrete, lookup = np.zeros(1, STREAM), game.concrete.argument(), agent.own_lookup()
    for n in range(times):
        _count(positions, agent.kind, lookup, search, weights, rng, concrete, seed, n, counts)
        if progress:
            progress(n + 1)
    return counts


@rule
def choose_or_search(
    state: Any, kind: Any, lookup: Any, search: Any, weights: Any, rng: Any
) -> Any:
    """The concrete move of any agent; the branch is decided when this is compiled."""
    if search is None:
        return choose(state, kind, lookup, weights, rng)
    return think(state, kind, lookup, search, weights, rng)


@rule
def think(state: Any, kind: Any, lookup: Any, search: Any, weights: Any, rng: Any) -> Any:
    """The move that did best in the samples, or the policy's where it is not to think.

    One number is taken from `rng`, however long it thinks, and the policy's own where it does not.
    """
    left = search.left
    legal_moves(state, search.concrete, left)
    if not _all_among(left, search.where):
        return np.int64(choose(state, kind, lookup, weights, rng))
    seed = next_u64(rng)
    won, tried = search.won, search.tried
    for move in range(len(won)):
        won[move] = 0.0
        tried[move] = 0
    rounds = 0
    while (1 << rounds) < _how_many(left):
        rounds += 1
    if rounds == 0:
        if not search.steady:
            return _only(left)
        rounds = 1
    _like(state, kind, lookup, search.liking, weights)
    sample = 0
    for _ in range(rounds):
        moves = _how_many(left)
        for _ in range(max(1, search.samples // (rounds * moves))):
            _sample(state, kind, lookup, search, weights, seed, sample)
            sample += 1
        for _ in range(moves // 2):
            left[_worst(left, won, search.liking)] = False
    return _only(left)


@rule
def _all_among(moves: Any, where: Any) -> Any:
    found = True
    for move in range(len(moves)):
        found = found and (where[move] or not moves[move])
    return found


@rule
def _how_many(moves: Any) -> Any:
    n: Any = 0
    for move in range(len(moves)):
        n += np.int64(moves[move])
    return n


@rule
def _only(moves: Any) -> Any:
    """The one move that is left."""
    for move in range(len(moves)):
        if moves[move]:
            return np.int64(move)
    return np.int64(0)


@rule
def _like(state: Any, kind: Any, lookup: Any, liking: Any, weights: Any) -> None:
    """The policy's weight of each concrete move; moves that it never makes have none."""
    for move in range(len(liking)):
        liking[move] = 0.0
    fill(state, kind, lookup, weights)
    for a in range(len(weights)):
        if weights[a] > 0.0:
            liking[resolve(state, lookup.abstraction, a)] += weights[a]


@rule
def _sample(
    state: Any, kind: Any, lookup: Any, search: Any, weights: Any, seed: Any, index: Any
) -> None:
    """Deal what is hidden once, and play every one of the moves that are left out from there."""
    player = current_player(state)
    deal, trial = search.states[0], search.states[1]
    chance, choices = search.streams[0], search.streams[1]
    copy_record(deal, state)
    open_stream(chance, seed, np.uint64(index), np.uint64(REDEALS))
    open_stream(choices, seed, np.uint64(index), np.uint64(CHOICES))
    shuffle_hidden(deal, player, chance)
    for move in range(len(search.left)):
        if not search.left[move]:
            continue
        copy_record(trial, deal)
        copy_record(search.streams[2], chance)
        copy_record(search.streams[3], choices)
        apply(trial, move)
        _play_out(trial, kind, lookup, weights, search.streams[2], search.streams[3])
        search.won[move] += utility(trial, player)
        search.tried[move] += 1


@rule
def _play_out(state: Any, kind: Any, lookup: Any, weights: Any, chance: Any, choices: Any) -> None:
    resolve_chance(state, chance)
    while current_player(state) != OVER:
        apply(state, _policy_move(state, kind, lookup, weights, choices))
        resolve_chance(state, chance)


@rule
def _policy_move(state: Any, kind: Any, lookup: Any, weights: Any, choices: Any) -> Any:
    """As `choose`, but quicker where there is nothing to choose or a policy to sample."""
    pending = pending_move(state, lookup.abstraction)
    if pending != DECIDE:
        return np.int64(pending)
    legal = legal_actions(state, lookup.abstraction)
    if not several(legal):
        action = first(legal)
    elif kind == SAMPLE:
        action = sample_rows(state, lookup, AVERAGE, legal, choices)
    else:
        return np.int64(choose(state, kind, lookup, weights, choices))
    move = np.int64(resolve(state, lookup.abstraction, action))
    begin_option(state, lookup.abstraction, action)
    return move


@rule
def _worst(moves: Any, won: Any, liking: Any) -> Any:
    """Of the moves, which have all had the same samples."""
    worst, least = 0, np.inf
    for move in range(len(moves)):
        if not moves[move]:
            continue
        score = won[move] + _TIE * liking[move]
        if score <= least:
            worst, least = move, score
    return worst


@kernel
def _think(states: Any, kind: Any, lookup: Any, search: Any, weights: Any, rng: Any) -> Any:
    return think(states[0], kind, lookup, search, weights, rng[0])


@kernel
def _count(
    positions: Any,
    kind: Any,
    lookup: Any,
    search: Any,
    weights: Any,
    rng: Any,
    concrete: Any,
    seed: Any,
    time: Any,
    counts: Any,
) -> None:
    for i in range(len(positions)):
        sight = infoset_key(positions[i], concrete) ^ mix(np.uint64(seed))
        open_stream(rng[0], sight, np.uint64(time), np.uint64(CHOICES))
        counts[i, choose_or_search(positions[i], kind, lookup, search, weights, rng[0])] += 1
