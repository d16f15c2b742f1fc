"""How an agent answers: the response phases of games that it plays against itself.

A phase is a run of decisions among response actions alone. Wherever there was a choice, what was
chosen is counted, apart for the first decision of a phase and for later ones: where the order of
responses does not matter there is no reason to choose otherwise later than at first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.evaluate.agents import Agent
from rejoinder.games import queries
from rejoinder.games.base import Game, States
from rejoinder.games.contract import OVER
from rejoinder.rng import CHOICES, DEALS, stream


@dataclass(frozen=True)
class Choice:
    """What was done where these actions, and no others, could be chosen."""

    first: bool  # decision of its phase, or a later one
    options: tuple[str, ...]
    chosen: dict[str, int]  # times, by option

    @property
    def times(self) -> int:
        return sum(self.chosen.values())


@dataclass(frozen=True)
class Answers:
    """The response phases of some games."""

    games: int
    lengths: dict[int, int]  # phases, by the number of decisions in them
    choices: list[Choice]  # first decisions before later ones

    @property
    def phases(self) -> int:
        return sum(self.lengths.values())

    @property
    def mean_length(self) -> float:
        decisions = sum(length * phases for length, phases in self.lengths.items())
        return decisions / self.phases if self.phases else 0.0


def watch(
    game: Game,
    template: States,
    agent: Agent,
    *,
    games: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Answers:
    """Play `games` of the agent against itself; `progress` hears how many are done."""
    names, responses = agent.abstraction.actions, agent.abstraction.responses
    if not responses:
        raise ValueError(f"{game.name} has no response phases")
    lengths: Counter[int] = Counter()
    chosen: Counter[tuple[bool, int, int]] = Counter()
    for index in range(games):
        length = 0
        for legal, action in _decisions(game, template, agent, seed, index):
            if legal & ~responses:
                lengths[length] += 1
                length = 0
            else:
                length += 1
                chosen[length == 1, legal, action] += 1
        lengths[length] += 1
        if progress:
            progress(index + 1)
    del lengths[0]
    choices = [
        Choice(
            first,
            tuple(names[a] for a in queries.bits(legal)),
            {names[a]: chosen[first, legal, a] for a in queries.bits(legal)},
        )
        for first, legal in sorted({(f, m) for f, m, _ in chosen}, key=lambda c: (not c[0], c[1]))
        if legal.bit_count() > 1
    ]
    return Answers(games, dict(sorted(lengths.items())), choices)


def _decisions(
    game: Game, template: States, agent: Agent, seed: int, index: int
) -> Iterator[tuple[int, int]]:
    """The legal actions of each decision of a game, as a mask, and the action taken."""
    deals, choices = stream(seed, index, DEALS), stream(seed, index, CHOICES)
    states: Any = np.zeros(1, game.dtype)
    queries.start(states, template, index % game.starts)
    queries.resolve_chance(states, deals)
    while queries.current_player(states) != OVER:
        legal = int(queries.legal_actions(states, agent.abstraction.number))
        move = agent.choose(states, choices)
        meaning = agent.abstraction.meaning
        yield legal, int(meaning(states, move)) if meaning else move
        queries.apply(states, move)
        queries.resolve_chance(states, deals)
