"""A hostile reader of every byte: nothing that is sent before the end depends on what is hidden.

Every answer is searched. In some games after every move, in all of them now and then, the reader
asks for everything there is; then the hidden part of the position is dealt anew, and the names of
the cards that the player did not see are exchanged: the same questions must get the same bytes,
headers included. So nothing hidden can be reconstructed from them.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import API, DEAL, LEDUC, Player

from rejoinder import rng
from rejoinder.games import queries
from rejoinder.games.contract import HIDDEN
from rejoinder_gateway.tables import Table
from rejoinder_gateway.telling import told_events

OPPONENTS = [DEAL, {"run": "deal"}, LEDUC, {"run": "leduc"}, {"run": "kuhn"}]
GAMES = 500
CANARY = b"the-agents-own-thoughts"
DECISIONS = 4  # which of the answers to `_ask` tells the agent's decisions, once it may


@pytest.mark.slow
def test_500_games_tell_a_hostile_reader_nothing(app: FastAPI, client: TestClient) -> None:
    turns = 0
    for index in range(GAMES):
        chance = random.Random(index)
        opponent = OPPONENTS[index % len(OPPONENTS)]
        player = Player.start(client, opponent, first="random", argmax=index % 3 == 0)
        table: Table = app.state.context.tables._alive[player.id]
        while not player.game["over"]:
            if index % 25 == 0 or chance.random() < 0.05:
                turns += 1
                _read_everything(app, player, index)
            answer = player.move(chance.choice(player.game["legal"])["name"])
            if not player.game["over"]:
                _search((answer.status_code, answer.headers, answer.content), table)
    assert turns > GAMES / 2


def test_a_few_games_of_every_kind_tell_nothing(app: FastAPI, client: TestClient) -> None:
    for index, opponent in enumerate(OPPONENTS):
        player = Player.start(client, opponent, first="random")
        for _ in range(6):
            if not player.game["over"]:
                _read_everything(app, player, index)
                player.move(player.game["legal"][0]["name"])


def test_an_open_game_gives_only_the_agents_decisions_away(
    app: FastAPI, client: TestClient
) -> None:
    player = Player.start(client, {"run": "deal"}, first="agent", open=True)
    _read_everything(app, player, 0, open_game=True)
    assert player.get("/decisions").status_code == 200


def test_the_reader_notices_when_decisions_are_told(app: FastAPI, client: TestClient) -> None:
    """An open game, read as if it were not."""
    player = Player.start(client, {"run": "deal"}, first="agent", open=True)
    with pytest.raises(AssertionError):
        _read_everything(app, player, 0)


def _read_everything(app: FastAPI, player: Player, seed: int, open_game: bool = False) -> None:
    table: Table = app.state.context.tables._alive[player.id]
    before = _ask(player)
    for answer in before:
        _search(answer, table)
    session = table.session
    twin = session.copy()
    queries.shuffle_hidden(twin.states, table.row.seat, rng.stream(seed, 0, rng.REDEALS))
    twin._events = [_exchanged(event, table, seed) for event in twin._events]
    told, moves = table.told, table.moves
    table.session, table.told = twin, told_events(twin, table.row.seat, 0)
    # What the agent thought when it moved must not be told either; in an open game only there.
    table.moves = [move if move.decision is None else _canary(move) for move in moves]
    try:
        after = _ask(player)
    finally:
        table.session, table.told, table.moves = session, told, moves
    if open_game:
        del before[DECISIONS], after[DECISIONS]
    assert after == before
    assert not any(CANARY in answer[2] for answer in after)


def _canary(move: Any) -> Any:
    return dataclasses.replace(move, decision=move.decision | {"identifier": CANARY.decode()})


def _ask(player: Player) -> list[tuple[int, Any, bytes]]:
    """Every question that a player may ask, sensible or not."""
    stale = {"move_number": player.game["move_number"] + 1, "move": "pass"}
    illegal = {"move_number": player.game["move_number"], "move": "no such move"}
    number = {"move_number": player.game["move_number"], "move": 999}
    answers = [
        *(player.get(path) for path in ("", "/advice", "/history", "/history?after=2")),
        *(player.get(path) for path in ("/decisions", "/replay", "/history?after=x", "/nothing")),
        *(player.post("/moves", body) for body in (stale, illegal, number, {}, None)),
        player.client.get(f"{API}/games/{player.id}"),
        player.client.get(f"{API}/games/{player.id}/events"),
    ]
    return [(a.status_code, sorted(a.headers.items()), a.content) for a in answers]


def _search(answer: tuple[int, Any, bytes], table: Table) -> None:
    """The seed in any form, the secret's hash, and raw piles of the state."""
    text = f"{answer[1]} {answer[2].decode()}".lower()
    seed = table.row.seed
    for form in (str(seed), f"{seed:x}", table.row.secret_hash):
        assert form not in text
    state = table.session.states[0]
    if table.row.game == "deal":
        for pile in (state["deck"], state["hand"][1 - table.row.seat]):
            counts = ",".join(str(int(n)) for n in pile)
            assert counts not in text.replace(" ", "")


def _exchanged(event: Any, table: Table, seed: int) -> Any:
    """The event with another outcome where the player did not see which it was."""
    if event.seen[table.row.seat] != HIDDEN:
        return event
    other = random.Random(seed).randrange(len(table.session.game.outcomes))
    seen = [number if number == HIDDEN else other for number in event.seen]
    return event.model_copy(update={"number": other, "seen": seen})
