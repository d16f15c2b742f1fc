"""How agents answer: the phases of a game are found, and choices counted where there were some."""

from __future__ import annotations

import pytest

from rejoinder.evaluate.agents import baseline_agent, random_agent
from rejoinder.evaluate.answers import Answers, watch
from rejoinder.games import GAMES

DEAL, KUHN = GAMES["deal"], GAMES["kuhn"]
CASH, PROPERTY = "GIVE_OPPONENT_CASH", "GIVE_OPPONENT_PROPERTY"


def watched(configuration: str, games: int = 60, seed: int = 1) -> Answers:
    template = DEAL.template(DEAL.configurations[configuration])
    return watch(DEAL, template, random_agent(DEAL), games=games, seed=seed)


def test_phases_are_as_long_as_their_decisions() -> None:
    answers = watched("medium")
    assert answers.games == 60
    assert answers.phases == sum(answers.lengths.values()) > 200
    assert min(answers.lengths) == 1
    assert max(answers.lengths) <= 8, "no more than the highest rent, and to yield"
    assert 1.0 < answers.mean_length < 3.0
    firsts = sum(choice.times for choice in answers.choices if choice.first)
    assert 0 < firsts <= answers.phases


def test_a_random_agent_chooses_alike_first_and_later() -> None:
    both = [c for c in watched("medium", 150).choices if c.options == (CASH, PROPERTY)]
    assert [choice.first for choice in both] == [True, False]
    for choice in both:
        assert choice.times == choice.chosen[CASH] + choice.chosen[PROPERTY] > 100
        assert 0.4 < choice.chosen[CASH] / choice.times < 0.6


def test_where_a_property_counts_double_phases_are_shorter() -> None:
    assert watched("ordered", 150).mean_length < watched("medium", 150).mean_length


def test_the_same_seed_sees_the_same() -> None:
    assert watched("ordered", 5) == watched("ordered", 5)
    assert watched("ordered", 5) != watched("ordered", 5, seed=2)


def test_a_game_without_rent_has_no_phases() -> None:
    tiny = DEAL.template(DEAL.configurations["tiny"])
    answers = watch(DEAL, tiny, baseline_agent(DEAL), games=5, seed=1)
    assert (answers.phases, answers.mean_length, answers.choices) == (0, 0.0, [])


def test_a_game_without_responses_is_refused() -> None:
    template = KUHN.template(KUHN.configurations["standard"])
    with pytest.raises(ValueError, match="kuhn has no response phases"):
        watch(KUHN, template, random_agent(KUHN), games=1, seed=1)
