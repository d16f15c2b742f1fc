"""Strangers get nothing, nobody gets too much, and no error tells more than it should."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from gateway_play import ADMIN, API, BASE, DEAL, KUHN, LEDUC, Player, settings
from sqlalchemy import select, text, update
from sqlalchemy.exc import SQLAlchemyError
from starlette.websockets import WebSocketDisconnect

from rejoinder_gateway.app import create_app
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.routers import results
from rejoinder_gateway.security import (
    Limiter,
    Streams,
    Tickets,
    UnderWay,
    client_behind,
    hashed,
    network,
)
from rejoinder_gateway.settings import Settings, SettingsError
from rejoinder_gateway.store import GameRow, Store

GAME_PATHS = ["", "/advice", "/decisions", "/history", "/replay", "/events"]
GAME_POSTS = ["/moves", "/resign", "/ticket"]


@contextmanager
def gateway(runs: Path, tmp_path: Path, **fields: Any) -> Iterator[TestClient]:
    app = create_app(settings(runs, f"sqlite:///{tmp_path / 'other.db'}", **fields))
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        yield client


def test_a_wrong_secret_is_like_an_unknown_game(client: TestClient) -> None:
    player, other = Player.start(client, DEAL), Player.start(client, DEAL)
    wrong = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {other.secret}"},
        {"Authorization": f"Bearer {player.secret}x"},
        {"Authorization": f"Bearer {hashed(player.secret)}"},
        {"Authorization": f"Basic {player.secret}"},
        {"Authorization": "Bearer "},
    ]
    body = {"move_number": 0, "move": "pass"}
    for headers in wrong:
        for path in GAME_PATHS:
            mine = client.get(f"{API}/games/{player.id}{path}", headers=headers)
            nobodys = client.get(f"{API}/games/0000000000000000{path}", headers=headers)
            assert mine.status_code == 404
            assert (mine.content, mine.headers) == (nobodys.content, nobodys.headers)
        for path in GAME_POSTS:
            mine = client.post(f"{API}/games/{player.id}{path}", headers=headers, json=body)
            nobodys = client.post(f"{API}/games/0{path}", headers=headers, json=body)
            assert mine.status_code == 404
            assert mine.content == nobodys.content
    assert player.get().json() == player.game


def test_secrets_are_stored_as_hashes_only(client: TestClient) -> None:
    player = Player.start(client, KUHN)
    engine = client.app.state.context.store.engine  # type: ignore[attr-defined]
    with engine.connect() as db:
        row = db.execute(select(GameRow.__table__).where(GameRow.id == player.id)).one()
    assert player.secret not in str(row)
    assert row.secret_hash == hashed(player.secret)
    assert player.secret not in player.get().text


def test_a_ticket_opens_one_stream_of_one_game_once(client: TestClient) -> None:
    tickets = Tickets(clock := _Clock())
    ticket = tickets.issue("one")
    assert not tickets.redeem(ticket, "other")
    assert not tickets.redeem("made up", "one")
    assert tickets.redeem(ticket, "one")
    assert not tickets.redeem(ticket, "one")
    late = tickets.issue("one")
    clock.now += 61
    assert not tickets.redeem(late, "one")
    many = [tickets.issue("one") for _ in range(11)]  # whoever hoards them loses the oldest
    assert [tickets.redeem(t, "one") for t in many] == [False] + [True] * 10
    player = Player.start(client, KUHN)
    answer = player.post("/ticket")
    assert answer.status_code == 201
    assert (
        client.get(f"{API}/games/{player.id}?ticket={answer.json()['ticket']}").status_code == 404
    )


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("testclient", "testclient", True),
    ],
)
def test_what_is_limited_as_one(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) == same


_PROXY, _CLIENT, _LIAR = "10.0.0.1", "203.0.113.5", "198.51.100.7"


@pytest.mark.parametrize(
    ("connected", "forwarded", "client"),
    [
        (_CLIENT, [], _CLIENT),
        (_CLIENT, [_LIAR], _CLIENT),  # not a proxy of ours: it may say what it likes
        (_PROXY, [], _PROXY),
        (_PROXY, [_CLIENT], _CLIENT),
        (_PROXY, [f"{_LIAR}, {_CLIENT}"], _CLIENT),
        (_PROXY, [f"{_LIAR}, {_CLIENT},10.9.9.9"], _CLIENT),
        (_PROXY, [_LIAR, _CLIENT, "2001:db8::1"], _CLIENT),
        (_PROXY, [f"{_CLIENT}:4711"], _CLIENT),
        (_PROXY, ["[2001:db9::7]:4711"], "2001:db9::7"),
        (_PROXY, ["2001:db9::7"], "2001:db9::7"),
        (_PROXY, ["10.2.2.2, 10.3.3.3"], "10.2.2.2"),
        (_PROXY, [f"{_LIAR}, unknown"], _PROXY),
        (_PROXY, [f"{_LIAR}, unknown, 10.3.3.3"], "10.3.3.3"),
        (_PROXY, [""], _PROXY),
        ("::ffff:10.0.0.1", [_CLIENT], _CLIENT),
        ("testclient", [_CLIENT], "testclient"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_trusted_proxy(
    connected: str, forwarded: list[str], client: str
) -> None:
    scope = {
        "client": (connected, 1),
        "headers": [(b"x-forwarded-for", value.encode()) for value in forwarded],
    }
    proxies = (ip_network("10.0.0.0/8"), ip_network("2001:db8::1/128"))
    assert client_behind(scope, proxies) == client


def test_limits_go_by_the_client_behind_a_trusted_proxy(runs: Path, tmp_path: Path) -> None:
    def asked(proxies: tuple[str, ...], path: str = f"{API}/games") -> list[int]:
        database = f"sqlite:///{tmp_path / 'proxied.db'}"
        limits: dict[str, Any] = {"rate": 0.01, "burst": 3, "new_games": 1, "max_games_each": 1}
        app = create_app(settings(runs, database, trusted_proxies=proxies, **limits))
        with TestClient(app, base_url=BASE, client=(_PROXY, 1)) as client:
            return [
                client.post(
                    path,
                    json={"opponent": KUHN},
                    headers={"x-forwarded-for": f"{_LIAR}, {who}"},
                ).status_code
                for who in (_CLIENT, "203.0.113.6", _CLIENT, "203.0.113.6", "203.0.113.7")
            ]

    assert asked(("10.0.0.0/8",)) == [201, 201, 429, 429, 201]
    assert asked(()) == [201, 429, 429, 429, 429]
    assert asked(("10.0.0.2",)) == [201, 429, 429, 429, 429]
    for wrong in ("*", "proxy.example", "10.0.0.1/8"):
        with pytest.raises(SettingsError, match="REJOINDER_GATEWAY_TRUSTED_PROXIES"):
            Settings.read({"REJOINDER_GATEWAY_TRUSTED_PROXIES": f"10.0.0.1, {wrong}"})
    read = Settings.read({"REJOINDER_GATEWAY_TRUSTED_PROXIES": "10.0.0.1, 2001:db8::/32"})
    assert [str(proxy) for proxy in read.trusted_proxies] == ["10.0.0.1/32", "2001:db8::/32"]


def test_a_48_has_four_times_what_an_address_has() -> None:
    """One customer may have a whole /48: that is 65,536 networks of those that are limited."""
    mine = [network(f"2001:db8:0:{k}::1") for k in range(9)]
    limiter = Limiter(1.0, 1, clock := _Clock())
    assert [limiter.wait(who) > 0 for who in mine] == [False] * 4 + [True] * 5
    assert limiter.wait(network("2001:db8:1::1")) == 0.0
    clock.now += 0.5  # four a second for all, and none of those waits took anything
    assert [limiter.wait(who) > 0 for who in mine[4:]] == [False, False, True, True, True]
    under_way, streams = UnderWay(2), Streams(100, 2)
    with ExitStack() as stack:
        for k in range(8):
            under_way.begin(mine[k], str(k))
            stack.enter_context(streams.one_more(mine[k]))
        with pytest.raises(Problem, match="games under way"):
            under_way.begin(mine[8], "8")
        with pytest.raises(Problem, match="streams open"):
            _open(streams, mine[8])
        under_way.begin(network("2001:db8:1::1"), "9")
        _open(streams, network("2001:db8:1::1"))
        assert streams.open == 8
    assert streams.open == 0
    _open(streams, mine[8])


def _open(streams: Streams, who: str) -> None:
    with streams.one_more(who):
        pass


@pytest.mark.parametrize("path", ["/%00", f"/{'a' * 300}", "/api/v1/games/%00", "/x%0a.js"])
def test_names_that_nothing_can_have_are_unknown(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Authorization": "Bearer x"})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_errors_of_the_database_keep_what_was_stored(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(SQLAlchemyError) as error, store.engine.begin() as connection:
        connection.execute(text("INSERT INTO nowhere VALUES (:seed)"), {"seed": "hidden-17"})
    assert "hidden-17" not in str(error.value)
    store.close()


def test_the_limiter_allows_a_burst_and_then_a_rate() -> None:
    limiter = Limiter(2.0, 5, clock := _Clock())
    assert [limiter.wait("a") for _ in range(5)] == [0.0] * 5
    assert limiter.wait("a") == pytest.approx(0.5)
    assert limiter.wait("b") == 0.0
    clock.now += 1.0
    assert [limiter.wait("a") > 0 for _ in range(3)] == [False, False, True]
    assert Limiter(0, 1).wait("a") == 0.0


def test_too_many_requests_are_told_when_to_come_back(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, rate=0.001, burst=3) as client:
        answers = [client.get(f"{API}/runs") for _ in range(4)]
        assert [a.status_code for a in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert answers[-1].headers["content-type"] == "application/problem+json"
        for path in ("/", "/vendor/plotly.min.js", "/readyz", "/metrics", "/nothing"):
            assert client.get(path).status_code == 429
        assert client.get("/healthz").status_code == 200


def test_requests_for_another_host_are_limited_too(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, rate=0.01, burst=2) as client:
        answers = [client.get("/x", headers={"host": "evil.example"}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [400, 400, 429, 429]


def test_a_flood_of_addresses_does_not_make_every_request_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To go through all addresses takes milliseconds, so it must not be done for each new one."""
    limiter = Limiter(1.0, 5, clock := _Clock())
    times: list[float] = []
    forget = limiter._forget

    def counted(now: float) -> None:
        times.append(now)
        forget(now)

    monkeypatch.setattr(limiter, "_forget", counted)
    for k in range(30_000):
        limiter.wait(f"address {k}")
        clock.now += 5 / 19_900  # when there is no more room, a hundred buckets are full again
    assert len(times) == 1


def test_games_under_way_are_counted_by_network() -> None:
    under_way = UnderWay(2, clock := _Clock())
    under_way.begin("a", "1")
    under_way.begin("a", "2")
    with pytest.raises(Problem) as refused:
        under_way.begin("a", "3")
    assert refused.value.status_code == 429
    under_way.begin("b", "3")
    under_way.end("1")
    under_way.end("1")
    under_way.end("unknown")
    under_way.begin("a", "4")
    with pytest.raises(Problem):
        under_way.begin("a", "5")
    clock.now += 24 * 3600 + 1  # nobody is kept out by what he has forgotten
    under_way.begin("a", "5")
    under_way.begin("a", "6")
    with pytest.raises(Problem):
        under_way.begin("a", "7")


def test_a_game_counts_for_a_day_from_the_last_move() -> None:
    under_way = UnderWay(1, clock := _Clock())
    under_way.begin("a", "1")
    clock.now += 24 * 3600 - 1
    under_way.touch("1")
    under_way.touch("unknown")
    clock.now += 24 * 3600 - 1
    with pytest.raises(Problem):
        under_way.begin("a", "2")
    clock.now += 2
    under_way.begin("a", "2")
    under_way.touch("1")  # it was given up, and is not counted again
    under_way.end("2")
    under_way.begin("a", "3")


def test_games_that_one_address_has_under_way_are_limited(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, max_games_each=2) as client:
        players = [Player.start(client, KUHN) for _ in range(2)]
        refused = client.post(f"{API}/games", json={"opponent": KUHN})
        assert (refused.status_code, refused.json()["title"]) == (429, "Too many games")
        assert "2 games" in refused.json()["detail"]
        players[0].post("/resign")
        wrong = {"opponent": {"run": "none"}}
        assert client.post(f"{API}/games", json=wrong).status_code == 404  # and does not count
        Player.start(client, KUHN)
        assert client.post(f"{API}/games", json={"opponent": KUHN}).status_code == 429


def test_the_number_of_games_is_limited(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, max_games=2) as client:
        players = [Player.start(client, KUHN) for _ in range(2)]
        assert client.post(f"{API}/games", json={"opponent": KUHN}).status_code == 503
        players[0].post("/resign")
        assert client.post(f"{API}/games", json={"opponent": KUHN}).status_code == 201
    with gateway(runs, tmp_path, new_games=3) as client:
        answers = [client.post(f"{API}/games", json={"opponent": KUHN}) for _ in range(4)]
        assert [a.status_code for a in answers] == [201, 201, 201, 429]


def test_bodies_are_limited_whatever_they_say_of_their_size(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, max_body=1024) as client:
        big = json.dumps({"opponent": KUHN, "player": {"name": "x" * 2000}})
        told = client.post(
            f"{API}/games", content=big, headers={"content-type": "application/json"}
        )
        chunks = (big[k : k + 100].encode() for k in range(0, len(big), 100))
        untold = client.post(
            f"{API}/games", content=chunks, headers={"content-type": "application/json"}
        )
        for answer in (told, untold):
            assert answer.status_code == 413
            assert answer.headers["content-type"] == "application/problem+json"
        assert client.post(f"{API}/games", json={"opponent": KUHN}).status_code == 201
        endless = client.get(f"{API}/runs", headers={"content-length": "9" * 5000})
        assert endless.status_code == 413


def test_streams_are_limited(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, max_streams=1) as client:
        streams = client.app.state.context.streams  # type: ignore[attr-defined]
        with streams.one_more("elsewhere"):
            assert client.get(f"{API}/runs/kuhn/events").status_code == 503
            assert client.get(f"{API}/runs/kuhn/policy-file").status_code == 503
        assert streams.open == 0
        assert client.get(f"{API}/runs/kuhn/policy-file").status_code == 200
        assert streams.open == 0


def test_nobody_can_take_all_streams(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path, max_streams=3, max_streams_each=2) as client:
        streams = client.app.state.context.streams  # type: ignore[attr-defined]
        me = network("testclient")
        with streams.one_more(me), streams.one_more(me):
            refused = client.get(f"{API}/runs/kuhn/events")
            assert (refused.status_code, refused.json()["title"]) == (429, "Too many streams")
            with streams.one_more("somebody else"):
                assert streams.open == 3
        assert client.get(f"{API}/runs/kuhn/policy-file").status_code == 200


def test_nothing_speaks_websocket(client: TestClient) -> None:
    for path in ("/", f"{API}/runs"):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(path):
            pass


@pytest.mark.parametrize("path", ["/", "/healthz", f"{API}/runs", f"{API}/nothing", "/api/x"])
def test_every_answer_has_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_a_name_that_is_not_ours_is_refused(client: TestClient) -> None:
    """So a page elsewhere cannot reach a loopback gateway by a name that it rebinds."""
    for host in ("evil.example", "evil.example:8642", "127.0.0.1.evil.example", ""):
        assert client.get(f"{API}/runs", headers={"host": host}).status_code == 400
    for host in ("localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:8642"):
        assert client.get(f"{API}/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("field", ["host", "hosts"])
def test_an_ipv6_address_is_a_name_of_ours(runs: Path, tmp_path: Path, field: str) -> None:
    address = "2001:DB8::7"
    fields = {field: address if field == "host" else (address,)}
    with gateway(runs, tmp_path, **fields) as client:
        for host in ("[2001:db8::7]", "[2001:db8::7]:8642"):
            assert client.get(f"{API}/runs", headers={"host": host}).status_code == 200
        for host in ("[2001:db8::8]", "2001:db8::7", "[2001:db8::7].evil.example"):
            assert client.get(f"{API}/runs", headers={"host": host}).status_code == 400


def test_cors_is_for_the_named_origins_alone(runs: Path, tmp_path: Path) -> None:
    friend, stranger = "https://friend.example", "https://stranger.example"
    with gateway(runs, tmp_path, origins=(friend,)) as client:
        allowed = client.get(f"{API}/runs", headers={"origin": friend}).headers
        assert allowed["access-control-allow-origin"] == friend
        assert "access-control-allow-credentials" not in allowed
        refused = client.get(f"{API}/runs", headers={"origin": stranger}).headers
        assert "access-control-allow-origin" not in refused
        asked = {"origin": stranger, "access-control-request-method": "POST"}
        assert client.options(f"{API}/games", headers=asked).status_code == 400
    with gateway(runs, tmp_path, origins=(friend,), rate=0.01, burst=1, max_body=1024) as client:
        own = [
            client.get("/healthz", headers={"origin": friend, "host": "evil.example"}),
            client.get("/healthz", headers={"origin": friend, "content-length": "2000"}),
            client.get(f"{API}/runs", headers={"origin": friend}),
            client.get(f"{API}/runs", headers={"origin": friend}),
        ]
        assert [answer.status_code for answer in own] == [400, 413, 200, 429]
        for answer in own:  # what the guard says itself can be read, too
            assert answer.headers["access-control-allow-origin"] == friend
            assert answer.headers["x-content-type-options"] == "nosniff"
    with pytest.raises(SettingsError, match="origins"):
        Settings.read({"REJOINDER_GATEWAY_ORIGINS": "*"})


@pytest.mark.parametrize("opponent", [KUHN, LEDUC])
def test_an_open_game_tells_the_agents_infosets_and_nothing_else_that_is_hidden(
    client: TestClient, opponent: dict[str, Any]
) -> None:
    """In poker its infoset has its card: who opens a game for analysis wants to see that."""
    for is_open in (True, False):
        player = Player.start(client, opponent, first="agent", open=is_open)
        while player.game["over"]:
            player = Player.start(client, opponent, first="agent", open=is_open)
        decisions = player.get("/decisions")
        told = [player.game, player.get().json()]
        assert {state["view"]["opponent_card"] for state in told} == {None}
        history = player.get("/history").json()["events"]
        for events in (history, *(state["events"] for state in told)):
            drawn = [event["name"] for event in events if event["actor"] is None]
            assert drawn == ["hidden", player.game["view"]["card"]]
        assert player.get("/replay").status_code == 403
        player.post("/resign")
        last = player.get("/replay").json()["steps"][-1]
        if is_open:
            (decision,) = decisions.json()["decisions"]
            assert decision["infoset"]["card"] == last["views"][0]["card"]
        else:
            assert decisions.status_code == 403


def test_advice_is_refused_by_the_turn_whether_the_agent_is_there_or_not(
    runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "kuhn", tmp_path / "runs" / "kuhn")
    with gateway(tmp_path / "runs", tmp_path) as client:
        player = Player.start(client, {"run": "kuhn"})
        player.post("/resign")
    shutil.rmtree(tmp_path / "runs" / "kuhn")
    with gateway(tmp_path / "runs", tmp_path) as client:
        player.client = client
        answer = player.get("/advice")
        assert (answer.status_code, answer.json()["title"]) == (409, "Not your turn")


def test_results_are_for_the_administrator(client: TestClient, runs: Path, tmp_path: Path) -> None:
    player = Player.start(client, KUHN, player={"name": "=1+1"})
    player.post("/resign")
    assert client.get(f"{API}/results").status_code == 401
    assert client.get(f"{API}/results", headers=player.headers).status_code == 401
    admin = {"Authorization": f"Bearer {ADMIN}"}
    (told,) = client.get(f"{API}/results", headers=admin).json()["results"]
    assert (told["id"], told["outcome"], told["player_name"]) == (player.id, "resigned", "=1+1")
    text = client.get(f"{API}/results?format=csv", headers=admin).text
    (line,) = csv.DictReader(io.StringIO(text))
    assert line["player_name"] == "'=1+1"  # no formula for a spreadsheet
    assert "secret" not in text
    with gateway(runs, tmp_path, admin_token=None) as closed:
        refused = closed.get(f"{API}/results", headers=admin)
        assert refused.status_code == 403
        assert "REJOINDER_GATEWAY_ADMIN_TOKEN" in refused.json()["detail"]


@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_results_come_in_blocks_and_in_order(
    client: TestClient, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_BLOCK", block)
    admin = {"Authorization": f"Bearer {ADMIN}"}
    assert client.get(f"{API}/results", headers=admin).json() == {"results": []}
    players = [Player.start(client, KUHN) for _ in range(6)]
    for player in players[1:]:
        player.post("/resign")
    _finish_at_once(client, players[2:5])  # they go by their names then
    told = client.get(f"{API}/results", headers=admin).json()["results"]
    assert [(r["finished"], r["id"]) for r in told] == sorted(
        (r["finished"], r["id"]) for r in told
    )
    assert {r["id"] for r in told} == {player.id for player in players[1:]}
    text = client.get(f"{API}/results?format=csv", headers=admin).text
    assert [line["id"] for line in csv.DictReader(io.StringIO(text))] == [r["id"] for r in told]


def _finish_at_once(client: TestClient, players: list[Player]) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678900, UTC)
    chosen = GameRow.id.in_([player.id for player in players])
    engine = client.app.state.context.store.engine  # type: ignore[attr-defined]
    with engine.begin() as db:
        db.execute(update(GameRow).where(chosen).values(finished=moment))


def test_results_of_a_database_that_is_gone_are_a_503(client: TestClient) -> None:
    engine = client.app.state.context.store.engine  # type: ignore[attr-defined]
    with engine.begin() as db:
        db.exec_driver_sql("ALTER TABLE games RENAME TO lost")
    answer = client.get(f"{API}/results", headers={"Authorization": f"Bearer {ADMIN}"})
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_said_to_be_json_is_told_so(
    client: TestClient, kind: str | None
) -> None:
    body, headers = json.dumps({"opponent": KUHN}), {"content-type": kind} if kind else {}
    answer = client.post(f"{API}/games", content=body, headers=headers)
    assert answer.status_code == 422
    assert "Content-Type: application/json" in answer.json()["detail"]
    wrong = client.post(f"{API}/games", json=[]).json()["detail"]
    assert "Content-Type" not in wrong


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v2/runs", 404),
        ("DELETE", "/api/v1/runs", 405),
        ("POST", "/healthz", 405),
        ("GET", "/nothing.js", 404),
        ("GET", "/../settings.py", 404),
        ("GET", "/%2e%2e/settings.py", 404),
        ("GET", "/..%2fsettings.py", 404),
        ("POST", "/", 405),
    ],
)
def test_every_error_is_a_problem(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= answer.json().keys()
    assert answer.json()["status"] == status


def test_what_nobody_expected_tells_only_a_reference(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the password is swordfish")

    with gateway(runs, tmp_path) as client:
        library = client.app.state.context.library  # type: ignore[attr-defined]
        monkeypatch.setattr(type(library), "runs", fail)
        answer = client.get(f"{API}/runs")
        assert answer.status_code == 500
        assert answer.headers["content-type"] == "application/problem+json"
        assert "swordfish" not in answer.text
        assert "Traceback" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_database_that_is_gone_is_a_503(runs: Path, tmp_path: Path) -> None:
    with gateway(runs, tmp_path) as client:
        player = Player.start(client, KUHN)
        engine = client.app.state.context.store.engine  # type: ignore[attr-defined]
        with engine.begin() as db:
            db.exec_driver_sql("ALTER TABLE moves RENAME TO lost")
        number = player.game["move_number"]
        assert player.move("bet").status_code == 503
        with engine.begin() as db:
            db.exec_driver_sql("ALTER TABLE lost RENAME TO moves")
        assert player.get().json()["move_number"] == number
        assert player.move("bet").status_code == 200
