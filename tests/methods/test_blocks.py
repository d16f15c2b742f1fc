"""Sampled CFR in blocks: what a unit gives, how units are weighted, and that it converges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime import sequential, train_with

from rejoinder.measure.exploit import policy_exploitability
from rejoinder.measure.solve import enumerate_game
from rejoinder.methods.tabular import sampling_method
from rejoinder.methods.tabular.table import table_of
from rejoinder.methods.tabular.weighting import WEIGHTINGS, entry_dtype
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import EmbeddedServer
from rejoinder_learner.state import Learner

METHODS = ("external", "outcome", "chance")


def config(game: str, method: str, **settings: Any) -> RunConfig:
    return make_config(
        {
            "game": game,
            "method": {"name": method, "iterations": 20, **settings},
            "games": 1_000,
            "batch": 5,
            "eval_every": 0,
            "checkpoint_every": 400,
        }
    )


def learn(config: RunConfig, units: int) -> Learner:
    learner, actor = Learner(config), config.actor()
    for unit in range(units):
        learner.fold(actor.play(unit, learner.snapshot_for(unit)))
    return learner


def exploitability(config: RunConfig, learner: Learner) -> float:
    game = config.load_game()
    tree = enumerate_game(game, next(iter(game.configurations)))
    return policy_exploitability(tree, table_of(learner.policy_rows())).exploitability


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(
    ("method", "least"), [("external", 0.02), ("outcome", 0.06), ("chance", 0.02)]
)
def test_the_average_strategy_goes_to_equilibrium(
    method: str, least: float, weighting: str
) -> None:
    kuhn = config("kuhn", method, weighting=weighting)
    learner = learn(kuhn, 10_000)
    assert exploitability(kuhn, learner) < least
    assert len(learner.rows) == 12  # every infoset of Kuhn poker, each with a choice


@pytest.mark.parametrize(("method", "least"), [("external", 0.05), ("chance", 0.03)])
def test_leduc_comes_close_to_equilibrium(method: str, least: float) -> None:
    leduc = config("leduc", method, iterations=200)
    learner = learn(leduc, 10_000)
    assert exploitability(leduc, learner) < least
    assert len(learner.rows) == 936


@pytest.mark.parametrize("method", METHODS)
def test_workers_give_the_digest_of_sequential_training(
    method: str, server: EmbeddedServer, tmp_path: Path
) -> None:
    leduc = config("leduc", method)
    run = RunDir.create(tmp_path / "run", leduc)
    assert train_with(server, run, 2) == sequential(leduc)


@pytest.mark.parametrize("method", METHODS)
def test_a_delta_depends_on_its_unit_and_snapshot_alone(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leduc = config("leduc", method)
    learner = learn(leduc, 20)
    snapshot = learner.snapshot_at(3)
    expected = leduc.actor().play(30, snapshot).tobytes()
    other = leduc.actor()
    other.play(7, snapshot)
    assert other.play(30, snapshot).tobytes() == expected
    monkeypatch.setattr(sampling_method, "_FIRST_ENTRIES", 1)  # so that the room must grow
    assert leduc.actor().play(30, snapshot).tobytes() == expected
    assert leduc.actor().play(31, snapshot).tobytes() != expected


def test_length_is_counted_in_iterations_and_rounded_up_to_whole_units() -> None:
    kuhn = config("kuhn", "external", iterations=300)
    assert (kuhn.units, kuhn.target) == (4, 1_200)
    assert learn(kuhn, kuhn.units).games == kuhn.target


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_scaling_rows_when_they_are_touched_is_scaling_all_of_them_always(weighting: str) -> None:
    kuhn = config("kuhn", "external", weighting=weighting)
    model = kuhn.load_method().model(kuhn.task(), None)
    units, keys, actions = 60, 6, kuhn.task().actions
    chance = np.random.default_rng(3)
    regret, average = np.zeros((keys, actions)), np.zeros((keys, actions))
    for unit in range(1, units + 1):
        met = chance.permutation(keys)[: chance.integers(1, keys)]
        delta = np.zeros(len(met), entry_dtype(actions))
        delta["key"], delta["legal"], delta["visits"] = met + 1, 3, 1
        delta["regret"] = chance.normal(size=delta["regret"].shape)
        delta["average"] = chance.random(delta["average"].shape)
        regret[met] += delta["regret"]
        average[met] += delta["average"]
        if weighting == "floor":
            regret = np.maximum(regret, 0.0)
        model.fold(unit - 1, [len(delta)], delta)
        if unit == units:
            break
        share, power = unit / (unit + 1), unit**1.5
        if weighting == "linear":
            regret, average = regret * share, average * share
        elif weighting == "discounted":
            regret = np.where(regret > 0, regret * power / (power + 1), regret / 2)
            average = average * share**2
        elif weighting == "floor":
            average = average * share
    rows = model.rows[np.argsort(model.rows["key"])]
    touched = delta["key"] - 1  # the others are scaled when they are met again
    np.testing.assert_allclose(rows["regret"][touched], regret[touched], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(rows["average"][touched], average[touched], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_learner_goes_on_from_a_checkpoint_as_if_nothing_had_happened(method: str) -> None:
    leduc = config("leduc", method)
    straight, half = learn(leduc, 47), learn(leduc, 23)
    resumed, actor = Learner(leduc, half.checkpoint()), leduc.actor()
    for unit in range(23, 47):
        resumed.fold(actor.play(unit, resumed.snapshot_for(unit)))
    assert resumed.digest() == straight.digest()
