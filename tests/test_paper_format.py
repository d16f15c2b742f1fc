"""The paper's checkpoint file: rows and file say the same, and what is wrong is refused by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime import by_table

from rejoinder.games.deal import paper
from rejoinder.methods.base import Rows
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.methods.tabular.rollout import row_dtype
from rejoinder.run.checkpoints import first_checkpoint, start_of
from rejoinder.run.config import RunConfig, make_config
from rejoinder_learner.state import Learner

DEAL = {"method.rollouts": 1, "games": 30, "batch": 5}


@cache
def learned(games: int, **fields: Any) -> tuple[RunConfig, Rows]:
    """What a learner knows after so many games."""
    config = make_config(DEAL | by_table(fields))
    learner, actor = Learner(config), config.actor()
    for game in range(games):
        learner.fold(actor.play(game, learner.snapshot_for(game)))
    return config, learner.rows.copy()


@cache
def text() -> bytes:
    return paper.write(*learned(4))


def content() -> dict[str, Any]:
    value = json.loads(text())
    assert isinstance(value, dict)
    return value


def refusal(file: Any) -> str:
    with pytest.raises(paper.PaperError) as error:
        paper.read(file if isinstance(file, bytes) else json.dumps(file).encode())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("games", [0, 1, 12])
@pytest.mark.parametrize(("buffer_size", "decay"), [(1, 1.0), (3, 0.99), (10, 0.99)])
def test_there_and_back(games: int, buffer_size: int, decay: float) -> None:
    config, rows = learned(games, buffer_size=buffer_size, decay=decay)
    written = paper.write(config, rows)
    read_config, read_rows = paper.read(written)
    assert read_rows.dtype == rows.dtype
    assert read_rows.tobytes() == rows.tobytes()
    assert paper.write(read_config, read_rows) == written
    assert (read_config.rules, read_config.abstraction) == (config.rules, config.abstraction)
    there, here = read_config.method.model_dump(), config.method.model_dump()
    for name in ("rollouts", "epsilon", "buffer_size", "averaging"):
        assert there[name] == here[name]


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), infosets=st.integers(1, 30), size=st.integers(1, 5))
def test_there_and_back_with_any_numbers(seed: int, infosets: int, size: int) -> None:
    """Rows that no training would give: tiny and huge numbers, infosets that were never updated."""
    dice = random.Random(seed)
    rows = np.zeros(infosets, row_dtype(11, size))
    rows["key"] = dice.sample([k for k in range(1 << 12) if k & 0x7FF], infosets)
    rows["legal"] = rows["key"] & 0x7FF
    for row in rows:
        legal = [a for a in range(11) if int(row["legal"]) >> a & 1]
        row["reach"] = dice.random() ** dice.randint(1, 300)
        for a in legal:
            row["regret"][a] = dice.uniform(-1, 1) * 10.0 ** dice.randint(-300, 90)
            row["count"][a] = 1 + dice.randint(0, 5) * dice.random()
        row["updates"] = dice.randint(0, 3 * size)
        row["policy"][:, legal] = 1 / len(legal)
        for n in range(int(row["updates"])):
            weights = [dice.random() for _ in legal]
            row["policy"][LATEST][legal] = [w / sum(weights) for w in weights]
            row["buffer"][n % size] = row["policy"][LATEST]
    rows = rows[np.argsort(rows["updates"] == 0, kind="stable")]
    config = make_config({"method.buffer_size": size})
    written = paper.write(config, rows)
    _, again = paper.read(written)
    updated = int((rows["updates"] > 0).sum())
    for name in ("key", "legal", "updates", "reach", "regret", "count", "buffer"):
        assert again[name][:updated].tobytes() == rows[name][:updated].tobytes(), name
    assert sorted(again["key"].tolist()) == sorted(rows["key"].tolist())
    assert (again["policy"][:, LATEST][:updated] == rows["policy"][:, LATEST][:updated]).all()
    assert again["policy"][:, AVERAGE].sum(axis=1) == pytest.approx(np.ones(infosets))
    assert paper.write(config, again) == written


def test_the_form_is_the_papers() -> None:
    """Names, order and indentation as in the authors' files."""
    file = content()
    assert list(file) == [
        *("game_config", "abstraction_cls", "resolver_cls", "target_player_index"),
        *("sims_per_action", "max_turns_per_game", "max_streaks", "uniform_external_sampling"),
        *("verbose", "epsilon", "policy_manager", "regret_manager", "cf_reach_prob_counter"),
        "model_cls",
    ]
    assert file["game_config"] == {
        "card_to_special_card_ratio": 3,
        "cash_card_values": [1, 3],
        "deck_size_multiplier": 10,
        "initial_hand_size": 5,
        "max_consecutive_player_actions": 2,
        "new_cards_per_turn": 2,
        "rent_cards_per_property_type": 1,
        "required_property_sets": 2,
    }
    assert (file["abstraction_cls"], file["model_cls"]) == ("IntentStateAbstraction", "CFR")
    assert (file["resolver_cls"], file["max_turns_per_game"]) == ("GreedyActionResolver", 250)
    manager = file["policy_manager"]
    assert list(manager) == ["action_to_keys", "buffer_size", "player_buffers", "update_count"]
    for player, kept in enumerate(manager["player_buffers"]):
        assert list(kept) == ["buffer", "buffer_size"]
        for name, policies in kept["buffer"].items():
            assert name.startswith(f"{player}@IntentStateAbstraction@")
            assert {len(policy) for policy in policies} == {22}
            assert {p for policy in policies for p in policy[11:]} == {0.0}
    for estimates in file["regret_manager"].values():
        assert all(list(estimate) == ["sum", "n"] for estimate in estimates.values())
    assert list(file["regret_manager"]) == sorted(manager["update_count"])
    assert text() == json.dumps(file, indent=4).encode()


def test_figure_6() -> None:
    """An infoset of the paper's own example, by the beginning of its identifier."""
    (name,) = (n for n in paper._keys_by_name(1) if n.startswith("1@IntentStateAbstraction@d1daef"))
    told = paper._INTENT.describe(paper._keys_by_name(1)[name])
    assert told == {"player": 1, "streak_index": 0, "actions": [0, 8]}
    file = content()
    file["game_config"] |= {"cash_card_values": [1, 3], "deck_size_multiplier": 5}
    file["policy_manager"] = {
        "buffer_size": 10,
        "update_count": {name: 1},
        "player_buffers": [
            {"buffer": {}, "buffer_size": 10},
            {"buffer": {name: [[1.0, *[0.0] * 21]]}, "buffer_size": 10},
        ],
    }
    file["regret_manager"] = {name: {"0": {"sum": 0.22, "n": 1.0}, "8": {"sum": -0.22, "n": 1.0}}}
    file["cf_reach_prob_counter"] = {name: 0.00012}
    config, (row,) = paper.read(json.dumps(file).encode())
    assert config.rules.model_dump()["property_copies"] == (5, 5, 5)
    assert config.rules.model_dump()["just_say_no"] == 1
    assert row["policy"][LATEST].tolist() == row["policy"][AVERAGE].tolist() == [1.0, *[0.0] * 10]
    assert (row["updates"], row["reach"]) == (1, 0.00012)
    assert (row["regret"][[0, 8]].tolist(), row["count"][[0, 8]].tolist()) == (
        [0.22, -0.22],
        [1.0, 1.0],
    )


def test_files_of_earlier_versions_have_eleven_actions() -> None:
    file = content()
    for kept in file["policy_manager"]["player_buffers"]:
        kept["buffer"] = {name: [p[:11] for p in ps] for name, ps in kept["buffer"].items()}
    del file["model_cls"]
    del file["policy_manager"]["action_to_keys"]
    _, rows = paper.read(json.dumps(file).encode())
    assert rows.tobytes() == learned(4)[1].tobytes()


def test_an_infoset_that_was_never_updated_is_played_uniformly_and_learned_on() -> None:
    """The authors' program counts an update only when it makes a policy."""
    file = content()
    name = next(iter(file["policy_manager"]["update_count"]))
    del file["policy_manager"]["update_count"][name]
    del file["policy_manager"]["action_to_keys"]
    del file["policy_manager"]["player_buffers"][int(name[0])]["buffer"][name]
    config, rows = paper.read(json.dumps(file).encode())
    row = next(row for row in rows if row["updates"] == 0)
    legal = paper._INTENT.describe(int(row["key"]))["actions"]
    assert row["policy"][:, legal].tolist() == [[1 / len(legal)] * len(legal)] * 2
    assert row["count"][legal].min() >= 1
    quick = config.method.model_copy(update={"rollouts": 1})
    config = config.model_copy(update={"start": start_of(rows), "method": quick})
    learner, actor = Learner(config, first_checkpoint(config, rows)), config.actor()
    for game in range(10):
        learner.fold(actor.play(game, learner.snapshot_for(game)))
    again = paper.read(paper.write(config, learner.rows))[1]
    by_key = [rows[np.argsort(rows["key"])].tobytes() for rows in (again, learner.rows)]
    assert by_key[0] == by_key[1]


def first_of(file: dict[str, Any], player: int = 0) -> tuple[str, list[list[float]]]:
    """The first infoset of a player with its policies."""
    buffer = file["policy_manager"]["player_buffers"][player]["buffer"]
    name = next(iter(buffer))
    return name, buffer[name]


def change(file: dict[str, Any], path: str, value: Any) -> None:
    """Set the entry at a path; NAME is the first infoset of player 0."""
    *way, last = path.replace("NAME", first_of(file)[0]).split("/")
    for part in way:
        file = file[int(part)] if isinstance(file, list) else file[part]
    file[int(last) if isinstance(file, list) else last] = value


BUFFER = "policy_manager/player_buffers/0/buffer/NAME"
UNKNOWN = "0@IntentStateAbstraction@00000000000000000000000000000000"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (f"{BUFFER}/0", [1.0] * 21, "it has 21 actions, not 22"),
        (f"{BUFFER}/0", [1.0] * 23, "it has 23 actions, not 22"),
        (f"{BUFFER}/0", [], "it has 0 actions, not 22"),
        (f"{BUFFER}/0", [0.1] * 22, "for an action that is not available there"),
        (f"{BUFFER}/0/0", 0.5, "the probabilities sum to"),
        (f"{BUFFER}/0/0", -0.5, "-0.5 is no probability"),
        (f"{BUFFER}/0/0", "much", "valid number"),
        (f"{BUFFER}/0/0", True, "valid number"),
        (f"{BUFFER}/0/21", 1e-9, "1e-09 for an action that is not available"),
        (BUFFER, [[1.0, *[0.0] * 21]] * 11, "it has 11 policies, not the"),
        (BUFFER, [], "it has 0 policies, not the"),
        ("policy_manager/update_count/NAME", 0, "greater than or equal to 1"),
        ("policy_manager/update_count/NAME", 1.5, "valid integer"),
        (f"policy_manager/update_count/{UNKNOWN}", 1, "no infoset has that identifier"),
        ("policy_manager/update_count/x", 1, "policy_manager.update_count.x: no infoset"),
        (f"regret_manager/{UNKNOWN}", {}, f"regret_manager.{UNKNOWN}: no infoset"),
        (f"cf_reach_prob_counter/{UNKNOWN}", 1.0, f"cf_reach_prob_counter.{UNKNOWN}: no infoset"),
        ("cf_reach_prob_counter/NAME", -1.0, "greater than or equal to 0"),
        ("regret_manager/NAME/9", {"sum": 1.0, "n": 1.0}, "no action that is available there"),
        ("regret_manager/NAME/0x", {"sum": 1.0, "n": 1.0}, "no action that is available there"),
        ("regret_manager/NAME/0", {"sum": 1.0}, "field required"),
        ("regret_manager/NAME/0", {"sum": 1.0, "n": 0}, "greater than or equal to 1"),
        ("regret_manager/NAME/0", {"sum": 10**400, "n": 1}, "regret_manager"),
        ("regret_manager/NAME/0", {"sum": 1e200, "n": 1}, "less than or equal to 1000"),
        ("policy_manager/player_buffers/0/buffer_size", 9, "9 is not the manager's"),
        ("policy_manager/player_buffers", [], "at least 2 items"),
        ("policy_manager/action_to_keys/8", ["NAME"], "does not have that action"),
        ("policy_manager/action_to_keys/8", [], "is missing"),
        ("policy_manager/action_to_keys/11", [], "policy_manager.action_to_keys.11: no action"),
        ("game_config/cash_card_values", [5], "game_config.cash_card_values.0"),
        ("game_config/card_to_special_card_ratio", 0, "game_config.card_to_special_card_ratio"),
        ("game_config/required_property_sets", 4, "rules.sets_needed"),
        ("game_config/initial_hand_size", 50, "rules.hand_size"),
        ("game_config/deck_size_multiplier", 1000, "rules.property_copies"),
        ("game_config/wild_cards", 1, "game_config.wild_cards: extra"),
        ("max_streaks", 10, "max_streaks: rollouts are not cut short"),
        ("uniform_external_sampling", False, "uniform_external_sampling"),
        ("abstraction_cls", "FullStateAbstraction", "abstraction_cls"),
        ("resolver_cls", "LazyActionResolver", "resolver_cls"),
        ("model_cls", "REINFORCE", "model_cls"),
        ("epsilon", 2, "epsilon"),
    ],
)
def test_a_wrong_entry_is_refused_by_name(path: str, value: Any, told: str) -> None:
    file = content()
    change(file, path, value)
    said = refusal(file)
    assert told in said
    named = path.replace("NAME", first_of(content())[0]).replace("/", ".")
    if "rules." not in told:
        assert named.removesuffix(".0") in said


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda b: b[:1000], r"damaged JSON: .* at line \d+, column \d+"),
        (lambda b: b.replace(b'"game_config": {', b'"game_config": {,', 1), "at line 2, column 21"),
        (lambda b: b + b"x", "damaged JSON: Extra data at line"),
        (lambda _: b"", "damaged JSON: .* at line 1, column 1"),
        (lambda b: b"\xff\xfe\x00" + b, "this is not JSON"),
        (lambda _: b"infoset,action,probability", "not JSON, as checkpoints in the paper's"),
        (lambda _: b"[" * 100_000, "damaged JSON"),
        (lambda _: b"[]", "is one JSON object; this is none"),
        (lambda _: b"42", "is one JSON object; this is none"),
        (lambda b: b.replace(b"250", b"9" * 5000), "damaged JSON: Exceeds the limit"),
        (lambda b: b.replace(b'"epsilon": 0.1', b'"epsilon": NaN'), "epsilon: .*finite"),
        (lambda b: b.replace(b'"epsilon": 0.1', b'"epsilon": 1e999'), "epsilon: .*finite"),
        (lambda b: b.replace(b'"verbose": false', b'"epsilon": 0.1'), "epsilon: it is there twice"),
    ],
)
def test_damage_is_refused(damage: Callable[[bytes], bytes], told: str) -> None:
    damaged = damage(text())
    assert damaged != text()
    with pytest.raises(paper.PaperError, match=told):
        paper.read(damaged)


def test_a_policy_in_the_other_players_buffer_is_refused() -> None:
    file = content()
    name, _ = first_of(file)
    buffers = file["policy_manager"]["player_buffers"]
    buffers[1]["buffer"][name] = buffers[0]["buffer"].pop(name)
    assert f"player_buffers.1.buffer.{name}: that is an infoset of player 0" in refusal(file)
    del buffers[1]["buffer"][name]
    assert f"update_count.{name}: no buffer has its policies" in refusal(file)


def test_vectors_of_two_lengths_are_refused() -> None:
    file = content()
    name, policies = first_of(file, player=1)
    policies[0] = policies[0][:11]
    assert f"{name}.0: it has 11 actions; those before have 22" in refusal(file)


@settings(max_examples=40)
@given(st.data())
def test_nothing_that_is_missing_or_of_another_kind_ends_in_another_error(
    data: st.DataObject,
) -> None:
    file: Any = content()
    where, place = file, data.draw(st.sampled_from(list(file)))
    while isinstance(where[place], dict | list) and where[place] and data.draw(st.booleans()):
        where = where[place]
        places = list(where) if isinstance(where, dict) else list(range(len(where)))
        place = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        del where[place]
    else:
        where[place] = data.draw(st.sampled_from([None, -1, "x", [], {}, 1e300, [[]], {"x": 1}]))
    with suppress(paper.PaperError):
        paper.read(json.dumps(file).encode())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rules": "micro"}, "rules.property_copies: (3, 0, 1) cannot be said"),
        ({"rules": {"just_say_no": 4}}, "rules.just_say_no: 4 cannot be said"),
        ({"rules": {"cash_copies": [10, 0, 5, 0]}}, "rules.cash_copies"),
        ({"rules": {"rent_copies": [10, 10, 0]}}, "rules.rent_copies"),
        ({"rules": "ordered"}, "rules.response"),
        ({"abstraction": "progress"}, "abstraction: the paper's format is for 'intent', not"),
        ({"abstraction": "none"}, "abstraction: the paper's format is for 'intent', not"),
        (
            {"method.averaging": "linear"},
            "method.averaging: the paper's format is for 'buffer', not 'linear'",
        ),
        ({"game": "kuhn"}, "game: the paper's format is for 'deal', not 'kuhn'"),
    ],
)
def test_what_the_format_cannot_say_is_not_written(fields: dict[str, Any], told: str) -> None:
    config = make_config(fields)
    actions = len(config.load_abstraction().actions)
    with pytest.raises(paper.PaperError) as error:
        paper.write(
            config, np.zeros(0, row_dtype(actions, config.method.model_dump()["buffer_size"]))
        )
    assert told in str(error.value)


@pytest.mark.parametrize("name", ["medium", "small", "large", "tiny"])
def test_the_named_rules_can_be_said(name: str) -> None:
    config = make_config({"rules": name})
    again, _ = paper.read(paper.write(config, np.zeros(0, row_dtype(11, 10))))
    assert again.rules == config.rules
