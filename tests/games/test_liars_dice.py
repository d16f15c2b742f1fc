"""Liar's Dice against OpenSpiel's: the same game everywhere, and the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rejoinder.games import GAMES, queries
from rejoinder.games.contract import CHANCE, CONCRETE, OVER
from rejoinder.games.liars_dice import LiarsDiceRules
from rejoinder.games.liars_dice.engine import LIAR, MOST_FACES
from rejoinder.games.session import IllegalMove, Session
from rejoinder.measure.best_response import exploitability
from rejoinder.methods.exact.full import FullSolver, uniform_strategy
from rejoinder.methods.exact.tree import build_tree

pyspiel = pytest.importorskip(
    "pyspiel", reason="needs OpenSpiel; get it with: pip install 'rejoinder[bench]'"
)
GAME = GAMES["liars-dice"]


def legal(states: Any) -> list[int]:
    return queries.bits(queries.legal_actions(states, CONCRETE))


def after(states: Any, move: int) -> Any:
    later = states.copy()
    queries.apply(later, move)
    return later


def peer(rules: LiarsDiceRules) -> Any:
    return pyspiel.load_game(f"liars_dice(numdice={rules.dice},dice_sides={rules.faces})")


def their_move(rules: LiarsDiceRules, move: int) -> int:
    """Their bids leave no room for faces that dice do not have."""
    if move == LIAR:
        return 2 * rules.dice * rules.faces
    return move // MOST_FACES * rules.faces + move % MOST_FACES


@pytest.mark.parametrize(
    ("rules", "infosets"),
    [
        (LiarsDiceRules(faces=2), 2 * 2**4),
        (LiarsDiceRules(faces=3), 3 * 2**6),
        (LiarsDiceRules(dice=2, faces=2), 3 * 2**8),
    ],
)
def test_the_game_is_openspiels_everywhere(rules: LiarsDiceRules, infosets: int) -> None:
    names: dict[int, str] = {}

    def walk(states: Any, theirs: Any) -> None:
        mover = queries.current_player(states)
        if mover == OVER:
            won = np.zeros(2)
            queries.utilities(states, won)
            assert won.tolist() == list(theirs.returns())
            return
        if mover == CHANCE:
            odds = np.zeros(MOST_FACES)
            queries.chance_outcomes(states, odds)
            ours = {face: odds[face] for face in range(rules.faces)}
            assert ours == pytest.approx(dict(theirs.chance_outcomes()))
            assert sum(odds) == pytest.approx(1.0)
            for face in range(rules.faces):
                walk(after(states, face), theirs.child(face))
            return
        assert theirs.current_player() == mover
        moves = legal(states)
        assert [their_move(rules, move) for move in moves] == theirs.legal_actions()
        key = int(queries.infoset_key(states, CONCRETE))
        name = theirs.information_state_string(mover)
        assert names.setdefault(key, name) == name
        for move in moves:
            walk(after(states, move), theirs.child(their_move(rules, move)))

    states = np.zeros(1, GAME.dtype)
    queries.start(states, GAME.template(rules), 0)
    walk(states, peer(rules).new_initial_state())
    assert len(names) == len(set(names.values())) == infosets


@pytest.mark.slow
@pytest.mark.parametrize("configuration", ["standard", "two-each"])
def test_uniform_play_is_worth_what_openspiel_says(configuration: str) -> None:
    rules = GAME.configurations[configuration]
    assert isinstance(rules, LiarsDiceRules)
    tree = build_tree(GAME, rules)
    found = exploitability(tree, uniform_strategy(tree))
    theirs = peer(rules)
    uniform = pyspiel.UniformRandomPolicy(theirs)
    assert found.nash_conv == pytest.approx(pyspiel.nash_conv(theirs, uniform), abs=1e-9)
    values = pyspiel.expected_returns(theirs.new_initial_state(), uniform, -1, True)
    assert found.value == pytest.approx(values[0], abs=1e-9)


def test_the_solved_value_is_openspiels() -> None:
    rules = GAME.configurations["small"]
    assert isinstance(rules, LiarsDiceRules)
    solver = FullSolver(build_tree(GAME, rules), "cfr+")
    solver.run(2_000)
    found = exploitability(solver.tree, solver.average_strategy())
    assert found.exploitability < 1e-3

    theirs = peer(rules)
    other = pyspiel.CFRPlusSolver(theirs)
    for _ in range(500):
        other.evaluate_and_update_policy()
    policy = other.tabular_average_policy()
    values = pyspiel.expected_returns(theirs.new_initial_state(), policy, -1, True)
    assert found.value == pytest.approx(values[0], abs=2e-3)


def test_a_game_is_played_to_its_end() -> None:
    session = Session.start("liars-dice", seed=1, deck=["6", "2"])
    with pytest.raises(IllegalMove, match="seat 0 tried 'liar', which is not legal now"):
        session.apply("liar")
    session.apply("1 × 2")
    with pytest.raises(IllegalMove, match="seat 1 tried '1 × 1', which is not legal now"):
        session.apply("1 × 1")
    session.apply("2 × 2")  # the six is wild, so both dice count
    session.apply("liar")
    assert session.utilities == (-1.0, 1.0)
    view = session.view(0).model_dump()
    assert view["dice"] == ["6"]
    assert view["opponent_dice"] == ["2"]
    assert view["bids"] == ["1 × 2", "2 × 2"]


def test_an_infoset_is_told_in_words() -> None:
    session = Session.start("liars-dice-two-each", seed=1, deck=["3", "1", "2", "2"])
    session.apply("1 × 1")
    session.apply("3 × 2")
    key = int(queries.infoset_key(session.states, CONCRETE))
    told = GAME.abstractions[CONCRETE].description(key)
    assert told == {"player": 0, "dice": ["1", "3"], "bids": ["1 × 1", "3 × 2"]}


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("first", 2, "first: a seat is needed"),
        ("rolled", 3, "rolled: it is in 0 to 2"),
        ("dice", [[7, -1], [0, -1]], "dice: 7 is no face of a die"),
        ("bids", 1 << 12, "bids: '3 × 1' is not possible there"),
        ("last", 5, "last: the dice and bids lead to 3, not 5"),
    ],
)
def test_an_impossible_state_is_refused(field: str, value: Any, why: str) -> None:
    session = Session.start("liars-dice", seed=1)
    session.apply("1 × 4")
    assert GAME.check(session.states, session.rules) is None
    session.states[0][field] = value
    assert GAME.check(session.states, session.rules) == why
