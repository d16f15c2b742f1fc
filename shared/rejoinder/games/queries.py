"""The contract's questions, asked from Python about a one-element array of states."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rejoinder.games import contract
from rejoinder.games.base import Abstraction, Game
from rejoinder.kernel.jit import copy_record, kernel
from rejoinder.kernel.masks import actions_in


@kernel
def start(states: Any, template: Any, first_player: Any) -> None:
    copy_record(states[0], template[0])
    contract.start(states[0], first_player)


@kernel
def current_player(states: Any) -> Any:
    return contract.current_player(states[0])


@kernel
def utilities(states: Any, out: Any) -> None:
    for player in range(len(out)):
        out[player] = contract.utility(states[0], player)


@kernel
def legal_actions(states: Any, abstraction: Any) -> Any:
    return contract.legal_actions(states[0], abstraction)


@kernel
def legal_moves(states: Any, concrete: Any, out: Any) -> None:
    contract.legal_moves(states[0], concrete, out)


@kernel
def resolve(states: Any, abstraction: Any, action: Any) -> Any:
    return np.int64(contract.resolve(states[0], abstraction, action))


@kernel
def apply(states: Any, move: Any) -> None:
    contract.apply(states[0], move)


@kernel
def infoset_key(states: Any, abstraction: Any) -> Any:
    return contract.infoset_key(states[0], abstraction)


@kernel
def observed(states: Any, move: Any, player: Any) -> Any:
    return np.int64(contract.observed(states[0], move, player))


@kernel
def chance_outcomes(states: Any, probabilities: Any) -> Any:
    return contract.chance_outcomes(states[0], probabilities)


@kernel
def sample_outcome(states: Any, rng: Any) -> Any:
    return np.int64(contract.sample_outcome(states[0], rng[0]))


@kernel
def resolve_chance(states: Any, rng: Any) -> Any:
    return contract.resolve_chance(states[0], rng[0])


@kernel
def shuffle_hidden(states: Any, player: Any, rng: Any) -> None:
    contract.shuffle_hidden(states[0], player, rng[0])


@kernel
def begin_option(states: Any, abstraction: Any, action: Any) -> None:
    contract.begin_option(states[0], abstraction, action)


@kernel
def pending_move(states: Any, abstraction: Any) -> Any:
    return np.int64(contract.pending_move(states[0], abstraction))


@kernel
def baseline(states: Any, abstraction: Any, number: Any, weights: Any) -> None:
    contract.baseline(states[0], abstraction, number, weights)


_ENGINE = (start, current_player, utilities, legal_actions, resolve, apply, observed)


@functools.cache
def engine_version(dtype: np.dtype[Any]) -> str:
    """The version of a game's compiled rules."""
    return contract.kernel_identity(dtype, _ENGINE)


def legal_numbers(game: Game, states: Any, abstraction: Abstraction | None = None) -> list[int]:
    """The legal actions of an abstraction, or the legal concrete moves, of the player to move."""
    if abstraction is not None and abstraction is not game.concrete:
        return bits(legal_actions(states, abstraction.argument()))
    legal = np.zeros(len(game.moves), np.bool_)
    legal_moves(states, game.concrete.argument(), legal)
    return [int(move) for move in np.flatnonzero(legal)]


def bits(mask: Any) -> list[int]:
    """The action numbers of a mask."""
    return actions_in(mask)
