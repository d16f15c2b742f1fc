"""Who may do what: secrets, tokens, and how much anybody may ask for.

Invariants: a game's secret is stored only as a hash and compared in constant time; a game that does
not exist and a game whose secret is wrong look the same; a ticket opens one stream of one game,
once, within a minute.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.types import Scope

from rejoinder_gateway.problems import Problem

TICKET_SECONDS = 60.0
_TICKETS_EACH = 10  # of one game at once; the oldest gives way to a new one
_MOST_ADDRESSES = 20_000  # remembered by a limiter
_DAY = 24 * 3600.0


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """As it is stored. Secrets have 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def matches(secret: str | None, stored: str | None) -> bool:
    """Whether a secret is the stored one; takes as long when there is none."""
    given = hashed(secret or "")
    return hmac.compare_digest(given, stored or "0" * 64) and bool(secret) and stored is not None


def check_admin(token: str | None, expected: str | None) -> None:
    if expected is None:
        raise Problem(
            403,
            "No administrator",
            "this gateway was started without an admin token (REJOINDER_GATEWAY_ADMIN_TOKEN)",
        )
    if not hmac.compare_digest(hashed(token or ""), hashed(expected)):
        raise Problem(
            401,
            "Not authorised",
            "send the admin token as `Authorization: Bearer …`",
            {"WWW-Authenticate": "Bearer"},
        )


@dataclass
class _Bucket:
    tokens: float
    filled: float  # when


class Limiter:
    """Token buckets by address: `rate` a second over time, `burst` at once."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, _Bucket] = {}

    def wait(self, address: str) -> float:
        """Take a token. 0.0 if there was one, else the seconds until there is."""
        if self._rate == 0:
            return 0.0
        now = self._clock()
        bucket = self._buckets.get(address)
        if bucket is None:
            if len(self._buckets) >= _MOST_ADDRESSES:
                self._forget(now)
            bucket = self._buckets[address] = _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled) * self._rate)
        bucket.filled = now
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / self._rate
        bucket.tokens -= 1.0
        return 0.0

    def _forget(self, now: float) -> None:
        """Drop full buckets, which are as good as new ones; if they are few, all of them.

        Few, because the next addresses would have everything gone through again.
        """
        full = self._burst / self._rate
        kept = {a: b for a, b in self._buckets.items() if now - b.filled < full}
        self._buckets = kept if len(kept) < _MOST_ADDRESSES // 2 else {}


class Tickets:
    """Short-lived passes for event streams, which cannot send a header."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._valid: dict[str, dict[str, float]] = {}  # game → hash → until when

    def issue(self, game: str) -> str:
        now = self._clock()
        for other in [g for g, issued in self._valid.items() if max(issued.values()) <= now]:
            del self._valid[other]
        issued, ticket = self._valid.setdefault(game, {}), secrets.token_urlsafe(24)
        issued[hashed(ticket)] = now + TICKET_SECONDS
        if len(issued) > _TICKETS_EACH:
            del issued[next(iter(issued))]
        return ticket

    def redeem(self, ticket: str, game: str) -> bool:
        issued = self._valid.get(game, {})
        until = issued.pop(hashed(ticket), 0.0)
        if not issued:
            self._valid.pop(game, None)
        return until > self._clock()


class Streams:
    """How many event streams are open, in all and by network."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._by_network: Counter[str] = Counter()

    @property
    def open(self) -> int:
        return self._by_network.total()

    @contextmanager
    def one_more(self, who: str) -> Iterator[None]:
        """Count a stream for as long as it lasts; a problem if there are too many."""
        if self._by_network[who] >= self._each:
            detail = f"your address has {self._each} streams open; close some, or poll instead"
            raise Problem(429, "Too many streams", detail)
        if self.open >= self._most:
            raise Problem(503, "Too many streams", "all streams are taken; poll instead")
        self._by_network[who] += 1
        try:
            yield
        finally:
            _take_one(self._by_network, who)


class UnderWay:
    """The games that each network has begun within a day and not finished.

    Kept in memory only: nothing that is stored tells from where a game was played.
    """

    def __init__(self, each: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._each, self._clock = each, clock
        self._games: dict[str, tuple[str, float]] = {}  # whose and since when, oldest first
        self._by_network: Counter[str] = Counter()

    def begin(self, who: str, game: str) -> None:
        """Count a game; a problem if the network has too many."""
        now = self._clock()
        while self._games and now - next(iter(self._games.values()))[1] > _DAY:
            self.end(next(iter(self._games)))
        if self._by_network[who] >= self._each:
            detail = f"your address has {self._each} games under way; finish or resign some"
            raise Problem(429, "Too many games", detail)
        self._games[game] = who, now
        self._by_network[who] += 1

    def end(self, game: str) -> None:
        """The game is over, or was not made after all; one that is not known is none of ours."""
        if game in self._games:
            who, _ = self._games.pop(game)
            _take_one(self._by_network, who)


def _take_one(counts: Counter[str], who: str) -> None:
    """One less; nothing is kept of those who have none left."""
    counts[who] -= 1
    if not counts[who]:
        del counts[who]


def client_network(scope: Scope) -> str:
    """Whose limits a request goes by."""
    return network((scope.get("client") or ("",))[0])


@lru_cache(maxsize=1024)
def network(address: str) -> str:
    """What is limited as one: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a name, as tests have it
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:  # a socket of both kinds
        parsed = parsed.ipv4_mapped
    return str(ip_network((parsed, 64 if parsed.version == 6 else 32), strict=False))
