"""Games through the API: what is told, what is refused, and that nothing happens twice."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import API, DEAL, KUHN, LEDUC, Player, visited

EVERY_OPPONENT = [
    KUHN,
    LEDUC,
    DEAL,
    {"run": "kuhn"},
    {"run": "leduc", "snapshot": 40},
    {"run": "deal"},
]


@pytest.mark.parametrize("opponent", EVERY_OPPONENT, ids=str)
@pytest.mark.parametrize("first", ["you", "agent", "random"])
def test_a_game_can_be_played_to_its_end(
    client: TestClient, opponent: dict[str, Any], first: str
) -> None:
    player = Player.start(client, opponent, first=first, player={"name": "Ada"})
    assert player.game["seat"] in {"you": [0], "agent": [1], "random": [0, 1]}[first]
    assert player.game["your_turn"]
    assert player.game["to_move"] == player.game["seat"]
    assert player.game["view"]["player"] == player.game["seat"]
    assert [move["name"] for move in player.game["legal"]]
    player.play_on(random.Random(1))
    game = player.game
    assert game["over"]
    assert game["to_move"] is None
    assert game["legal"] == []
    assert sum(game["utilities"]) == 0
    won = game["utilities"][game["seat"]]
    assert game["outcome"] == ("draw" if won == 0 else "won" if won > 0 else "lost")
    assert player.get().json() == game


def test_events_of_a_move_are_the_move_and_all_that_followed(client: TestClient) -> None:
    player = Player.start(client, DEAL)
    seen = player.get("/history").json()["events"]
    for _ in range(8):
        if player.game["over"]:
            break
        chosen = player.game["legal"][0]["name"]
        events = player.move(chosen).json()["events"]
        assert events[0]["actor"] == player.game["seat"]
        assert events[0]["name"] == chosen
        seen += events
        assert player.get("/history").json()["events"] == seen
        assert [event["number"] for event in seen] == list(range(1, len(seen) + 1))
        assert player.game["events"] == seen[-50:]
        assert player.get(f"/history?after={seen[-1]['number'] - 3}").json()["events"] == seen[-3:]
    assert player.game["move_number"] == sum(event["actor"] is not None for event in seen)


def test_the_same_move_twice_does_nothing_twice(client: TestClient) -> None:
    player = Player.start(client, DEAL)
    for _ in range(5):
        if player.game["over"]:  # which the agent may manage so soon
            player = Player.start(client, DEAL)
        number, chosen = player.game["move_number"], player.game["legal"][-1]
        first = player.move(chosen["name"])
        for again in (chosen["name"], chosen["number"]):
            repeated = player.move(again, number)
            assert repeated.status_code == 200
            assert repeated.content == first.content


def test_another_move_with_the_number_of_the_last_one_is_a_conflict(client: TestClient) -> None:
    """Only the player's own last move may be repeated, and only as it was."""
    player = Player.start(client, {"run": "deal"})
    sent: list[tuple[int, str]] = []
    while len(sent) < 4 or len(player.game["legal"]) < 2:
        number, names = player.game["move_number"], [m["name"] for m in player.game["legal"]]
        assert player.move(names[0]).status_code == 200
        sent.append((number, names[0]))
        for other in names[1:]:
            answer = player.move(other, number)
            assert (answer.status_code, answer.json()["title"]) == (409, "Stale move")
            assert answer.json()["move_number"] == player.game["move_number"]
        assert not player.game["over"]
    for number, move in sent[:-1]:
        assert player.move(move, number).status_code == 409
    assert player.get().json() == player.game


def test_a_stale_move_is_a_conflict(client: TestClient) -> None:
    player = Player.start(client, {"run": "deal"})
    first, *_, last = (move["name"] for move in player.game["legal"])
    player.move(first)
    number = player.game["move_number"]
    player.move(player.game["legal"][0]["name"])
    current = player.game["move_number"]
    for wrong in (0, number - 1, current + 1, current + 1000):
        answer = player.move(last, wrong)
        assert answer.status_code == 409
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["move_number"] == current
    assert player.get().json()["move_number"] == current


def test_an_illegal_move_is_told_what_was_legal(client: TestClient) -> None:
    player = Player.start(client, LEDUC)
    legal = [move["name"] for move in player.game["legal"]]
    for wrong in ("fold", "nonsense", 0, 17, "1"):
        answer = player.move(wrong)
        assert answer.status_code == 422
        assert answer.json()["legal"] == legal
    assert player.get().json() == player.game


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"move_number": 0},
        {"move": "pass"},
        {"move_number": "0", "move": "pass"},
        {"move_number": -1, "move": "pass"},
        {"move_number": 0, "move": True},
        {"move_number": 0, "move": 1.5},
        {"move_number": 0, "move": None},
        {"move_number": 0, "move": "pass", "more": 1},
        [],
        None,
    ],
    ids=json.dumps,
)
def test_a_malformed_move_names_the_field(client: TestClient, body: Any) -> None:
    answer = Player.start(client, KUHN).post("/moves", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("body")


def test_after_the_end_moves_are_refused_but_the_last_one_may_be_repeated(
    client: TestClient,
) -> None:
    player = Player.start(client, KUHN)
    last = player.play_on(random.Random(3))[-1]
    sent = json.loads(last.request.content)
    assert player.post("/moves", sent).content == last.content
    answer = player.move("bet")
    assert answer.status_code == 409
    assert "over" in answer.json()["detail"]
    assert player.get("/advice").status_code == 409


def test_resigning_ends_the_game_once(client: TestClient) -> None:
    player = Player.start(client, DEAL)
    player.move(player.game["legal"][0]["name"])
    answer = player.post("/resign").json()
    assert (answer["over"], answer["outcome"], answer["winner"]) == (True, "resigned", 1)
    assert answer["utilities"] is None
    assert player.post("/resign").json() == answer
    assert player.move("pass").status_code == 409
    assert player.get("/replay").status_code == 200


def test_what_may_not_be_done_once_a_game_is_over(client: TestClient) -> None:
    """However it has ended; a move that was resigned after is not repeated either."""
    resigned, played = Player.start(client, DEAL), Player.start(client, KUHN)
    number, move = resigned.game["move_number"], resigned.game["legal"][0]["name"]
    resigned.move(move)
    resigned.game = resigned.post("/resign").json()
    played.play_on(random.Random(3))
    for player in (resigned, played):
        told = player.get().content
        for sent in ((number, move), (player.game["move_number"], "pass"), (10_000, 0)):
            answer = player.post("/moves", {"move_number": sent[0], "move": sent[1]})
            assert (answer.status_code, answer.json()["title"]) == (409, "Game over")
            assert answer.json()["move_number"] == player.game["move_number"]
        advice = player.get("/advice")
        assert (advice.status_code, advice.json()["title"]) == (409, "Not your turn")
        assert player.game["legal"] == []
        assert player.post("/resign").content == player.get().content == told
        assert player.get("/decisions").status_code == player.get("/replay").status_code == 200


def test_history_begins_after_the_event_that_is_named(client: TestClient) -> None:
    player = Player.start(client, DEAL)
    player.play_on(random.Random(1), most=5)
    events = player.get("/history").json()["events"]
    assert len(events) > 5
    for after in range(len(events) + 1):
        assert player.get(f"/history?after={after}").json()["events"] == events[after:]
    for later in (len(events) + 1, 2**53 - 1):
        assert player.get(f"/history?after={later}").json() == {"events": []}
    for wrong in ("-1", "x", "1.5", "", str(2**53)):
        answer = player.get(f"/history?after={wrong}")
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "query.after"


def test_a_game_of_somebody_else_is_unknown_on_every_route(
    app: FastAPI, client: TestClient
) -> None:
    """All that the document names; whoever adds one does not have to remember this."""
    mine, finished, other = (Player.start(client, DEAL) for _ in range(3))
    finished.post("/resign")
    told = [(player.get().content, player.get("/history").content) for player in (mine, finished)]
    body = {"move_number": 0, "move": mine.game["legal"][0]["name"]}
    asked = 0
    for path, operations in app.openapi()["paths"].items():
        for method in operations if "{game}" in path else ():
            asked += 1
            for game in (mine.id, finished.id, "0" * 16):
                answer = client.request(
                    method, path.format(game=game), headers=other.headers, json=body
                )
                assert answer.status_code == 404, (method, path)
                assert answer.json()["title"] == "Unknown game"
    assert asked == 9
    now_told = [(p.get().content, p.get("/history").content) for p in (mine, finished)]
    assert now_told == told


def test_advice_is_a_policy_over_the_players_own_moves(client: TestClient) -> None:
    for opponent in ({"run": "deal"}, DEAL, {"run": "kuhn"}):
        player = Player.start(client, opponent)
        for _ in range(3):
            if player.game["over"]:
                break
            advice = player.get("/advice").json()
            assert sum(a["probability"] for a in advice["actions"]) == pytest.approx(1.0)
            legal = {move["name"] for move in player.game["legal"]}
            assert {a["move"] for a in advice["actions"]} <= legal
            assert (advice["visits"] is None) == ("baseline" in opponent)
            if "run" in opponent and advice["known"]:
                path = f"{API}/runs/{opponent['run']}/policy/{advice['identifier']}"
                infoset = client.get(path).json()
                assert infoset["visits"] == advice["visits"]
                assert infoset["description"] == advice["infoset"]
                average = {a["name"]: a["average"] for a in infoset["actions"]}
                told = {a["name"]: a["probability"] for a in advice["actions"]}
                assert told == pytest.approx(average)
            player.move(player.game["legal"][0]["name"])


def test_decisions_are_hidden_until_the_end_unless_the_game_is_open(client: TestClient) -> None:
    closed = Player.start(client, {"run": "deal"}, first="agent")
    assert closed.get("/decisions").status_code == 403
    assert closed.get("/replay").status_code == 403
    opened = Player.start(client, {"run": "deal"}, first="agent", open=True)
    assert opened.game["open"]
    assert opened.get("/decisions").json()["decisions"]
    assert opened.get("/replay").status_code == 403
    closed.play_on(random.Random(5))
    decisions = closed.get("/decisions").json()["decisions"]
    history = closed.get("/history").json()["events"]
    agents = [event["name"] for event in history if event["actor"] == 0]
    assert [d["move"] for d in decisions] == agents
    for decision in decisions:
        chosen = {a["move"]: a["probability"] for a in decision["actions"]}
        assert chosen[decision["move"]] > 0
        assert decision["snapshot"] == 60


def test_a_replay_shows_both_hands_step_by_step(client: TestClient) -> None:
    player = Player.start(client, DEAL)
    player.play_on(random.Random(8))
    steps = player.get("/replay").json()["steps"]
    history = player.get("/history").json()["events"]
    assert len(steps) == len(history)
    for step, event in zip(steps, history, strict=True):
        assert (step["number"], step["actor"]) == (event["number"], event["actor"])
        assert event["name"] in (step["name"], "hidden")
        assert [view["player"] for view in step["views"]] == [0, 1]
        assert (step["decision"] is not None) == (step["actor"] == 1)
    assert steps[-1]["views"][0] == player.game["view"]


def test_argmax_plays_the_likeliest_action(client: TestClient) -> None:
    player = Player.start(client, {"run": "deal"}, argmax=True)
    player.play_on(random.Random(2))
    for decision in player.get("/decisions").json()["decisions"]:
        if decision["known"]:
            assert max(a["probability"] for a in decision["actions"]) == 1.0


@pytest.mark.parametrize(
    ("wanted", "status", "title"),
    [
        ({"opponent": {"run": "none"}}, 404, "Unknown run"),
        ({"opponent": {"run": ".."}}, 404, "Unknown run"),
        ({"opponent": {"run": "kuhn", "snapshot": 7}}, 404, "Unknown snapshot"),
        (
            {"opponent": {"baseline": "risk-aware", "configuration": "kuhn"}},
            404,
            "Unknown baseline",
        ),
        ({"opponent": {"baseline": "random", "configuration": "go"}}, 404, "Unknown configuration"),
        ({"opponent": {}}, 422, "Invalid request"),
        ({"opponent": KUHN, "first": "me"}, 422, "Invalid request"),
        ({"opponent": KUHN, "seed": 1}, 422, "Invalid request"),
        ({"opponent": KUHN, "player": {"name": "x" * 41}}, 422, "Invalid request"),
    ],
)
def test_what_cannot_be_played_is_refused(
    client: TestClient, wanted: dict[str, Any], status: int, title: str
) -> None:
    answer = client.post(f"{API}/games", json=wanted)
    assert (answer.status_code, answer.json()["title"]) == (status, title)


def test_whoever_waited_for_a_move_that_failed_is_told_to_read(app: FastAPI) -> None:
    """Nothing is built on a move of which nobody knows whether it was stored."""

    async def fail() -> None:
        async with visited(app) as client:
            created = (await client.post(f"{API}/games", json={"opponent": DEAL})).json()
            headers = {"Authorization": f"Bearer {created['secret']}"}
            path = f"{API}/games/{created['game']['id']}"
            body = {"move_number": 0, "move": created["game"]["legal"][0]["name"]}
            engine = app.state.context.store.engine
            with engine.begin() as db:
                db.exec_driver_sql("ALTER TABLE moves RENAME TO lost")
            answers = await asyncio.gather(
                *(client.post(f"{path}/moves", headers=headers, json=body) for _ in range(5)),
                client.post(f"{path}/resign", headers=headers),
            )
            with engine.begin() as db:
                db.exec_driver_sql("ALTER TABLE lost RENAME TO moves")
            assert {answer.status_code for answer in answers} == {503}
            titles = [answer.json()["title"] for answer in answers]
            assert titles[0] == "Database unavailable"
            assert "Try again" in titles
            assert (await client.get(path, headers=headers)).json() == created["game"]
            again = await client.post(f"{path}/moves", headers=headers, json=body)
            assert again.status_code == 200

    asyncio.run(fail())


def test_concurrent_moves_of_one_game_are_serialised(app: FastAPI) -> None:
    """Fifty copies of one request, and of rival ones: one move is made, and all agree on it."""

    async def race() -> None:
        async with visited(app) as client:
            created = (await client.post(f"{API}/games", json={"opponent": DEAL})).json()
            headers = {"Authorization": f"Bearer {created['secret']}"}
            path = f"{API}/games/{created['game']['id']}"
            for _ in range(5):
                game = (await client.get(path, headers=headers)).json()
                if game["over"]:
                    return
                names = [move["name"] for move in game["legal"]]
                sent = [
                    {"move_number": game["move_number"], "move": names[k % len(names)]}
                    for k in range(50)
                ]
                answers = await asyncio.gather(
                    *(client.post(f"{path}/moves", headers=headers, json=body) for body in sent)
                )
                made = {a.content for a in answers if a.status_code == 200}
                assert len(made) == 1
                assert {a.status_code for a in answers} <= {200, 409}
                moves = [b["move"] for a, b in zip(answers, sent, strict=True) if a.is_success]
                assert len(set(moves)) == 1
                after = (await client.get(path, headers=headers)).json()
                assert json.loads(made.pop())["game"] == after

    asyncio.run(race())


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Basic"])
def test_the_short_way_of_a_move_is_the_usual_one(
    client: TestClient, kind: str, scheme: str
) -> None:
    """Plain JSON goes the short way, what names a charset the usual one: both mean the same."""
    player = Player.start(client, KUHN)
    answer = client.post(
        f"{API}/games/{player.id}/moves",
        headers={"Authorization": f"{scheme} {player.secret}", "Content-Type": kind},
        content=json.dumps({"move_number": 0, "move": player.game["legal"][0]["name"]}),
    )
    assert answer.status_code == (404 if scheme == "Basic" else 200)
    assert client.get(f"{API}/openapi.json").json()["paths"][f"{API}/games/{{game}}/moves"]["post"][
        "security"
    ] == [{"game secret": []}]
