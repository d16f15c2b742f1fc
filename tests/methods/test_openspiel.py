"""OpenSpiel as an independent judge: the same games, the same numbers for our policies."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from learning import config, learn
from naive_cfr import after, chance, fresh, legal
from trees import tree_of

from rejoinder.games import GAMES, queries
from rejoinder.games.contract import CHANCE, CONCRETE, OVER
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.methods.exact.full import FullSolver
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.table import InfosetTable, new_table, table_of

pyspiel = pytest.importorskip(
    "pyspiel", reason="needs OpenSpiel; get it with: pip install 'rejoinder[bench]'"
)
GAME_NAMES = ["kuhn", "leduc"]


@cache
def names_of_infosets(name: str) -> dict[int, tuple[str, tuple[int, ...]]]:
    """Our key → OpenSpiel's name and the legal actions, by walking both games side by side."""
    names: dict[int, tuple[str, tuple[int, ...]]] = {}
    root = pyspiel.load_game(f"{name}_poker").new_initial_state()
    _walk_together(fresh(GAMES[name], "standard"), root, names)
    return names


def _walk_together(states: Any, theirs: Any, names: dict[int, tuple[str, tuple[int, ...]]]) -> None:
    mover = queries.current_player(states)
    if mover == OVER:
        assert theirs.is_terminal()
        won = np.zeros(2)
        queries.utilities(states, won)
        assert won.tolist() == list(theirs.returns())
        return
    assert not theirs.is_terminal()
    if mover == CHANCE:
        assert theirs.is_chance_node()
        odds = chance(states)
        assert odds == pytest.approx(dict(theirs.chance_outcomes()))
        moves = list(odds)
    else:
        assert theirs.current_player() == mover
        moves = legal(states)
        assert moves == theirs.legal_actions()
        key = int(queries.infoset_key(states, CONCRETE))
        told = (theirs.information_state_string(mover), tuple(moves))
        assert names.setdefault(key, told) == told
    for move in moves:
        _walk_together(after(states, move), theirs.child(move), names)


def judged(name: str, policy: InfosetTable) -> float:
    """OpenSpiel's NashConv of a policy table; uniform where the table knows nothing."""
    rows = {int(row["key"]): row["policy"][AVERAGE] for row in policy.rows[: policy.size[0]]}
    told = {
        text: [(a, float(rows[key][a]) if key in rows else 1 / len(actions)) for a in actions]
        for key, (text, actions) in names_of_infosets(name).items()
    }
    return float(pyspiel.nash_conv(pyspiel.load_game(f"{name}_poker"), told))


@pytest.mark.parametrize(("name", "infosets"), [("kuhn", 12), ("leduc", 936)])
def test_the_games_agree_everywhere(name: str, infosets: int) -> None:
    names = names_of_infosets(name)
    assert len(names) == infosets
    assert len({text for text, _ in names.values()}) == infosets
    assert set(names) == set(tree_of(name).form.infosets["policy_key"].tolist())


@pytest.mark.parametrize(("name", "nash_conv"), [("kuhn", 11 / 12), ("leduc", 2 * 2.3736)])
def test_uniform_play(name: str, nash_conv: float) -> None:
    nothing = new_table(policy_dtype(len(GAMES[name].moves)), 1)
    ours = policy_exploitability(tree_of(name), nothing).nash_conv
    assert ours == pytest.approx(nash_conv, abs=1e-4)
    assert judged(name, nothing) == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize(
    ("variant", "iterations"), [("cfr", 1), ("cfr+", 200), ("dcfr", 200), ("lcfr", 20)]
)
@pytest.mark.parametrize("name", GAME_NAMES)
def test_full_tree_averages(name: str, variant: str, iterations: int) -> None:
    solver = FullSolver(tree_of(name), variant)
    solver.run(iterations)
    ours = policy_exploitability(tree_of(name), solver.policy()).nash_conv
    assert judged(name, solver.policy()) == pytest.approx(ours, abs=1e-6)


@pytest.mark.parametrize("method", ["external", "outcome", "chance"])
@pytest.mark.parametrize("name", GAME_NAMES)
def test_sampled_averages(name: str, method: str) -> None:
    learner = learn(config(name, method), 200)
    ours = policy_exploitability(tree_of(name), table_of(learner.policy_rows())).nash_conv
    assert judged(name, table_of(learner.learned)) == pytest.approx(ours, abs=1e-6)
