"""Sampling solvers approach the values that exact ones find, and are functions of their seed."""

from __future__ import annotations

import numpy as np
import pytest
from naive_cfr import NaiveCfr, fresh
from trees import tree_of

from rejoinder.games import GAMES
from rejoinder.measure.exploit import Exploitability, exploitability, policy_exploitability
from rejoinder.measure.solve import solve
from rejoinder.methods.exact.full import VARIANTS, FullSolver
from rejoinder.methods.exact.tree import Tree
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.methods.tabular.sampling import ALGORITHMS, SamplingSolver

KUHN, LEDUC, DEAL = GAMES["kuhn"], GAMES["leduc"], GAMES["deal"]


def solver_for(tree: Tree, algorithm: str, seed: int = 1) -> SamplingSolver:
    return SamplingSolver(
        tree.game,
        tree.rules,
        tree.policy,
        algorithm,
        infosets=len(tree.form.infosets),
        seed=seed,
    )


def measured_after(tree: Tree, algorithm: str, iterations: int, seed: int = 1) -> Exploitability:
    solver = solver_for(tree, algorithm, seed)
    solver.run(iterations)
    return policy_exploitability(tree, solver.policy())


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("game", "algorithm", "iterations", "exploitable", "value", "within"),
    [
        ("kuhn", "es-mccfr", 100_000, 0.006, -1 / 18, 0.001),
        ("kuhn", "os-mccfr", 200_000, 0.02, -1 / 18, 0.002),
        ("leduc", "es-mccfr", 300_000, 0.08, -0.0856, 0.01),
        ("leduc", "os-mccfr", 1_000_000, 0.25, -0.0856, 0.03),
    ],
)
def test_the_known_value_is_approached(
    game: str,
    algorithm: str,
    iterations: int,
    exploitable: float,
    value: float,
    within: float,
    seed: int,
) -> None:
    measured = measured_after(tree_of(game), algorithm, iterations, seed)
    assert 0 < measured.exploitability < exploitable
    assert measured.value == pytest.approx(value, abs=within)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_a_hundred_times_the_work_is_at_least_three_times_better(game: str, algorithm: str) -> None:
    few = measured_after(tree_of(game), algorithm, 2_000)
    many = measured_after(tree_of(game), algorithm, 200_000)
    assert many.exploitability < few.exploitability / 3


def bytes_after(algorithm: str, seed: int, *steps: int) -> bytes:
    solver = solver_for(tree_of("leduc"), algorithm, seed)
    for iterations in steps:
        solver.run(iterations)
    assert solver.iterations == sum(steps)
    return bytes(solver.table.rows.tobytes())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_seed_decides_every_bit(algorithm: str) -> None:
    once = bytes_after(algorithm, 1, 1000)
    assert bytes_after(algorithm, 1, 1000) == once
    assert bytes_after(algorithm, 1, 400, 0, 600) == once
    assert bytes_after(algorithm, 2, 1000) != once


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_policy_is_a_distribution_over_the_legal_actions(algorithm: str) -> None:
    solver = solver_for(tree_of("leduc"), algorithm)
    solver.run(2_000)
    policy = solver.policy()
    rows, used = policy.rows[: policy.size[0]], solver.table.rows[: solver.table.size[0]]
    np.testing.assert_array_equal(rows["key"], used["key"])
    legal = (used["legal"][:, None] >> np.arange(3, dtype=np.uint64)) & np.uint64(1) == 1
    for column in (LATEST, AVERAGE):
        np.testing.assert_allclose(rows["policy"][:, column].sum(axis=1), 1.0, atol=1e-12)
        assert (rows["policy"][:, column] >= 0).all()
        assert (rows["policy"][:, column][~legal] == 0).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_iteration_visits_only_infosets_of_the_game(algorithm: str) -> None:
    tree = tree_of("leduc")
    solver = solver_for(tree, algorithm)
    solver.run(100_000)
    met = solver.table.rows["key"][: solver.table.size[0]]
    assert len(met) == len(np.unique(met))
    assert np.isin(met, tree.form.infosets["policy_key"]).all()
    assert 900 < len(met) <= 936  # where nobody wants to go, a few are never met


def test_external_sampling_does_on_an_abstraction_what_the_exact_solver_does() -> None:
    tree = tree_of("deal", "intent")
    exact = FullSolver(tree, "dcfr")
    exact.run(300)
    reference = exploitability(tree, exact.average_strategy())
    sampled = measured_after(tree, "es-mccfr", 20_000)
    # An abstraction forgets, so neither reaches zero against responses that remember.
    assert reference.exploitability == pytest.approx(0.05625, abs=1e-4)
    assert sampled.exploitability == pytest.approx(reference.exploitability, abs=0.004)
    assert sampled.value == pytest.approx(0.0, abs=0.004)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_walk_is_exact_on_average(algorithm: str) -> None:
    """The first walk meets uniform play: seat 0's regrets, seat 1's visits without his own part."""
    naive = NaiveCfr(fresh(KUHN, "standard"), *VARIANTS["cfr"])
    naive.run(1)
    keys = sorted(naive.regret)
    seeds = 10_000
    regret, average = np.zeros((12, 2)), np.zeros((12, 2))
    for seed in range(seeds):
        solver = solver_for(tree_of("kuhn"), algorithm, seed)
        solver.run(1)
        used = solver.table.rows[: solver.table.size[0]]
        where = np.searchsorted(keys, used["key"])
        regret[where] += used["regret"] / seeds
        average[where] += used["average"] / seeds
    for n, key in enumerate(keys):
        if key >> 8 == 0:
            exact = [naive.regret[key][a] for a in (0, 1)]
            assert regret[n] == pytest.approx(exact, abs=0.04)
        else:
            # One in three deals gives him the card, and either first move leads to one infoset.
            assert average[n] == pytest.approx([1 / 6, 1 / 6], abs=0.02)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_solve_runs_them_too(algorithm: str) -> None:
    solution = solve(KUHN, "standard", algorithm, 5_000, seed=3)
    alone = measured_after(tree_of("kuhn"), algorithm, 5_000, seed=3)
    assert solution.measured == solution.real == alone


def test_unknown_algorithms_are_refused() -> None:
    with pytest.raises(ValueError, match="no 'cs-mccfr'; there are es-mccfr, os-mccfr"):
        SamplingSolver(
            KUHN, KUHN.configurations["standard"], KUHN.abstractions[0], "cs-mccfr", infosets=12
        )


def test_more_infosets_than_announced_are_refused() -> None:
    solver = SamplingSolver(
        LEDUC, LEDUC.configurations["standard"], LEDUC.abstractions[0], "es-mccfr", infosets=20
    )
    with pytest.raises(MemoryError, match="the infoset table is full"):
        solver.run(10_000)
