"""The method `full`: solving as training, with one digest however it is cut and by whomever."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learning import config, learn
from runtime import Hand, outcome, sequential, train_with
from trees import tree_of

from rejoinder.methods.exact.full import VARIANTS, FullSolver
from rejoinder.run.config import ConfigError, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Deltas
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner


@pytest.mark.parametrize("algorithm", VARIANTS)
def test_units_are_the_solver_s_iterations_to_the_bit(algorithm: str) -> None:
    solver = FullSolver(tree_of("leduc"), algorithm)
    solver.run(60)
    for block in (20, 60):
        leduc = config("leduc", "full", algorithm=algorithm, iterations=block)
        learner = learn(leduc, 60 // block)
        assert learner.rows.tobytes() == solver.rows().tobytes()
        assert learner.games == 60


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_digest_of_sequential_training(
    workers: int, server: EmbeddedServer, tmp_path: Path
) -> None:
    leduc = config("leduc", "full", iterations=50)
    run = RunDir.create(tmp_path / "run", leduc)
    assert train_with(server, run, workers) == sequential(leduc)


def test_unordered_mode_learns_the_same_since_units_come_one_by_one(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    leduc = config("leduc", "full", iterations=50)
    unordered = leduc.model_copy(update={"order": "arrival"})
    run = RunDir.create(tmp_path / "run", unordered)
    train_with(server, run, 2)
    assert run.result().rows.tobytes() == learn(leduc, leduc.units).rows.tobytes()


def test_it_goes_on_in_the_middle(tmp_path: Path) -> None:
    kuhn = config("kuhn", "full", algorithm="cfr+")
    run = RunDir.create(tmp_path / "run", kuhn)
    played = iter(range(18))
    stopped = train(run, should_stop=lambda: next(played, None) is None)
    assert (stopped.finished, stopped.games) == (False, 18 * 20)
    assert outcome(run, train(run)) == sequential(kuhn)
    resumed = Learner(kuhn, learn(kuhn, 7).checkpoint())
    assert learn(kuhn, 13, resumed).digest() == learn(kuhn, 13).digest()


def test_a_run_may_start_from_a_solution(tmp_path: Path) -> None:
    from rejoinder.run.starts import begin, read_start

    kuhn = config("kuhn", "full")
    train(RunDir.create(tmp_path / "first", kuhn))
    start = read_start(tmp_path / "first")
    more = RunDir.create(tmp_path / "more", begin(kuhn, start), start.rows)
    train(more)
    twice = learn(kuhn, 2 * kuhn.units)
    assert more.result().rows.tobytes() == twice.rows.tobytes()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"batch": 2}, "batch: the method full requires 1, not 2"),
        ({"lag": 1}, "lag: the method full requires 0, not 1"),
        ({"game": "deal"}, "method.name: full does not work here: deal-medium is too large"),
        (
            {"game": "deal", "rules": {"base": "micro", "turn_cap": 9}},
            "deal with these rules is too large to enumerate",
        ),
        ({"method.algorithm": "magic"}, "method.algorithm: input should be 'cfr'"),
    ],
)
def test_what_cannot_be_solved_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_config({"game": "kuhn", "method": {"name": "full"}}, fields)


def test_what_it_requires_is_the_default() -> None:
    full = make_config({"game": "kuhn", "method": "full"})
    assert (full.batch, full.lag) == (1, 0)
    assert make_config(full.model_dump(mode="json")).fingerprint == full.fingerprint


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("regret", np.nan, "finite"),
        ("average", -1.0, "negative"),
        ("weight", np.inf, "finite"),
        ("key", 12345, "its keys"),
        ("legal", 1, "legal actions"),
        ("legal", 7, "legal actions"),
        ("iterations", 2**60, "at most"),
        ("iterations", 21, "one iteration"),
    ],
)
def test_a_delta_that_no_solver_gives_is_refused(field: str, value: Any, said: str) -> None:
    kuhn = config("kuhn", "full")
    check, delta = kuhn.load_method().delta_check(kuhn.task()), learn(kuhn, 1).rows.copy()
    assert check(delta) is None
    delta[field][3] = value
    assert said in (check(delta) or "")


class LiesAboutIterations(Hand):
    """Gives the state of a solver that has seen more iterations than were played."""

    def work(self, job: str, message: bytes) -> None:
        answer = self.answer(job, message)
        if isinstance(answer, Deltas):
            answer.entries["iterations"] += 7
        self.bus.deliver([self.player.codec.encode(answer)], job)


class Follows(Hand):
    """Comes when the other one is banned."""

    other: Hand

    def step(self) -> None:
        if self.other.banned:
            super().step()
        else:
            time.sleep(0.002)


@pytest.mark.parametrize("order", ["index", "arrival"])
def test_who_gives_a_delta_of_another_iteration_is_banned(
    order: str, server: EmbeddedServer, tmp_path: Path
) -> None:
    kuhn = config("kuhn", "full").model_copy(update={"order": order})
    run = RunDir.create(tmp_path / "run", kuhn)
    liar, honest = LiesAboutIterations(server.url, run, "liar"), Follows(server.url, run, "honest")
    honest.other = liar
    train_with(server, run, [liar, honest])
    expected = learn(config("kuhn", "full"), kuhn.units)
    assert run.result().rows.tobytes() == expected.rows.tobytes()
    assert run.workers()["banned"] == ["liar"]


def test_a_delta_made_with_an_old_state_is_not_folded_out_of_order(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """It cannot be played again here; one unit is under way at a time, so it is known to be old."""
    kuhn = config("kuhn", "full").model_copy(update={"order": "arrival"})
    run, began = RunDir.create(tmp_path / "run", kuhn), []

    class SaysItIsOld(Hand):
        def work(self, job: str, message: bytes) -> None:
            answer = self.answer(job, message)
            if isinstance(answer, Deltas):
                began.append(answer.snapshot)
                if len(began) == 5:
                    answer.entries["iterations"] = 2**50
                    answer = dataclasses.replace(answer, snapshot=began[0])
            self.bus.deliver([self.player.codec.encode(answer)], job)

    train_with(server, run, [SaysItIsOld(server.url, run, "old")])
    expected = learn(config("kuhn", "full"), kuhn.units)
    assert run.result().rows.tobytes() == expected.rows.tobytes()
    assert len(began) > kuhn.units


def test_a_delta_of_some_decisions_only_is_refused() -> None:
    kuhn = config("kuhn", "full")
    check, delta = kuhn.load_method().delta_check(kuhn.task()), learn(kuhn, 1).rows
    assert "its keys are not those of the game's 12 decisions" in (check(delta[1:]) or "")


def test_a_snapshot_with_a_decision_of_one_action_is_refused() -> None:
    kuhn = config("kuhn", "full")
    rows = learn(kuhn, 1).rows.copy()
    assert kuhn.load_method().check_snapshot(kuhn.task(), rows) is None
    rows["legal"][3] = 1
    assert "at least two" in (kuhn.load_method().check_snapshot(kuhn.task(), rows) or "")
