"""Games in sequence form: sizes known from the literature, values by brute force."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from naive_cfr import expected_value, fresh, uniform
from trees import tree_of

from rejoinder.games import GAMES, contract
from rejoinder.games.base import Game, Rules, concrete
from rejoinder.games.contract import OVER
from rejoinder.kernel.jit import rule
from rejoinder.kernel.masks import mask_table
from rejoinder.kernel.rng import mix
from rejoinder.measure.best_response import exploitability, policy_exploitability
from rejoinder.methods.exact.full import normalised, uniform_strategy
from rejoinder.methods.exact.tree import Tree, build_tree
from rejoinder.methods.policies import AVERAGE, policy_dtype
from rejoinder.methods.tabular.table import InfosetTable, table_of

KUHN, LEDUC, DEAL = GAMES["kuhn"], GAMES["leduc"], GAMES["deal"]
POKER = [KUHN, LEDUC]


@pytest.mark.parametrize(
    ("game", "infosets", "terminals", "nodes", "slots"),
    [("kuhn", 12, 30, 58, 24), ("leduc", 936, 5520, 9457, 2184)],
)
def test_sizes_are_those_of_the_literature(
    game: str, infosets: int, terminals: int, nodes: int, slots: int
) -> None:
    tree = tree_of(game)
    assert len(tree.form.infosets) == infosets
    assert len(tree.form.terminals) == terminals
    assert tree.nodes == nodes
    assert tree.slots == slots
    assert tree.sequences == slots + 2


@pytest.mark.parametrize("game", POKER, ids=lambda game: game.name)
def test_uniform_play_is_worth_what_brute_force_says(game: Game) -> None:
    tree = tree_of(game.name)
    brute = expected_value(fresh(game, "standard"), uniform)
    assert exploitability(tree, uniform_strategy(tree)).value == pytest.approx(brute, abs=1e-12)


def random_policy(tree: Tree, seed: int) -> tuple[Any, InfosetTable]:
    """One random profile twice: by slot, and as a table that agents would read."""
    slots = normalised(tree, np.random.default_rng(seed).exponential(size=tree.slots))
    infosets = tree.form.infosets
    rows = np.zeros(len(infosets), policy_dtype(len(tree.policy.actions)))
    rows["key"] = infosets["policy_key"]
    for row, infoset in zip(rows, infosets, strict=True):
        for k in range(infoset["actions"]):
            action = tree.moves[infoset["first"] + k]
            row["policy"][AVERAGE, action] = slots[infoset["slot"] + k]
    return slots, table_of(rows)


@pytest.mark.parametrize("game", POKER, ids=lambda game: game.name)
def test_any_profile_is_worth_what_brute_force_says(game: Game) -> None:
    tree = tree_of(game.name)
    slots, table = random_policy(tree, seed=1)
    by_key = {int(row["key"]): row["policy"][AVERAGE] for row in table.rows[: table.size[0]]}
    brute = expected_value(
        fresh(game, "standard"), lambda key, legal: {a: float(by_key[key][a]) for a in legal}
    )
    assert exploitability(tree, slots).value == pytest.approx(brute, abs=1e-12)
    assert policy_exploitability(tree, table).value == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize(
    ("play", "policy"),
    [
        ("none", "none"),
        ("none", "intent"),
        ("none", "progress"),
        ("intent", "intent"),
        ("progress", "progress"),
        ("progress", "intent"),
    ],
)
class TestMicro:
    """Deal `micro`, the real game and as every abstraction shows it."""

    def test_the_seats_are_symmetric(self, play: str, policy: str) -> None:
        tree = tree_of("deal", play, policy)
        np.testing.assert_allclose(tree.form.utilities.sum(axis=1), 0.0, atol=1e-15)
        measured = exploitability(tree, uniform_strategy(tree))
        first, second = measured.best_response_values
        assert measured.value == pytest.approx(0.0, abs=1e-12)  # either seat starts half the games
        assert first == pytest.approx(second, abs=1e-12)
        assert 0.0 < first < 1.0

    def test_every_sequence_belongs_to_one_infoset(self, play: str, policy: str) -> None:
        tree = tree_of("deal", play, policy)
        infosets = tree.form.infosets
        owned = np.concatenate([np.arange(i["first"], i["first"] + i["actions"]) for i in infosets])
        np.testing.assert_array_equal(np.sort(owned), np.arange(2, tree.sequences))
        owner = np.zeros(tree.sequences, np.int64)
        owner[1] = 1
        owner[owned] = np.repeat(infosets["player"], infosets["actions"])
        np.testing.assert_array_equal(owner[infosets["parent"]], infosets["player"])
        for player in (0, 1):
            assert (owner[tree.form.terminals[:, player]] == player).all()
        assert (infosets["parent"] < infosets["first"]).all()

    def test_policy_actions_are_stood_for_exactly_once(self, play: str, policy: str) -> None:
        tree = tree_of("deal", play, policy)
        infosets, stands_for = tree.form.infosets, tree.stands_for[2:].astype(int)
        times = np.add.reduceat(stands_for, infosets["first"] - 2)
        assert times.max() == 1  # none twice
        if policy == "none":
            assert (stands_for.sum(axis=1) == 1).all()
            np.testing.assert_array_equal(stands_for.argmax(axis=1), tree.moves[2:])
        else:
            # The lowest bits of both abstractions' keys are the mask of the available actions.
            np.testing.assert_array_equal(times, mask_table(infosets["policy_key"], 11))

    def test_slots_are_shared_by_policy_key_alone(self, play: str, policy: str) -> None:
        tree = tree_of("deal", play, policy)
        infosets = tree.form.infosets
        key = infosets["policy_key"]
        groups = {(int(k), int(n)) for k, n in zip(key, infosets["actions"], strict=True)}
        slots = {(int(s), int(n)) for s, n in infosets[["slot", "actions"]].tolist()}
        assert infosets["owns_slots"].sum() == len(groups) == len(slots)
        assert tree.slots == sum(n for _, n in groups)


def test_the_abstract_game_is_smaller_and_intent_is_coarser_than_progress() -> None:
    real, intent, progress = (
        tree_of("deal", name, name) for name in ("none", "intent", "progress")
    )
    assert len(intent.form.infosets) < len(progress.form.infosets) < len(real.form.infosets)
    assert intent.slots < progress.slots < real.slots


def test_a_game_longer_than_it_says_is_refused() -> None:
    short = dataclasses.replace(KUHN, max_decisions=lambda _: -251)  # room for four nodes in a row
    with pytest.raises(ValueError, match="longer than its max_decisions says"):
        build_tree(short, Rules())


# A game for one: act twice. Its second key undoes the memory of the first action, so that two
# sequences meet in one infoset, which no game with perfect recall can do.
FORGETFUL = np.dtype([("moves", "i1", (2,)), ("n_moves", "i1")], align=True)


@rule
def _start(state: Any, first_player: Any) -> None:
    state.n_moves = 0
    state.moves[0] = 0
    state.moves[1] = 0


@rule
def _current_player(state: Any) -> Any:
    return OVER if state.n_moves == 2 else 0


@rule
def _utility(state: Any, player: Any) -> Any:
    return 0.0


@rule
def _legal_actions(state: Any, abstraction: Any) -> Any:
    return np.uint64(3)


@rule
def _resolve(state: Any, abstraction: Any, action: Any) -> Any:
    return action


@rule
def _apply(state: Any, move: Any) -> None:
    state.moves[state.n_moves] = move
    state.n_moves += 1


@rule
def _infoset_key(state: Any, abstraction: Any) -> Any:
    if state.n_moves == 0:
        return np.uint64(0)
    identity = mix(mix(np.uint64(1)))
    return mix(identity ^ np.uint64(state.moves[0] + 1))


@rule
def _observed(state: Any, move: Any, player: Any) -> Any:
    return move


@rule
def _chance_outcomes(state: Any, probabilities: Any) -> Any:
    return 0


@rule
def _sample_outcome(state: Any, rng: Any) -> Any:
    return 0


@rule
def _resolve_chance(state: Any, rng: Any) -> Any:
    return 1.0


@rule
def _shuffle_hidden(state: Any, player: Any, rng: Any) -> None:
    return


def test_two_sequences_in_one_infoset_are_refused() -> None:
    contract.implement(
        FORGETFUL,
        start=_start,
        current_player=_current_player,
        utility=_utility,
        legal_actions=_legal_actions,
        resolve=_resolve,
        apply=_apply,
        infoset_key=_infoset_key,
        observed=_observed,
        chance_outcomes=_chance_outcomes,
        sample_outcome=_sample_outcome,
        resolve_chance=_resolve_chance,
        shuffle_hidden=_shuffle_hidden,
    )
    game = dataclasses.replace(
        KUHN,
        name="forgetful",
        dtype=FORGETFUL,
        template=lambda _: np.zeros(1, FORGETFUL),
        abstractions=(concrete(("left", "right")),),
        max_decisions=lambda _: 2,
    )
    with pytest.raises(ValueError, match=r"forgetful: .* does not amount to perfect recall"):
        build_tree(game, Rules())


def test_a_policy_that_sees_more_than_the_players_is_refused() -> None:
    intent, progress = DEAL.abstraction("intent"), DEAL.abstraction("progress")
    with pytest.raises(ValueError, match="sees intent cannot follow a policy for progress"):
        build_tree(DEAL, DEAL.configurations["micro"], play=intent, policy=progress)
