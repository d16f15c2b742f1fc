"""Agents that can sit at a table: random, hand-made, trained.

An agent is a small value that compiled code understands: how it chooses, under which abstraction,
by which policy. The same value plays matches in compiled code and single moves at a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction, Game, States
from rejoinder.games.contract import baseline, legal_actions, resolve
from rejoinder.kernel.jit import kernel, lowest_bit, rule
from rejoinder.kernel.rng import uniform
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.policy import Book, draw, read_book
from rejoinder.methods.tabular.table import Table, new_table

# How an agent chooses.
RANDOM, BASELINE, SAMPLE, ARGMAX = 0, 1, 2, 3


@dataclass(frozen=True)
class Agent:
    """Who plays. `book` is empty for agents that need none."""

    name: str
    kind: int
    abstraction: Abstraction
    book: Book

    def probabilities(self, states: States) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What it would do now, by action of its abstraction."""
        out = np.zeros(len(self.abstraction.actions))
        _fill(states, self.kind, self.book, out)
        return out

    def choose(self, states: States, rng: Any) -> int:
        """The concrete move that it makes, with randomness from `rng`."""
        weights = np.zeros(len(self.abstraction.actions))
        move: int = _choose(states, self.kind, self.book, weights, rng)
        return move


def random_agent(game: Game) -> Agent:
    """Uniform over the abstract actions."""
    return _without_policy(game, "random", RANDOM)


def baseline_agent(game: Game) -> Agent:
    """The game's hand-made opponent (Monopoly Deal: risk-aware)."""
    if game.baseline is None:
        raise ValueError(f"{game.name} has no hand-made opponent")
    return _without_policy(game, game.baseline, BASELINE)


def opponents(game: Game) -> dict[str, Agent]:
    """The agents that need no training, by name."""
    found = {"random": random_agent(game)}
    if game.baseline is not None:
        found[game.baseline] = baseline_agent(game)
    return found


def trained_agent(
    name: str,
    abstraction: Abstraction,
    policy: Table,
    *,
    argmax: bool,
    fallback: Agent | None = None,
) -> Agent:
    """Plays the average policy of a table: its most likely action, or a sample.

    At infosets that the table does not know it plays as `fallback` does (by its average policy,
    sampled), else uniformly.
    """
    if fallback and fallback.abstraction.actions != abstraction.actions:
        raise ValueError(
            f"{name}: a fallback needs the same actions, and those of {abstraction.name} and "
            f"{fallback.abstraction.name} differ"
        )
    other = (
        fallback.book if fallback else Book(policy, abstraction.number, policy, abstraction.number)
    )
    book = Book(policy, abstraction.number, other.policy, other.abstraction)
    return Agent(name, ARGMAX if argmax else SAMPLE, abstraction, book)


def _without_policy(game: Game, name: str, kind: int) -> Agent:
    abstraction = game.default_abstraction
    nothing = new_table(policy_dtype(len(abstraction.actions)), 1)
    book = Book(nothing, abstraction.number, nothing, abstraction.number)
    return Agent(name, kind, abstraction, book)


@rule
def choose(state: Any, kind: Any, book: Any, weights: Any, rng: Any) -> Any:
    """The concrete move of an agent; `weights` is scratch with one place per action."""
    fill(state, kind, book, weights)
    total = 0.0
    for a in range(len(weights)):
        total += weights[a]
    action = draw(weights, legal_actions(state, book.abstraction), uniform(rng) * total)
    return resolve(state, book.abstraction, action)


@rule
def fill(state: Any, kind: Any, book: Any, weights: Any) -> None:
    """Write an agent's weight of every action."""
    legal = legal_actions(state, book.abstraction)
    if kind == BASELINE:
        baseline(state, book.abstraction, weights)
    elif kind == RANDOM:
        for a in range(len(weights)):
            weights[a] = np.float64((legal >> np.uint64(a)) & np.uint64(1))
    elif read_book(state, book, AVERAGE, legal, weights) and kind == ARGMAX:
        best = lowest_bit(legal)
        for a in range(len(weights)):
            if weights[a] > weights[best]:
                best = a
        for a in range(len(weights)):
            weights[a] = np.float64(a == best)


@kernel
def _choose(states: Any, kind: Any, book: Any, weights: Any, rng: Any) -> Any:
    return choose(states[0], kind, book, weights, rng[0])


@kernel
def _fill(states: Any, kind: Any, book: Any, weights: Any) -> None:
    fill(states[0], kind, book, weights)
    total = 0.0
    for a in range(len(weights)):
        total += weights[a]
    for a in range(len(weights)):
        weights[a] /= total
