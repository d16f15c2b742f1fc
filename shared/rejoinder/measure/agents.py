"""Agents that can sit at a table: random, hand-made, trained.

An agent is a small value that compiled code understands: how it chooses, under which abstraction,
by which policy. The same value plays matches in compiled code and single moves at a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction, Game, States
from rejoinder.games.contract import (
    DECIDE,
    baseline,
    begin_option,
    even_weights,
    legal_actions,
    pending_move,
    resolve,
)
from rejoinder.kernel.jit import kernel, rule
from rejoinder.kernel.masks import first
from rejoinder.kernel.rng import uniform
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.policy import PolicyLookup, draw, read_rows
from rejoinder.methods.tabular.table import InfosetTable, new_table

# How an agent chooses; BASELINE + n is hand-made opponent n of the game.
RANDOM, SAMPLE, ARGMAX, BASELINE = 0, 1, 2, 3


@dataclass(frozen=True)
class Agent:
    """Who plays. `lookup` is empty for agents that need none."""

    name: str
    kind: int
    abstraction: Abstraction
    lookup: PolicyLookup
    fallback_abstraction: Abstraction  # of the lookup's fallback

    def probabilities(self, states: States) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What it would do now, by action of its abstraction."""
        out = np.zeros(len(self.abstraction.actions))
        _fill(states, self.kind, self.own_lookup(), out)
        return out

    def choose(self, states: States, rng: Any) -> int:
        """The concrete move that it makes, with randomness from `rng`.

        An option that it begins is noted in the state.
        """
        weights = np.zeros(len(self.abstraction.actions))
        move: int = _choose(states, self.kind, self.own_lookup(), weights, rng)
        return move

    def own_lookup(self) -> PolicyLookup:
        """The lookup with scratch memory of its own: threads may ask one agent at the same time."""
        argument, other = self.abstraction.argument(), self.fallback_abstraction
        fallback = argument if other is self.abstraction else other.argument()
        return self.lookup._replace(abstraction=argument, fallback_abstraction=fallback)


def random_agent(game: Game) -> Agent:
    """Uniform over the abstract actions."""
    return _without_policy(game, "random", RANDOM)


def baseline_agent(game: Game, name: str | None = None) -> Agent:
    """One of the game's hand-made opponents, the first without a name."""
    if not game.baselines:
        raise ValueError(f"{game.name} has no hand-made opponent")
    name = name or game.baselines[0]
    if name not in game.baselines:
        known = ", ".join(game.baselines)
        raise ValueError(f"{game.name} has no hand-made opponent {name!r}; it has {known}")
    return _without_policy(game, name, BASELINE + game.baselines.index(name))


def opponents(game: Game) -> dict[str, Agent]:
    """The agents that need no training, by name."""
    baselines = {name: baseline_agent(game, name) for name in game.baselines}
    return {"random": random_agent(game), **baselines}


def trained_agent(
    name: str,
    abstraction: Abstraction,
    policy: InfosetTable,
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
    argument = abstraction.argument()
    lookup = PolicyLookup(policy, argument, policy, argument)
    if fallback:
        lookup = PolicyLookup(
            policy, argument, fallback.lookup.policy, fallback.abstraction.argument()
        )
    kind = ARGMAX if argmax else SAMPLE
    return Agent(name, kind, abstraction, lookup, fallback.abstraction if fallback else abstraction)


def _without_policy(game: Game, name: str, kind: int) -> Agent:
    abstraction = game.default_abstraction
    nothing = new_table(policy_dtype(len(abstraction.actions)), 1)
    argument = abstraction.argument()
    lookup = PolicyLookup(nothing, argument, nothing, argument)
    return Agent(name, kind, abstraction, lookup, abstraction)


@rule
def choose(state: Any, kind: Any, lookup: Any, weights: Any, rng: Any) -> Any:
    """The concrete move of an agent; `weights` is scratch with one place per action.

    An option that it begins is noted in the state.
    """
    pending = pending_move(state, lookup.abstraction)
    if pending != DECIDE:
        return np.int64(pending)
    fill(state, kind, lookup, weights)
    total = 0.0
    for a in range(len(weights)):
        total += weights[a]
    action = draw(weights, legal_actions(state, lookup.abstraction), uniform(rng) * total)
    move = np.int64(resolve(state, lookup.abstraction, action))
    begin_option(state, lookup.abstraction, action)
    return move


@rule
def fill(state: Any, kind: Any, lookup: Any, weights: Any) -> None:
    """Write an agent's weight of every action."""
    legal = legal_actions(state, lookup.abstraction)
    if kind >= BASELINE:
        baseline(state, lookup.abstraction, kind - BASELINE, weights)
    elif kind == RANDOM:
        even_weights(legal, weights)
    elif read_rows(state, lookup, AVERAGE, legal, weights) and kind == ARGMAX:
        best = first(legal)
        for a in range(len(weights)):
            if weights[a] > weights[best]:
                best = a
        for a in range(len(weights)):
            weights[a] = np.float64(a == best)


@kernel
def _choose(states: Any, kind: Any, lookup: Any, weights: Any, rng: Any) -> Any:
    return choose(states[0], kind, lookup, weights, rng[0])


@kernel
def _fill(states: Any, kind: Any, lookup: Any, weights: Any) -> None:
    fill(states[0], kind, lookup, weights)
    total = 0.0
    for a in range(len(weights)):
        total += weights[a]
    for a in range(len(weights)):
        weights[a] /= total
