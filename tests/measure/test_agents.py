"""Agents: what they would do, what they do, and where they look it up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kuhn_players import KUHN, Bets, always, infosets, player, table

from rejoinder.games import GAMES, queries
from rejoinder.games.base import Game
from rejoinder.games.contract import CONCRETE, OVER
from rejoinder.kernel.rng import CHOICES, DEALS, stream
from rejoinder.measure.agents import Agent, baseline_agent, opponents, random_agent, trained_agent
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.table import new_table, table_of

LEDUC, DEAL = GAMES["leduc"], GAMES["deal"]
KUHN_MOVES = {"p": 0, "b": 1}


def kuhn_state(card: int, moves: str) -> Any:
    """The acting player holds `card`, the other one something else."""
    states = KUHN.template(KUHN.configurations["standard"])
    queries.start(states, states.copy(), 0)
    other = (card + 1) % 3
    for dealt in (card, other) if len(moves) % 2 == 0 else (other, card):
        queries.apply(states, dealt)
    for move in moves:
        queries.apply(states, KUHN_MOVES[move])
    return states


def random_states(game: Game, configuration: str, games: int) -> Iterator[Any]:
    """The decisions of games between random agents."""
    template = game.template(game.configurations[configuration])
    states, someone = np.zeros(1, game.dtype), random_agent(game)
    for g in range(games):
        deals, choices = stream(1, g, DEALS), stream(1, g, CHOICES)
        queries.start(states, template, g % game.starts)
        queries.resolve_chance(states, deals)
        while queries.current_player(states) != OVER:
            yield states
            queries.apply(states, someone.choose(states, choices))
            queries.resolve_chance(states, deals)


def mixed(card: int, moves: str) -> float:
    return 0.1 + 0.2 * card + 0.1 * len(moves)


def deal_agents() -> list[Agent]:
    """One of each kind; the trained ones know only some infosets."""
    intent = DEAL.abstraction("intent")
    keys = {int(queries.infoset_key(s, 1)) for s in random_states(DEAL, "medium", 3)}
    rows = np.zeros(len(keys), policy_dtype(11))
    rows["key"] = sorted(keys)
    weights = np.random.default_rng(1).random((len(keys), 11))
    weights *= (rows["key"][:, None] >> np.arange(11, dtype=np.uint64)) & np.uint64(1)
    rows["policy"][:, AVERAGE] = weights / weights.sum(axis=1, keepdims=True)
    policy = table_of(rows)
    return [
        random_agent(DEAL),
        baseline_agent(DEAL),
        trained_agent("sampling", intent, policy, argmax=False),
        trained_agent("best", intent, policy, argmax=True),
    ]


def test_probabilities_are_a_distribution_over_the_legal_actions() -> None:
    agents = deal_agents()
    for states in random_states(DEAL, "medium", 10):
        legal = queries.bits(queries.legal_actions(states, agents[0].abstraction.number))
        for agent in agents:
            odds = agent.probabilities(states)
            assert odds.sum() == pytest.approx(1.0, abs=1e-12)
            assert (odds >= 0).all()
            assert set(np.flatnonzero(odds)) <= set(legal)


def test_choices_are_legal_and_have_positive_probability() -> None:
    agents = deal_agents()
    rng = stream(2, 0, CHOICES)
    for states in random_states(DEAL, "medium", 10):
        before = states.tobytes()
        moves = queries.bits(queries.legal_actions(states, CONCRETE))
        for agent in agents:
            move = agent.choose(states, rng)
            assert move in moves
            assert states.tobytes() == before
            possible = np.flatnonzero(agent.probabilities(states))
            number = agent.abstraction.number
            assert move in {queries.resolve(states, number, int(a)) for a in possible}


def test_a_random_agent_is_uniform() -> None:
    for states in random_states(LEDUC, "standard", 20):
        legal = queries.bits(queries.legal_actions(states, CONCRETE))
        odds = random_agent(LEDUC).probabilities(states)
        assert odds[legal].tolist() == [1 / len(legal)] * len(legal)


def test_only_some_games_have_a_hand_made_opponent() -> None:
    assert opponents(DEAL).keys() == {"random", "risk-aware"}
    assert opponents(KUHN).keys() == {"random"}
    with pytest.raises(ValueError, match="kuhn has no hand-made opponent"):
        baseline_agent(KUHN)


def test_a_trained_agent_plays_its_average_policy() -> None:
    for _, card, moves in infosets():
        odds = player(mixed).probabilities(kuhn_state(card, moves))
        assert odds == pytest.approx([1 - mixed(card, moves), mixed(card, moves)])


def test_argmax_plays_the_most_likely_action() -> None:
    for _, card, moves in infosets():
        states = kuhn_state(card, moves)
        odds = player(mixed, argmax=True).probabilities(states)
        best = int(mixed(card, moves) > 0.5)
        assert odds.tolist() == [1.0 - best, float(best)]
        for k in range(10):
            assert player(mixed, argmax=True).choose(states, stream(1, k, CHOICES)) == best


def test_argmax_where_it_knows_nothing_is_uniform() -> None:
    nothing = new_table(policy_dtype(2), 1)
    agent = trained_agent("nothing", KUHN.abstractions[0], nothing, argmax=True)
    assert agent.probabilities(kuhn_state(1, "p")).tolist() == [0.5, 0.5]


def test_sampling_follows_the_probabilities() -> None:
    agent = player(mixed)
    rng = stream(3, 0, CHOICES)
    for card in range(3):
        states = kuhn_state(card, "p")
        bets = sum(agent.choose(states, rng) for _ in range(4000)) / 4000
        assert bets == pytest.approx(mixed(card, "p"), abs=0.03)


def test_an_action_without_weight_is_never_chosen() -> None:
    for move, bets in (("p", 0), ("b", 1)):
        agent = player(always(move))
        chosen = {agent.choose(kuhn_state(1, ""), stream(1, k, CHOICES)) for k in range(200)}
        assert chosen == {bets}


def test_weights_on_illegal_actions_do_not_count() -> None:
    """Fold is not legal before a bet; what is left is scaled up."""
    states = next(random_states(LEDUC, "standard", 1))
    rows = np.zeros(1, policy_dtype(3))
    rows["key"] = queries.infoset_key(states, CONCRETE)
    rows["policy"][:] = (0.5, 0.3, 0.2)
    agent = trained_agent("odd", LEDUC.abstractions[0], table_of(rows), argmax=False)
    assert agent.probabilities(states) == pytest.approx([0.0, 0.6, 0.4])
    best = trained_agent("odd", LEDUC.abstractions[0], table_of(rows), argmax=True)
    assert best.probabilities(states).tolist() == [0.0, 1.0, 0.0]


class TestFallback:
    """A table that knows only some infosets, in front of one that always bets."""

    known = frozenset(key for key, card, _ in infosets() if card != 1)

    def agent(self, fallback: Bets | None, *, argmax: bool = False) -> Agent:
        rows = table(mixed).rows[:12]
        some = table_of(rows[[int(key) in self.known for key in rows["key"]]])
        return trained_agent(
            "some",
            KUHN.abstractions[0],
            some,
            argmax=argmax,
            fallback=player(fallback) if fallback else None,
        )

    def test_is_used_exactly_where_the_table_has_no_row(self) -> None:
        agent = self.agent(always("b"))
        for key, card, moves in infosets():
            bet = mixed(card, moves) if key in self.known else 1.0
            assert agent.probabilities(kuhn_state(card, moves)) == pytest.approx([1 - bet, bet])

    def test_without_one_unknown_infosets_are_played_uniformly(self) -> None:
        agent = self.agent(None)
        for key, card, moves in infosets():
            bet = mixed(card, moves) if key in self.known else 0.5
            assert agent.probabilities(kuhn_state(card, moves)) == pytest.approx([1 - bet, bet])

    def test_is_sampled_even_where_the_agent_itself_plays_argmax(self) -> None:
        agent = self.agent(mixed, argmax=True)
        for key, card, moves in infosets():
            bet = mixed(card, moves)
            expected = float(bet > 0.5) if key in self.known else bet
            assert agent.probabilities(kuhn_state(card, moves))[1] == pytest.approx(expected)

    def test_of_an_agent_without_policy_is_uniform(self) -> None:
        agent = trained_agent(
            "some",
            KUHN.abstractions[0],
            table_of(table(mixed).rows[:0]),
            argmax=False,
            fallback=random_agent(KUHN),
        )
        assert agent.probabilities(kuhn_state(2, "")).tolist() == [0.5, 0.5]

    def test_may_see_less_but_must_have_the_same_actions(self) -> None:
        intent, progress, moves = (
            DEAL.abstraction(name) for name in ("intent", "progress", "none")
        )
        policy = new_table(policy_dtype(11), 1)
        coarse = trained_agent("coarse", intent, policy, argmax=False)
        fine = trained_agent("fine", progress, policy, argmax=False, fallback=coarse)
        assert (fine.lookup.abstraction, fine.lookup.fallback_abstraction) == (2, 1)
        with pytest.raises(
            ValueError, match="needs the same actions, and those of none and intent"
        ):
            trained_agent("moves", moves, policy, argmax=False, fallback=coarse)
