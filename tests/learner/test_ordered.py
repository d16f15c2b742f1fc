"""The paper's experiment with ordered responses: a strong agent, which minds the order."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime import trained

from rejoinder.games.deal import DealRules
from rejoinder.measure.agents import baseline_agent, random_agent
from rejoinder.measure.match import play_match
from rejoinder.run.config import load_config


def test_it_differs_from_the_paper_in_the_response_alone() -> None:
    paper, ordered = load_config("paper"), load_config("ordered")
    assert isinstance(ordered.rules, DealRules)
    assert ordered.model_copy(update={"rules": paper.rules}) == paper
    assert ordered.rules.model_copy(update={"response": "plain"}) == paper.rules
    assert ordered.fingerprint != paper.fingerprint


def test_plain_responses_are_the_default() -> None:
    assert load_config("paper", ["rules.response=plain"]) == load_config("paper")


@pytest.mark.slow
def test_a_short_training_makes_a_strong_agent(tmp_path: Path) -> None:
    config = load_config("ordered", {"games": 300, "eval_every": 0})
    agent, game = trained(config, tmp_path / "ordered"), config.load_game()
    template = game.template(config.rules)
    for opponent, least in ((random_agent(game), 0.95), (baseline_agent(game), 0.7)):
        result, _ = play_match(game, template, (agent, opponent), games=1_000, seed=1)
        assert result.win_rate >= least, f"{opponent.name}: {result}"
