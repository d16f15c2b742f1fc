"""CFR as the papers write it: a recursion over histories and dictionaries. Slow on purpose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rejoinder.games import Game, queries
from rejoinder.games.contract import CHANCE, CONCRETE, OVER

Profile = Callable[[int, list[int]], dict[int, float]]  # (infoset key, legal) → probabilities


def fresh(game: Game, configuration: str, first: int = 0) -> Any:
    """A state before anything was dealt."""
    template = game.template(game.configurations[configuration])
    states = np.zeros(1, game.dtype)
    queries.start(states, template, first)
    return states


def after(states: Any, move: int) -> Any:
    """The state after a move or a chance outcome; the given one stays as it is."""
    copied = states.copy()
    queries.apply(copied, move)
    return copied


def chance(states: Any) -> dict[int, float]:
    """The possible outcomes of the random event that is due."""
    probabilities = np.zeros(64)
    n = queries.chance_outcomes(states, probabilities)
    return {k: float(probabilities[k]) for k in range(n) if probabilities[k] > 0}


def legal(states: Any) -> list[int]:
    return queries.bits(queries.legal_actions(states, CONCRETE))


def uniform(key: int, actions: list[int]) -> dict[int, float]:
    return dict.fromkeys(actions, 1 / len(actions))


def expected_value(states: Any, profile: Profile, player: int = 0) -> float:
    """What `player` wins on average when everybody follows the profile."""
    mover = queries.current_player(states)
    if mover == OVER:
        won = np.zeros(2)
        queries.utilities(states, won)
        return float(won[player])
    if mover == CHANCE:
        odds = chance(states)
    else:
        odds = profile(int(queries.infoset_key(states, CONCRETE)), legal(states))
    return sum(p * expected_value(after(states, m), profile, player) for m, p in odds.items())


@dataclass
class NaiveCfr:
    """Alternating updates; the average takes the strategy made by the update."""

    root: Any
    alpha: float
    beta: float
    gamma: float
    regret: Any = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    average: Any = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    strategy: dict[int, dict[int, float]] = field(default_factory=dict)
    iterations: int = 0

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self.iterations += 1
            for player in (0, 1):
                self._infosets: dict[int, list[int]] = {}
                self._walk(self.root, player, own=1.0, others=1.0)
                self._update(self._infosets)
                self._add_strategy(self.root, player, own=1.0, seen=set())

    def _now(self, key: int, actions: list[int]) -> dict[int, float]:
        return self.strategy.get(key) or uniform(key, actions)

    def _walk(self, states: Any, player: int, own: float, others: float) -> float:
        """The player's expected value here; regrets of his infosets are added on the way."""
        mover = queries.current_player(states)
        if mover == OVER:
            won = np.zeros(2)
            queries.utilities(states, won)
            return float(won[player])
        if mover == CHANCE:
            return sum(
                p * self._walk(after(states, c), player, own, others * p)
                for c, p in chance(states).items()
            )
        key, actions = int(queries.infoset_key(states, CONCRETE)), legal(states)
        now = self._now(key, actions)
        if mover != player:
            return sum(
                now[a] * self._walk(after(states, a), player, own, others * now[a]) for a in actions
            )
        values = {a: self._walk(after(states, a), player, own * now[a], others) for a in actions}
        here = sum(now[a] * values[a] for a in actions)
        for a in actions:
            self.regret[key][a] += others * (values[a] - here)
        self._infosets[key] = actions
        return here

    def _update(self, infosets: dict[int, list[int]]) -> None:
        t = self.iterations
        for key, actions in infosets.items():
            regret = self.regret[key]
            total = sum(max(regret[a], 0.0) for a in actions)
            if total > 0:
                self.strategy[key] = {a: max(regret[a], 0.0) / total for a in actions}
            else:
                self.strategy[key] = uniform(key, actions)
            for a in actions:
                regret[a] *= discount(t, self.alpha if regret[a] > 0 else self.beta)

    def _add_strategy(self, states: Any, player: int, own: float, seen: set[int]) -> None:
        mover = queries.current_player(states)
        if mover == OVER:
            return
        if mover == CHANCE:
            moves = dict.fromkeys(chance(states), 1.0)
        else:
            key, actions = int(queries.infoset_key(states, CONCRETE)), legal(states)
            moves = dict.fromkeys(actions, 1.0)
            if mover == player:
                moves = self._now(key, actions)
                if key not in seen:
                    seen.add(key)
                    for a in actions:
                        self.average[key][a] += self.iterations**self.gamma * own * moves[a]
        for move, p in moves.items():
            self._add_strategy(after(states, move), player, own * p, seen)


def discount(t: int, exponent: float) -> float:
    if np.isinf(exponent):
        return 1.0 if exponent > 0 else 0.0
    return float(t**exponent / (t**exponent + 1))
