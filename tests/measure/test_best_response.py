"""Best responses and NashConv against known answers and brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kuhn_players import Bets, always, equilibrium, infosets, player, table
from trees import solved, tree_of

from rejoinder.games import GAMES
from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.measure.best_response import (
    both_exploitabilities,
    counted_exploitability,
    exploitability,
    policy_exploitability,
    response_infosets,
)
from rejoinder.measure.search import count_moves, searching
from rejoinder.methods.exact.full import uniform_strategy
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.table import new_table, table_of

KUHN, LEDUC, DEAL = GAMES["kuhn"], GAMES["leduc"], GAMES["deal"]
NOTHING = new_table(policy_dtype(11), 1)


def uniform_intents() -> Agent:
    return trained_agent("uniform", DEAL.abstraction("intent"), NOTHING, argmax=False)


def test_uniform_play_of_kuhn_and_leduc() -> None:
    kuhn = exploitability(tree_of("kuhn"), uniform_strategy(tree_of("kuhn")))
    assert kuhn.value == pytest.approx(1 / 8)
    assert kuhn.best_response_values == pytest.approx((1 / 2, 5 / 12))
    assert kuhn.nash_conv == pytest.approx(11 / 12)
    assert kuhn.exploitability == pytest.approx(11 / 24)
    leduc = exploitability(tree_of("leduc"), uniform_strategy(tree_of("leduc")))
    assert leduc.exploitability == pytest.approx(2.3736, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_the_equilibria_of_kuhn_cannot_be_exploited(alpha: float) -> None:
    measured = policy_exploitability(tree_of("kuhn"), table(equilibrium(alpha)))
    assert measured.nash_conv == pytest.approx(0.0, abs=1e-12)
    assert measured.value == pytest.approx(-1 / 18, abs=1e-12)
    assert measured.best_response_values == pytest.approx((-1 / 18, 1 / 18), abs=1e-12)


def test_beyond_its_range_the_family_can_be_exploited() -> None:
    def too_bold(card: int, moves: str) -> float:
        return min(1.0, equilibrium(0.5)(card, moves))

    assert policy_exploitability(tree_of("kuhn"), table(too_bold)).nash_conv > 0.01


def value_by_hand(first: Bets, second: Bets) -> float:
    """What seat 0 wins on average, spelled out."""
    total = 0.0
    for a, b in product(range(3), repeat=2):
        if a == b:
            continue
        high = 1 if a > b else -1
        bet, call_late = first(a, ""), first(a, "pb")
        call, bet_late = second(b, "b"), second(b, "p")
        total += bet * (call * 2 * high + (1 - call))
        total += (1 - bet) * (1 - bet_late) * high
        total += (1 - bet) * bet_late * (call_late * 2 * high - (1 - call_late))
    return total / 6


def every_pure_strategy(seat: int) -> list[Bets]:
    own = [(card, moves) for _, card, moves in infosets() if len(moves) % 2 == seat]
    return [
        as_bets(dict(zip(own, choice, strict=True)))
        for choice in product((0.0, 1.0), repeat=len(own))
    ]


def random_bets(seed: int) -> Bets:
    rng = np.random.default_rng(seed)
    return as_bets({(card, moves): float(rng.random()) for _, card, moves in infosets()})


def as_bets(told: dict[tuple[int, str], float]) -> Bets:
    return lambda card, moves: told[card, moves]


@pytest.mark.parametrize(
    "bets", [random_bets(1), random_bets(2), random_bets(3), always("p"), always("b")]
)
def test_best_responses_are_the_best_of_all_pure_strategies(bets: Bets) -> None:
    value = value_by_hand(bets, bets)
    best_first = max(value_by_hand(pure, bets) for pure in every_pure_strategy(0))
    best_second = max(-value_by_hand(bets, pure) for pure in every_pure_strategy(1))
    measured = policy_exploitability(tree_of("kuhn"), table(bets))
    assert measured.value == pytest.approx(value, abs=1e-12)
    assert measured.best_response_values == pytest.approx((best_first, best_second), abs=1e-12)
    assert measured.nash_conv == pytest.approx(best_first + best_second, abs=1e-12)


@pytest.mark.parametrize("free", ["", "b", "p", "pb", "p b"])  # histories after which to deviate
@pytest.mark.parametrize("bets", [random_bets(4), random_bets(5), always("b")])
def test_a_restricted_best_response_is_the_best_of_all_restricted_ones(
    bets: Bets, free: str
) -> None:
    allowed = free.split() or [""]

    def follow(pure: Bets) -> Bets:
        return lambda card, moves: (pure if moves in allowed else bets)(card, moves)

    best_first = max(value_by_hand(follow(pure), bets) for pure in every_pure_strategy(0))
    best_second = max(-value_by_hand(bets, follow(pure)) for pure in every_pure_strategy(1))
    tree = tree_of("kuhn")
    names = {key: moves for key, _, moves in infosets()}
    where = np.array([names[key] in allowed for key in tree.form.infosets["policy_key"].tolist()])
    measured = policy_exploitability(tree, table(bets), where)
    assert measured.best_response_values == pytest.approx((best_first, best_second), abs=1e-12)


@pytest.mark.parametrize("name", ["none", "intent", "progress", "race"])
def test_by_responses_alone_less_can_be_had_but_not_less_than_nothing(name: str) -> None:
    tree = tree_of("deal", "none", name)
    uniform = new_table(policy_dtype(len(DEAL.abstraction(name).actions)), 1)
    responses = response_infosets(tree)
    assert 0 < responses.sum() < len(responses)
    nowhere = policy_exploitability(tree, uniform, np.zeros(len(responses), bool))
    answers = policy_exploitability(tree, uniform, responses)
    main_play = policy_exploitability(tree, uniform, ~responses)
    whole = policy_exploitability(tree, uniform)
    assert nowhere.nash_conv == pytest.approx(0.0, abs=1e-12)
    assert 1e-3 < answers.nash_conv < whole.nash_conv
    assert 1e-3 < main_play.nash_conv < whole.nash_conv
    everywhere = policy_exploitability(tree, uniform, np.ones(len(responses), bool))
    assert everywhere == whole
    assert answers.value == whole.value


def test_poker_has_no_responses() -> None:
    for name in ("kuhn", "leduc"):
        assert not response_infosets(tree_of(name)).any()


def test_an_empty_table_plays_uniformly_over_the_policy_actions() -> None:
    kuhn = policy_exploitability(tree_of("kuhn"), new_table(policy_dtype(2), 1))
    assert kuhn.nash_conv == pytest.approx(11 / 12)

    tree = tree_of("deal", "none", "intent")
    keys = np.unique(tree.form.infosets["policy_key"])
    rows = np.zeros(len(keys), policy_dtype(11))
    rows["key"] = keys
    available = (keys[:, None] >> np.arange(11, dtype=np.uint64)) & np.uint64(1)
    rows["policy"][:, AVERAGE] = available / available.sum(axis=1, keepdims=True)
    spelled_out = policy_exploitability(tree, table_of(rows))
    empty = policy_exploitability(tree, new_table(policy_dtype(11), 1))
    assert empty.nash_conv == pytest.approx(spelled_out.nash_conv, abs=1e-12)
    # Not the same as uniform over the moves: intents leave cards of one kind no difference.
    moves = exploitability(tree_of("deal"), uniform_strategy(tree_of("deal")))
    assert abs(empty.nash_conv - moves.nash_conv) > 1e-3


@pytest.mark.parametrize("name", ["none", "intent"])
def test_a_policy_is_measured_in_the_real_game_and_as_it_is_shown(name: str) -> None:
    abstraction, rules = DEAL.abstraction(name), DEAL.configurations["micro"]
    uniform = new_table(policy_dtype(len(abstraction.actions)), 1)
    first, again = both_exploitabilities(DEAL, rules, abstraction, [uniform, uniform])
    assert first == again
    assert first[0] == policy_exploitability(tree_of("deal", "none", name), uniform)
    assert first[1] == policy_exploitability(tree_of("deal", name, name), uniform)
    assert (first[0] == first[1]) == (name == "none")


@pytest.mark.parametrize("name", ["intent", "progress"])
def test_the_loss_by_an_abstraction_is_a_number(name: str) -> None:
    solution = solved("deal", "dcfr", 200, name)
    assert solution.measured.exploitability <= solution.real.exploitability + 1e-12
    # The same players play the same games, seen from inside and from outside.
    assert solution.real.value == pytest.approx(solution.measured.value, abs=1e-9)
    uniform = policy_exploitability(tree_of("deal", "none", name), new_table(policy_dtype(11), 1))
    assert 0 < solution.real.exploitability < uniform.exploitability / 2


def test_the_real_game_can_be_solved_without_an_abstraction() -> None:
    solution = solved("deal", "cfr+", 100)
    assert solution.real == solution.measured
    assert solution.measured.value == pytest.approx(0.0, abs=1e-3)
    assert solution.measured.exploitability < 0.005


def test_counted_moves_of_a_pure_agent_are_its_policy() -> None:
    for move in ("p", "b"):
        exact = policy_exploitability(tree_of("kuhn"), table(always(move)))
        assert counted_exploitability(tree_of("kuhn"), player(always(move)), 3) == exact


def test_counted_moves_come_close_to_a_mixed_policy() -> None:
    exact = policy_exploitability(tree_of("kuhn"), table(equilibrium(1 / 3)))
    often = counted_exploitability(tree_of("kuhn"), player(equilibrium(1 / 3)), 20_000)
    seldom = counted_exploitability(tree_of("kuhn"), player(equilibrium(1 / 3)), 10)
    assert exact.exploitability < often.exploitability < 0.01 < seldom.exploitability
    counted = counted_exploitability(tree_of("deal"), uniform_intents(), 500)
    real = policy_exploitability(tree_of("deal", "none", "intent"), NOTHING)
    assert counted.exploitability == pytest.approx(real.exploitability, rel=0.02)


def test_what_thinking_ahead_does_to_exploitability_depends_on_the_game() -> None:
    """In poker who never mixes is read; in the small Monopoly Deal there is hardly a need to."""
    kuhn = searching(player(equilibrium(1 / 3)), KUHN, 400)
    assert counted_exploitability(tree_of("kuhn"), kuhn, 50).exploitability > 0.1
    policy = policy_exploitability(tree_of("deal", "none", "intent"), NOTHING)
    thinker = counted_exploitability(tree_of("deal"), searching(uniform_intents(), DEAL, 100), 20)
    assert thinker.exploitability < policy.exploitability / 2


def test_to_think_once_for_all_that_looks_alike_changes_nothing() -> None:
    tree, agent = tree_of("deal"), searching(uniform_intents(), DEAL, 20)
    counts = count_moves(agent, DEAL, tree.positions, 2, seed=1)
    strategy = np.zeros(tree.slots)
    for infoset, row in zip(tree.form.infosets, counts, strict=True):
        first, slot, actions = infoset["first"], infoset["slot"], infoset["actions"]
        strategy[slot : slot + actions] = row[tree.moves[first : first + actions]] / 2
    assert counted_exploitability(tree, agent, 2) == exploitability(tree, strategy)


def test_a_thought_is_the_same_in_all_histories_that_look_alike() -> None:
    """So each is had once. Moves are counted at histories with the same sight and memory."""
    tree = tree_of("deal")
    thinker = searching(uniform_intents(), DEAL, 20)
    sight = np.column_stack([tree.form.infosets["policy_key"], tree.positions["cannot_refuse"]])
    _, group, size = np.unique(sight, axis=0, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(size >= 10)[::20]
    assert len(shared) > 20
    for which in shared:
        alike = tree.positions[np.flatnonzero(group.reshape(-1) == which)[:10]]
        counts = count_moves(thinker, DEAL, alike, 3, seed=1)
        assert (counts == counts[0]).all()
        assert counts[0].sum() == 3
