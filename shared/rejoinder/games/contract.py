"""The game contract: what a solver, an evaluator or a table may ask of any game.

A game is a NumPy record dtype for its state plus one compiled function for each stub below. The
stubs dispatch on the dtype of the state while numba compiles, so a solver is written once and
turns into direct calls for every game.

Everything a player does is an *action* of the abstraction in use; `resolve` turns it into a
concrete move of the rules, `apply` plays that move. Abstraction 0 (`CONCRETE`) is no abstraction:
its actions are the concrete moves and its infoset key tells everything that the player sees now.

All chance is explicit: a state either waits for a player, or for chance, or is over. `apply` is
deterministic and takes chance outcomes too, so a tree can be enumerated and a log replayed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

from rejoinder.kernel.identity import Resolve, identity
from rejoinder.kernel.jit import lowest_bit, popcount, resolve_stubs_by, rule
from rejoinder.kernel.rng import below

CHANCE = -1  # current_player: a random event is due
OVER = -2  # current_player: the game has ended
CONCRETE = 0  # the abstraction that abstracts nothing
HIDDEN = -1  # observed: the player learns only that something happened

_implementations: dict[Any, dict[str, Callable[..., Any]]] = {}


def implement(dtype: np.dtype[Any], **functions: Callable[..., Any]) -> None:
    """Register a game's compiled functions for its state dtype; called once by each game."""
    unknown = set(functions) - set(_STUBS)
    missing = {name for name, default in _STUBS.items() if default is None} - set(functions)
    if unknown or missing:
        raise TypeError(f"game contract: unknown {sorted(unknown)}, missing {sorted(missing)}")
    _implementations[numba.from_dtype(dtype)] = functions


def start(state: Any, first_player: Any) -> None:
    """Set up a fresh game on a state whose rules are filled in. Deals nothing: that is chance."""


def current_player(state: Any) -> Any:
    """The seat that must act, or CHANCE, or OVER."""


def utility(state: Any, player: Any) -> Any:
    """What `player` has won, once the game is over."""


def legal_actions(state: Any, abstraction: Any) -> Any:
    """Bit mask (uint64) of the acting player's actions; never empty before the end."""


def resolve(state: Any, abstraction: Any, action: Any) -> Any:
    """The concrete move that a legal action stands for, a function of what the player sees."""


def apply(state: Any, move: Any) -> None:
    """Play a legal concrete move, or let chance have the outcome `move`."""


def infoset_key(state: Any, abstraction: Any) -> Any:
    """64-bit key of what the acting player knows, under the abstraction."""


def observed(state: Any, move: Any, player: Any) -> Any:
    """What `player` sees of `move` when it is about to be applied: a number, or HIDDEN."""


def chance_outcomes(state: Any, probabilities: Any) -> Any:
    """Fill `probabilities` of outcomes 0..n-1 (zero: impossible) and return n."""


def shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    """Replace what `player` cannot see by a random draw consistent with what he sees now."""


def sample_outcome(state: Any, rng: Any) -> Any:
    """Draw the outcome of the one random event that is due, without applying it."""


def resolve_chance(state: Any, rng: Any) -> Any:
    """Sample all chance that is due, by `sample_outcome`; returns the probability of the sample."""


def baseline(state: Any, abstraction: Any, weights: Any) -> None:
    """The game's hand-made opponent: weights of the legal actions (need not sum to one)."""


def demand(state: Any) -> Any:
    """What the acting player is asked for in a response phase (its size); 0 outside one."""


def payment(state: Any, move: Any) -> Any:
    """What a move of a response phase, about to be applied, counts in units of the demand."""


def hand_refusal(state: Any, player: Any, rng: Any) -> Any:
    """Exchange a random card of a hand without a refusal for one of the deck's refusals.

    A refusal is a card that ends a response phase at once. Returns whether it could be done; if
    not, nothing has changed.
    """


def blank_refusals(state: Any, player: Any) -> None:
    """Turn the refusals in a hand into cards that count as cards and do nothing."""


@rule
def _uniform_weights(state: Any, abstraction: Any, weights: Any) -> None:
    """Default `baseline`: no preference."""
    legal = legal_actions(state, abstraction)
    for a in range(len(weights)):
        weights[a] = np.float64((legal >> np.uint64(a)) & np.uint64(1))


@rule
def _no_demand(state: Any) -> Any:
    """Default `demand`: the game has no response phases."""
    return np.int64(0)


@rule
def _no_payment(state: Any, move: Any) -> Any:
    """Default `payment`."""
    return np.int64(0)


@rule
def _no_refusal(state: Any, player: Any, rng: Any) -> Any:
    """Default `hand_refusal`: the game has no such cards."""
    return False


@rule
def _nothing_to_blank(state: Any, player: Any) -> None:
    """Default `blank_refusals`."""


@rule
def nth_action(legal: Any, n: Any) -> Any:
    """The n-th (from 0) action of a mask."""
    for _ in range(n):
        legal &= legal - np.uint64(1)
    return lowest_bit(legal)


@rule
def random_action(legal: Any, rng: Any) -> Any:
    """A uniformly random action of a mask."""
    return nth_action(legal, below(rng, popcount(legal)))


_STUBS: dict[str, Callable[..., Any] | None] = {
    "start": None,
    "current_player": None,
    "utility": None,
    "legal_actions": None,
    "resolve": None,
    "apply": None,
    "infoset_key": None,
    "observed": None,
    "chance_outcomes": None,
    "shuffle_hidden": None,
    "sample_outcome": None,
    "resolve_chance": None,
    "baseline": _uniform_weights,
    "demand": _no_demand,
    "payment": _no_payment,
    "hand_refusal": _no_refusal,
    "blank_refusals": _nothing_to_blank,
}


def kernel_identity(dtype: np.dtype[Any], functions: Iterable[Callable[..., Any]]) -> str:
    """The version of kernels for a game: a hash of the sources that are compiled for them."""
    states = numba.from_dtype(dtype)[::1]
    return identity(functions, _resolver([states]), more=f"{dtype.descr} {dtype.itemsize}")


def _resolver(arguments: Iterable[Any]) -> Resolve:
    """Maps stubs to the functions of the game whose states are among the arguments' types."""
    records = [getattr(argument, "dtype", argument) for argument in arguments]
    games = [_implementations[record] for record in records if record in _implementations]

    def resolve(function: Any) -> Any:
        name = getattr(function, "__name__", None)
        if not games or name not in _STUBS or function is not globals()[name]:
            return function
        return games[0].get(name, _STUBS[name])

    return resolve


resolve_stubs_by(_resolver)


def _implementation(state: Any, name: str) -> Callable[..., Any] | None:
    functions = _implementations.get(state) if isinstance(state, types.Record) else None
    return functions.get(name, _STUBS[name]) if functions else None


def _dispatch(stub: Callable[..., Any]) -> None:
    @functools.wraps(stub)  # numba compares the signatures of stub, overload and implementation
    def choose(state: Any, *rest: Any) -> Any:
        chosen = _implementation(state, stub.__name__)
        return getattr(chosen, "py_func", None)

    overload(stub)(choose)


for _name in _STUBS:
    _dispatch(globals()[_name])
