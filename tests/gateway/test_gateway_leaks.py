"""A hostile reader of every byte: nothing that is sent before the end depends on what is hidden.

Every answer is searched. In some games after every move, in all of them now and then, the reader
asks for everything there is; then the hidden part of the position is dealt anew, the seed and the
luck to come are others, and the names of the cards that the player did not see are exchanged: the
same questions must get the same bytes, headers included. So nothing hidden can be reconstructed
from them. And a gateway that tells something hidden in any one of its answers is found out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import random
import re
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import API, BASE, DEAL, KUHN, LEDUC, Player
from starlette.types import Message, Receive, Scope, Send

from rejoinder.games import queries
from rejoinder.games.contract import HIDDEN
from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder_gateway.tables import GameTable, position
from rejoinder_gateway.visible import visible_events

OPPONENTS = [DEAL, {"run": "deal"}, LEDUC, {"run": "leduc"}, {"run": "kuhn"}]
GAMES = 500
CANARY = "the-agents-own-thoughts"
CHANNEL = "x-channel"  # a header that names the question, so that a leaky gateway knows its answer
STREAM = "stream"  # the one whose answer does not end
CHANNELS = [
    *("created", "moved", "state", "advice", "history", "later history", "history of nonsense"),
    *("decisions", "replay", "nothing", "results", "runs", "stale move", "old move"),
    *("repeated move", "illegal move", "illegal number", "empty move", "no move"),
    *("refused game", "ticket", "stranger", "stranger's stream", STREAM, "metrics"),
]


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Question(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any = None  # as JSON; None: there is none


class Reader(Player):
    """The player, who keeps the answer to his last move."""

    last: Answer | None = None

    @property
    def asked(self) -> TestClient:
        """Who answers."""
        assert isinstance(self.client, TestClient)
        return self.client


class Leak(AssertionError):
    """Something hidden was told."""

    def __init__(self, channel: str, what: str) -> None:
        super().__init__(f"{channel}: {what}")


@pytest.mark.slow
@pytest.mark.timeout(900)  # five minutes on a busy machine
def test_500_games_tell_a_hostile_reader_nothing(app: FastAPI, client: TestClient) -> None:
    turns = 0
    for index in range(GAMES):
        chance = random.Random(index)
        opponent = OPPONENTS[index % len(OPPONENTS)]
        fields = {"first": "random", "argmax": index % 3 == 0, "search": 5 * (index % 8 == 0)}
        player = _begin(app, client, opponent, index, **fields)
        while not player.game["over"]:
            if index % 50 == 0 or chance.random() < 0.04:
                turns += 1
                _read_everything(app, player, index)
            _move(app, player, chance.choice(player.game["legal"])["name"])
    assert turns > GAMES / 2


def test_a_few_games_of_every_kind_tell_nothing(app: FastAPI, client: TestClient) -> None:
    for index, opponent in enumerate(2 * OPPONENTS):
        search = 5 * (index >= len(OPPONENTS))
        player = _begin(app, client, opponent, index, first="random", search=search)
        for _ in range(6):
            if not player.game["over"]:
                _read_everything(app, player, index)
                _move(app, player, player.game["legal"][0]["name"])


def test_an_open_game_gives_only_the_agents_decisions_away(
    app: FastAPI, client: TestClient
) -> None:
    player = _begin(app, client, {"run": "deal"}, 0, first="agent", open=True)
    _read_everything(app, player, 0, open_game=True)
    assert player.get("/decisions").status_code == 200


# The test of the test: a gateway that leaks, and whether the reader notices.


def test_the_reader_notices_when_decisions_are_told(app: FastAPI, client: TestClient) -> None:
    """An open game, read as if it were not."""
    player = _begin(app, client, {"run": "deal"}, 0, first="agent", open=True)
    with pytest.raises(Leak, match=r"^decisions: "):
        _read_everything(app, player, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opponent", "what", "where"),
    [
        (DEAL, "digest", "body"),
        (DEAL, "digest", "header"),
        (KUHN, "card", "body"),
        (LEDUC, "card", "header"),
    ],
)
def test_the_reader_notices_a_leak_in_every_answer(
    app: FastAPI, opponent: dict[str, Any], what: str, where: str
) -> None:
    """Either a digest that nobody would recognise as what is hidden, or the card by its name."""
    leaky = Leaky(app, what, where)
    with TestClient(leaky, base_url=BASE) as client:
        _read_all_of_a_game(app, client, opponent)  # nothing leaks yet, and nothing is found
        for channel in CHANNELS:
            leaky.channel = channel
            with pytest.raises(Leak, match=f"^{channel}: "):
                _read_all_of_a_game(app, client, opponent)


def _read_all_of_a_game(app: FastAPI, client: TestClient, opponent: dict[str, Any]) -> None:
    _read_everything(app, _begun(app, client, opponent), 0)


def _begun(app: FastAPI, client: TestClient, opponent: dict[str, Any]) -> Reader:
    """A game in which the player has moved once."""
    while True:
        player = _begin(app, client, opponent, 0, first="you")
        _move(app, player, player.game["legal"][0]["name"])
        if not player.game["over"]:
            return player


class Leaky:
    """A gateway one of whose answers tells what is hidden, in its body or in a header."""

    def __init__(self, app: FastAPI, what: str, where: str) -> None:
        self._app, self._what, self._where = app, what, where
        self.channel = ""  # which answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def leak(message: Message) -> None:
            if message["type"] == "http.response.start" and self._where == "header":
                message["headers"] = [*message["headers"], (b"x-hidden", self._hidden())]
            elif message["type"] == "http.response.start":
                headers = message["headers"]
                message["headers"] = [h for h in headers if h[0] != b"content-length"]
            elif self._where == "body":
                message["body"] = message.get("body", b"") + b" " + self._hidden()
            await send(message)

        asked = dict(scope.get("headers", ())).get(CHANNEL.encode(), b"").decode()
        leaks = asked != "" and asked == self.channel
        await self._app(scope, receive, leak if leaks else send)

    def _hidden(self) -> bytes:
        """Of the game that was last asked for."""
        table: GameTable = next(reversed(self._app.state.context.tables._recent.values()))
        if self._what == "card":
            return json.dumps(_others_card(table)).encode()
        return hashlib.sha256(table.session.states.tobytes()).hexdigest().encode()


# The reader.


def _begin(
    app: FastAPI, client: TestClient, opponent: dict[str, Any], seed: int, **fields: Any
) -> Reader:
    """A new game. Where the agent has not moved yet, another one with other hidden cards is told
    just the same."""
    body = {"opponent": opponent, **fields}
    answer = _create(client, body)
    assert answer.status == 201, answer.body
    player = Reader(client, _json(answer))
    table = _table(app, player)
    _search("created", answer, _hidden(table))
    if table.row.seat == 0:
        with pytest.MonkeyPatch.context() as patch:
            begin = GameTable.begin
            patch.setattr(GameTable, "begin", lambda self: _redealt(begin(self), 0, seed))
            patch.setattr("rejoinder_gateway.tables.secrets.randbits", lambda _: table.row.seed)
            twins = _create(client, body | {"first": "you"})
        twin = Reader(client, _json(twins))
        told = [
            str(a).replace(p.id, "its id").replace(p.secret, "its secret")
            for a, p in ((answer, player), (twins, twin))
        ]
        _compare("created", told[0], told[1])
        twin.post("/resign")
    return player


def _create(client: TestClient, body: dict[str, Any]) -> Answer:
    return _answers(client, {"created": Question("POST", f"{API}/games", {}, body)})["created"]


def _move(app: FastAPI, player: Reader, move: str) -> None:
    """What comes back depends on the agent's reply, so it is searched; later, when the hidden part
    is dealt anew, the move is sent again and must be told just the same."""
    table = _table(app, player)
    body = {"move_number": player.game["move_number"], "move": move}
    path = f"{API}/games/{player.id}/moves"
    asked = {"moved": Question("POST", path, player.headers, body)}
    answer = _answers(player.asked, asked)["moved"]
    assert answer.status == 200, answer.body
    player.game, player.last = _json(answer)["game"], answer
    if not player.game["over"]:
        _search("moved", answer, _hidden(table))


def _read_everything(app: FastAPI, player: Reader, seed: int, open_game: bool = False) -> None:
    table = _table(app, player)
    _answers(player.asked, {"": Question("GET", "/metrics", {})})  # it is counted from now on
    before, hidden = _ask(player, table), _hidden(table)
    for channel, answer in before.items():
        _search(channel, answer, hidden)
    real = table.session, table.told, table.moves, table.row.seed, table.row.position
    table.session = _redealt(table.session, table.row.seat, seed)
    table.told = visible_events(table.session, table.row.seat, 0)
    # What the agent thought when it moved must not be told either; in an open game only there.
    table.moves = [move if move.decision is None else _canary(move) for move in table.moves]
    table.row.seed, table.row.position = table.row.seed ^ (1 + seed), position(table.session)
    try:
        after = _ask(player, table)
    finally:
        table.session, table.told, table.moves, table.row.seed, table.row.position = real
    if open_game:
        del before["decisions"], after["decisions"]
    assert before.keys() == after.keys()
    for channel, answer in after.items():
        if CANARY.encode() in answer.body:
            raise Leak(channel, "what the agent thought is told")
        _compare(channel, _steady(channel, before[channel]), _steady(channel, answer))
    if player.last:
        _compare("moved", player.last, before["repeated move"])


def _redealt(session: Session, seat: int, seed: int) -> Session:
    """A position in which the player at `seat` has seen the same, and all else is different."""
    twin = session.copy()
    queries.shuffle_hidden(twin.states, seat, rng.stream(seed, 0, rng.REDEALS))
    twin._chance = rng.stream(seed, 1, rng.REDEALS)
    twin._events = [_exchanged(event, session, seat, seed) for event in twin._events]
    return twin


def _exchanged(event: Any, session: Session, seat: int, seed: int) -> Any:
    """The event with another outcome where the player did not see which it was."""
    if event.seen[seat] != HIDDEN:
        return event
    other = random.Random(seed).randrange(len(session.game.outcomes))
    seen = [number if number == HIDDEN else other for number in event.seen]
    return event.model_copy(update={"number": other, "seen": seen})


def _canary(move: Any) -> Any:
    return dataclasses.replace(move, decision=move.decision | {"identifier": CANARY})


def _ask(player: Reader, table: GameTable) -> dict[str, Answer]:
    """Every question that a player may ask, sensible or not, by what it is called here."""
    number, game = player.game["move_number"], f"{API}/games/{player.id}"
    mine = [move for move in table.moves if move.actor == table.row.seat][-1:]
    again = {"move_number": mine[0].number, "move": mine[0].move} if mine else None
    gets = {
        "state": game,
        "advice": f"{game}/advice",
        "history": f"{game}/history",
        "later history": f"{game}/history?after=2",
        "history of nonsense": f"{game}/history?after=x",
        "decisions": f"{game}/decisions",
        "replay": f"{game}/replay",
        "nothing": f"{game}/nothing",
        "results": f"{API}/results",
        "runs": f"{API}/runs",
    }
    posts: dict[str, tuple[str, Any]] = {
        "stale move": (f"{game}/moves", {"move_number": number + 1, "move": "pass"}),
        "old move": (f"{game}/moves", {"move_number": 0, "move": "no such move"}),
        "repeated move": (f"{game}/moves", again),
        "illegal move": (f"{game}/moves", {"move_number": number, "move": "no such move"}),
        "illegal number": (f"{game}/moves", {"move_number": number, "move": 999}),
        "empty move": (f"{game}/moves", {}),
        "no move": (f"{game}/moves", None),
        "refused game": (f"{API}/games", {"opponent": {"run": player.id}}),
        "ticket": (f"{game}/ticket", None),
    }
    own = player.headers
    asked = {channel: Question("GET", path, own) for channel, path in gets.items()}
    asked |= {channel: Question("POST", path, own, body) for channel, (path, body) in posts.items()}
    asked |= {
        "stranger": Question("GET", game, {}),
        "stranger's stream": Question("GET", f"{game}/events", {}),
        STREAM: Question("GET", f"{game}/events", own),
        "metrics": Question("GET", "/metrics", {}),
    }
    told = _answers(player.asked, asked)
    assert told.keys() == set(CHANNELS[2:])
    return told


def _answers(client: TestClient, questions: dict[str, Question]) -> dict[str, Answer]:
    """What the application itself says, byte by byte, to one question after the other.

    They are put to it without an HTTP client, which would take most of the time.
    """

    async def ask() -> dict[str, Answer]:
        return {
            channel: await asyncio.create_task(_answer(client.app, channel, question))
            for channel, question in questions.items()
        }

    assert client.portal is not None
    return client.portal.call(ask)


async def _answer(app: Any, channel: str, question: Question) -> Answer:
    """The whole answer; of a stream, which does not end before the game does, its beginning."""
    path, _, query = question.path.partition("?")
    headers = {"host": "127.0.0.1", CHANNEL: channel, **question.headers}
    body = b""
    if question.body is not None:
        headers["content-type"], body = "application/json", json.dumps(question.body).encode()
        headers["content-length"] = str(len(body))
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": question.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("testclient", 50_000),
        "server": ("127.0.0.1", 80),
    }
    sent: list[Message] = []
    heard = asyncio.Event()
    requests = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        if request := next(requests, None):
            return request
        await heard.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if not heard.is_set():
            sent.append(message)
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if is_last or (channel == STREAM and message.get("body")):
            heard.set()

    await app(scope, receive, send)
    start, *rest = sent
    told = sorted((name.decode(), value.decode()) for name, value in start["headers"])
    return Answer(start["status"], told, b"".join(part.get("body", b"") for part in rest))


def _json(answer: Answer) -> Any:
    """What the body begins with; a leaky gateway adds to it."""
    return json.JSONDecoder().raw_decode(answer.body.decode())[0]


def _steady(channel: str, answer: Answer) -> Answer:
    """The answer without what differs from one request to the next by its nature."""
    if channel == "ticket":
        body, found = re.subn(rb'^{"ticket":"[\w-]{32}"', b'{"ticket":"random"', answer.body)
        assert found == 1
        return answer._replace(body=body)
    if channel == "metrics":  # which requests were counted, but neither how many nor how long,
        # nor what of processor, memory and files the process has used
        varies = rb"(?m)^((?:rejoinder_gateway_request|process_).*) \S+$"
        counted = re.sub(varies, rb"\1", answer.body)
        headers = [(name, value) for name, value in answer.headers if name != "content-length"]
        return answer._replace(body=counted, headers=headers)
    return answer


def _compare(channel: str, before: Any, after: Any) -> None:
    if before != after:
        raise Leak(channel, f"it depends on what is hidden:\n{before}\n{after}")


class Hidden(NamedTuple):
    """What must not be found in an answer, by what it is called."""

    anywhere: list[tuple[str, str]]  # in lower-case text
    dense: list[tuple[str, str]]  # in text without spaces
    words: list[tuple[re.Pattern[str], str]]


def _hidden(table: GameTable) -> Hidden:
    """The seed in any form, the hashes, the other's card, and his hand and the deck."""
    seed, session = table.row.seed, table.session
    state, other = session.states[0], 1 - table.row.seat
    forms = (str(seed), f"{seed:x}", table.row.secret_hash, table.row.position)
    told = "the seed, the secret's hash or the position's"
    hidden = Hidden([(form, told) for form in forms if form], [], [])
    if table.row.game == "deal":
        for pile in (state["deck"], state["hand"][other]):
            numbers = ",".join(str(int(n)) for n in pile)
            hidden.dense.append((numbers, "the deck, or what the other has in hand"))
        mine, his = (
            json.dumps(session.view(p).model_dump()["hand"], separators=(",", ":"))
            for p in (table.row.seat, other)
        )
        if his != mine:
            hand = f'"hand":{his}'.replace(" ", "")
            hidden.dense.append((hand, "what the other has in hand"))
    else:
        card = _others_card(table)  # there is one of each, so no open card has its name
        for form in (card, json.dumps(card).strip('"')):
            word = re.compile(rf"(?<![\w\\-]){re.escape(form)}(?![\w-])")
            hidden.words.append((word, "the other's card"))
    return hidden


def _search(channel: str, answer: Answer, hidden: Hidden) -> None:
    text = "\n".join([*(": ".join(header) for header in answer.headers), answer.body.decode()])
    lower, dense = text.lower(), text.replace(" ", "")
    found = [what for form, what in hidden.anywhere if form in lower]
    found += [what for form, what in hidden.dense if form in dense]
    found += [what for word, what in hidden.words if word.search(text)]
    if found:
        raise Leak(channel, found[0])


def _others_card(table: GameTable) -> str:
    """By its name. Cards are stored by order of play, and seat `first` plays first."""
    state = table.session.states[0]
    card = state["card"][(1 - table.row.seat) ^ int(state["first"])]
    return table.session.game.outcomes[int(card)]


def _table(app: FastAPI, player: Reader) -> GameTable:
    table: GameTable = app.state.context.tables._alive[player.id]
    return table
