"""Our games in OpenSpiel: its own checks pass, and its numbers for our policies are ours."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from rejoinder.games import GAMES, queries
from rejoinder.games.base import Game, Rules
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.table import InfosetTable, new_table, table_of
from rejoinder.run.config import make_config
from rejoinder_learner.state import Learner

pyspiel = pytest.importorskip(
    "pyspiel", reason="needs OpenSpiel; get it with: pip install 'rejoinder[openspiel]'"
)
from open_spiel.python.algorithms import external_sampling_mccfr  # noqa: E402

from rejoinder.interop import openspiel  # noqa: E402

# Every kind of decision in some thousand nodes.
NANO = {
    "property_copies": [2, 0, 0],
    "cash_copies": [1, 0, 0, 0],
    "rent_copies": [1, 0, 0],
    "just_say_no": 1,
    "sets_needed": 1,
    "hand_size": 2,
    "draw": 1,
    "streak": 2,
    "turn_cap": 3,
}


Told = dict[str, list[tuple[int, float]]]  # a policy as OpenSpiel takes it


def spiel(name: str, **params: Any) -> Any:
    return pyspiel.load_game(f"rejoinder_{name}", params)


@cache
def loaded(name: str) -> tuple[Any, Game, Rules]:
    """OpenSpiel's game, our game and the rules."""
    rules = json.dumps(NANO) if name == "deal" else "standard"
    theirs = spiel(name, rules=rules)
    return theirs, GAMES[name], theirs.setting.rules


@cache
def decisions(name: str) -> dict[str, Any]:
    """A state of every information state, by its name."""
    found: dict[str, Any] = {}
    waiting = [loaded(name)[0].new_initial_state()]
    while waiting:
        state = waiting.pop()
        if state.is_terminal():
            continue
        if not state.is_chance_node():
            found.setdefault(state.information_state_string(), state)
        waiting += [state.child(action) for action in state.legal_actions()]
    return found


def in_their_terms(name: str, policy: InfosetTable, abstraction: str) -> Told:
    """A policy of ours by their information states: what its actions stand for, in moves."""
    number = GAMES[name].abstraction(abstraction).number
    rows = {int(row["key"]): row["policy"][AVERAGE] for row in policy.rows[: policy.size[0]]}
    told = {}
    for text, state in decisions(name).items():
        row = rows.get(int(queries.infoset_key(state.states, number)))
        weights = dict.fromkeys(state.legal_actions(), 0.0)
        for a in queries.bits(queries.legal_actions(state.states, number)):
            move = int(queries.resolve(state.states, number, a))
            weights[move] += 1.0 if row is None else float(row[a])
        total = sum(weights.values())
        told[text] = [(move, weight / total) for move, weight in weights.items()]
    return told


@pytest.mark.parametrize(
    "name",
    [
        "rejoinder_kuhn",
        "rejoinder_leduc",
        "rejoinder_deal(rules=micro)",
        "rejoinder_deal(rules=tiny,first_player=1)",
    ],
)
def test_its_own_checks(name: str) -> None:
    game = pyspiel.load_game(name)
    pyspiel.random_sim_test(game, num_sims=3, serialize=True, verbose=False)
    assert pyspiel.load_game(str(game)).get_parameters() == game.get_parameters()


@pytest.mark.slow
def test_its_own_checks_on_the_papers_rules() -> None:
    game = pyspiel.load_game("rejoinder_deal")
    assert game.setting.rules == GAMES["deal"].configurations["medium"]
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False)


@pytest.mark.parametrize("name", ["kuhn", "deal"])
def test_information_states_are_our_infosets(name: str) -> None:
    _, game, rules = loaded(name)
    tree = build_tree(game, rules)
    assert len(decisions(name)) == len(tree.form.infosets)
    sizes = [len(state.legal_actions()) for state in decisions(name).values()]
    assert sorted(sizes) == sorted(tree.form.infosets["actions"].tolist())
    tensors = {bytes(np.array(s.information_state_tensor())) for s in decisions(name).values()}
    assert len(tensors) == len(decisions(name))


@pytest.mark.parametrize("name", ["kuhn", "deal"])
def test_uniform_play_is_worth_the_same(name: str) -> None:
    theirs, game, rules = loaded(name)
    nothing = new_table(policy_dtype(len(game.moves)), 1)
    ours = policy_exploitability(build_tree(game, rules), nothing)
    policy = in_their_terms(name, nothing, "none")
    assert pyspiel.nash_conv(theirs, policy) == pytest.approx(ours.nash_conv, abs=1e-12)
    if name == "kuhn":
        assert ours.nash_conv == pytest.approx(11 / 12)


@pytest.mark.parametrize(("name", "abstraction"), [("kuhn", "none"), ("deal", "intent")])
def test_a_trained_policy_is_worth_the_same(name: str, abstraction: str) -> None:
    theirs, game, rules = loaded(name)
    config = make_config(
        {"game": name, "rules": rules, "method.rollouts": 2, "abstraction": abstraction}
    )
    learner, actor = Learner(config), config.actor()
    for index in range(40):
        learner.fold(actor.play(index, learner.snapshot_for(index)))
    tree = build_tree(game, rules, policy=config.load_abstraction())
    ours = policy_exploitability(tree, table_of(learner.policy_rows()))
    policy = in_their_terms(name, table_of(learner.policy_rows()), abstraction)
    assert pyspiel.nash_conv(theirs, policy) == pytest.approx(ours.nash_conv, abs=1e-12)
    assert ours.nash_conv > 0


@pytest.mark.parametrize("name", ["kuhn", "deal"])
def test_their_solver_learns_on_it(name: str) -> None:
    theirs, game, rules = loaded(name)
    np.random.seed(1)  # theirs draws from the global state
    solver = external_sampling_mccfr.ExternalSamplingSolver(theirs)
    for _ in range(120):
        solver.iteration()
    average = solver.average_policy()
    learned = {
        text: list(average.action_probabilities(state).items())
        for text, state in decisions(name).items()
    }
    uniform = policy_exploitability(
        build_tree(game, rules), new_table(policy_dtype(len(game.moves)), 1)
    )
    assert pyspiel.nash_conv(theirs, learned) < 0.7 * uniform.nash_conv


def test_a_game_is_the_engines() -> None:
    """Chance has the engine's odds, and a history leads to the engine's state."""
    dice = np.random.default_rng(1)
    game = spiel("deal", rules="medium", first_player=1)
    for _ in range(3):
        state, ours = game.new_initial_state(), np.zeros(1, GAMES["deal"].dtype)
        queries.start(ours, game.setting.template, 1)
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, odds = zip(*state.chance_outcomes(), strict=True)
                deck = ours[0]["deck"] / ours[0]["deck"].sum()
                assert odds == pytest.approx(deck[list(outcomes)])
                action = int(dice.choice(outcomes, p=np.array(odds) / sum(odds)))
            else:
                assert state.current_player() == queries.current_player(ours)
                action = int(dice.choice(state.legal_actions()))
            state.apply_action(action)
            queries.apply(ours, action)
        assert state.states.tobytes() == ours.tobytes()
        won = np.zeros(2)
        queries.utilities(ours, won)
        assert state.returns() == won.tolist()


def test_words() -> None:
    state = pyspiel.load_game("rejoinder_kuhn").new_initial_state()
    for action in (2, 0, 1):
        text = state.action_to_string(action)
        state.apply_action(action)
    assert text == "bet"
    assert state.information_state_string(0) == "player 0, deal K, deal hidden, 0: bet"
    assert state.information_state_string(1) == "player 1, deal hidden, deal J, 0: bet"
    assert json.loads(state.observation_string(1))["card"] == "J"
    deal = pyspiel.load_game("rejoinder_deal").new_initial_state()
    assert [deal.action_to_string(a) for a in deal.legal_actions()] == [
        "seat 0 begins",
        "seat 1 begins",
    ]


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(ValueError, match="deal has no configuration 'huge'"):
        openspiel.SpielGame.__subclasses__()[0]({"rules": "huge"})
    with pytest.raises(ValueError, match="first_player: 2 is neither a seat"):
        openspiel.SpielGame.__subclasses__()[0]({"first_player": 2})
