"""The game contract: what a solver, an evaluator or a table may ask of any game.

A game is a NumPy record dtype for its state plus one compiled function for each stub below, chosen
by the dtype of the state (see `stubs`).

Everything a player does is an *action* of the abstraction in use; `resolve` turns it into a
concrete move of the rules, `apply` plays that move. Abstraction 0 (`CONCRETE`) is no abstraction:
its actions are the concrete moves and its infoset key tells everything that the player sees now.
What is passed as `abstraction` is `Abstraction.argument`: its number, or whatever a game needs
besides (data, scratch memory); callers do not look inside.

Sets of actions are masks (see `kernel.masks`). A game may have more concrete moves than its masks
hold: then `legal_moves` tells them, and nobody asks `legal_actions` for the concrete ones.

An action may be an *option*: a way of playing until the next decision. `begin_option` notes the
choice in the state and `pending_move` tells what it makes of the plies in between, which are no
decisions: no infoset, no entry, no regret. All who play go through `play_action` and `settle`, or
ask `pending_move` themselves. Nothing is pending under CONCRETE.

All chance is explicit: a state either waits for a player, or for chance, or is over. `apply` is
deterministic and takes chance outcomes too, so a tree can be enumerated and a log replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.stubs import Stubs, kernel_identity
from rejoinder.kernel.jit import rule
from rejoinder.kernel.masks import count, first, has, rest
from rejoinder.kernel.rng import below

CHANCE = -1  # current_player: a random event is due
OVER = -2  # current_player: the game has ended
CONCRETE = 0  # the number of the abstraction that abstracts nothing
HIDDEN = -1  # observed: the player learns only that something happened
DECIDE = -1  # pending_move: nothing is pending, so the player to move has a decision to take


def start(state: Any, first_player: Any) -> None:
    """Set up a fresh game on a state whose rules are filled in. Deals nothing: that is chance."""


def current_player(state: Any) -> Any:
    """The seat that must act, or CHANCE, or OVER."""


def utility(state: Any, player: Any) -> Any:
    """What `player` has won, once the game is over."""


def legal_actions(state: Any, abstraction: Any) -> Any:
    """Mask of the acting player's actions; never empty before the end."""


def legal_moves(state: Any, concrete: Any, out: Any) -> None:
    """Write, for every concrete move, whether it is legal; `concrete` is CONCRETE's argument."""


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
    """Replace what `player` cannot see by a random draw consistent with what they see now."""


def sample_outcome(state: Any, rng: Any) -> Any:
    """Draw the outcome of the one random event that is due, without applying it."""


def resolve_chance(state: Any, rng: Any) -> Any:
    """Sample all chance that is due, by `sample_outcome`; returns the probability of the sample."""


def begin_option(state: Any, abstraction: Any, action: Any) -> None:
    """Note in the state that the acting player has chosen `action`; its first move comes next."""


def pending_move(state: Any, abstraction: Any) -> Any:
    """The concrete move that the acting player's option makes now, or DECIDE.

    DECIDE, too, where chance is due and at the end.
    """


def baseline(state: Any, abstraction: Any, number: Any, weights: Any) -> None:
    """A hand-made opponent by number: weights of the legal actions (need not sum to one)."""


@rule
def play_action(state: Any, abstraction: Any, action: Any) -> None:
    """Play a legal action of a player who has a decision; chance and an option go on after it."""
    move = resolve(state, abstraction, action)
    begin_option(state, abstraction, action)
    apply(state, move)


@rule
def settle(state: Any, abstraction: Any, rng: Any) -> Any:
    """Go on to the next decision, or to the end: sample chance, play what is pending.

    Returns the probability of the sample.
    """
    reach = resolve_chance(state, rng)
    move = pending_move(state, abstraction)
    while move != DECIDE:
        apply(state, move)
        reach *= resolve_chance(state, rng)
        move = pending_move(state, abstraction)
    return reach


@rule
def nth_action(legal: Any, n: Any) -> Any:
    """The n-th (from 0) action of a mask."""
    left = legal
    for _ in range(n):
        left = rest(left)
    return first(left)


@rule
def random_action(legal: Any, rng: Any) -> Any:
    """A uniformly random action of a mask."""
    return nth_action(legal, below(rng, count(legal)))


@rule
def even_weights(legal: Any, weights: Any) -> None:
    """1 for every action of a mask, 0 for the others."""
    for a in range(len(weights)):
        weights[a] = np.float64(has(legal, a))


@rule
def _moves_of_mask(state: Any, concrete: Any, out: Any) -> None:
    """Default `legal_moves`: masks hold all concrete moves."""
    legal = legal_actions(state, concrete)
    for move in range(len(out)):
        out[move] = has(legal, move)


@rule
def _own_move(state: Any, abstraction: Any, action: Any) -> Any:
    """Default `resolve`: an action is a concrete move."""
    return action


@rule
def _no_option(state: Any, abstraction: Any, action: Any) -> None:
    """Default `begin_option`: an action is one move."""


@rule
def _nothing_pending(state: Any, abstraction: Any) -> Any:
    """Default `pending_move`."""
    return DECIDE


@rule
def _no_preference(state: Any, abstraction: Any, number: Any, weights: Any) -> None:
    """Default `baseline`."""
    even_weights(legal_actions(state, abstraction), weights)


_CONTRACT = Stubs(
    "game contract",
    {
        start: None,
        current_player: None,
        utility: None,
        legal_actions: None,
        legal_moves: _moves_of_mask,
        resolve: _own_move,
        apply: None,
        infoset_key: None,
        observed: None,
        chance_outcomes: None,
        shuffle_hidden: None,
        sample_outcome: None,
        resolve_chance: None,
        begin_option: _no_option,
        pending_move: _nothing_pending,
        baseline: _no_preference,
    },
)
implement = _CONTRACT.implement

__all__ = [
    "CHANCE",
    "CONCRETE",
    "DECIDE",
    "HIDDEN",
    "OVER",
    "apply",
    "baseline",
    "begin_option",
    "chance_outcomes",
    "current_player",
    "even_weights",
    "implement",
    "infoset_key",
    "kernel_identity",
    "legal_actions",
    "legal_moves",
    "nth_action",
    "observed",
    "pending_move",
    "play_action",
    "random_action",
    "resolve",
    "resolve_chance",
    "sample_outcome",
    "settle",
    "shuffle_hidden",
    "start",
    "utility",
]
