"""Sampled CFR in blocks: what a unit gives, how units are weighted, and that it converges."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learning import config, learn
from naive_cfr import NaiveCfr, fresh
from runtime import sequential, train_with
from trees import solved, tree_of

from rejoinder.games import GAMES
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.methods.base import CheckedActor
from rejoinder.methods.exact.full import VARIANTS
from rejoinder.methods.tabular import sampling_method
from rejoinder.methods.tabular.outcome import MIN_SAMPLED
from rejoinder.methods.tabular.table import table_of
from rejoinder.methods.tabular.weighting import WEIGHTINGS, entry_dtype
from rejoinder.run.checkpoints import first_checkpoint
from rejoinder.run.config import ConfigError, RunConfig, load_config, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.run.starts import begin, read_start
from rejoinder.transport.server import EmbeddedServer
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner

METHODS = ("external", "outcome", "chance")


def exploitability(config: RunConfig, learner: Learner) -> float:
    tree = tree_of(config.game)
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
def test_unordered_training_folds_every_unit_once(
    method: str, server: EmbeddedServer, tmp_path: Path
) -> None:
    kuhn = config("kuhn", method).model_copy(update={"order": "arrival"})
    run = RunDir.create(tmp_path / "run", kuhn)
    train_with(server, run, 3)
    assert sorted(run.ledger()["unit"].tolist()) == list(range(kuhn.units))
    assert run.result().games == kuhn.games
    learned = table_of(run.result().rows)
    assert policy_exploitability(tree_of("kuhn"), learned).exploitability < 0.3  # uniform: 0.46


@pytest.mark.parametrize("method", ["leduc", "leduc-rollout"])
@pytest.mark.parametrize("mask", [0b100, 0b010, 0b111])
def test_a_delta_that_lies_about_legal_actions_does_not_end_the_training(
    method: str, mask: int
) -> None:
    """Those that were told first count, so no row becomes what nobody would take."""
    leduc = load_config(method, {"batch": 1, "lag": 0})
    learner, actor = Learner(leduc), leduc.actor()
    checks, task = leduc.load_method(), leduc.task()

    def go_on(units: int) -> Any:
        for _ in range(units):
            delta = actor.play(learner.units, learner.snapshot_for(learner.units))
            assert checks.delta_check(task)(delta) is None
            learner.fold(delta)
            assert checks.check_snapshot(task, learner.snapshot_for(learner.units).rows) is None
            assert checks.check_policies(task, learner.policy_rows()) is None
        return delta

    forged = go_on(3).copy()
    forged["legal"] = mask
    for name in {"regret", "average"} & set(forged.dtype.names):
        forged[name] = np.where([mask >> a & 1 for a in range(3)], 5, 0)
    if "visits" in forged.dtype.names:
        forged["visits"] = 1
    assert checks.delta_check(task)(forged) is None
    learner.fold(forged)
    go_on(20)


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
    monkeypatch.setattr(sampling_method, "is_crowded", lambda _: True)  # factors are drawn again
    third = leduc.actor()
    third.play(7, snapshot)
    assert third.play(30, snapshot).tobytes() == expected


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


@pytest.mark.parametrize("method", ["external", "outcome"])
def test_one_walk_is_exact_on_average(method: str) -> None:
    """The first walk meets uniform play: seat 0's regrets, seat 1's visits without its own part."""
    naive = NaiveCfr(fresh(GAMES["kuhn"], "standard"), *VARIANTS["cfr"])
    naive.run(1)
    keys = sorted(naive.regret)
    iterations = 100_000
    kuhn = config("kuhn", method, iterations=iterations)
    delta = kuhn.actor().play(0, kuhn.load_method().snapshot(kuhn.task()))
    where = np.searchsorted(keys, delta["key"])
    regret, average = np.zeros((12, 2)), np.zeros((12, 2))
    regret[where], average[where] = delta["regret"] / iterations, delta["average"] / iterations
    for n, key in enumerate(keys):
        if key >> 8 == 0:
            exact = [naive.regret[key][a] for a in (0, 1)]
            assert regret[n] == pytest.approx(exact, abs=0.02)
        else:
            # One in three deals gives them the card, and either first move leads to one infoset.
            assert average[n] == pytest.approx([1 / 6, 1 / 6], abs=0.01)


def test_external_sampling_does_on_an_abstraction_what_the_exact_solver_does() -> None:
    reference = solved("deal", "dcfr", 300, "intent").measured
    micro = config("deal", "external", weighting="uniform", rules="micro", abstraction="intent")
    policy = table_of(learn(micro, 1_000).policy_rows())
    sampled = policy_exploitability(tree_of("deal", "intent"), policy)
    # An abstraction forgets, so neither reaches zero against responses that remember.
    assert reference.exploitability == pytest.approx(0.05625, abs=1e-4)
    assert sampled.exploitability == pytest.approx(reference.exploitability, abs=0.004)
    assert sampled.value == pytest.approx(0.0, abs=0.004)


@pytest.mark.parametrize("rules", ["tiny", "medium"])
def test_outcome_sampling_gives_units_of_long_games_that_are_taken(rules: str) -> None:
    """The probability of such a sample may be less than any number that a computer has."""
    deal = config("deal", "outcome", rules=rules)
    task, method = deal.task(), deal.load_method()
    actor, snapshot = method.actor(task), method.snapshot(task)
    units = [actor.play(unit, snapshot).copy() for unit in range(60)]
    assert list(map(method.delta_check(task), units)) == [None] * 60
    least = 1 / MIN_SAMPLED
    assert max(float(np.abs(delta["regret"]).max(initial=0)) for delta in units) > least / 100


def test_what_the_learner_would_refuse_is_an_error_of_its_actor() -> None:
    kuhn = config("kuhn", "external")
    task, method = kuhn.task(), kuhn.load_method()

    class Broken:
        def play(self, unit: int, snapshot: Any) -> Any:
            delta = method.actor(task).play(unit, snapshot)
            delta["regret"][1] = np.inf
            return delta

    broken = dataclasses.replace(method, actor=lambda _: Broken())
    with pytest.raises(ValueError, match="unit 3 of the method external is wrong: entry 1 is not"):
        CheckedActor(broken, task).play(3, method.snapshot(task))
    small = dataclasses.replace(method, most_entries=lambda _: 3)
    with pytest.raises(ValueError, match=r"unit 3 has \d+ entries, not 3 at most"):
        CheckedActor(small, task).play(3, method.snapshot(task))


def test_a_unit_that_meets_too_many_infosets_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_method, "_FIRST_ENTRIES", 8)
    monkeypatch.setattr(sampling_method, "MAX_ENTRIES", 32)
    leduc = config("leduc", "external")
    with pytest.raises(ValueError, match="unit 0 meets more than 32 infosets: give units fewer"):
        leduc.actor().play(0, leduc.load_method().snapshot(leduc.task()))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_run_from_another_goes_on_with_its_weights(weighting: str, tmp_path: Path) -> None:
    leduc = config("leduc", "external", weighting=weighting)
    units, half = 40, 20
    straight, actor, deltas = Learner(leduc), leduc.actor(), []
    for unit in range(units):
        deltas.append(actor.play(unit, straight.snapshot_for(unit)).copy())
        straight.fold(deltas[-1])
    run = RunDir.create(tmp_path / "run", leduc.model_copy(update={"games": half * leduc.block}))
    train(run)
    start = read_start(run.path)
    more = begin(leduc, start)
    learner = Learner(more, first_checkpoint(more, start.rows))
    for unit in range(half, units):
        learner.fold(deltas[unit])
        learner = Learner(more, learner.checkpoint())  # a resumed run is in no other place
    names = set(straight.rows.dtype.names or ()) - {"before"}
    assert {"key", "visits", "weight", "regret", "average"} <= names
    for name in names:
        np.testing.assert_array_equal(learner.rows[name], straight.rows[name], name)


def test_a_run_has_no_more_units_than_rows_can_count() -> None:
    many = 2 * 10**11
    assert make_config({"game": "kuhn", "method": "external", "games": many}).games == many
    with pytest.raises(ConfigError, match="the method external takes 2,147,483,647 at most"):
        make_config({"game": "kuhn", "method": "external", "games": 2 * many})
    assert make_config({"game": "kuhn", "method": "rollout", "games": 10**12}).units == 10**12


def test_a_start_behind_too_many_units_is_refused() -> None:
    kuhn = config("kuhn", "external")
    rows = learn(kuhn, 3).rows.copy()
    rows["unit"][0] = 2**31 + 1
    with pytest.raises(ValueError, match="2,147,483,649 units behind it are too many"):
        kuhn.load_method().as_start(kuhn.task(), rows)


def test_visits_that_cannot_be_counted_are_not() -> None:
    kuhn = config("kuhn", "external", weighting="uniform")
    model = kuhn.load_method().model(kuhn.task(), None)
    delta = np.zeros(1, entry_dtype(kuhn.task().actions))
    delta["key"], delta["legal"], delta["visits"] = 1, 3, 2**31 + 5
    for unit in range(3):
        model.fold(unit, [1], delta)
    assert model.rows["visits"].tolist() == [2**32 - 1]
