"""Matches: mirrored deals, seats, intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kuhn_players import KUHN, always, equilibrium, player

from rejoinder.games import GAMES
from rejoinder.measure.agents import Agent, baseline_agent, random_agent
from rejoinder.measure.match import (
    MatchResult,
    Starts,
    _effective_games,
    _summary,
    play_match,
    wilson,
)

DEAL = GAMES["deal"]
KUHN_START = KUHN.template(KUHN.configurations["standard"])
MEDIUM = DEAL.template(DEAL.configurations["medium"])


def kuhn_match(
    agent: Agent, opponent: Agent, games: int = 2000, seed: int = 1, starts: Starts = "alternate"
) -> MatchResult:
    agents = (agent, opponent)
    return play_match(KUHN, KUHN_START, agents, games=games, seed=seed, starts=starts)[0]


def deal_match(
    agent: Agent, opponent: Agent, games: int = 1000, seed: int = 1, starts: Starts = "alternate"
) -> MatchResult:
    agents = (agent, opponent)
    return play_match(DEAL, MEDIUM, agents, games=games, seed=seed, starts=starts)[0]


def bold(card: int, moves: str) -> float:
    """Bets the ends and calls with the king: nothing is left to chance but the cards."""
    return float(card != 1 if moves in ("", "p") else card == 2)


class TestMirroredDeals:
    def test_a_deterministic_agent_against_itself_wins_each_pair_once(self) -> None:
        result = kuhn_match(player(bold), player(bold, argmax=True))
        assert result.mean_utility == 0.0
        assert result.utility_error == 0.0
        assert (result.wins, result.draws, result.win_rate) == (1000, 0, 0.5)

    def test_exchanging_the_agents_exchanges_the_result(self) -> None:
        one = kuhn_match(player(bold), player(always("b")))
        other = kuhn_match(player(always("b")), player(bold))
        assert one.mean_utility == -other.mean_utility != 0.0
        assert one.wins + other.wins == one.games

    def test_pairs_share_a_deal_and_different_pairs_do_not(self) -> None:
        """Passing throughout, the higher card wins 1: the pair cancels, the pairs differ."""
        assert kuhn_match(player(always("p")), player(always("p"))).utility_error == 0.0
        alone = kuhn_match(player(always("p")), player(always("p")), starts="agent")
        assert 0.45 < alone.win_rate < 0.55
        assert alone.utility_error > 0.01

    def test_they_tell_more_than_independent_games(self) -> None:
        """The sharper interval still holds the truth, which is known for hand-made players."""
        agent, opponent = player(equilibrium(0.0)), player(always("b"))
        mirrored = kuhn_match(agent, opponent, games=20_000)
        apart = kuhn_match(agent, opponent, games=20_000, starts="agent")
        assert mirrored.utility_error < apart.utility_error


class TestSeeds:
    def test_the_same_seed_gives_the_same_result(self) -> None:
        agents = (baseline_agent(DEAL), random_agent(DEAL))
        assert deal_match(*agents, games=200) == deal_match(*agents, games=200)

    def test_another_seed_another_result(self) -> None:
        agents = (baseline_agent(DEAL), baseline_agent(DEAL))
        results = {deal_match(*agents, games=600, seed=seed).mean_utility for seed in range(4)}
        assert len(results) > 1

    def test_a_longer_match_begins_like_a_shorter_one(self) -> None:
        """A game depends on its number alone, not on how many there are or how they are cut."""
        agents = (random_agent(KUHN), random_agent(KUHN))
        wins = [kuhn_match(*agents, games=games).wins for games in (498, 500, 502, 1200)]
        assert wins == sorted(wins)
        assert wins[2] - wins[0] <= 4


def first_only(card: int, moves: str) -> float:
    """Bets as the first to act and never as the second."""
    return float(moves == "")


class TestStarts:
    @pytest.mark.parametrize(
        ("starts", "low", "high"),
        [("agent", 1.0, 1.0), ("opponent", -0.1, 0.1), ("alternate", 0.45, 0.55)],
    )
    def test_the_agent_takes_the_seat_it_was_given(
        self, starts: Starts, low: float, high: float
    ) -> None:
        """A bet makes one who always passes fold; without it the cards decide."""
        result = kuhn_match(player(first_only), player(always("p")), starts=starts)
        assert low <= result.mean_utility <= high

    def test_the_value_of_kuhn_has_the_sign_of_the_seat(self) -> None:
        agent = player(equilibrium(1 / 3))
        first = kuhn_match(agent, agent, games=40_000, starts="agent")
        second = kuhn_match(agent, agent, games=40_000, starts="opponent")
        assert first.mean_utility == pytest.approx(-1 / 18, abs=2 * first.utility_error)
        assert second.mean_utility == pytest.approx(1 / 18, abs=2 * second.utility_error)

    def test_starting_and_not_starting_are_two_sides_of_the_same_games(self) -> None:
        agents = (baseline_agent(DEAL), baseline_agent(DEAL))
        first = deal_match(*agents, starts="agent")
        second = deal_match(*agents, starts="opponent")
        assert first.mean_utility == -second.mean_utility
        assert first.wins + second.wins + first.draws == first.games


class TestStrength:
    def test_an_agent_is_as_good_as_itself(self) -> None:
        for make in (random_agent, baseline_agent):
            result = deal_match(make(DEAL), make(DEAL), games=2000)
            assert result.low < 0.5 < result.high + result.draws / result.games
            assert abs(result.mean_utility) < 1.5 * result.utility_error
            assert result.high - result.low < 0.05

    def test_risk_aware_clearly_beats_random(self) -> None:
        result = deal_match(baseline_agent(DEAL), random_agent(DEAL), games=1000)
        assert result.low > 0.6
        assert result.mean_utility - result.utility_error > 0.2

    def test_equilibrium_play_loses_to_nobody(self) -> None:
        for opponent in (player(bold), player(always("b")), random_agent(KUHN)):
            result = kuhn_match(player(equilibrium(1 / 3)), opponent, games=20_000)
            assert result.mean_utility > -2 * result.utility_error


class TestNumbers:
    @pytest.mark.parametrize(
        ("wins", "n", "low", "high"),
        [
            (50, 100, 0.4038, 0.5962),
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (1, 10, 0.0179, 0.4042),
            (990, 1000, 0.9817, 0.9946),
        ],
    )
    def test_wilson_by_hand(self, wins: int, n: int, low: float, high: float) -> None:
        assert wilson(wins / n, n) == pytest.approx((low, high), abs=5e-5)

    def test_wilsons_ends_are_exact(self) -> None:
        for n in range(1, 1000):
            assert wilson(0.0, n)[0] == 0.0
            assert wilson(1.0, n)[1] == 1.0

    @given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0]), min_size=2, max_size=60))
    def test_intervals_hold_the_rate_and_stay_within_zero_and_one(self, won: list[float]) -> None:
        result = _summary(KUHN, np.array(won[: len(won) // 2 * 2]))
        assert 0.0 <= result.low <= result.win_rate + 1e-12
        assert result.win_rate - 1e-12 <= result.high <= 1.0
        assert result.wins == sum(u > 0 for u in won[: result.games])
        assert result.draws == sum(u == 0 for u in won[: result.games])

    def test_a_summary_by_hand(self) -> None:
        result = _summary(KUHN, np.array([1.0, -1.0, 2.0, 2.0, 0.0, -1.0, 1.0, 1.0]))
        assert (result.games, result.wins, result.draws) == (8, 5, 1)
        assert result.win_rate == 5 / 8
        assert result.mean_utility == 5 / 8
        pairs = [0.0, 2.0, -0.5, 1.0]
        variance = sum((p - 5 / 8) ** 2 for p in pairs) / 3
        assert result.utility_error == pytest.approx(1.959964 * math.sqrt(variance / 4), rel=1e-6)

    def test_pairs_that_agree_count_once_and_independent_games_count_each(self) -> None:
        agreeing = np.array([1.0, 1.0, 0.0, 0.0] * 50)
        assert _effective_games(agreeing, 2) == pytest.approx(100, rel=0.02)
        independent = np.random.default_rng(1).integers(0, 2, 20_000).astype(float)
        assert _effective_games(independent, 2) == pytest.approx(20_000, rel=0.05)
        opposed = np.array([1.0, 0.0] * 99 + [1.0, 1.0, 0.0, 0.0])
        assert _effective_games(opposed, 2) > 1000

    def test_one_pair_is_no_basis_for_an_error(self) -> None:
        assert _summary(KUHN, np.array([1.0, 1.0])).utility_error == math.inf

    @pytest.mark.parametrize(("asked", "played"), [(1, 2), (2, 2), (499, 500), (501, 502)])
    def test_games_are_rounded_up_to_pairs(self, asked: int, played: int) -> None:
        heard: list[int] = []
        agent: Any = random_agent(KUHN)
        result, _ = play_match(
            KUHN, KUHN_START, (agent, agent), games=asked, seed=1, progress=heard.append
        )
        assert result.games == heard[-1] == played
        assert heard == sorted(set(heard))

    @pytest.mark.parametrize("games", [0, -2])
    def test_no_games_are_refused(self, games: int) -> None:
        with pytest.raises(ValueError, match=f"at least one game, not {games}"):
            kuhn_match(random_agent(KUHN), random_agent(KUHN), games=games)

    def test_a_result_reads_as_a_sentence(self) -> None:
        won = np.array([1.0, -1.0, 1.0, 0.0])
        assert str(_summary(KUHN, won)) == "+0.2500 ± 0.4900 chips a game, 4 games"
        counted = str(_summary(DEAL, won))
        assert counted.startswith("+0.2500 ± 0.4900 wins a game, 50.00% won (95 % interval ")
        assert counted.endswith("25.00% drawn, 4 games")
