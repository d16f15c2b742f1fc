"""The Monopoly Deal engine: decisions a second under uniform policies, as a ratio to a peer.

There is no other fast engine of this game, so the yardstick is OpenSpiel's C++ Leduc solver: how
many of our decisions go into one of its external-sampling iterations, on the same core in the same
run. A decision is all of it: legal actions, abstraction, choice, resolver, rules and draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rejoinder.games import GAMES
from rejoinder.games.contract import (
    OVER,
    apply,
    current_player,
    legal_actions,
    random_action,
    resolve,
    resolve_chance,
    start,
)
from rejoinder.kernel.jit import copy_record, kernel
from rejoinder.kernel.rng import TRAINING, stream
from rejoinder.run.config import load_config
from rejoinder_bench import Result, peers
from rejoinder_bench.measure import one_core, side_by_side
from rejoinder_learner.state import Learner

_PLAYOUTS = 20_000
_PEER_ITERATIONS = 5_000
_TRAINING_GAMES = 50
_GAMES_BEFORE = 100


def run(say: Callable[[str], None]) -> Result:
    result = Result()
    with one_core():
        ratio, ours, theirs = side_by_side(
            _decisions(), peers.external_sampling("leduc_poker", _PEER_ITERATIONS)
        )
        result.ratios["decisions_per_iteration"] = ratio
        result.figures["decisions_per_second"] = ours
        result.figures["openspiel_leduc_iterations_per_second"] = theirs
        say(f"decisions_per_iteration: {ratio:.0f} ({ours / 1e6:.2f} million decisions/s)")
        ratio, ours, _ = side_by_side(
            _training_games(), peers.external_sampling("leduc_poker", _PEER_ITERATIONS)
        )
        result.ratios["training_games_per_thousand_iterations"] = 1000 * ratio
        result.figures["training_games_per_second"] = ours
        say(f"training games at the paper's settings: {ours:.0f}/s")
    return result


def _decisions() -> Callable[[], float]:
    game = GAMES["deal"]
    template = game.template(game.configurations["medium"])
    states, rng = np.zeros(1, game.dtype), stream(1, 0, TRAINING)
    intent = game.abstraction("intent").number

    def work() -> float:
        decisions: int = _play(template, states, rng, _PLAYOUTS, intent)
        return decisions

    return work


def _training_games() -> Callable[[], float]:
    """The paper's settings, with the policies of a learner that has seen some games."""
    config = load_config("paper")
    actor, learner = config.actor(), Learner(config)
    while learner.games < _GAMES_BEFORE:
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))
    snapshot = learner.snapshot_for(learner.units).copy()

    def work() -> float:
        for g in range(_TRAINING_GAMES):
            actor.play(_GAMES_BEFORE + g, snapshot)
        return _TRAINING_GAMES

    return work


@kernel
def _play(template: Any, states: Any, rng: Any, games: Any, abstraction: Any) -> Any:
    """Play games with uniformly random actions; returns the number of decisions."""
    state, random = states[0], rng[0]
    decisions = 0
    for g in range(games):
        copy_record(state, template[0])
        start(state, g % 2)
        resolve_chance(state, random)
        while current_player(state) != OVER:
            action = random_action(legal_actions(state, abstraction), random)
            apply(state, resolve(state, abstraction, action))
            resolve_chance(state, random)
            decisions += 1
    return decisions
