"""Players of the gateway, all at once, in a process of their own: each has a connection and a game.

A player waits, makes a random legal move, and takes a new game when his is over. What is timed is a
move from the first byte sent to the last byte read. Where there is no opponent they ask for a bare
path at the same pace, which shows what of the times is the machine's. Nothing but asyncio here, so
that the players are faster than what they measure.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Crowd:
    """Who plays: `thinking` is the least and the most seconds between answer and move."""

    address: str
    opponent: dict[str, Any] | None
    players: int
    thinking: tuple[float, float]
    seconds: float  # that they play
    moves: int  # or until so many have been made
    path: str = "/api/v1/games"


@dataclass
class Seen:
    """What they saw; times in seconds, of each request."""

    moves: list[float] = field(default_factory=list)
    first_games: list[float] = field(default_factory=list)  # all asked for at once
    later_games: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of play


class Connection:
    """HTTP over one connection that is kept."""

    def __init__(self, address: str) -> None:
        self._to = urlsplit(address)

    async def open(self) -> None:
        host, port = self._to.hostname, self._to.port
        self._reader, self._writer = await asyncio.open_connection(host, port, limit=2**20)

    async def post(self, path: str, what: dict[str, Any], secret: str = "") -> tuple[float, Any]:
        """Seconds until the answer was there, and the answer."""
        body = json.dumps(what).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._to.netloc}\r\nContent-Length: {len(body)}\r\n"
        head += f"Content-Type: application/json\r\nAuthorization: Bearer {secret}\r\n\r\n"
        began = time.perf_counter()
        self._writer.write(head.encode() + body)
        told = await self._reader.readuntil(b"\r\n\r\n")
        lines = told.decode("latin-1").lower().split("\r\n")
        length = next(line for line in lines if line.startswith("content-length:"))
        answer = await self._reader.readexactly(int(length.partition(":")[2]))
        took = time.perf_counter() - began
        if not lines[0].split()[1].startswith("2"):
            raise RuntimeError(f"{path}: {lines[0]}: {answer.decode()}")
        return took, json.loads(answer)


async def play(crowd: Crowd) -> Seen:
    seen = Seen()
    seated = asyncio.Barrier(crowd.players)
    each = _player if crowd.opponent else _asker
    await asyncio.gather(*(each(crowd, k, seated, seen) for k in range(crowd.players)))
    return seen


async def _player(crowd: Crowd, number: int, seated: asyncio.Barrier, seen: Seen) -> None:
    chance = random.Random(number)
    connection = Connection(crowd.address)
    await connection.open()
    new = {"opponent": crowd.opponent}
    took, made = await connection.post(crowd.path, new)
    secret, game = made["secret"], made["game"]
    seen.first_games.append(took)
    await seated.wait()
    began = time.perf_counter()
    while time.perf_counter() < began + crowd.seconds and len(seen.moves) < crowd.moves:
        await asyncio.sleep(chance.uniform(*crowd.thinking))
        if game["over"]:
            took, made = await connection.post(crowd.path, new)
            seen.later_games.append(took)
            secret, game = made["secret"], made["game"]
            continue
        move = {"move_number": game["move_number"], "move": chance.choice(game["legal"])["name"]}
        took, made = await connection.post(f"{crowd.path}/{game['id']}/moves", move, secret)
        seen.moves.append(took)
        game = made["game"]
    seen.seconds = max(seen.seconds, time.perf_counter() - began)


async def _asker(crowd: Crowd, number: int, seated: asyncio.Barrier, seen: Seen) -> None:
    chance = random.Random(number)
    connection = Connection(crowd.address)
    await connection.open()
    await seated.wait()
    began = time.perf_counter()
    while time.perf_counter() < began + crowd.seconds and len(seen.moves) < crowd.moves:
        await asyncio.sleep(chance.uniform(*crowd.thinking))
        seen.moves.append((await connection.post(crowd.path, {}))[0])
    seen.seconds = max(seen.seconds, time.perf_counter() - began)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(play(Crowd(**json.loads(sys.argv[1])))))))
