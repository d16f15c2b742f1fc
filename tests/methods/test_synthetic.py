"""Methods on games with three players, wide action sets, options and data (see `synthetic`)."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime import sequential, train_with
from synthetic import (
    ALL_LOW,
    CLIMB_GAME,
    LOOK_UP,
    PLIES,
    RIGHT,
    TAKER,
    TRIO_GAME,
    WIDE_GAME,
    registered,
)

from rejoinder.games import GAMES
from rejoinder.games.base import Game, Rules
from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder.measure.agents import baseline_agent, opponents, random_agent, trained_agent
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.measure.infosets import Policy
from rejoinder.measure.lower_bounds import thinking_bound
from rejoinder.measure.match import play_match
from rejoinder.measure.metrics import table_statistics
from rejoinder.measure.search import Searcher, searching
from rejoinder.methods.exact.full import FullSolver
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.policies import AVERAGE
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import ConfigError, RunConfig, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import EmbeddedServer
from rejoinder_learner.state import Learner

SAMPLED = ("external", "outcome", "chance")


@pytest.fixture(autouse=True, scope="module")
def _synthetic_games() -> Iterator[None]:
    with registered():
        yield


def config(game: Game, method: str, **settings: Any) -> RunConfig:
    own = {"rollouts": 4} if method == "rollout" else {"iterations": 20}
    return make_config(
        {"game": game.name, "method": {"name": method, **own, **settings}, "batch": 1, "lag": 0}
    )


def learn(run: RunConfig, units: int) -> Learner:
    learner, actor = Learner(run), run.actor()
    for unit in range(units):
        learner.fold(actor.play(unit, learner.snapshot_for(unit)))
    return learner


def averages(rows: Any) -> dict[int, Any]:
    return {int(row["key"]): row["policy"][AVERAGE] for row in rows}


@pytest.mark.parametrize(
    ("method", "units"), [("external", 5_000), ("outcome", 10_000), ("chance", 2_000)]
)
def test_three_players_come_to_the_equilibrium_that_exact_cfr_finds(
    method: str, units: int
) -> None:
    tree = build_tree(TRIO_GAME, Rules())
    solver = FullSolver(tree, "cfr")
    solver.run(20_000)
    exact = averages(solver.policy().rows[: len(tree.form.infosets)])
    learner = learn(config(TRIO_GAME, method, weighting="linear"), units)
    learned = averages(learner.learned)
    assert learned.keys() == exact.keys()
    describe = TRIO_GAME.concrete.description
    for key, policy in learned.items():
        seen = describe(key)
        known = 1 / 3 if seen["player"] != TAKER else 1.0 - seen["card"]
        assert exact[key][0] == pytest.approx(known, abs=0.01)
        assert policy[0] == pytest.approx(known, abs=0.04)
    found = policy_exploitability(tree, table_of(learner.policy_rows()))
    assert len(found.best_response_values) == 3
    assert found.nash_conv < 0.1
    assert policy_exploitability(tree, solver.policy()).nash_conv < 0.02
    assert found.value == pytest.approx(1 / 3, abs=0.1)


@pytest.mark.parametrize("method", [*SAMPLED, "rollout"])
def test_actions_beyond_a_word_are_learned(method: str) -> None:
    units = {"external": 60, "outcome": 8000, "chance": 10, "rollout": 400}[method]
    learner = learn(config(WIDE_GAME, method), units)
    rows = learner.learned
    assert len(rows) == 15  # five numbers for the first player, ten for the second
    for row in rows:
        told = int(row["key"]) & 0xFF
        assert row["policy"][AVERAGE, told] > 0.5
        assert row["policy"][AVERAGE].argmax() == told
    statistics = table_statistics(learner.learned, WIDE_GAME.concrete)
    assert len(statistics["policy"]) == 70


@pytest.mark.parametrize("method", [*SAMPLED, "rollout"])
def test_options_are_learned_where_they_are_chosen_and_nowhere_else(method: str) -> None:
    learner = learn(config(CLIMB_GAME, method), 400)
    rows = {int(row["key"]): row for row in learner.learned}
    # The first two plies are decisions; the others only of who played high once.
    assert {key & 0xF for key in rows} == set(range(PLIES))
    for key, row in rows.items():
        if key & 0xF < 2:
            assert row["policy"][AVERAGE].argmax() == LOOK_UP
            assert row["policy"][AVERAGE, LOOK_UP] > 0.9
    visits = {int(row["key"]): int(row["updates"]) for row in learner.learned}
    # Chance sampling comes there by every action of the other player, and by this one's last alone.
    assert 0 < visits[2] <= visits[0] * (4 if method == "chance" else 1)


@pytest.mark.parametrize("method", [*SAMPLED, "rollout"])
@pytest.mark.parametrize("game", [TRIO_GAME, WIDE_GAME, CLIMB_GAME], ids=lambda game: game.name)
def test_a_delta_does_not_depend_on_who_plays_it_and_when(game: Game, method: str) -> None:
    run = config(game, method)
    learner = learn(run, 40)
    snapshot, units = learner.snapshot_for(40), list(range(40, 52))
    actor, check = run.actor(), run.load_method().delta_check(run.task())
    expected = {unit: actor.play(unit, snapshot).tobytes() for unit in units}
    random.Random(1).shuffle(units)
    actors = [run.actor() for _ in range(3)]
    for k, unit in enumerate(units):
        delta = actors[k % 3].play(unit, snapshot)
        assert delta.tobytes() == expected[unit]
        assert check(delta) is None
    beyond = delta.copy()
    beyond["legal"] |= np.uint64(1 << 63)
    assert check(beyond) is not None


@pytest.mark.parametrize("game", [TRIO_GAME, WIDE_GAME, CLIMB_GAME], ids=lambda game: game.name)
def test_workers_give_the_digest_of_sequential_training(
    game: Game, server: EmbeddedServer, tmp_path: Path
) -> None:
    settings = {"name": "external", "iterations": 20}
    run = make_config(
        {"game": game.name, "method": settings, "games": 600, "batch": 5, "eval_every": 0}
    )
    assert train_with(server, RunDir.create(tmp_path / "run", run), 2) == sequential(run)


def test_exact_solvers_respect_options() -> None:
    plan = CLIMB_GAME.abstraction("plan")
    tree = build_tree(CLIMB_GAME, Rules(), plan)
    solver = FullSolver(tree, "cfr+")
    solver.run(200)
    policy = averages(solver.policy().rows[: len(np.unique(tree.form.infosets["policy_key"]))])
    assert all(policy[key][LOOK_UP] > 0.99 for key in policy if key & 0xF < 2)
    learner = learn(config(CLIMB_GAME, "external"), 400)
    found = policy_exploitability(tree, table_of(learner.policy_rows()))
    assert found.exploitability < 0.05
    assert found.value == pytest.approx(0.0, abs=0.05)
    with pytest.raises(ValueError, match="climb: none has too many actions for a tree"):
        build_tree(CLIMB_GAME, Rules())


def test_wide_games_are_solved_exactly() -> None:
    tree = build_tree(WIDE_GAME, Rules())
    solver = FullSolver(tree, "cfr+")
    solver.run(50)
    for key, policy in averages(solver.policy().rows[:15]).items():
        assert policy[key & 0xFF] > 0.95
    assert policy_exploitability(tree, solver.policy()).exploitability < 0.05


def test_matches_carry_options_out() -> None:
    template = CLIMB_GAME.template(Rules())
    looks_up, plays_low = (baseline_agent(CLIMB_GAME, name) for name in CLIMB_GAME.baselines)
    assert list(opponents(CLIMB_GAME)) == ["random", "looks up", "plays low"]
    learner = learn(config(CLIMB_GAME, "external"), 400)
    plan = CLIMB_GAME.abstraction("plan")
    agent = trained_agent("trained", plan, table_of(learner.policy_rows()), argmax=True)
    even, _ = play_match(CLIMB_GAME, template, (agent, looks_up), games=200, seed=1)
    assert (even.mean_utility, even.utility_error) == (0.0, 0.0)  # both are always right
    # Low is right for one symbol of three: it loses 1/3 a ply to who gains 1, two plies each.
    won, _ = play_match(CLIMB_GAME, template, (agent, plays_low), games=4_000, seed=1)
    assert won.mean_utility == pytest.approx(2 * (1 + 1 / 3), abs=3 * won.utility_error)


def test_an_agent_at_a_table_goes_on_with_its_option() -> None:
    session = Session.start(CLIMB_GAME, seed=4)
    agent, choices = baseline_agent(CLIMB_GAME, "plays low"), rng.stream(1, 0, rng.CHOICES)
    while not session.over:
        session.apply(agent.choose(session.states, choices))
    moves = [event.number for event in session.history if event.actor is not None]
    assert moves == [0] * PLIES
    assert session.states[0]["option"].tolist() == [ALL_LOW + 1] * 2


def test_abstract_play_goes_on_to_the_next_decision() -> None:
    session = Session.start(CLIMB_GAME, seed=4)
    session.apply_abstract("look up", "plan")
    session.apply_abstract("high once", "plan")
    assert session.states[0]["ply"] == 3  # the first player's second move followed by itself
    session.apply_abstract("all high", "plan")
    assert session.over
    assert session.utilities is not None
    assert session.states[0]["score"][0] == 2


def test_concrete_moves_may_be_more_than_masks_hold() -> None:
    session = Session.start(CLIMB_GAME, seed=4)
    assert [move.number for move in session.legal()] == list(range(100))
    session.apply("step 77")
    assert session.history[-2].name == "step 77"
    with pytest.raises(ConfigError, match="abstraction: 'none' has too many actions to be trained"):
        make_config({"game": "climb", "abstraction": "none"})


def test_search_tries_moves_beyond_a_word() -> None:
    for game, right in ((WIDE_GAME, 1.0), (CLIMB_GAME, None)):
        session = Session.start(game, seed=2)
        thinker = searching(random_agent(game), game, 20_000)
        assert isinstance(thinker, Searcher)
        thought = thinker.advise(session.states)
        assert len(thought.values) == len(session.legal())
        if right is not None:
            assert thought.move == session.states[0]["number"][0]
        else:
            assert (thought.move >= 50) == bool(RIGHT[session.states[0]["symbol"][0]])


def test_data_of_an_abstraction_is_part_of_the_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = config(CLIMB_GAME, "external")
    fingerprint = before.fingerprint
    assert "abstraction_data" in before.learning_fields()
    assert "abstraction_data" not in config(TRIO_GAME, "external").learning_fields()
    plan = CLIMB_GAME.abstraction("plan")
    other = dataclasses.replace(plan, data=lambda: {"right": 1 - RIGHT})
    changed = dataclasses.replace(CLIMB_GAME, abstractions=(CLIMB_GAME.concrete, other))
    monkeypatch.setitem(GAMES, "climb", changed)
    after = config(changed, "external")
    assert after.fingerprint != fingerprint
    rows = learn(after, 100).learned
    first = next(row for row in rows if int(row["key"]) & 0xF == 0)
    assert first["policy"][AVERAGE, LOOK_UP] < 0.1  # it looks the wrong answers up


def test_a_policy_is_explained_from_a_state_where_keys_cannot_be_read() -> None:
    run = config(CLIMB_GAME, "external")
    policy = Policy(run, learn(run, 20).checkpoint())
    session = Session.start(CLIMB_GAME, seed=1)
    told = policy.infoset_at(session.states)
    assert told.description == {"ply": 0}
    assert told.identifier == told.key
    assert policy.infoset(0).description == {"key": policy.infoset(0).key}


def test_bounds_on_exploitability_need_two_players_and_zero_sum() -> None:
    with pytest.raises(ValueError, match="zero-sum games of two players; trio has 3"):
        thinking_bound(TRIO_GAME, Rules(), random_agent(TRIO_GAME), samples=1, games=2)
