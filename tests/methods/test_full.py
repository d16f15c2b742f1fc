"""Full-tree solvers: known values, published thresholds, and a slow second implementation."""

from __future__ import annotations

import numpy as np
import pytest
from naive_cfr import NaiveCfr, fresh
from trees import solved, tree_of

from rejoinder.games import GAMES
from rejoinder.measure.best_response import exploitability, policy_exploitability
from rejoinder.methods.exact.full import VARIANTS, FullSolver
from rejoinder.methods.policies import AVERAGE, LATEST

KUHN = GAMES["kuhn"]
LEDUC_VALUE = -0.0856064  # of seat 0, published for this game


def leduc_exploitability(variant: str, iterations: int) -> float:
    return solved("leduc", variant, iterations).measured.exploitability


def test_cfr_plus_solves_kuhn() -> None:
    solution = solved("kuhn", "cfr+", 10_000)
    assert solution.measured.value == pytest.approx(-1 / 18, abs=1e-4)
    assert 0 <= solution.measured.nash_conv < 2e-3
    assert solution.real == solution.measured


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_finds_the_value_of_kuhn(variant: str) -> None:
    measured = solved("kuhn", variant, 20_000).measured
    assert measured.value == pytest.approx(-1 / 18, abs=1e-3)
    assert measured.nash_conv < 5e-3


@pytest.mark.parametrize(("iterations", "at_most"), [(100, 0.0939), (500, 0.0214), (999, 0.0118)])
def test_cfr_on_leduc_is_no_worse_than_the_reference(iterations: int, at_most: float) -> None:
    assert leduc_exploitability("cfr", iterations) <= at_most


def test_cfr_plus_and_dcfr_beat_cfr_on_leduc_by_far() -> None:
    cfr = leduc_exploitability("cfr", 500)
    assert leduc_exploitability("cfr+", 500) < cfr / 5
    assert leduc_exploitability("dcfr", 500) < cfr / 5


def test_linear_cfr_beats_cfr_on_leduc() -> None:
    assert leduc_exploitability("lcfr", 500) < leduc_exploitability("cfr", 500)


def test_leduc_is_worth_what_is_published() -> None:
    measured = solved("leduc", "dcfr", 3_000).measured
    assert measured.value == pytest.approx(LEDUC_VALUE, abs=1e-4)
    assert measured.nash_conv < 1e-3


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_fifty_and_fifty_iterations_are_a_hundred_to_the_bit(game: str, variant: str) -> None:
    whole, halves = FullSolver(tree_of(game), variant), FullSolver(tree_of(game), variant)
    whole.run(100)
    halves.run(50)
    halves.run(0)
    halves.run(50)
    assert whole.iterations == halves.iterations == 100
    assert whole.average_strategy().tobytes() == halves.average_strategy().tobytes()
    assert whole._work.regret.tobytes() == halves._work.regret.tobytes()


@pytest.mark.parametrize("variant", VARIANTS)
def test_regrets_and_averages_are_those_of_naive_cfr(variant: str) -> None:
    tree = tree_of("kuhn")
    solver = FullSolver(tree, variant)
    naive = NaiveCfr(fresh(KUHN, "standard"), *VARIANTS[variant])
    for _ in range(2):
        solver.run(10)
        naive.run(10)
        assert len(naive.regret) == 12
        for infoset in tree.form.infosets:
            key = int(infoset["policy_key"])
            total = sum(naive.average[key].values())
            for a in (0, 1):
                slot = infoset["slot"] + a
                assert solver._work.regret[slot] == pytest.approx(naive.regret[key][a], abs=1e-12)
                assert solver.average_strategy()[slot] == pytest.approx(
                    naive.average[key][a] / total, abs=1e-12
                )


def test_before_the_first_iteration_the_average_is_uniform() -> None:
    solver = FullSolver(tree_of("leduc"), "cfr")
    slots = np.repeat(
        1 / tree_of("leduc").form.infosets["actions"], tree_of("leduc").form.infosets["actions"]
    )
    np.testing.assert_array_equal(np.sort(solver.average_strategy()), np.sort(slots))


def test_the_policy_table_says_the_same_as_the_strategy() -> None:
    tree = tree_of("leduc")
    solver = FullSolver(tree, "cfr+")
    solver.run(50)
    policy = solver.policy()
    rows = policy.rows[: policy.size[0]]
    assert len(rows) == 936
    np.testing.assert_allclose(rows["policy"].sum(axis=2), 1.0, atol=1e-12)
    assert (rows["policy"][:, LATEST] != rows["policy"][:, AVERAGE]).any()
    by_slot = exploitability(tree, solver.average_strategy())
    by_key = policy_exploitability(tree, policy)
    assert by_key.nash_conv == pytest.approx(by_slot.nash_conv, abs=1e-12)
    assert by_key.value == pytest.approx(by_slot.value, abs=1e-12)


def test_rows_are_all_that_is_needed_to_go_on() -> None:
    straight, halves = FullSolver(tree_of("leduc"), "dcfr"), FullSolver(tree_of("leduc"), "dcfr")
    straight.run(60)
    halves.run(25)
    resumed = FullSolver(tree_of("leduc"), "dcfr")
    resumed.restore(halves.rows()[::-1])  # the order does not matter
    resumed.run(35)
    assert resumed.rows().tobytes() == straight.rows().tobytes()
    assert resumed.iterations == 60
    resumed.restore(resumed.rows()[:0])  # from nothing
    resumed.run(60)
    assert resumed.rows().tobytes() == straight.rows().tobytes()


def test_a_solution_can_be_played_where_keys_hold_less_than_players_remember() -> None:
    """Infosets with one key share a strategy; it is measured by opponents who remember all."""
    tree = tree_of("deal")
    solver = FullSolver(tree, "dcfr")
    solver.run(200)
    infosets, policy = tree.form.infosets, solver.policy()
    decisions = infosets[infosets["actions"] > 1]
    assert len(np.unique(decisions["key"])) > 10 * int(policy.size[0])
    assert set(policy.rows["key"][: policy.size[0]]) == set(decisions["policy_key"])
    assert policy_exploitability(tree, policy).exploitability < 1e-6


def test_unknown_algorithms_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no 'cfr-'; there are cfr, cfr\+, lcfr, dcfr"):
        FullSolver(tree_of("kuhn"), "cfr-")
