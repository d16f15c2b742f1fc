"""Attackers who are trained or think ahead: lower bounds, and not empty ones."""

from __future__ import annotations

from typing import Any

import pytest
from kuhn_players import KUHN, Bets, always, equilibrium, player, table

from rejoinder.games import GAMES
from rejoinder.games.base import Rules
from rejoinder.games.responses import response_actions
from rejoinder.measure import lower_bounds
from rejoinder.measure.agents import trained_agent
from rejoinder.measure.best_response import policy_exploitability, response_infosets
from rejoinder.measure.lower_bounds import (
    ResponseBound,
    best_response_bound,
    steps,
    thinking_bound,
)
from rejoinder.measure.match import MatchResult, play_match
from rejoinder.measure.search import ANYWHERE, searching
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.table import InfosetTable, new_table

DEAL = GAMES["deal"]
MICRO = DEAL.configurations["micro"]
NOTHING: InfosetTable = new_table(policy_dtype(11), 1)


def bound_on_uniform(abstraction: str | None = None, seed: int = 1) -> ResponseBound:
    """Against uniform intents on `micro`."""
    intent = DEAL.abstraction("intent")
    return best_response_bound(
        DEAL,
        MICRO,
        trained_agent("uniform", intent, NOTHING, argmax=False),
        abstraction=DEAL.abstraction(abstraction) if abstraction else None,
        training_games=3000,
        match_games=6000,
        seed=seed,
    )


def bound_on_kuhn(bets: Bets, match_games: int = 20_000, **how: Any) -> ResponseBound:
    rules = KUHN.configurations["standard"]
    return best_response_bound(KUHN, rules, player(bets), match_games=match_games, **how)


def test_it_is_positive_and_below_the_exact_exploitability_on_micro() -> None:
    real = build_tree(DEAL, MICRO, policy=DEAL.abstraction("intent"))
    exact = policy_exploitability(real, NOTHING).exploitability
    bound = bound_on_uniform()
    error = bound.match.utility_error
    assert (bound.abstraction, bound.training_games) == ("progress", 3000)
    assert bound.infosets > 100
    assert bound.exploitability == bound.match.mean_utility
    assert 0.85 * exact < bound.exploitability - error
    assert bound.exploitability <= exact + error


def thinking_on_uniform(rules: Rules, where: int = ANYWHERE, **how: Any) -> MatchResult:
    agent = trained_agent("uniform", DEAL.abstraction("intent"), NOTHING, argmax=False)
    return thinking_bound(DEAL, rules, agent, where=where, **{"samples": 50, "games": 2000} | how)


def test_who_thinks_ahead_wins_less_than_the_exact_exploitability_and_not_nothing() -> None:
    real = build_tree(DEAL, MICRO, policy=DEAL.abstraction("intent"))
    exact = policy_exploitability(real, NOTHING).exploitability
    found = thinking_on_uniform(MICRO)
    assert 0.4 * exact < found.mean_utility - found.utility_error
    assert found.mean_utility <= exact + found.utility_error
    assert found == thinking_on_uniform(MICRO)
    assert found != thinking_on_uniform(MICRO, seed=2)


def test_restricted_it_is_a_bound_on_what_those_moves_give_away() -> None:
    answers = response_actions(DEAL, DEAL.concrete)
    real = build_tree(DEAL, MICRO, policy=DEAL.abstraction("intent"))
    responses = response_infosets(real)
    for where, free in ((answers, responses), (ANYWHERE & ~answers, ~responses)):
        exact = policy_exploitability(real, NOTHING, free).exploitability
        found = thinking_on_uniform(MICRO, where)
        assert found.mean_utility <= exact + found.utility_error
    medium = thinking_on_uniform(DEAL.configurations["medium"], answers, games=400)
    assert medium.mean_utility > 0.1 + medium.utility_error
    # Who may think nowhere plays like the agent.
    nowhere = thinking_on_uniform(MICRO, 0)
    assert abs(nowhere.mean_utility) <= nowhere.utility_error


def test_who_thinks_ahead_finds_nothing_in_an_equilibrium_of_kuhn_and_much_in_folly() -> None:
    rules = KUHN.configurations["standard"]
    tree = build_tree(KUHN, rules)
    for bets in (always("b"), always("p"), equilibrium(1 / 3)):
        exact = policy_exploitability(tree, table(bets)).exploitability
        found = thinking_bound(KUHN, rules, player(bets), samples=200, games=4000)
        assert 0.3 * exact - found.utility_error < found.mean_utility
        assert found.mean_utility <= exact + found.utility_error


def test_it_is_a_function_of_the_seed() -> None:
    assert bound_on_uniform(seed=3) == bound_on_uniform(seed=3)
    assert bound_on_uniform(seed=4) != bound_on_uniform(seed=3)


def test_seeing_no_more_than_the_agent_it_still_finds_something() -> None:
    bound = bound_on_uniform("intent")
    assert bound.abstraction == "intent"
    assert bound.exploitability > bound.match.utility_error


def test_on_kuhn_it_comes_close_to_the_exact_number() -> None:
    tree = build_tree(KUHN, KUHN.configurations["standard"])
    for bets in (always("b"), always("p")):
        exact = policy_exploitability(tree, table(bets)).exploitability
        bound = bound_on_kuhn(bets, training_games=1000)
        error = bound.match.utility_error
        assert 0.8 * exact < bound.exploitability <= exact + error


def test_against_an_equilibrium_there_is_nothing_to_find() -> None:
    bound = bound_on_kuhn(equilibrium(1 / 3), training_games=500)
    assert bound.exploitability <= bound.match.utility_error


def test_without_training_it_plays_like_the_agent() -> None:
    def sometimes(card: int, moves: str) -> float:
        return 0.4

    for bets, slack in ((always("b"), 0.0), (sometimes, 1.0)):
        bound = bound_on_kuhn(bets, training_games=0)
        assert bound.infosets == 0
        assert abs(bound.exploitability) <= slack * bound.match.utility_error


def test_any_abstraction_and_any_seed_will_do() -> None:
    """An agent of concrete moves is answered in concrete moves."""
    moves = DEAL.abstraction("none")
    nothing = new_table(policy_dtype(len(moves.actions)), 1)
    agent = trained_agent("uniform", moves, nothing, argmax=False)
    bound = best_response_bound(
        DEAL, MICRO, agent, training_games=500, match_games=2000, seed=10**20
    )
    assert bound.abstraction == "none"
    assert bound.exploitability > bound.match.utility_error


def test_it_may_begin_as_another_agent_and_then_has_his_actions() -> None:
    """Whatever the actions of the agent under attack are."""
    intent, race = DEAL.abstraction("intent"), DEAL.abstraction("race")
    agent = trained_agent("uniform", intent, NOTHING, argmax=False)
    other = trained_agent(
        "other", race, new_table(policy_dtype(len(race.actions)), 1), argmax=False
    )
    bound = best_response_bound(
        DEAL, MICRO, agent, begin_as=other, training_games=1000, match_games=4000
    )
    assert bound.abstraction == "race"
    assert bound.infosets > 10
    assert bound.exploitability > bound.match.utility_error
    # Untrained it is the other agent, so the bound is what that one wins.
    idle = best_response_bound(
        DEAL, MICRO, agent, begin_as=other, training_games=0, match_games=4000
    )
    assert idle.infosets == 0
    assert idle.exploitability < bound.exploitability


def test_an_agent_that_searches_is_measured_as_it_plays() -> None:
    """Attackers prepare themselves against its policy, which is a fool's, and meet the thinker."""
    agent = trained_agent("uniform", DEAL.abstraction("intent"), NOTHING, argmax=False)
    thinker = searching(agent, DEAL, 50)
    easy, itself = (
        thinking_bound(DEAL, MICRO, who, samples=50, games=2000) for who in (agent, thinker)
    )
    assert easy.mean_utility > 0.1
    assert abs(itself.mean_utility) <= itself.utility_error
    fool, wise = (
        best_response_bound(DEAL, MICRO, who, training_games=500, match_games=2000)
        for who in (agent, thinker)
    )
    assert fool.exploitability > 0.1 > wise.exploitability


@pytest.mark.parametrize(("match_games", "choice_games"), [(2, 2), (100, 50), (20_000, 4_000)])
def test_the_games_to_choose_by_are_in_proportion_and_others_than_those_that_measure(
    match_games: int, choice_games: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, seeds = [], []

    def note(*who: Any, games: int, seed: int, **how: Any) -> Any:
        played.append(games)
        seeds.append(seed)
        return play_match(*who, games=games, seed=seed, **how)

    monkeypatch.setattr(lower_bounds, "play_match", note)
    bound_on_kuhn(always("b"), match_games, training_games=1, seed=5)
    assert played == [choice_games] * 4 + [match_games]
    # All are compared on the same deals, and none is measured on those that it was chosen by, or
    # has trained on.
    assert len(set(seeds[:4])) == 1
    assert len({5, seeds[0], seeds[-1]}) == 3


@pytest.mark.parametrize(
    ("match_games", "ends"), [(2, (47, 49, 51, 53, 55)), (9, (49, 53, 57, 61, 71))]
)
def test_progress_is_heard_for_every_training_game_and_match(
    match_games: int, ends: tuple[int, ...]
) -> None:
    heard: list[int] = []
    bound_on_kuhn(always("b"), match_games, training_games=45, progress=heard.append)
    assert heard == [*range(1, 46), *ends]
    assert heard[-1] == steps(45, match_games)
