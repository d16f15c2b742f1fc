"""The shipped `strong` config: the same digest however it is trained, and what it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime import sequential, train_with

from rejoinder.bus.server import EmbeddedServer
from rejoinder.cfr.rollout import policies
from rejoinder.cfr.table import table_of
from rejoinder.config import load_config
from rejoinder.evaluate.agents import baseline_agent, trained_agent
from rejoinder.evaluate.match import play_match
from rejoinder.rundir import RunDir
from rejoinder_learner.sequential import train


def test_workers_give_the_digest_of_sequential_training(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    config = load_config("strong", {"games": 60, "batch": 10, "rollouts": 1, "eval_games": 10})
    assert config.common_luck
    run = RunDir.create(tmp_path / "run", config)
    assert train_with(server, run, 2) == sequential(config)


@pytest.mark.slow
def test_a_hundredth_of_its_games_plays_well_already(tmp_path: Path) -> None:
    config = load_config("strong", {"games": 4_000, "eval_every": 0})
    run = RunDir.create(tmp_path / "strong", config)
    train(run)
    game, abstraction = config.load_game(), config.load_abstraction()
    policy = policies(table_of(run.result().rows))
    agent = trained_agent("trained", abstraction, policy, argmax=False)
    template = game.template(config.rules)
    result = play_match(game, template, agent, baseline_agent(game), games=4_000, seed=1)
    assert result.win_rate >= 0.80, str(result)
