"""The analysis of a trained agent: figures that must agree with each other and with others."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from rejoinder.actor import Actor
from rejoinder.cfr.policy import AVERAGE
from rejoinder.cfr.rollout import max_expected_regret, policies
from rejoinder.cfr.table import table_of
from rejoinder.cfr.tree import build_tree
from rejoinder.config import RunConfig, load_config, make_config
from rejoinder.evaluate.agents import Agent, random_agent, trained_agent
from rejoinder.evaluate.analytics import Analysis, analyse, steps
from rejoinder.evaluate.exploit import policy_exploitability
from rejoinder.games.queries import bits
from rejoinder_learner.state import Learner

MICRO = load_config("micro", {"games": 200, "rollouts": 4})


@cache
def rows_of(config: RunConfig) -> Any:
    """The learner's table after all games of a config."""
    learner, actor = Learner(config), Actor(config)
    for game in range(config.games):
        learner.fold(actor.play(game, learner.policy_for(game)))
    return learner.rows


def agent_of(config: RunConfig) -> Agent:
    policy = policies(table_of(rows_of(config)))
    return trained_agent("trained", config.load_abstraction(), policy, argmax=False)


def analysis(config: RunConfig = MICRO, **how: Any) -> Analysis:
    game, settings = config.load_game(), {"games": 200, "seed": 1} | how
    return analyse(game, config.rules, agent_of(config), rows_of(config), **settings)


@cache
def usual() -> Analysis:
    return analysis()


def test_the_two_roles_are_all_of_the_table() -> None:
    found, rows = usual(), rows_of(MICRO)
    roles = list(found.roles.values())
    assert sum(role.infosets for role in roles) == len(rows)
    assert sum(role.updates for role in roles) == rows["updates"].sum()
    assert sum(role.reach for role in roles) == pytest.approx(1)
    mer = sum(role.reach * (role.regret_by_reach or 0.0) for role in roles)
    assert mer == pytest.approx(max_expected_regret(rows))


def test_entropy_and_positive_regret_by_hand() -> None:
    found, rows = usual(), rows_of(MICRO)
    responses = MICRO.load_abstraction().responses
    for role, is_response in (("initiator", False), ("responder", True)):
        entropies, regrets, weights, choices = [], [], [], []
        for row in rows:
            legal = bits(row["legal"])
            if all(responses >> a & 1 for a in legal) != is_response:
                continue
            means = [max(0.0, row["regret"][a] / row["count"][a]) for a in legal]
            regrets.append(row["updates"] * sum(means) / len(legal))
            weights.append(row["updates"])
            if len(legal) > 1:
                policy = [p for p in row["policy"][AVERAGE].tolist() if p > 0]
                entropies.append(row["updates"] * -sum(p * np.log2(p) for p in policy))
                choices.append(row["updates"])
        figures = found.roles[role]  # type: ignore[index]
        assert figures.positive_regret_by_updates == pytest.approx(sum(regrets) / sum(weights))
        assert figures.entropy_by_updates == pytest.approx(sum(entropies) / sum(choices))
        assert 0 <= (figures.evenness_by_reach or 0.0) <= 1


def test_in_play_against_itself_what_one_wins_the_other_loses() -> None:
    found = analysis(games=2000)
    phases = found.charges["either"]
    assert list(found.charges) == ["either"]
    assert phases.utility is not None
    responder = found.roles["responder"].value
    assert responder is not None
    # In `micro` a second brown property wins, so rent is 1 and one card pays it.
    assert phases.cards is not None
    assert phases.cards.value == 1
    assert responder.value == pytest.approx(-phases.utility.value)
    assert found.roles["responder"].decisions.value == pytest.approx(phases.per_game.value)


def test_against_another_the_charges_of_each_are_told_apart() -> None:
    found = analysis(opponent=random_agent(MICRO.load_game()), games=400)
    assert found.opponent == "random"
    assert set(found.charges) == {"agent", "opponent"}
    assert found.charges["agent"].phases != found.charges["opponent"].phases


def test_exploitability_is_exact_where_the_game_can_be_enumerated() -> None:
    found = usual().exploitability
    assert found is not None
    assert found.method == "exact"
    tree = build_tree(MICRO.load_game(), MICRO.rules, policy=MICRO.load_abstraction())
    whole = policy_exploitability(tree, agent_of(MICRO).book.policy).exploitability
    assert found.whole == pytest.approx(whole)
    assert found.by_main_play is not None
    assert -1e-12 <= found.by_responses.value <= whole
    assert -1e-12 <= found.by_main_play <= whole


def test_the_order_of_responses_and_the_actions_of_race_go_together() -> None:
    """Debts of 2 and 4, a property given first counts double, and keys tell it."""
    ordered = {"rules": "micro-ordered", "abstraction": "race", "games": 100, "rollouts": 2}
    config = load_config("micro", ordered)
    found = analysis(config)
    told = [config.load_abstraction().describe(int(key)) for key in rows_of(config)["key"]]
    assert any(infoset.get("property_doubled") for infoset in told)
    assert sum(role.infosets for role in found.roles.values()) == len(told)
    phases = found.charges["either"]
    assert phases.overpaid is not None
    assert phases.overpaid.value > 0
    assert found.exploitability is not None
    assert found.exploitability.whole is not None
    assert 0 < found.exploitability.by_responses.value < found.exploitability.whole


def test_it_is_a_function_of_the_policy_games_and_seed() -> None:
    assert analysis() == usual()
    assert Analysis.model_validate_json(usual().model_dump_json()) == usual()
    short = load_config("paper", {"games": 5, "rollouts": 1})
    assert analysis(short, games=20) != analysis(short, games=20, seed=2)


def test_elsewhere_it_is_a_bound_if_it_is_asked_for() -> None:
    config = load_config("paper", {"games": 5, "rollouts": 1})
    without = analysis(config, games=20)
    assert without.exploitability is None
    heard: list[int] = []
    found = analysis(config, games=20, training_games=20, progress=heard.append)
    assert found.exploitability is not None
    assert found.exploitability.method == "lower bound"
    assert found.exploitability.training_games == 20
    assert found.exploitability.abstraction == "intent"
    assert found.model_copy(update={"exploitability": None}) == without
    assert heard == sorted(heard)
    assert heard[-1] == steps(20, 20)


def test_games_without_response_phases_are_refused() -> None:
    kuhn = make_config({"game": "kuhn", "games": 3})
    with pytest.raises(ValueError, match="kuhn: this game has no response phases"):
        analysis(kuhn)
