"""The run config: what it takes, what it refuses and how, and what its fingerprint covers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.run.config import (
    ConfigError,
    Learning,
    RunConfig,
    describe_difference,
    load_config,
    make_config,
    shipped_configs,
)

# For every field that the learner could notice: another value than the default.
OTHER_LEARNING = {
    "game": "kuhn",
    "rules": "large",
    "abstraction": "progress",
    "seed": 2,
    "method.rollouts": 3,
    "method.epsilon": 0.2,
    "method.common_random_numbers": True,
    "method.decay": 0.99,
    "method.averaging": "linear",
    "method.buffer_size": 4,
    "order": "arrival",
    "batch": 7,
    "lag": 0,
    "start": "0" * 64,
}
OTHER_REPORTING = {
    "games": 5,
    "eval_every": 3,
    "eval_games": 10,
    "checkpoint_every": 2,
    "checkpoints_kept": 3,
    "audit": 0.5,
}


def test_every_shipped_config_loads_and_says_what_it_is() -> None:
    assert {"paper", "tiny", "small", "large", "micro"} <= shipped_configs().keys()
    for name, what in shipped_configs().items():
        assert isinstance(load_config(name), RunConfig)
        assert what


def test_paper_is_the_papers_table() -> None:
    config = load_config("paper")
    rules = config.rules.model_dump()
    assert (config.games, config.seed, config.eval_every) == (1_000, 1, 50)
    assert config.method.model_dump() == {
        "name": "rollout",
        "rollouts": 20,
        "epsilon": 0.1,
        "common_random_numbers": False,
        "decay": 1.0,
        "averaging": "buffer",
        "buffer_size": 10,
    }
    assert (rules["sets_needed"], rules["hand_size"], rules["turn_cap"]) == (2, 5, 250)


def test_names_are_normalised_to_what_they_stand_for() -> None:
    assert load_config("paper", ["rules.sets_needed=3"]) == load_config("paper", ["rules=large"])
    assert make_config({"game": "kuhn"}).abstraction == "none"
    assert make_config({}).abstraction == "intent"
    small = make_config({"rules": {"base": "tiny", "draw": 2}}).rules.model_dump()
    assert (small["hand_size"], small["draw"]) == (3, 2)


@pytest.mark.parametrize("field", sorted(OTHER_LEARNING))
def test_the_fingerprint_covers_what_the_learner_notices(field: str) -> None:
    assert make_config({field: OTHER_LEARNING[field]}).fingerprint != make_config({}).fingerprint


@pytest.mark.parametrize(
    "field", sorted(RunConfig.model_fields.keys() - Learning.model_fields.keys())
)
def test_the_fingerprint_ignores_length_and_reporting(field: str) -> None:
    assert make_config({field: OTHER_REPORTING[field]}).fingerprint == make_config({}).fingerprint


def test_the_papers_fingerprint_stays() -> None:
    """Old runs can be continued, and checked, only while this holds."""
    name = "556b88f70747ef32ea2f7bf3f3f8f00e13c5095ac802602d5feab80e7b1808d3"
    assert load_config("paper").fingerprint == name
    there = make_config({}).learning_fields()
    settings = {f"method.{name}" for name in there.pop("method") if name != "name"}
    assert there.keys() | settings == OTHER_LEARNING.keys()


@given(
    st.integers(0, 2**63 - 1),
    st.floats(0, 1),
    st.sampled_from(["buffer", "uniform", "linear"]),
    st.integers(1, 100),
)
def test_plain_data_makes_the_same_config_again(
    seed: int, epsilon: float, averaging: str, batch: int
) -> None:
    fields = {
        "seed": seed,
        "method.epsilon": epsilon,
        "method.averaging": averaging,
        "batch": batch,
    }
    config = make_config(fields)
    again = make_config(config.model_dump(mode="json"))
    assert again == config
    assert again.fingerprint == config.fingerprint


@pytest.mark.parametrize(
    ("batch", "lag", "versions"),
    [(1, 0, [0, 1, 2, 3]), (2, 0, [0, 0, 1, 1]), (2, 1, [0, 0, 0, 0, 1, 1]), (1, 2, [0, 0, 0, 1])],
)
def test_version_of_a_game(batch: int, lag: int, versions: list[int]) -> None:
    config = make_config({"batch": batch, "lag": lag})
    assert [config.version_for(g) for g in range(len(versions))] == versions


@pytest.mark.parametrize(
    ("override", "named", "told"),
    [
        ("rolouts=3", "rolouts", "near it: method.rollouts"),
        ("zzz=3", "zzz", "there are game, rules"),
        ("games=0", "games", "greater than or equal to 1"),
        ("games=many", "games", "integer"),
        ("games=1.5", "games", "integer"),
        ("batch=true", "batch", "integer"),
        ("seed=-1", "seed", "greater than or equal to 0"),
        ("method.epsilon=1.5", "epsilon", "less than or equal to 1"),
        ("method.epsilon=nan", "epsilon", "finite"),
        ("method.decay=0", "decay", "greater than 0"),
        ("method.averaging=median", "averaging", "'buffer', 'uniform' or 'linear'"),
        ("game=go", "game", "deal, kuhn, leduc"),
        ("abstraction=x", "abstraction", "none, intent"),
        ("rules=huge", "rules", "medium, small, large"),
        ("rules=3", "rules", "table of rules"),
        ("rules.sets_needed=4", "rules.sets_needed", "less than or equal to 3"),
        ("rules.set_needed=1", "rules.set_needed", "near it: sets_needed"),
        ("rules.hand_size=60", "rules.hand_size", "deck"),
        ("rules.base=huge", "rules", "medium, small, large"),
        ("lag.x=1", "lag.x", "only rules"),
        ("games", "games", "field=value"),
    ],
)
def test_a_wrong_field_is_named_on_one_line(override: str, named: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("paper", [override])
    message = str(caught.value)
    assert named in message
    assert told in message
    assert "\n" not in message


def test_a_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config is called 'papr'; there are .*paper"):
        load_config("papr")
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(tmp_path)


@pytest.mark.parametrize("content", [b"games = ", b"\xff\xfe", b"= 3"])
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"broken\.toml: not a TOML file"):
        load_config(path)


def test_a_toml_file_with_a_table_of_rules(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('games = 7\n[rules]\nbase = "small"\nstreak = 3\n', encoding="utf-8")
    config = load_config(path, {"seed": 9})
    assert (config.games, config.seed, config.rules.model_dump()["streak"]) == (7, 9, 3)


def test_an_override_is_one_value() -> None:
    with pytest.raises(ConfigError, match=r"games: .*integer"):
        load_config("paper", ["games=1\nseed = 2"])


def test_differences_are_told_by_field() -> None:
    here = make_config({"seed": 2, "rules": "large", "games": 3})
    told = describe_difference(make_config({}), here)
    assert told == "seed is 1 there and 2 here; rules.sets_needed is 2 there and 3 here"


@pytest.mark.parametrize("override", ["rules.streak=true", 'rules.hand_size="4"', "rules.draw=1.0"])
def test_rules_are_as_strict_as_the_rest(override: str) -> None:
    field = override.partition("=")[0]
    with pytest.raises(ConfigError, match=field.replace(".", r"\.")):
        load_config("paper", [override])
