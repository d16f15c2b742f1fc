"""Exact evaluation on an enumerable game: expected value, best responses, NashConv.

NashConv is the sum over players of what each could gain by a best response to the others;
exploitability is NashConv divided by the number of players (OpenSpiel's convention). A best
response uses everything that its player remembers in the given tree, so the tree decides whether
the answer is about the real game or about the game as an abstraction shows it.

A best response may be restricted: at the infosets where it may not deviate its player follows the
profile. Freedom at fewer infosets never helps, so 0 ≤ restricted NashConv ≤ NashConv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.games.contract import CONCRETE
from rejoinder.games.responses import response_actions
from rejoinder.kernel.jit import kernel, rule
from rejoinder.measure.agents import Agent
from rejoinder.measure.search import count_moves
from rejoinder.methods.exact.full import terminal_values
from rejoinder.methods.exact.tree import Tree, build_tree
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.policy import policy_of
from rejoinder.methods.tabular.table import EMPTY, InfosetTable, find


@dataclass(frozen=True)
class Exploitability:
    """How far a strategy profile is from equilibrium."""

    value: float  # expected utility of seat 0 under the profile
    best_response_values: tuple[float, ...]  # by player
    nash_conv: float

    @property
    def exploitability(self) -> float:
        return self.nash_conv / len(self.best_response_values)


def both_exploitabilities(
    game: Game, rules: Rules, abstraction: Abstraction, policies: Iterable[InfosetTable]
) -> list[tuple[Exploitability, Exploitability]]:
    """Of policies in one abstraction: in the real game, and in the game as it is shown to them."""
    real = build_tree(game, rules, policy=abstraction)
    shown = real if abstraction.number == CONCRETE else build_tree(game, rules, abstraction)
    return [
        (policy_exploitability(real, policy), policy_exploitability(shown, policy))
        for policy in policies
    ]


def response_infosets(tree: Tree) -> Any:
    """Which infosets of a tree are decisions of a response phase: bool by infoset."""
    mask = response_actions(tree.game, tree.play)
    is_response = np.array([mask >> a & 1 for a in range(len(tree.play.actions))], bool)
    first = tree.form.infosets["first"]
    return is_response[tree.moves[first]]  # a decision has either kind of action


def exploitability(tree: Tree, strategy: Any) -> Exploitability:
    """Of a strategy given by slot (one common profile for all players)."""
    sequence_strategy = np.ones(tree.sequences)
    _by_sequence(tree.form.infosets, strategy, sequence_strategy)
    return _evaluate(tree, sequence_strategy, None)


def policy_exploitability(tree: Tree, policy: InfosetTable, where: Any = None) -> Exploitability:
    """Of a trained policy, looked up by the tree's policy keys; unknown infosets play uniformly.

    `where` restricts the best responses: bool by infoset, whether they may deviate there.
    """
    sequence_strategy = np.ones(tree.sequences)
    _from_policy(tree.form.infosets, tree.stands_for, policy, sequence_strategy)
    return _evaluate(tree, sequence_strategy, where)


def counted_exploitability(
    tree: Tree,
    agent: Agent,
    times: int,
    *,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Exploitability:
    """Of an agent that may search, in the tree of the real game.

    How it mixes its moves is counted: it is asked so many times at everything that a player can
    see. A best response to the counts takes their noise for the agent's, so the figure is rather
    too high than too low, the less the more often it is asked.
    """
    infosets, positions = tree.form.infosets, tree.positions
    # Histories that look alike now are one to it, but for what a state remembers of them.
    remembered = [positions[name].reshape(len(positions), -1) for name in tree.game.remembered]
    seen = np.column_stack([infosets["policy_key"], *remembered])
    _, example, group = np.unique(seen, axis=0, return_index=True, return_inverse=True)
    counts = count_moves(agent, tree.game, positions[example], times, seed % 2**63, progress)
    sequence_strategy = np.ones(tree.sequences)
    owners = np.repeat(group.reshape(-1), infosets["actions"])  # of the sequences, in their order
    first = tree.game.players
    sequence_strategy[first:] = counts[owners, tree.moves[first:]] / times
    return _evaluate(tree, sequence_strategy, None)


def _evaluate(tree: Tree, sequence_strategy: Any, where: Any) -> Exploitability:
    players = tree.game.players
    expected, best = np.zeros(players), np.zeros(players)
    free = np.ones(len(tree.form.infosets), bool) if where is None else where
    _respond(tree.form, sequence_strategy, free, expected, best)
    return Exploitability(
        value=float(expected[0]),
        best_response_values=tuple(float(v) for v in best),
        nash_conv=max(0.0, float((best - expected).sum())),  # below it is rounding
    )


@kernel
def _by_sequence(infosets: Any, strategy: Any, out: Any) -> None:
    for i in range(len(infosets)):
        infoset = infosets[i]
        for k in range(infoset.actions):
            out[infoset.first + k] = strategy[infoset.slot + k]


@kernel
def _from_policy(infosets: Any, stands_for: Any, policy: Any, out: Any) -> None:
    for i in range(len(infosets)):
        infoset = infosets[i]
        row = find(policy, infoset.policy_key)
        total = 0.0
        for s in range(infoset.first, infoset.first + infoset.actions):
            weight = 0.0
            for a in range(stands_for.shape[1]):
                if stands_for[s, a]:
                    weight += _weight(policy, row, a)
            out[s] = weight
            total += weight
        for s in range(infoset.first, infoset.first + infoset.actions):
            out[s] /= total


@rule
def _weight(policy: Any, row: Any, a: Any) -> Any:
    return 1.0 if row == EMPTY else policy_of(policy.rows[row])[AVERAGE][a]


@kernel
def _respond(form: Any, sequence_strategy: Any, free: Any, expected: Any, best: Any) -> None:
    """The value of the profile and of a best response to it, for each player.

    The best response deviates at the infosets that are `free`.
    """
    reach = np.ones(len(sequence_strategy))
    infosets = form.infosets
    for i in range(len(infosets)):
        infoset = infosets[i]
        for s in range(infoset.first, infoset.first + infoset.actions):
            reach[s] = reach[infoset.parent] * sequence_strategy[s]
    value = np.empty(len(sequence_strategy))
    for player in range(len(best)):
        terminal_values(form, reach, player, value)
        expected[player] = 0.0
        for s in range(len(value)):
            expected[player] += value[s] * reach[s]
        for i in range(len(infosets) - 1, -1, -1):
            infoset = infosets[i]
            if infoset.player == player:
                most = -np.inf
                mean = 0.0
                for s in range(infoset.first, infoset.first + infoset.actions):
                    most = max(most, value[s])
                    mean += sequence_strategy[s] * value[s]
                value[infoset.parent] += most if free[i] else mean
        best[player] = value[player]
