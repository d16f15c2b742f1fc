"""Regret matching against its definition, spelled out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.games import GAMES
from rejoinder.games.clamps import Clamps
from rejoinder.games.queries import bits
from rejoinder.kernel.jit import kernel
from rejoinder.methods.tabular.regret import match_clamped, match_regrets

ACTIONS = 11
UNTOUCHED = 7.0  # not a probability


@kernel
def plain(regret: Any, legal: Any, strategy: Any) -> None:
    match_regrets(regret, legal, strategy)


@kernel
def clamped(regret: Any, legal: Any, never: Any, passive: Any, strategy: Any) -> None:
    match_clamped(regret, legal, never, passive, strategy)


def in_proportion(weights: dict[int, float]) -> dict[int, float] | None:
    total = sum(weights.values())
    return {a: w / total for a, w in weights.items()} if total > 0 else None


def plain_by_definition(regret: list[float], legal: int) -> dict[int, float]:
    matched = in_proportion({a: max(regret[a], 0.0) for a in bits(legal)})
    return matched or dict.fromkeys(bits(legal), 1 / len(bits(legal)))


def clamped_by_definition(
    regret: list[float], legal: int, never: int, passive: int, previous: list[float]
) -> dict[int, float]:
    weights = {a: max(regret[a], 0.0) for a in bits(legal)}
    for a in weights:
        if a in bits(never):
            weights[a] = 0.0
    if any(w > 0 for a, w in weights.items() if a not in bits(passive)):
        for a in weights:
            if a in bits(passive):
                weights[a] = 0.0
    return in_proportion(weights) or {a: previous[a] for a in bits(legal)}


masks = st.integers(0, 2**ACTIONS - 1)
values = st.one_of(
    st.sampled_from([0.0, -1.0, 1.0, 1e-9, 1e9]),
    st.floats(-100.0, 100.0).map(lambda x: round(x, 6)),
)
regrets = st.lists(values, min_size=ACTIONS, max_size=ACTIONS)


def check(strategy: Any, expected: dict[int, float]) -> None:
    for a in range(ACTIONS):
        if a in expected:
            assert strategy[a] == pytest.approx(expected[a], abs=1e-14)
        else:
            assert strategy[a] == UNTOUCHED


@given(regret=regrets, legal=masks.filter(bool))
def test_regret_matching_is_its_definition(regret: list[float], legal: int) -> None:
    strategy = np.full(ACTIONS, UNTOUCHED)
    plain(np.array(regret), np.uint64(legal), strategy)
    check(strategy, plain_by_definition(regret, legal))


@given(regret=regrets, legal=masks.filter(bool), never=masks, passive=masks)
def test_clamped_matching_is_its_definition(
    regret: list[float], legal: int, never: int, passive: int
) -> None:
    previous = [0.01 * (a + 1) if a in bits(legal) else UNTOUCHED for a in range(ACTIONS)]
    strategy = np.array(previous)
    clamped(np.array(regret), np.uint64(legal), np.uint64(never), np.uint64(passive), strategy)
    check(strategy, clamped_by_definition(regret, legal, never, passive, previous))


@given(regret=regrets, legal=masks.filter(bool))
def test_without_clamps_and_with_positive_regret_both_are_the_same(
    regret: list[float], legal: int
) -> None:
    nobody = np.uint64(0)
    one, other = np.full(ACTIONS, UNTOUCHED), np.full(ACTIONS, UNTOUCHED)
    plain(np.array(regret), np.uint64(legal), one)
    clamped(np.array(regret), np.uint64(legal), nobody, nobody, other)
    if any(regret[a] > 0 for a in bits(legal)):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)
    else:
        assert (other == UNTOUCHED).all()


class TestDealClamps:
    """The two clamps of the paper, on Monopoly Deal's own masks."""

    intent = GAMES["deal"].abstraction("intent")

    def matched(self, **regret: float) -> dict[str, float]:
        legal = sum(1 << self.intent.actions.index(name) for name in regret)
        sums = np.zeros(ACTIONS)
        for name, value in regret.items():
            sums[self.intent.actions.index(name)] = value
        strategy = np.full(ACTIONS, 0.25)
        clamps = self.intent.capability(Clamps)
        assert clamps is not None
        never, passive = np.uint64(clamps.never), np.uint64(clamps.passive)
        clamped(sums, np.uint64(legal), never, passive, strategy)
        return {name: float(strategy[self.intent.actions.index(name)]) for name in regret}

    def test_other_never_gets_weight(self) -> None:
        assert self.matched(CASH=1.0, PASS=0.0, OTHER=3.0) == {"CASH": 1, "PASS": 0, "OTHER": 0}
        assert self.matched(CASH=-1.0, PASS=2.0, OTHER=3.0) == {"CASH": 0, "PASS": 1, "OTHER": 0}

    def test_passing_gets_none_while_a_card_has_positive_regret(self) -> None:
        got = self.matched(CASH=1.0, ATTEMPT_COLLECT_RENT=3.0, PASS=100.0)
        assert got == {"CASH": 0.25, "ATTEMPT_COLLECT_RENT": 0.75, "PASS": 0.0}
        assert self.matched(CASH=0.0, PASS=100.0) == {"CASH": 0.0, "PASS": 1.0}

    def test_with_no_weight_left_the_previous_policy_stays(self) -> None:
        assert self.matched(CASH=-1.0, PASS=0.0, OTHER=5.0) == dict.fromkeys(
            ("CASH", "PASS", "OTHER"), 0.25
        )
