"""Search at play time: what it finds, what it may know, and that it is the same at every table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kuhn_players import KUHN, J, K, Q, always, player

from rejoinder.games import GAMES, game_names, queries
from rejoinder.games.base import Game, Rules
from rejoinder.games.contract import CONCRETE, OVER
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder.measure.agents import Agent, baseline_agent, random_agent
from rejoinder.measure.match import play_match
from rejoinder.measure.search import Searcher, searching

DEAL = GAMES["deal"]
MEDIUM = DEAL.configurations["medium"]
CASES = [(game, rules) for game in GAMES.values() for rules in game.configurations.values()]
every_game = pytest.mark.parametrize(("game", "rules"), CASES, ids=game_names())
PASS, BET = 0, 1


def searcher(agent: Agent, game: Game, samples: int) -> Searcher:
    made = searching(agent, game, samples)
    assert isinstance(made, Searcher)
    return made


def kuhn_session(card: int, other: int, *moves: int) -> Session:
    """The player to move holds `card`."""
    cards = (card, other) if len(moves) % 2 == 0 else (other, card)
    session = Session.start("kuhn", seed=1, deck=cards)
    for move in moves:
        session.apply(move)
    return session


def positions(game: Game, rules: Rules, games: int) -> Iterator[Session]:
    """The decisions of random games."""
    someone = random_agent(game)
    for index in range(games):
        session = Session.start(game, rules, seed=5, index=index, first_player=index % game.players)
        choices = rng.stream(5, index, rng.CHOICES)
        while not session.over:
            yield session
            session.apply(someone.choose(session.states, choices))


class TestWhatItFinds:
    """In Kuhn poker, where the value of a move against a known policy is plain."""

    def think(self, session: Session, agent: Agent, samples: int = 400) -> Any:
        return searcher(agent, KUHN, samples).think(session.states, rng.stream(1, 0, rng.CHOICES))

    def test_a_king_calls_and_a_jack_folds(self) -> None:
        for other in (J, Q):
            thought = self.think(kuhn_session(K, other, BET), player(always("b")))
            assert thought.move == BET
            assert thought.values == {PASS: -1.0, BET: 2.0}
        for other in (Q, K):
            thought = self.think(kuhn_session(J, other, BET), player(always("b")))
            assert thought.move == PASS
            assert thought.values == {PASS: -1.0, BET: -2.0}

    def test_a_queen_calls_somebody_who_bets_whatever_he_has(self) -> None:
        """Half of the time he has the jack: calling is worth nothing, folding loses the ante."""
        thought = self.think(kuhn_session(Q, J, BET), player(always("b")), 4_000)
        assert thought.move == BET
        assert thought.values[PASS] == -1.0
        assert thought.values[BET] == pytest.approx(0.0, abs=0.1)

    def test_everybody_goes_by_the_policy_in_samples(self) -> None:
        """A bet wins the ante of somebody who passes, and is called by somebody who bets."""
        assert self.think(kuhn_session(J, K), player(always("p"))).values[BET] == 1.0
        assert self.think(kuhn_session(J, K), player(always("b"))).values[BET] == -2.0

    def test_ties_go_to_the_move_that_the_policy_likes(self) -> None:
        """A king wins the ante by a pass and, of somebody who never calls, by a bet."""
        for like in ("p", "b"):
            session = kuhn_session(K, J, PASS)

            def policy(card: int, moves: str, like: str = like) -> float:
                return 0.0 if moves == "pb" else float(like == "b")

            thought = self.think(session, player(policy))
            assert thought.values == {PASS: 1.0, BET: 1.0}
            assert thought.move == (PASS if like == "p" else BET)


def test_it_sees_a_win_that_is_there() -> None:
    """Two complete sets win, and both lack one card: now or perhaps never."""
    session = scenario(
        hands=(["property green", "cash 3", "cash 3", "rent brown"], 3 * ["cash 1"]),
        properties=(
            2 * ["property brown", "property green"],
            2 * ["property brown", "property pink"],
        ),
        deck=20 * ["cash 1", "property pink"],
    )
    thought = searcher(random_agent(DEAL), DEAL, 200).think(
        session.states, rng.stream(1, 0, rng.CHOICES)
    )
    assert DEAL.moves[thought.move] == "property green"
    assert thought.values[thought.move] == 1.0
    assert thought.values[DEAL.moves.index("pass")] < 1.0


@every_game
def test_what_is_hidden_changes_nothing(game: Game, rules: Rules) -> None:
    """The same seed, the same view, other hidden cards: the same thought, to the last bit."""
    agents = [searching(agent, game, 20) for agent in (random_agent(game),)]
    agents += [searching(baseline_agent(game, name), game, 20) for name in game.baselines]
    changed = thoughts = 0
    for number, session in enumerate(positions(game, rules, 4)):
        for agent in agents:
            assert isinstance(agent, Searcher)
            there = agent.think(session.states, rng.stream(2, number, rng.CHOICES))
            for redeal in range(2):
                states = session.states.copy()
                luck = rng.stream(3, 2 * number + redeal, rng.REDEALS)
                queries.shuffle_hidden(states, session.to_move, luck)
                changed += bool(states != session.states)
                assert agent.think(states, rng.stream(2, number, rng.CHOICES)) == there
                assert agent.advise(states) == agent.advise(session.states)
                thoughts += 1
    assert changed > thoughts / 10


@every_game
def test_it_tries_every_legal_move_and_looks_no_further(game: Game, rules: Rules) -> None:
    agent = searcher(random_agent(game), game, 60)
    forced = 0
    for number, session in enumerate(positions(game, rules, 5)):
        before = session.states.copy()
        thought = agent.think(session.states, rng.stream(2, number, rng.CHOICES))
        assert session.states == before, "the position itself is only looked at"
        legal = [move.number for move in session.legal()]
        assert thought.move in legal
        if len(legal) == 1:
            forced += 1
            assert (thought.values, thought.samples) == ({}, 0)
        else:
            assert sorted(thought.values) == legal
            assert len(legal) <= thought.samples <= max(60, 4 * len(legal))
            assert all(abs(value) <= 20 for value in thought.values.values())
    assert forced or rules != MEDIUM


def test_a_steady_one_takes_its_samples_over_forced_moves_and_plays_the_same() -> None:
    agent = searcher(random_agent(DEAL), DEAL, 60)
    steady = dataclasses.replace(agent, steady=True)
    forced = 0
    for number, session in enumerate(positions(DEAL, MEDIUM, 5)):
        thoughts = [
            a.think(session.states, rng.stream(2, number, rng.CHOICES)) for a in (agent, steady)
        ]
        if len(session.legal()) == 1:
            forced += 1
            assert thoughts[1].samples == 60
            assert list(thoughts[1].values) == [thoughts[0].move] == [thoughts[1].move]
        else:
            assert thoughts[0] == thoughts[1]
    assert forced


def test_a_budget_smaller_than_the_number_of_moves_tries_each_once() -> None:
    agent = searcher(random_agent(DEAL), DEAL, 1)
    session = next(s for s in positions(DEAL, MEDIUM, 1) if len(s.legal()) > 3)
    thought = agent.think(session.states, rng.stream(1, 0, rng.CHOICES))
    assert sorted(thought.values) == [move.number for move in session.legal()]


def test_it_takes_one_number_from_the_stream_whatever_happens() -> None:
    """So what others draw after it does not depend on how long it thought."""
    for session in positions(DEAL, MEDIUM, 1):
        after = []
        for samples in (1, 50):
            choices = rng.stream(1, 0, rng.CHOICES)
            searcher(random_agent(DEAL), DEAL, samples).choose(session.states, choices)
            after.append(choices.copy())
        assert after[0] == after[1] != rng.stream(1, 0, rng.CHOICES)


def test_the_same_agent_plays_matches_and_single_moves() -> None:
    """A match in compiled code, and the same games move by move."""
    agent, other = searching(baseline_agent(DEAL), DEAL, 30), baseline_agent(DEAL)
    match, _ = play_match(DEAL, DEAL.template(MEDIUM), (agent, other), games=4, seed=9)
    won = []
    for g in range(4):
        deals, choices = rng.stream(9, g // 2, rng.DEALS), rng.stream(9, g, rng.CHOICES)
        states = np.zeros(1, DEAL.dtype)
        queries.start(states, DEAL.template(MEDIUM), (g // 2) % 2)
        queries.resolve_chance(states, deals)
        while (seat := queries.current_player(states)) != OVER:
            mover = agent if seat == g % 2 else other
            queries.apply(states, mover.choose(states, choices))
            queries.resolve_chance(states, deals)
        utilities = np.zeros(2)
        queries.utilities(states, utilities)
        won.append(utilities[g % 2])
    assert match.mean_utility == np.mean(won)
    assert match.wins == sum(u > 0 for u in won)


def test_thinking_ahead_wins_against_the_same_policy() -> None:
    plain = baseline_agent(DEAL)
    agent, template = searching(plain, DEAL, 60), DEAL.template(MEDIUM)
    assert play_match(DEAL, template, (agent, plain), games=200, seed=1)[0].low > 0.7


def test_its_probabilities_are_the_action_that_its_move_counts_as() -> None:
    agent = searcher(random_agent(DEAL), DEAL, 30)
    meaning = agent.abstraction.meaning
    assert meaning is not None
    for session in positions(DEAL, MEDIUM, 2):
        odds = agent.probabilities(session.states)
        assert sorted(set(odds)) == [0.0, 1.0]
        assert np.argmax(odds) == meaning(session.states, agent.advise(session.states).move)
    kuhn = searcher(player(always("b")), KUHN, 30)
    assert kuhn.abstraction.number == CONCRETE
    assert kuhn.probabilities(kuhn_session(K, Q, BET).states).tolist() == [0.0, 1.0]


def test_no_samples_is_the_agent_itself() -> None:
    agent = random_agent(DEAL)
    assert searching(agent, DEAL, 0) is agent
    with pytest.raises(ValueError, match="search: a number of samples is needed, not -1"):
        searching(agent, DEAL, -1)
