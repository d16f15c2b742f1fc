"""Agents that go by the learner's rows play as those that go by rows of probabilities, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learning import config, learn
from trees import tree_of

from rejoinder.kernel.jit import kernel
from rejoinder.kernel.rng import CHOICES, stream
from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.measure.infosets import Policy
from rejoinder.measure.metrics import play_matches
from rejoinder.measure.search import count_moves, searching
from rejoinder.methods.policies import AVERAGE, LATEST, policy_dtype
from rejoinder.methods.tabular.policy import draw, policy_of
from rejoinder.methods.tabular.table import InfosetTable, index_of
from rejoinder_learner.state import Learner

METHODS = ("external", "outcome", "chance", "full")


def trained(game: str, method: str) -> tuple[Learner, InfosetTable, InfosetTable]:
    """A learner, its rows as a policy, and the probabilities that they stand for."""
    learner = learn(config(game, method), 20)
    made = np.zeros(len(learner.rows), policy_dtype(learner.rows.dtype["regret"].shape[0]))
    made["key"], made["policy"] = learner.learned["key"], learner.learned["policy"]
    return learner, index_of(learner.policy_rows()), index_of(made)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_state_rows_are_worth_and_play_the_same(game: str, method: str) -> None:
    learner, rows, probabilities = trained(game, method)
    assert rows.rows.dtype == learner.rows.dtype
    worth = [policy_exploitability(tree_of(game), table) for table in (rows, probabilities)]
    assert worth[0] == worth[1]
    run = config(game, method).model_copy(update={"eval_games": 400})
    assert play_matches(run, 1, rows) == play_matches(run, 1, probabilities)


@pytest.mark.parametrize("method", METHODS)
def test_every_probability_and_every_draw_is_the_same(method: str) -> None:
    learner, rows, probabilities = trained("leduc", method)
    legal = learner.learned["legal"]
    for column in (LATEST, AVERAGE):
        read, drawn = np.zeros((2, len(legal), 3)), np.zeros((2, len(legal), 9), np.int64)
        for n, table in enumerate((rows, probabilities)):
            _read(table.rows, legal, column, read[n], drawn[n])
        np.testing.assert_array_equal(*read)
        np.testing.assert_array_equal(*drawn)
        assert len(np.unique(drawn)) == 3


@kernel
def _read(rows: Any, legal: Any, column: Any, read: Any, drawn: Any) -> None:
    for r in range(len(rows)):
        policy = policy_of(rows[r])[column]
        for a in range(read.shape[1]):
            if legal[r] >> np.uint64(a) & np.uint64(1):
                read[r, a] = policy[a]
        for n in range(drawn.shape[1]):
            drawn[r, n] = draw(policy, legal[r], (n + 0.5) / drawn.shape[1])


def test_search_goes_by_state_rows_too() -> None:
    learner, rows, probabilities = trained("leduc", "external")
    game, abstraction = learner.config.load_game(), learner.config.load_abstraction()
    positions = tree_of("leduc").positions[:20]

    def counts(table: InfosetTable) -> Any:
        agent: Agent = trained_agent("it", abstraction, table, argmax=False)
        return count_moves(searching(agent, game, 20), game, positions, 2, 1)

    np.testing.assert_array_equal(counts(rows), counts(probabilities))


def test_an_agent_of_a_checkpoint_has_no_table_of_its_own() -> None:
    learner = learn(config("leduc", "external"), 20)
    checkpoint = learner.checkpoint()
    policy = Policy(learner.config, checkpoint)
    assert policy.policy.rows is checkpoint.rows
    agent = trained_agent("it", policy.abstraction, policy.policy, argmax=False)
    assert agent.own_lookup().policy.rows is checkpoint.rows
    game = learner.config.load_game()
    states = tree_of("leduc").positions[:1]
    said = {action.name: action.average for action in policy.infoset_at(states).actions}
    weights = agent.probabilities(states)
    assert [weights[policy.abstraction.actions.index(name)] for name in said] == pytest.approx(
        list(said.values()), abs=1e-12
    )
    assert agent.choose(states, stream(1, 0, CHOICES)) in range(len(game.moves))
