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
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from starlette.types import Scope

from rejoinder_gateway.problems import Problem

TICKET_SECONDS = 60.0
_TICKETS_EACH = 10  # of one game at once; the oldest gives way to a new one
_MOST_ADDRESSES = 20_000  # remembered by a limiter
_DAY = 24 * 3600.0
_SITE = 4  # times an address's limit: what the /48 of IPv6 addresses may have, together

Networks = tuple[IPv4Network | IPv6Network, ...]


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
    """Token buckets by network: `rate` a second over time, `burst` at once."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, _Bucket] = {}

    def check(self, who: str) -> None:
        """Take a token; a problem that says when there will be one if there is none."""
        if wait := self.wait(who):
            after = str(max(1, round(wait + 0.5)))
            detail = f"try again in {after} s"
            raise Problem(429, "Too many requests", detail, {"Retry-After": after})

    def wait(self, who: str) -> float:
        """Take a token. 0.0 if there was one, else the seconds until there is."""
        if self._rate == 0:
            return 0.0
        now = self._clock()
        buckets = [(self._bucket(name, share, now), share) for name, share in _shares(who)]
        missing = max((1.0 - bucket.tokens) / share for bucket, share in buckets)
        if missing > 0:
            return missing / self._rate
        for bucket, _ in buckets:
            bucket.tokens -= 1.0
        return 0.0

    def _bucket(self, name: str, share: int, now: float) -> _Bucket:
        """Filled up to now."""
        bucket, most = self._buckets.get(name), self._burst * share
        if bucket is None:
            if len(self._buckets) >= _MOST_ADDRESSES:
                self._forget(now)
            bucket = self._buckets[name] = _Bucket(most, now)
        bucket.tokens = min(most, bucket.tokens + (now - bucket.filled) * self._rate * share)
        bucket.filled = now
        return bucket

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
        self._held = _Tally(each)
        self.open = 0

    @contextmanager
    def one_more(self, who: str) -> Iterator[None]:
        """Count a stream for as long as it lasts; a problem if there are too many."""
        if not self._held.room(who):
            detail = f"your address has {self._each} streams open; close some, or poll instead"
            raise Problem(429, "Too many streams", detail)
        if self.open >= self._most:
            raise Problem(503, "Too many streams", "all streams are taken; poll instead")
        self._held.add(who)
        self.open += 1
        try:
            yield
        finally:
            self._held.take(who)
            self.open -= 1


class UnderWay:
    """The games that each network has begun, while somebody moves in them.

    A game that is over, or untouched for a day, does not count, as for the limit of all games.
    Kept in memory only: nothing that is stored tells from where a game was played, so one that was
    begun before a restart, or goes on after more than a day, is not counted again.
    """

    def __init__(self, each: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._each, self._clock = each, clock
        self._games: dict[str, tuple[str, float]] = {}  # whose, last touched when; oldest first
        self._held = _Tally(each)

    def begin(self, who: str, game: str) -> None:
        """Count a game; a problem if the network has too many."""
        now = self._clock()
        while self._games and now - next(iter(self._games.values()))[1] > _DAY:
            self.end(next(iter(self._games)))
        if not self._held.room(who):
            detail = f"your address has {self._each} games under way; finish or resign some"
            raise Problem(429, "Too many games", detail)
        self._games[game] = who, now
        self._held.add(who)

    def touch(self, game: str) -> None:
        """Somebody has moved in it."""
        if (known := self._games.pop(game, None)) is not None:
            self._games[game] = known[0], self._clock()

    def end(self, game: str) -> None:
        """The game is over, or was not made after all; one that is not known is none of ours."""
        if (known := self._games.pop(game, None)) is not None:
            self._held.take(known[0])


class _Tally:
    """How many of something each network has."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._counts: Counter[str] = Counter()

    def room(self, who: str) -> bool:
        """Whether it may have one more."""
        return all(self._counts[name] < self._each * share for name, share in _shares(who))

    def add(self, who: str) -> None:
        for name, _ in _shares(who):
            self._counts[name] += 1

    def take(self, who: str) -> None:
        """One less; nothing is kept of those who have none left."""
        for name, _ in _shares(who):
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]


def client_network(scope: Scope) -> str:
    """Whose limits a request goes by; the guard has put the client in the place of its proxy."""
    return network((scope.get("client") or ("",))[0])


def client_behind(scope: Scope, proxies: Networks) -> str:
    """The address that a request comes from: the last one that is not a trusted proxy.

    Each proxy adds to X-Forwarded-For who connected to it, so what stands left of the first
    address that is not trusted may be made up. So may what a proxy passes on that is no address;
    the request is the proxy's own then.
    """
    client = str((scope.get("client") or ("",))[0])
    if not _trusted(client, proxies):
        return client
    told = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    for part in reversed(told.decode("latin-1").split(",")):
        address = _without_port(part.strip())
        if _address(address) is None:
            break
        client = address
        if not _trusted(client, proxies):
            break
    return client


@lru_cache(maxsize=1024)
def network(address: str) -> str:
    """What is limited as one: an IPv4 address, or the /64 of an IPv6 one."""
    parsed = _address(address)
    if parsed is None:
        return address  # a name, as tests have it
    return str(ip_network((parsed, 64 if parsed.version == 6 else 32), strict=False))


@lru_cache(maxsize=1024)
def _shares(who: str) -> tuple[tuple[str, int], ...]:
    """What a network counts for, and how many times the limit that may have.

    A customer may have a whole /48, which is 65,536 networks of ours.
    """
    if not who.endswith("/64"):
        return ((who, 1),)
    return ((who, 1), (str(ip_network(who).supernet(new_prefix=48)), _SITE))


@lru_cache(maxsize=1024)
def _trusted(address: str, proxies: Networks) -> bool:
    parsed = _address(address)
    return parsed is not None and any(parsed in proxy for proxy in proxies)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:  # a socket of both kinds
        return parsed.ipv4_mapped
    return parsed


def _without_port(text: str) -> str:
    """Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
