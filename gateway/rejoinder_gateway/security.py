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
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network

from rejoinder_gateway.problems import Problem

TICKET_SECONDS = 60.0
_MOST_ADDRESSES = 20_000  # remembered by a limiter
_MOST_TICKETS = 20_000


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
        raise Problem(403, "No administrator", "this gateway was started without an admin token")
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
        """Drop full buckets, which are as good as new ones; if there are none, all of them."""
        full = self._burst / self._rate
        kept = {a: b for a, b in self._buckets.items() if now - b.filled < full}
        self._buckets = kept if len(kept) < _MOST_ADDRESSES else {}


class Tickets:
    """Short-lived passes for event streams, which cannot send a header."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._valid: dict[str, tuple[str, float]] = {}  # hash → game, until when

    def issue(self, game: str) -> str:
        now = self._clock()
        self._valid = {t: about for t, about in self._valid.items() if about[1] > now}
        if len(self._valid) >= _MOST_TICKETS:
            raise Problem(429, "Too many tickets", "use those that you have, or wait a minute")
        ticket = secrets.token_urlsafe(24)
        self._valid[hashed(ticket)] = (game, now + TICKET_SECONDS)
        return ticket

    def redeem(self, ticket: str, game: str) -> bool:
        issued_for, until = self._valid.get(hashed(ticket), ("", 0.0))
        if issued_for != game or until <= self._clock():
            return False
        del self._valid[hashed(ticket)]
        return True


class Streams:
    """How many event streams are open."""

    def __init__(self, most: int) -> None:
        self._most, self.open = most, 0

    def __enter__(self) -> None:
        if self.open >= self._most:
            raise Problem(503, "Too many streams", "all event streams are taken; poll instead")
        self.open += 1

    def __exit__(self, *_: object) -> None:
        self.open -= 1


@lru_cache(maxsize=1024)
def network(address: str) -> str:
    """What is limited as one: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a name, as tests have it
    return str(ip_network((parsed, 64 if parsed.version == 6 else 32), strict=False))
