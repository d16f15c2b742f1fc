"""The analysis of a trained agent: figures that must agree with each other and with others."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from rejoinder.games.deal import GAME as DEAL
from rejoinder.games.queries import bits
from rejoinder.measure.agents import Agent, random_agent, trained_agent
from rejoinder.measure.analytics import (
    Analysis,
    RoleFigures,
    analyse,
    refusal_value,
    role_figures,
    steps,
)
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.measure.response_stats import Watched
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.learned import max_expected_regret
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.methods.tabular.rollout import policy_rows, row_dtype
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import RunConfig, load_config, make_config
from rejoinder_learner.state import Learner

MICRO = load_config("micro", {"games": 200, "method.rollouts": 4})
INTENT = MICRO.load_abstraction()


@cache
def rows_of(config: RunConfig) -> Any:
    """The learner's table after all games of a config."""
    learner, actor = Learner(config), config.actor()
    for game in range(config.games):
        learner.fold(actor.play(game, learner.snapshot_for(game)))
    return learner.rows


def agent_of(config: RunConfig) -> Agent:
    policy = table_of(policy_rows(rows_of(config)))
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
    mer = sum(role.mer_share for role in roles)
    assert mer == pytest.approx(max_expected_regret(rows))


def infoset(actions: int, updates: int, reach: float, regret: Any, policy: Any) -> Any:
    """A row with that mask of actions; the regrets are sums, of two updates of each action."""
    row = np.zeros(1, row_dtype(len(INTENT.actions), 1))
    row["legal"], row["updates"], row["reach"] = actions, updates, reach
    for k, action in enumerate(bits(actions)):
        row["regret"][0, action] = regret[k]
        row["count"][0, action] = 2.0
        row["policy"][0, AVERAGE, action] = policy[k]
        row["policy"][0, LATEST, action] = 1.0 - policy[k]  # nothing is to come from these
    return row


MAIN = np.concatenate(
    [
        infoset(0b1_0000_0001, 30, 1.0, (0.4, -0.6), (0.5, 0.5)),
        infoset(0b1_0000_1011, 10, 3.0, (0.2, 0.4, -0.2, 0.8), (0.5, 0.25, 0.25, 0.0)),
        infoset(0b1_0000_0000, 60, 4.0, (0.0,), (1.0,)),
    ]
)
ANSWERS = np.concatenate(
    [
        infoset(0b0110_0000, 6, 0.5, (-1.0, 0.6), (0.25, 0.75)),
        infoset(0b1110_0000, 2, 1.5, (0.2, -0.4, 0.2), (0.5, 0.5, 0.0)),
        infoset(0b10_0000_0000, 192, 14.0, (0.0,), (1.0,)),
    ]
)


def by_hand() -> dict[Any, RoleFigures]:
    """Two deals: the agent wins three games of four. Decisions are by role and side."""
    decisions = [[[4, 3], [1, 0]], [[2, 5], [0, 2]], [[3, 3], [2, 1]], [[6, 2], [0, 0]]]
    won = np.array([1.0, 1.0, -1.0, 1.0])
    played = Watched(None, np.array(decisions, np.int32), None, won)
    return role_figures(np.concatenate([MAIN, ANSWERS]), DEAL, INTENT, played)


def test_every_figure_of_the_initiator_by_hand() -> None:
    found = by_hand()["initiator"].model_dump()
    # Largest mean regrets 0.2 and 0.4; the means of the positive ones 0.1 and 0.175.
    assert found.pop("decisions")["value"] == pytest.approx(28 / 4)
    # The agent's decisions less the opponent's: 1 won, −3 won, 0 lost, 4 won.
    assert found.pop("value")["value"] == pytest.approx((1 - 3 - 0 + 4) / 28)
    assert found == pytest.approx(
        {
            "infosets": 3,
            "choices": 2,
            "updates": 100,
            "reach": 8 / 24,
            "mer_share": (1 * 0.2 + 3 * 0.4) / 24,
            "regret_by_reach": (1 * 0.2 + 3 * 0.4) / 4,
            "regret_by_updates": (30 * 0.2 + 10 * 0.4) / 40,
            "positive_regret_by_reach": (1 * 0.1 + 3 * 0.175) / 4,
            "positive_regret_by_updates": (30 * 0.1 + 10 * 0.175) / 40,
            "entropy_by_reach": (1 * 1.0 + 3 * 1.5) / 4,
            "entropy_by_updates": (30 * 1.0 + 10 * 1.5) / 40,
            "evenness_by_reach": (1 * 1.0 + 3 * 0.75) / 4,
            "evenness_by_updates": (30 * 1.0 + 10 * 0.75) / 40,
        }
    )


def test_every_figure_of_the_responder_by_hand() -> None:
    found = by_hand()["responder"].model_dump()
    # Largest mean regrets 0.3 and 0.1; the means of the positive ones 0.15 and 0.2 / 3.
    quarter = 2 - 0.75 * np.log2(3)  # the entropy of (1/4, 3/4)
    assert found.pop("decisions")["value"] == pytest.approx(6 / 4)
    assert found.pop("value")["value"] == pytest.approx((1 - 2 - 1 + 0) / 6)
    assert found == pytest.approx(
        {
            "infosets": 3,
            "choices": 2,
            "updates": 200,
            "reach": 16 / 24,
            "mer_share": (0.5 * 0.3 + 1.5 * 0.1) / 24,
            "regret_by_reach": (0.5 * 0.3 + 1.5 * 0.1) / 2,
            "regret_by_updates": (6 * 0.3 + 2 * 0.1) / 8,
            "positive_regret_by_reach": (0.5 * 0.15 + 1.5 * 0.2 / 3) / 2,
            "positive_regret_by_updates": (6 * 0.15 + 2 * 0.2 / 3) / 8,
            "entropy_by_reach": (0.5 * quarter + 1.5 * 1.0) / 2,
            "entropy_by_updates": (6 * quarter + 2 * 1.0) / 8,
            "evenness_by_reach": (0.5 * quarter + 1.5 / np.log2(3)) / 2,
            "evenness_by_updates": (6 * quarter + 2 / np.log2(3)) / 8,
        }
    )


def test_forced_infosets_dilute_no_regret() -> None:
    """They have most of the reach of real tables, and nothing to regret."""
    forced = role_figures(np.concatenate([MAIN[2:], ANSWERS[2:]]), DEAL, INTENT, _nothing_played())
    for figures in forced.values():
        assert (figures.choices, figures.mer_share) == (0, 0.0)
        assert figures.regret_by_reach is None
        assert figures.positive_regret_by_updates is None


def _nothing_played() -> Watched:
    return Watched(None, np.zeros((2, 2, 2), np.int32), None, np.zeros(2))


def test_the_value_of_a_refusal_by_hand() -> None:
    """Utilities by deal, seat and way: as dealt, with a refusal, with a blank."""
    out = [math.nan] * 3
    won = np.array(
        [
            [[-1.0, 1.0, -1.0], [0.0, 1.0, -1.0]],
            [[1.0, 1.0, 0.0], out],
            [[-1.0, 0.0, -1.0], [-1.0, -1.0, -1.0]],
            [out, out],
        ]
    )
    found = refusal_value(won).model_dump()
    values = {
        name: found.pop(name)["value"] for name in ("right", "card", "right_wins", "card_wins")
    }
    assert found == {"deals": 4, "compared": 5}
    assert values == pytest.approx(
        {
            "right": (2 + 2 + 1 + 1 + 0) / 5,
            "card": (2 + 1 + 0 + 1 + 0) / 5,
            "right_wins": (1 + 1 + 1 + 0 + 0) / 5,
            "card_wins": (1 + 1 + 0 + 0 + 0) / 5,
        }
    )


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
    whole = policy_exploitability(tree, agent_of(MICRO).lookup.policy).exploitability
    assert found.whole.value == pytest.approx(whole)
    assert (found.samples, found.games) == (None, None)
    for part in (found.by_responses, found.by_main_play):
        assert part.low == part.value == part.high
        assert -1e-12 <= part.value <= whole


def test_the_order_of_responses_and_the_actions_of_race_go_together() -> None:
    """Debts of 2 and 4, a property given first counts double, and keys tell it."""
    ordered = {"rules": "micro-ordered", "abstraction": "race", "games": 100, "method.rollouts": 2}
    config = load_config("micro", ordered)
    found = analysis(config)
    told = [config.load_abstraction().description(int(key)) for key in rows_of(config)["key"]]
    assert any(infoset.get("property_doubled") for infoset in told)
    assert sum(role.infosets for role in found.roles.values()) == len(told)
    phases = found.charges["either"]
    assert phases.overpaid is not None
    assert phases.overpaid.value > 0
    assert found.exploitability is not None
    assert 0 < found.exploitability.by_responses.value < found.exploitability.whole.value


def test_it_is_a_function_of_the_policy_games_and_seed() -> None:
    assert analysis() == usual()
    assert Analysis.model_validate_json(usual().model_dump_json()) == usual()
    short = load_config("paper", {"games": 5, "method.rollouts": 1})
    assert analysis(short, games=20) != analysis(short, games=20, seed=2)


def test_elsewhere_it_is_a_bound_if_it_is_asked_for() -> None:
    config = load_config("paper", {"games": 5, "method.rollouts": 1})
    without = analysis(config, games=20)
    assert without.exploitability is None
    heard: list[int] = []
    found = analysis(config, games=20, attack_games=400, samples=50, progress=heard.append)
    bounds = found.exploitability
    assert bounds is not None
    assert (bounds.method, bounds.samples, bounds.games) == ("lower bound", 50, 400)
    # After five games the agent is so weak that both kinds of moves give something away.
    for bound in (bounds.by_responses, bounds.by_main_play, bounds.whole):
        assert bound.low is not None
        assert bound.low > 0
    assert bounds.whole.value > bounds.by_responses.value
    assert found.model_copy(update={"exploitability": None}) == without
    assert heard == sorted(heard)
    assert {80, steps(20, 400, 50)} <= set(heard)  # the games, and the attacks, of which
    assert heard[-1] == steps(20, 400, 50) > 10 * steps(20, 400, 0)  # each takes its time


def test_games_without_response_phases_are_refused() -> None:
    kuhn = make_config({"game": "kuhn", "games": 3})
    with pytest.raises(ValueError, match="kuhn: this game has no response phases"):
        analysis(kuhn)
