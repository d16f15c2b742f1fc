"""The paper's experiment, whole: strength against both baselines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.measure.agents import baseline_agent, random_agent, trained_agent
from rejoinder.measure.match import play_match
from rejoinder.methods.tabular.rollout import policy_rows
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder_learner.sequential import train

DIGEST = "c650b48b67897e79eacea903818502fb3711b680a35d809b716f48fac23d8dd3"


@pytest.mark.slow
def test_a_thousand_games_make_a_strong_agent(tmp_path: Path) -> None:
    config = load_config("paper", {"eval_every": 500})
    run = RunDir.create(tmp_path / "paper", config)
    trained = train(run)
    assert (trained.games, trained.digest) == (1_000, DIGEST)

    result = run.result()
    rows = run.learned(result.rows)
    # The paper: about 120 infosets a player, updated up to some 2,000 times, median about 50.
    assert 200 < len(rows) < 300
    assert 1_000 < rows["updates"].max() < 5_000

    game, abstraction = config.load_game(), config.load_abstraction()
    agent = trained_agent("trained", abstraction, table_of(policy_rows(rows)), argmax=False)
    template = game.template(config.rules)
    for opponent, least in ((random_agent(game), 0.99), (baseline_agent(game), 0.84)):
        match, _ = play_match(game, template, (agent, opponent), games=4_000, seed=1)
        assert match.win_rate >= least, f"{opponent.name}: {match}"

    regrets = [record["mer"] for record in run.metrics()]
    assert regrets[-1] < regrets[0] < 0.1
