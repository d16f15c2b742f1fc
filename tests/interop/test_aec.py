"""Our games as PettingZoo environments: its own tests pass, and the engine's games are played."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rejoinder.games import GAMES, find_game, queries
from rejoinder.games.contract import CONCRETE
from rejoinder.games.session import IllegalMove, Session
from rejoinder.interop.observations import LIMIT, Observer
from rejoinder.kernel import rng

pettingzoo_test = pytest.importorskip(
    "pettingzoo.test", reason="needs PettingZoo; get it with: pip install 'rejoinder[pettingzoo]'"
)
from rejoinder.interop.pettingzoo import GameEnv, env  # noqa: E402

TABLES = [
    ("kuhn", "none"),
    ("leduc", "none"),
    ("deal-micro", "none"),
    ("deal-medium", "none"),
    ("deal-medium", "intent"),
]
every_table = pytest.mark.parametrize(("name", "abstraction"), TABLES)

# An observation is a dictionary, as it must be to carry a mask.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array"),
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably"),
]


def play(table: Any, seed: int) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Random moves to the end: seat, what it saw, what it did."""
    dice = random.Random(seed)
    for agent in table.agent_iter():
        seen, _, over, _, _ = table.last()
        if over:
            table.step(None)
            continue
        action = dice.choice(np.flatnonzero(seen["action_mask"]).tolist())
        yield table.possible_agents.index(agent), seen, action
        table.step(action)


@every_table
def test_its_own_tests(name: str, abstraction: str) -> None:
    for make in (GameEnv, env):
        pettingzoo_test.api_test(make(name, abstraction=abstraction), num_cycles=300)
        pettingzoo_test.seed_test(lambda make=make: make(name, abstraction=abstraction), 60)


@every_table
def test_the_same_game_as_the_engines(name: str, abstraction: str) -> None:
    game, configuration = find_game(name)
    table = GameEnv(name, abstraction=abstraction)
    for index in range(6):
        table.reset(seed=5 if index == 0 else None)
        session = Session.start(
            *(game, game.configurations[configuration]),
            seed=5,
            index=index,
            first_player=(5 + index) % game.starts,
        )
        for seat, seen, action in play(table, index):
            assert session.to_move == seat
            legal = [option.number for option in session.legal_abstract(abstraction)]
            assert np.flatnonzero(seen["action_mask"]).tolist() == legal
            assert table.observation_space(f"player_{seat}").contains(seen)
            assert not table.observe(f"player_{1 - seat}")["action_mask"].any()
            session.apply_abstract(action, abstraction)
        assert session.over
        assert session.history == table.session.history
        assert table.agents == []


@every_table
def test_the_end_brings_the_rewards(name: str, abstraction: str) -> None:
    table = env(name, abstraction=abstraction)
    for seed in range(5):
        table.reset(seed=seed)
        told: dict[str, float] = {}
        dice = random.Random(seed)
        for agent in table.agent_iter():
            seen, reward, over, truncated, _ = table.last()
            assert not truncated
            assert over or reward == 0
            if over:
                told[agent] = reward
            actions = np.flatnonzero(seen["action_mask"]).tolist()
            table.step(None if over else dice.choice(actions))
        won = table.unwrapped.session.utilities
        assert told == dict(zip(table.possible_agents, won, strict=True))
        assert sum(told.values()) == 0


@pytest.mark.parametrize("name", ["kuhn", "leduc", "deal-micro", "deal-medium", "deal-large"])
def test_nothing_hidden_is_in_an_observation(name: str) -> None:
    """Whatever the player cannot see is dealt anew: he must not notice."""
    game, configuration = find_game(name)
    observer = Observer(game, game.configurations[configuration])
    stream, differed = rng.stream(1, 1, rng.DEALS), False
    for index in range(8):
        table = GameEnv(name)
        table.reset(seed=index)
        for _ in play(table, index):
            for seat in range(game.players):
                states = table.session.states
                other = states.copy()
                queries.shuffle_hidden(other, seat, stream)
                differed |= other.tobytes() != states.tobytes()
                same = observer.vector(states, seat), observer.vector(other, seat)
                assert np.array_equal(*same)
                assert np.abs(same[0]).max() <= LIMIT
    assert differed


def test_an_observation_says_what_the_player_has() -> None:
    table = GameEnv("deal-medium")
    table.reset(seed=1)
    names = GAMES["deal"].outcomes
    observer = Observer(table.game, table.rules)
    for seat, seen, _ in play(table, 1):
        pieces = observer.pieces(table.session.states, seat)
        assert seen["observation"].tolist() == [n for part in pieces.values() for n in part]
        hand = {names[k]: n for k, n in enumerate(pieces["hand"]) if n}
        assert hand == table.session.view(seat).model_dump()["hand"]
        response = table.session.view(seat).model_dump()["response"]
        assert list(pieces["response"]) == (
            [response["owed"], response["paid"]] if response else [0, 0]
        )


@pytest.mark.parametrize("name", sorted({*GAMES}))
def test_infosets_that_differ_are_observed_differently(name: str) -> None:
    """What tells a player's infosets apart is in the vector, but for the order of earlier moves."""
    if GAMES[name].observation is None:
        pytest.skip("it has no observation, so no environment")
    keys: dict[bytes, set[int]] = {}
    for index in range(60):
        table = GameEnv(name)
        table.reset(seed=index)
        for _, seen, _ in play(table, index):
            key = int(queries.infoset_key(table.session.states, CONCRETE))
            keys.setdefault(seen["observation"].tobytes(), set()).add(key)
    assert all(len(found) == 1 for found in keys.values())


def test_an_illegal_action() -> None:
    table = GameEnv("deal-medium")
    table.reset(seed=1)
    before = table.session.to_json()
    illegal = int(np.flatnonzero(table.observe(table.agent_selection)["action_mask"] == 0)[0])
    with pytest.raises(IllegalMove, match="not legal now"):
        table.step(illegal)
    with pytest.raises(IllegalMove, match="gave no action"):
        table.step(None)
    assert table.session.to_json() == before
    checked = env("deal-medium")
    checked.reset(seed=1)
    loser = checked.agent_selection
    checked.step(illegal)
    assert all(checked.terminations.values())
    assert checked.rewards[loser] == -1


def test_either_player_begins_where_every_reset_has_a_seed() -> None:
    table, began = GameEnv("deal-medium"), []
    for seed in range(10):
        table.reset(seed=seed)
        began.append(table.agent_selection)
    assert began == ["player_0", "player_1"] * 5


def test_seeds_and_resets() -> None:
    def deals(table: GameEnv, seeds: list[int | None]) -> list[list[str]]:
        made = []
        for seed in seeds:
            table.reset(seed=seed)
            made.append([event.name for event in table.session.history])
        return made

    first, second = GameEnv("deal-medium"), GameEnv("deal-medium")
    assert deals(first, [3, None, None]) == deals(second, [3, None, None])
    assert deals(first, [3]) == deals(second, [3])
    assert len({tuple(deal) for deal in deals(first, [3, None, 4, None])}) == 4
    first.reset(seed=3)
    assert first.agent_selection == "player_1"
    first.reset()
    assert first.agent_selection == "player_0"
    first.reset(options={"first_player": 1})
    assert first.agent_selection == "player_1"
    one, other = GameEnv("deal-medium"), GameEnv("deal-medium")
    assert deals(one, [None]) != deals(other, [None])  # no seed at all: no two are alike


def test_it_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    table = env("kuhn", render_mode="ansi")
    table.reset(seed=1)
    assert table.render().splitlines()[0].startswith("chance: ")
    assert table.render().splitlines()[-1] == "player_0 is to move"
    table.step(0)
    assert "player_0: pass" in table.render().splitlines()
    table.close()
    shown = env("kuhn", render_mode="human")
    shown.reset(seed=1)
    shown.step(1)
    assert "player_0: bet" in capsys.readouterr().out
    with pytest.raises(ValueError, match="render_mode: no 'film'"):
        env("kuhn", render_mode="film")
    with pytest.raises(ValueError, match="abstraction: kuhn has no 'intent'"):
        env("kuhn", abstraction="intent")
