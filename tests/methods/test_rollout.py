"""Rollout MCCFR: deltas are pure, regrets are what they claim, and the fold is the written rule."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

from rejoinder.games import GAMES
from rejoinder.games.clamps import Clamps
from rejoinder.games.queries import bits
from rejoinder.kernel.rng import STREAM
from rejoinder.measure.best_response import policy_exploitability
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.learned import max_expected_regret
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.methods.tabular.rollout import (
    AVERAGING,
    entry_dtype,
    fold,
    play_game,
    policy_rows,
    row_dtype,
)
from rejoinder.methods.tabular.table import InfosetTable, new_table, table_of, with_room

BUFFER_SIZE = 10


class Trainer:
    """A learner in a few lines: plays games with the policies of its table and folds them."""

    def __init__(
        self,
        game: str,
        configuration: str,
        abstraction: str,
        *,
        rollouts: int = 2,
        epsilon: float = 0.1,
        seed: int = 1,
        decay: float = 1.0,
        averaging: str = "buffer",
        common_random_numbers: bool = False,
    ) -> None:
        self.game = GAMES[game]
        self.abstraction = self.game.abstraction(abstraction)
        self.epsilon = epsilon
        self.seed = seed
        actions = len(self.abstraction.actions)
        rules = self.game.configurations[configuration]
        self.table = new_table(row_dtype(actions, BUFFER_SIZE), 16)
        self._fixed = (self.game.template(rules), np.zeros(2, self.game.dtype), np.zeros(3, STREAM))
        self._entries = np.zeros(self.game.max_decisions(rules), entry_dtype(actions))
        self._rollouts = rollouts
        self._common_random_numbers = common_random_numbers
        clamps = self.abstraction.capability(Clamps) or Clamps()
        masks = (np.uint64(clamps.never), np.uint64(clamps.passive))
        self._fold_settings = (decay, AVERAGING[averaging], *masks)

    def play(self, index: int, policy: InfosetTable | None = None) -> Any:
        template, states, streams = self._fixed
        n = play_game(
            template,
            table_of(policy_rows(self.rows)) if policy is None else policy,
            states,
            streams,
            self.seed,
            index,
            self.game.players,
            self.game.starts,
            self.abstraction.argument(),
            self._rollouts,
            self.epsilon,
            self._common_random_numbers,
            self._entries,
        )
        return self._entries[:n].copy()

    def fold(self, delta: Any) -> None:
        self.table = with_room(self.table, len(delta))
        fold(self.table, delta, *self._fold_settings, np.zeros(len(delta), np.int64))

    def train(self, games: range) -> None:
        for index in games:
            self.fold(self.play(index))

    @property
    def rows(self) -> Any:
        return self.table.rows[: self.table.size[0]]


@cache
def trained() -> InfosetTable:
    """Policies that are neither uniform nor complete."""
    trainer = Trainer("deal", "medium", "intent")
    trainer.train(range(30))
    return table_of(policy_rows(trainer.rows))


def latest(policy: InfosetTable, entry: Any) -> dict[int, float]:
    """The latest policy at the infoset of an entry, by action."""
    legal = bits(entry["legal"])
    known = np.flatnonzero(policy.rows["key"][: policy.size[0]] == entry["key"])
    if len(known) == 0:
        return dict.fromkeys(legal, 1 / len(legal))
    return {a: float(policy.rows[known[0]]["policy"][LATEST, a]) for a in legal}


class TestDelta:
    def test_is_a_pure_function_of_seed_index_and_policy(self) -> None:
        trainer = Trainer("deal", "medium", "intent")
        first = [trainer.play(g, trained()).tobytes() for g in (5, 6)]
        for g in (90, 4, 17):
            trainer.play(g, trained())
        assert [trainer.play(g, trained()).tobytes() for g in (5, 6)] == first
        other = Trainer("deal", "medium", "intent")
        assert [other.play(g, trained()).tobytes() for g in (6, 5)] == first[::-1]

    def test_differs_by_index_by_seed_and_by_policy(self) -> None:
        trainer = Trainer("deal", "medium", "intent")
        reseeded = Trainer("deal", "medium", "intent", seed=2)
        untrained = table_of(policy_rows(trainer.rows))
        deltas = {
            trainer.play(5, trained()).tobytes(),
            trainer.play(6, trained()).tobytes(),
            trainer.play(7, trained()).tobytes(),
            reseeded.play(5, trained()).tobytes(),
            trainer.play(5, untrained).tobytes(),
        }
        assert len(deltas) == 5

    def test_the_first_player_alternates_with_the_index(self) -> None:
        trainer = Trainer("deal", "medium", "intent")
        describe = trainer.abstraction.description
        first = [describe(int(trainer.play(g)[0]["key"]))["player"] for g in range(10)]
        assert first == [0, 1] * 5

    def test_regrets_average_to_zero_under_the_policy_used(self) -> None:
        trainer = Trainer("deal", "medium", "intent")
        decisions, known, forced = 0, 0, 0
        for g in range(20):
            for entry in trainer.play(100 + g, trained()):
                decisions += 1
                policy = latest(trained(), entry)
                regret, legal = entry["regret"], bits(entry["legal"])
                known += len(set(policy.values())) > 1
                assert sum(p * regret[a] for a, p in policy.items()) == pytest.approx(0, abs=1e-12)
                assert np.abs(regret).max() <= 2.0
                assert all(regret[a] == 0 for a in range(len(regret)) if a not in legal)
                if len(legal) == 1:
                    forced += 1
                    assert (regret == 0).all()
        assert known > 100
        assert 0 < forced < decisions

    def test_common_random_numbers_takes_noise_out_of_the_regrets_and_nothing_else(self) -> None:
        own = Trainer("deal", "medium", "intent")
        common = Trainer("deal", "medium", "intent", common_random_numbers=True)
        regrets = {}
        for trainer in (own, common):
            deltas = [trainer.play(g, trained()) for g in range(300)]
            assert trainer.play(7, trained()).tobytes() == deltas[7].tobytes()
            entries = np.concatenate(deltas)
            chosen = entries[[len(bits(legal)) > 1 for legal in entries["legal"]]]
            keys, n = np.unique(chosen["key"], return_counts=True)
            often = chosen[chosen["key"] == keys[n.argmax()]]
            regrets[trainer] = often["regret"][:, often["regret"].var(axis=0).argmax()]
        noisy, calm = regrets[own], regrets[common]
        assert calm.var() < 0.75 * noisy.var()
        error = math.sqrt(noisy.var() / len(noisy) + calm.var() / len(calm))
        assert abs(noisy.mean() - calm.mean()) < 4 * error

    def test_reach_is_a_probability(self) -> None:
        trainer = Trainer("deal", "medium", "intent")
        for g in range(20):
            delta = trainer.play(g, trained())
            describe = trainer.abstraction.description
            players = np.array([describe(int(key))["player"] for key in delta["key"]])
            assert (delta["reach"] > 0).all()
            assert (delta["reach"] < 1).all()  # the deal alone has many outcomes
            for player in (0, 1):  # it only ever shrinks
                assert (np.diff(delta["reach"][players == player]) <= 0).all()

    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
    def test_reach_of_kuhn_is_the_deal_and_the_opponents_moves(self, epsilon: float) -> None:
        trainer = Trainer("kuhn", "standard", "none", epsilon=epsilon)
        trainer.train(range(10))
        policy = table_of(policy_rows(trainer.rows))
        lengths = set()
        for g in range(60):
            delta = trainer.play(1000 + g, policy)
            lengths.add(len(delta))
            # A key has the moves before it: bit 2 + k for the k-th.
            moves = [int(delta[-1]["key"]) >> 2 + k & 1 for k in range(len(delta) - 1)]
            for n, entry in enumerate(delta):
                reach = 1 / 6
                for k in range(n):
                    if k % 2 != n % 2:
                        played = latest(policy, delta[k])[moves[k]]
                        reach *= epsilon / 2 + (1 - epsilon) * played
                assert entry["reach"] == pytest.approx(reach, rel=1e-12)
        assert lengths == {2, 3} or (epsilon == 0 and lengths == {2})


@dataclass
class NaiveInfoset:
    """The learning rule as the document states it (d: decay)."""

    legal: list[int]
    regret: dict[int, float] = field(default_factory=dict)  # R(a)
    count: dict[int, float] = field(default_factory=dict)  # n(a)
    policy: dict[int, float] = field(default_factory=dict)
    average: dict[int, float] = field(default_factory=dict)
    past: list[dict[int, float]] = field(default_factory=list)
    reach: float = 0.0

    def __post_init__(self) -> None:
        self.regret = dict.fromkeys(self.legal, 0.0)
        self.count = dict.fromkeys(self.legal, 0.0)
        self.policy = dict.fromkeys(self.legal, 1 / len(self.legal))

    def learn(self, entry: Any, decay: float, average: Callable[[Any], dict[int, float]]) -> None:
        for a in self.legal:
            self.regret[a] = decay * self.regret[a] + float(entry["regret"][a])
            self.count[a] = decay * self.count[a] + 1
        self.reach += float(entry["reach"])
        self.policy = self._matched()
        self.past.append(self.policy)
        self.average = average(self.past)

    def _matched(self) -> dict[int, float]:
        other, not_cards = 10, (8, 9, 10)  # OTHER; PASS, YIELD and OTHER
        weights = {a: max(self.regret[a], 0.0) for a in self.legal}
        if other in weights:
            weights[other] = 0.0
        if any(w > 0 for a, w in weights.items() if a not in not_cards):
            weights = {a: 0.0 if a in not_cards else w for a, w in weights.items()}
        total = sum(weights.values())
        if total == 0:
            return self.policy
        return {a: w / total for a, w in weights.items()}


def mean_of_recent(past: list[dict[int, float]]) -> dict[int, float]:
    recent = deque(past, maxlen=BUFFER_SIZE)
    return {a: sum(policy[a] for policy in recent) / len(recent) for a in past[0]}


def mean_of_all(past: list[dict[int, float]]) -> dict[int, float]:
    return {a: sum(policy[a] for policy in past) / len(past) for a in past[0]}


def linear_mean(past: list[dict[int, float]]) -> dict[int, float]:
    n = len(past)
    return {a: sum((k + 1) * past[k][a] for k in range(n)) / (n * (n + 1) / 2) for a in past[0]}


NAIVE_AVERAGES = {"buffer": mean_of_recent, "uniform": mean_of_all, "linear": linear_mean}


@pytest.mark.parametrize("decay", [1.0, 0.99])
@pytest.mark.parametrize("averaging", NAIVE_AVERAGES)
def test_fold_is_the_written_rule(averaging: str, decay: float) -> None:
    trainer = Trainer("deal", "medium", "intent", decay=decay, averaging=averaging)
    naive: dict[int, NaiveInfoset] = {}
    kept = 0
    for g in range(50):
        delta = trainer.play(g)
        trainer.fold(delta)
        for entry in delta:
            infoset = naive.setdefault(int(entry["key"]), NaiveInfoset(bits(entry["legal"])))
            before = infoset.policy
            infoset.learn(entry, decay, NAIVE_AVERAGES[averaging])
            kept += infoset.policy is before
    assert kept > 0  # "the previous policy stays" happened
    assert trainer.rows["key"].tolist() == list(naive)  # in order of first visit
    assert max(len(infoset.past) for infoset in naive.values()) > 3 * BUFFER_SIZE
    for row, infoset in zip(trainer.rows, naive.values(), strict=True):
        assert bits(row["legal"]) == infoset.legal
        assert row["updates"] == len(infoset.past)
        assert row["reach"] == pytest.approx(infoset.reach, rel=1e-12)
        for numbers, expected in (
            (row["regret"], infoset.regret),
            (row["count"], infoset.count),
            (row["policy"][LATEST], infoset.policy),
            (row["policy"][AVERAGE], infoset.average),
        ):
            spread = [expected.get(a, 0.0) for a in range(len(numbers))]
            np.testing.assert_allclose(numbers, spread, rtol=1e-12, atol=1e-12)


def test_folding_is_the_same_however_often_the_table_had_to_grow() -> None:
    small, large = Trainer("deal", "medium", "intent"), Trainer("deal", "medium", "intent")
    large.table = new_table(large.table.rows.dtype, 4096)
    for g in range(10):
        delta = small.play(g)
        small.fold(delta)
        large.fold(delta)
    assert len(small.table.rows) < len(large.table.rows)
    assert small.rows.tobytes() == large.rows.tobytes()


def test_a_snapshot_does_not_change_with_later_folds() -> None:
    trainer = Trainer("deal", "medium", "intent")
    trainer.train(range(5))
    snapshot = table_of(policy_rows(trainer.rows))
    n, before = int(snapshot.size[0]), snapshot.rows["policy"].copy()
    np.testing.assert_array_equal(before[:n], trainer.rows["policy"])
    trainer.train(range(5, 10))
    np.testing.assert_array_equal(snapshot.rows["policy"], before)
    assert (trainer.rows["policy"][:n] != before[:n]).any()


class TestMaxExpectedRegret:
    def row(self, legal: int, reach: float, regret: list[float], count: list[float]) -> Any:
        made = np.zeros(1, row_dtype(3, 1))
        made["legal"], made["reach"] = legal, reach
        made["regret"], made["count"] = regret, count
        return made

    def test_is_the_reach_weighted_mean_of_the_largest_mean_regret(self) -> None:
        rows = np.concatenate(
            [
                self.row(0b011, 0.2, [4.0, 9.0, 0.0], [2.0, 3.0, 0.0]),  # 3; action 2 is illegal
                self.row(0b101, 0.6, [-4.0, 0.0, -1.0], [4.0, 0.0, 4.0]),  # −0.25
            ]
        )
        assert max_expected_regret(rows) == pytest.approx((0.2 * 3 - 0.6 * 0.25) / 0.8)

    def test_of_nothing_is_zero(self) -> None:
        assert max_expected_regret(np.zeros(0, row_dtype(3, 1))) == 0.0
        assert max_expected_regret(self.row(0b111, 0.0, [1, 1, 1], [1, 1, 1])) == 0.0

    def test_falls_with_training(self) -> None:
        trainer = Trainer("deal", "medium", "intent")
        trainer.train(range(10))
        early = max_expected_regret(trainer.rows)
        trainer.train(range(10, 200))
        assert 0 < max_expected_regret(trainer.rows) < early


@pytest.mark.parametrize("averaging", ["uniform", "linear"])
def test_rollouts_learn_to_play_kuhn(averaging: str) -> None:
    trainer = Trainer("kuhn", "standard", "none", rollouts=20, averaging=averaging)
    tree = build_tree(trainer.game, trainer.game.configurations["standard"])
    start = policy_exploitability(tree, table_of(policy_rows(trainer.rows))).exploitability
    assert start == pytest.approx(11 / 24)
    trainer.train(range(2000))
    assert policy_exploitability(tree, table_of(policy_rows(trainer.rows))).exploitability < 0.2
