"""The shipped `strong` config: the same digest however it is trained, and what it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime import sequential, train_with, trained

from rejoinder.measure.agents import Agent, baseline_agent
from rejoinder.measure.match import MatchResult, play_match
from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import EmbeddedServer


def test_workers_give_the_digest_of_sequential_training(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    config = load_config(
        "strong", {"games": 60, "batch": 10, "method.rollouts": 1, "eval_games": 10}
    )
    assert config.method.model_dump()["common_random_numbers"]
    run = RunDir.create(tmp_path / "run", config)
    assert train_with(server, run, 2) == sequential(config)


@pytest.mark.slow
def test_a_twentieth_of_its_games_beats_the_paper_and_its_baseline(tmp_path: Path) -> None:
    """docs/strong.md has the figures of longer training."""
    config = load_config("strong", {"games": 12_000, "eval_every": 0})
    paper = load_config("paper", {"eval_every": 0})
    assert (config.game, config.rules) == (paper.game, paper.rules)
    game = config.load_game()
    strong, weaker = trained(config, tmp_path / "strong"), trained(paper, tmp_path / "paper")

    def plays(opponent: Agent, games: int) -> MatchResult:
        agents = (strong, opponent)
        return play_match(game, game.template(config.rules), agents, games=games, seed=1)[0]

    result = plays(weaker, 20_000)
    assert result.low > 0.52, str(result)
    result = plays(baseline_agent(game), 4_000)
    assert result.win_rate >= 0.80, str(result)
