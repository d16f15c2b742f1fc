"""Lower bounds on an agent's exploitability, by attackers who know it.

Whatever an attacker wins per game, a best response wins at least as much, so its mean utility is a
lower bound on the agent's exploitability (starts and seats alternate, so the value of the game
itself is zero for a symmetric game, and is subtracted by averaging over both seats for any other).
The bound holds whatever the attacker does: it is measured by a match. Below zero it says nothing:
the attacker found nothing. There are two, which find different things:

- One *thinks ahead*: it tries its moves out in the position at hand, by the agent's own policy for
  everybody (`search`). It sees all that a player can see and chooses among all moves, but corrects
  one move at a time (a local best response: Lisý and Bowling, 2017). It may be restricted to
  certain moves, those of response phases for instance, and else plays as the agent does; the bound
  then tells what those moves alone give away.
- One *is trained*: a learner against the fixed agent, whose deviations can build on each other. It
  plays as the agent does wherever it has not learned better, so that it starts from zero and not
  from random play; where the game has a richer abstraction it sees more than the agent. It may also
  start from another agent, and then has that one's actions.

Both prepare themselves against the agent's policy. If the agent searches they do not know that; it
is measured as it plays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.kernel.masks import words_for, words_of
from rejoinder.kernel.rng import STREAM
from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.measure.match import MatchResult, play_match
from rejoinder.measure.search import ANYWHERE, searching
from rejoinder.methods.tabular.policy import with_probabilities
from rejoinder.methods.tabular.rollout import (
    LINEAR,
    entry_dtype,
    fold,
    play_against,
    policy_rows,
    row_dtype,
)
from rejoinder.methods.tabular.table import InfosetTable, new_table, table_of, with_room

_THOUGHT = 3.0  # games by policies in the time of an attacker's game, for each of its samples
_BATCH = 20  # games between two policies of the responder
_ROLLOUTS = 40
_EPSILON = 0.1
_COMMON_LUCK = True
# Updates of an infoset before the responder trusts what it learned there: the fewest while it
# learns, in the end those that win most in a match of their own: half as long as the one that
# measures, and no longer than this.
_ENOUGH_UPDATES = (10, 30, 100, 300)
_CHOICE_GAMES = 4_000


def thinking_bound(
    game: Game,
    rules: Rules,
    agent: Agent,
    *,
    where: int = ANYWHERE,
    samples: int,
    games: int,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> MatchResult:
    """What is won by who thinks ahead where all moves are in the mask `where`; its mean utility
    is the bound."""
    _check_bounded(game)
    attacker = searching(agent, game, samples, where=where)
    template = game.template(rules)
    match, _ = play_match(
        game, template, (attacker, agent), games=games, seed=seed, progress=progress
    )
    return match


def _check_bounded(game: Game) -> None:
    """An attacker's gain bounds exploitability where the others' loss is its own."""
    if game.players != 2 or not game.zero_sum:
        raise ValueError(
            f"lower bounds of exploitability are for zero-sum games of two players; {game.name} "
            f"has {game.players}{'' if game.zero_sum else ' and is not zero-sum'}"
        )


def dear(samples: int) -> int:
    """How many games by policies take as long as one of an attacker who thinks, about."""
    return max(1, round(_THOUGHT * samples))


@dataclass(frozen=True)
class ResponseBound:
    """What a trained responder achieved against an agent."""

    match: MatchResult  # from the responder's side
    infosets: int  # that the responder distinguishes
    abstraction: str  # in which it was trained
    training_games: int

    @property
    def exploitability(self) -> float:
        """The lower bound itself: the estimate, which may be off by `match.utility_error`."""
        return self.match.mean_utility


def best_response_bound(
    game: Game,
    rules: Rules,
    agent: Agent,
    *,
    abstraction: Abstraction | None = None,
    begin_as: Agent | None = None,
    training_games: int = 1_500,
    match_games: int = 20_000,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> ResponseBound:
    """Train a responder against `agent` and measure it.

    It begins as `begin_as`, or else as the agent itself. Without an abstraction it gets the game's
    richest one that has the actions of whom it begins as.
    """
    _check_bounded(game)
    seed %= 2**63
    begin_as = begin_as or agent
    if abstraction is None:
        abstraction = _richest(game, begin_as)
    actions = len(abstraction.actions)
    template = game.template(rules)
    table = new_table(row_dtype(actions, 1), 1024)
    states, streams = np.zeros(2, game.dtype), np.zeros(3, STREAM)
    entries = np.zeros(game.max_decisions(rules), entry_dtype(actions))
    touched = np.zeros(len(entries), np.int64)
    nobody = words_of(0, words_for(actions))
    responder, opponent = begin_as, with_probabilities(agent.own_lookup())
    begin_as = replace(begin_as, lookup=with_probabilities(begin_as.lookup))
    for g in range(training_games):
        if g % _BATCH == 0:
            responder = _responder(table, abstraction, begin_as)
        decisions = play_against(
            template,
            responder.lookup,
            opponent,
            states,
            streams,
            seed,
            g,
            game.players,
            game.starts,
            _ROLLOUTS,
            _EPSILON,
            _COMMON_LUCK,
            entries,
        )
        table = with_room(table, decisions)
        fold(table, entries[:decisions], 1.0, LINEAR, nobody, nobody, touched)
        if progress:
            progress(g + 1)
    done = training_games

    def measure(responder: Agent, games: int, seed: int) -> MatchResult:
        nonlocal done
        before = done
        tell = progress and (lambda played: progress(before + played))
        found, _ = play_match(
            game, template, (responder, agent), games=games, seed=seed, progress=tell
        )
        done += found.games
        return found

    def wins(responder: Agent) -> float:
        return measure(responder, _choice_games(match_games), seed + 2).mean_utility

    cautious = [_responder(table, abstraction, begin_as, enough) for enough in _ENOUGH_UPDATES]
    responder = max(cautious, key=wins)
    match = measure(responder, match_games, seed + 1)
    return ResponseBound(
        match, int(responder.lookup.policy.size[0]), abstraction.name, training_games
    )


def steps(training_games: int, match_games: int) -> int:
    """What `best_response_bound` counts its progress up to."""
    matches = len(_ENOUGH_UPDATES) * _choice_games(match_games) + match_games + match_games % 2
    return training_games + matches


def _richest(game: Game, agent: Agent) -> Abstraction:
    actions = agent.abstraction.actions
    return [candidate for candidate in game.abstractions if candidate.actions == actions][-1]


def _choice_games(match_games: int) -> int:
    return min(_CHOICE_GAMES, max(1, match_games // 4) * 2)  # in pairs


def _responder(
    table: InfosetTable, abstraction: Abstraction, begin_as: Agent, enough: int = _ENOUGH_UPDATES[0]
) -> Agent:
    """Deviates from whom it began as where it has seen enough to know better."""
    known = table.rows[: table.size[0]]
    known = known[known["updates"] >= enough]
    policy = table_of(policy_rows(known))
    return trained_agent("best response", abstraction, policy, argmax=True, fallback=begin_as)
