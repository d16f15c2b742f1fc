"""Watched play: every response phase of a match on record, and what a refusal in hand is worth.

Games, deals and choices are those of a match (`match.play_match`): pairs of games share a deal with
the seats exchanged, and everything is a function of (agents, games, seed). Agents that search are
refused.

A *refusal* is a card that ends a response phase at once (Just Say No). What it is worth in hand is
measured by playing each deal three times for each seat, with the same cards to come and the same
luck of the players:

- as dealt, where the holder was dealt no refusal (other deals are left out);
- with a refusal from the deck in the place of a random card of his hand;
- with a blank in its place: a card that counts as one and does nothing.

The second less the third is the value of being able to refuse. It is zero by definition where
nothing is ever demanded. The second less the first is that of the card over the one it replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.games.base import Game, Rules
from rejoinder.games.contract import (
    OVER,
    apply,
    current_player,
    legal_moves,
    resolve_chance,
    start,
    utility,
)
from rejoinder.games.responses import (
    GIVES_CASH,
    GIVES_PROPERTY,
    REFUSES,
    RESPONSE_NAMES,
    YIELDS,
    Responses,
    blank_refusals,
    demand,
    hand_refusal,
    payment,
)
from rejoinder.kernel.jit import copy_record, kernel, rule
from rejoinder.kernel.rng import CHOICES, DEALS, REDEALS, STREAM, open_stream
from rejoinder.measure.agents import Agent, choose
from rejoinder.measure.search import check_goes_by_policy

# How a response phase ended.
OUTCOMES = (
    "cancelled at once",
    "cancelled part-paid",
    "paid in cash",
    "paid in property",
    "paid in both",
    "yielded",
)
CANCELLED, CANCELLED_LATE, PAID_CASH, PAID_PROPERTY, PAID_BOTH, YIELDED = range(len(OUTCOMES))

ROLES = ("initiator", "responder")  # main play, and the decisions of response phases
INITIATOR, RESPONDER = range(2)

AS_DEALT, HELD, BLANK = range(3)  # the three ways to play a deal

PHASE = np.dtype(
    [
        ("game", "<i8"),
        ("side", "i1"),  # who charged: 0 the agent, 1 the opponent
        ("seat", "i1"),  # of who charged
        ("outcome", "i1"),  # index of OUTCOMES
        ("charged", "<i2"),
        ("cards", "<i2"),  # decisions of the responder
        ("cash", "<i2"),  # what each kind given counts
        ("property", "<i2"),
        ("utility", "<f8"),  # what the game brought to who charged
    ],
    align=True,
)
_CHUNK = 50  # games between two words on progress


@dataclass(frozen=True)
class Watched:
    """Games of an agent against an opponent, in pairs of one deal."""

    phases: Any  # PHASE[…], in the order of play
    decisions: Any  # int32[games, role, side]
    choices: Any  # int64[side of who charged, first or later, mask of kinds to choose from, kind]
    won: Any  # float64[games]: the agent's utility


def watch(
    game: Game,
    rules: Rules,
    agent: Agent,
    opponent: Agent,
    *,
    games: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Watched:
    """Play `games` (rounded up to whole pairs) and note every response phase."""
    responses = _responses(game)
    check_goes_by_policy(agent, opponent)
    games += games % 2
    most = _CHUNK * game.max_decisions(rules) // 2  # a phase is two decisions at least
    phases, record = [], np.zeros(most, PHASE)
    decisions, won = np.zeros((games, len(ROLES), 2), np.int32), np.zeros(games)
    choices = np.zeros((2, 2, 1 << len(RESPONSE_NAMES), len(RESPONSE_NAMES)), np.int64)
    scratch = _scratch(game, agent, opponent)
    for low in range(0, games, _CHUNK):
        high = min(low + _CHUNK, games)
        found = _watch_games(
            game.template(rules),
            *scratch,
            (agent.kind, agent.own_lookup()),
            (opponent.kind, opponent.own_lookup()),
            np.uint64(seed % 2**64),
            low,
            high,
            game.starts,
            responses.kind,
            (game.concrete.argument(), np.zeros(len(game.moves), np.bool_)),
            record,
            decisions,
            choices,
            won,
        )
        phases.append(record[:found].copy())
        if progress:
            progress(high)
    return Watched(np.concatenate(phases), decisions, choices, won)


def play_refusals(
    game: Game,
    rules: Rules,
    agent: Agent,
    opponent: Agent,
    *,
    deals: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """The holder's utilities, float64[deals, seat, way]; NaN where the deal is left out."""
    _responses(game)
    check_goes_by_policy(agent, opponent)
    won = np.full((deals, 2, 3), np.nan)
    scratch = _scratch(game, agent, opponent)
    for low in range(0, deals, _CHUNK):
        high = min(low + _CHUNK, deals)
        _play_deals(
            game.template(rules),
            *scratch,
            (agent.kind, agent.own_lookup()),
            (opponent.kind, opponent.own_lookup()),
            np.uint64(seed % 2**64),
            low,
            high,
            game.starts,
            won,
        )
        if progress:
            progress(high)
    return won


def _responses(game: Game) -> Responses:
    responses = game.capability(Responses)
    if responses is None:
        raise ValueError(f"{game.name}: this game has no response phases")
    if game.players != 2:
        raise ValueError(f"response phases are counted for two players, not {game.players}")
    return responses


def _scratch(game: Game, agent: Agent, opponent: Agent) -> tuple[Any, Any, Any, Any]:
    return (
        np.zeros(2, game.dtype),
        np.zeros(3, STREAM),
        np.zeros(len(agent.abstraction.actions)),
        np.zeros(len(opponent.abstraction.actions)),
    )


@kernel
def _watch_games(
    template: Any,
    states: Any,
    streams: Any,  # the cards, the agents' choices
    weights: Any,
    other_weights: Any,
    agent: Any,  # (kind, lookup)
    opponent: Any,
    seed: Any,
    low: Any,
    high: Any,
    beginners: Any,  # seats that begin in turn
    kinds: Any,  # by move: what it does in a response phase
    moves: Any,  # (the concrete abstraction's argument, scratch by move)
    phases: Any,  # out
    decisions: Any,  # out
    choices: Any,  # out
    won: Any,  # out
) -> Any:
    state = states[0]
    n: Any = 0
    for g in range(low, high):
        deal, seat, of_game = g // 2, g & 1, n
        _deal(state, template[0], streams, seed, deal, g, beginners)
        mover = current_player(state)
        while mover != OVER:
            due = demand(state)
            side = np.int64(mover != seat)
            decisions[g, INITIATOR if due == 0 else RESPONDER, side] += 1
            if side == 0:
                move = choose(state, agent[0], agent[1], weights, streams[1])
            else:
                move = choose(state, opponent[0], opponent[1], other_weights, streams[1])
            paid = payment(state, move)
            if due > 0:
                later = np.int64(phases[n].cards > 0)
                choices[phases[n].side, later, _options(state, kinds, moves), kinds[move]] += 1
            apply(state, move)
            if due > 0:
                _note(phases[n], kinds[move], paid)
                n += np.int64(demand(state) == 0)  # the phase is over
            elif demand(state) > 0:
                _begin(phases[n], g, side, mover, demand(state))
            resolve_chance(state, streams[0])
            mover = current_player(state)
        won[g] = utility(state, seat)
        for k in range(of_game, n):
            phases[k].utility = utility(state, phases[k].seat)
    return n


@rule
def _options(state: Any, kinds: Any, moves: Any) -> Any:
    """What the responder could do, as a mask of kinds."""
    options: Any = 0
    concrete, legal = moves
    legal_moves(state, concrete, legal)
    for move in range(len(legal)):
        if legal[move]:
            options |= 1 << kinds[move]
    return options


@rule
def _begin(phase: Any, game: Any, side: Any, seat: Any, charged: Any) -> None:
    phase.game = game
    phase.side = side
    phase.seat = seat
    phase.charged = charged
    phase.cards = 0
    phase.cash = 0
    phase.property = 0


@rule
def _note(phase: Any, kind: Any, paid: Any) -> None:
    """One decision of the responder; the outcome is right after the last one."""
    phase.cards += 1
    if kind == GIVES_CASH:
        phase.cash += paid
    elif kind == GIVES_PROPERTY:
        phase.property += paid
    if kind == REFUSES:
        phase.outcome = CANCELLED if phase.cards == 1 else CANCELLED_LATE
    elif kind == YIELDS:
        phase.outcome = YIELDED
    elif phase.property == 0:
        phase.outcome = PAID_CASH
    else:
        phase.outcome = PAID_PROPERTY if phase.cash == 0 else PAID_BOTH


@kernel
def _play_deals(
    template: Any,
    states: Any,
    streams: Any,  # the cards, the agents' choices, the card to exchange
    weights: Any,
    other_weights: Any,
    agent: Any,
    opponent: Any,
    seed: Any,
    low: Any,
    high: Any,
    beginners: Any,
    won: Any,  # out
) -> None:
    state = states[0]
    for deal in range(low, high):
        for seat in range(2):
            for way in range(3):
                _deal(state, template[0], streams, seed, deal, 2 * deal + seat, beginners)
                if way != AS_DEALT:
                    open_stream(streams[2], seed, np.uint64(deal), np.uint64(REDEALS))
                    hand_refusal(state, seat, streams[2])
                elif not _can_get_a_refusal(states, seat, streams):
                    break
                if way == BLANK:
                    blank_refusals(state, seat)
                mover = current_player(state)
                while mover != OVER:
                    if mover == seat:
                        move = choose(state, agent[0], agent[1], weights, streams[1])
                    else:
                        move = choose(state, opponent[0], opponent[1], other_weights, streams[1])
                    apply(state, move)
                    resolve_chance(state, streams[0])
                    mover = current_player(state)
                won[deal, seat, way] = utility(state, seat)


@rule
def _can_get_a_refusal(states: Any, seat: Any, streams: Any) -> Any:
    copy_record(states[1], states[0])
    return hand_refusal(states[1], seat, streams[2])


@rule
def _deal(
    state: Any, template: Any, streams: Any, seed: Any, deal: Any, game: Any, beginners: Any
) -> None:
    """Set up game `game` with the cards of `deal`, up to the first decision."""
    open_stream(streams[0], seed, np.uint64(deal), np.uint64(DEALS))
    open_stream(streams[1], seed, np.uint64(game), np.uint64(CHOICES))
    copy_record(state, template)
    start(state, deal % beginners)
    resolve_chance(state, streams[0])
