"""The policy of a state from outside: of every state that can be, and of no other."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import API

from rejoinder.games import queries
from rejoinder.games.session import Session
from rejoinder.run.rundir import RunDir
from rejoinder_gateway.library import Library
from rejoinder_gateway.lookup import look_up
from rejoinder_gateway.snapshots import Snapshot


def ask(client: TestClient, run: str, state: Any) -> Any:
    return client.post(f"{API}/runs/{run}/policy/lookup", json={"state": state})


def positions(runs: Path, name: str, count: int) -> list[Session]:
    """Random positions in which somebody is to move."""
    config = RunDir.open(runs / name).config
    found: list[Session] = []
    for seed in range(count):
        chance = random.Random(seed)
        session = Session.start(config.load_game(), config.rules, seed=seed)
        for _ in range(chance.randrange(30)):
            following = session.copy()
            following.apply(chance.choice(following.legal()).number)
            if following.over:
                break
            session = following
        found.append(session)
    return found


def plain(session: Session) -> dict[str, Any]:
    names = session.game.dtype.names or ()
    return {name: session.states[0][name].tolist() for name in names}


@pytest.mark.parametrize("name", ["kuhn", "leduc", "deal"])
def test_the_policy_of_a_state_is_that_of_its_infoset(
    client: TestClient, runs: Path, name: str
) -> None:
    abstraction = RunDir.open(runs / name).config.load_abstraction()
    known = 0
    for session in positions(runs, name, 40):
        answer = ask(client, name, plain(session))
        assert answer.status_code == 200, answer.text
        told = answer.json()
        key = int(queries.infoset_key(session.states, abstraction.number))
        assert told["to_move"] == session.to_move
        assert told["infoset"]["identifier"] == abstraction.identifier(key)
        for action in told["infoset"]["actions"]:
            assert action.keys() == {"name", "latest", "average", "regret"}
        by_identifier = client.get(f"{API}/runs/{name}/policy/{told['infoset']['identifier']}")
        assert (by_identifier.status_code == 200) == told["known"]
        if told["known"]:
            known += 1
            assert by_identifier.json() == told["infoset"]
        else:
            averages = {a["average"] for a in told["infoset"]["actions"]}
            assert averages == {1 / len(told["infoset"]["actions"])}
            assert told["infoset"]["visits"] == 0
    assert known > 10


def test_an_infoset_is_described_from_the_state_where_the_game_can(runs: Path) -> None:
    run = Library(runs, 1).run("kuhn")
    snapshot = Snapshot(run.directory.config, run.directory.result())
    snapshot.abstraction = dataclasses.replace(
        snapshot.abstraction, describe_state=lambda states: {"moves": int(states[0]["n_moves"])}
    )
    for session in positions(runs, "kuhn", 5):
        found = look_up(run, snapshot, plain(session))
        assert found.known
        assert found.infoset.description == {"moves": session.states[0]["n_moves"]}


@pytest.mark.parametrize(
    ("run", "changes", "field"),
    [
        ("kuhn", {"n_moves": 9}, "state.n_moves"),
        ("kuhn", {"card": [1, 1]}, "state.card"),
        ("kuhn", {"card": [1, 7]}, "state.card"),
        ("kuhn", {"card": [1]}, "state.card"),
        ("kuhn", {"first": 2}, "state"),
        ("kuhn", {"moves": [1, 0, 0]}, "state.moves"),
        ("kuhn", {"n_moves": "1"}, "state.n_moves"),
        ("kuhn", {"n_moves": 1.0}, "state.n_moves"),
        ("kuhn", {"n_moves": 10**30}, "state.n_moves"),
        ("kuhn", {"colour": 1}, "state.colour"),
        ("leduc", {"paid": [3, 1]}, "state.paid"),
        ("leduc", {"history": 65535}, "state.history"),
        ("leduc", {"public": 0}, "state.card"),
        ("deal", {"deck": [0] * 11}, "state.deck"),
        ("deal", {"hand_count": [7, 6]}, "state.hand_count"),
        ("deal", {"mover": 1}, "state.mover"),
        ("deal", {"owed": 3}, "state.discard"),
        ("deal", {"streak_index": 5}, "state.streak_index"),
        ("deal", {"sets_needed": 3}, "state.sets_needed"),
        ("deal", {"n_responses": 100}, "state.n_responses"),
        ("deal", {"winner": 0}, "state.winner"),
    ],
)
def test_a_state_that_cannot_be_is_refused_naming_the_field(
    client: TestClient, runs: Path, run: str, changes: dict[str, Any], field: str
) -> None:
    config = RunDir.open(runs / run).config
    state = plain(Session.start(config.load_game(), config.rules, seed=3))
    answer = ask(client, run, state | changes)
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert answer.json()["detail"].startswith(field)


def test_the_examples_of_the_document_can_be_looked_up(app: FastAPI, client: TestClient) -> None:
    examples = app.openapi()["components"]["schemas"]["Lookup"]["examples"]
    found = [
        ask(client, run, e["state"]) for run, e in zip(("kuhn", "deal"), examples, strict=True)
    ]
    assert [answer.status_code for answer in found] == [200, 200]
    owing = found[1].json()
    assert owing["to_move"] == 1
    assert [action["name"] for action in owing["infoset"]["actions"]] == [
        "JUST_SAY_NO",
        "GIVE_OPPONENT_PROPERTY",
    ]


def test_finished_games_and_strange_bodies_are_refused(client: TestClient) -> None:
    over = {"card": [1, 0], "moves": [1, 0, 0], "n_moves": 2, "first": 0}
    assert "over" in ask(client, "kuhn", over).json()["detail"]
    strange: Any
    for strange in ({}, [], None, 1, "x", {"card": {}}, {"card": [[[[1]]]]}):
        answer = ask(client, "kuhn", strange)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuhn", "leduc", "deal"])
def test_no_change_of_a_state_breaks_anything(client: TestClient, runs: Path, name: str) -> None:
    """Whatever passes the check is safe to ask about; whatever does not is a 422."""
    chance = random.Random(11)
    refused = 0
    for session in positions(runs, name, 400):
        state = plain(session)
        field = chance.choice(list(state))
        state[field] = _changed(state[field], chance)
        answer = ask(client, name, state)
        assert answer.status_code in (200, 422), answer.text
        refused += answer.status_code == 422
    assert refused > 200


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        k = chance.randrange(len(value))
        return [_changed(v, chance) if i == k else v for i, v in enumerate(value)]
    return value + chance.choice([-128, -2, -1, 1, 2, 7, 100])
