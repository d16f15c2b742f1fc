"""The connection to a Redis server: made, lost, and waited for."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

Client: TypeAlias = Any  # a redis.Redis, whose answers have no useful types

# What a client sees when the server is away, starting, full, read-only or otherwise unwilling. It
# may pass, so one tries again; see `Backoff` for what does not.
LOST = (redis.RedisError,)
_FOR_GOOD = (redis.AuthenticationError, redis.exceptions.NoPermissionError)

_READ_BYTES = 2**18  # at once: more than a socket holds, so that big messages take few reads
_SOCKET_TIMEOUT = 10.0  # longer than any blocking read
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0  # seconds, after a connection was lost
_OLDEST_SERVER = (6, 2)


class BusError(OSError):
    """A server that cannot be used; the message is one line that says which and why."""

    exit_code = 4


def connect(url: str) -> Client:
    """A client for the server at `url`, which has answered."""
    where = shown(url)
    over_tcp = {} if url.startswith("unix:") else {"socket_keepalive": True}
    try:
        client = redis.Redis.from_url(
            url,
            protocol=2,
            socket_timeout=_SOCKET_TIMEOUT,
            socket_connect_timeout=5.0,
            retry=Retry(NoBackoff(), 0),
            socket_read_size=_READ_BYTES,
            **over_tcp,
        )
        client.connection_pool.make_connection()
    except (ValueError, TypeError, AttributeError):
        # What the error says may quote a part of the password.
        wrong = BusError(
            f"{where} is not the URL of a Redis server; "
            "write redis://, rediss:// (TLS) or unix://, with % codes for special signs"
        )
        wrong.exit_code = 2
        raise wrong from None
    try:
        version = client.info("server")["redis_version"]
    except (*_FOR_GOOD, redis.ResponseError) as error:
        raise BusError(f"the Redis server at {where} refuses us: {error}") from None
    except (redis.RedisError, OSError) as error:
        raise BusError(f"no Redis server answers at {where}: {error}") from None
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_SERVER:
        raise BusError(f"the server at {where} is Redis {version}; 6.2 or newer is needed")
    return client


def shown(url: str) -> str:
    """The URL without what is secret in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the given URL"
    if "://" not in url:
        return url.rpartition("@")[2]
    return f"{parts.scheme}://{host}{port}{parts.path}"


def refuses(error: BaseException) -> bool:
    """Whether a server has said no for good: waiting for it would not help."""
    return isinstance(error, _FOR_GOOD)


class Backoff:
    """Pauses of random length, twice as long each time, so that clients do not all come at once."""

    def __init__(self, report: Callable[[str], None], patience: float = math.inf) -> None:
        self._report = report
        self._patience = patience  # seconds
        self.reset()

    def reset(self) -> None:
        """The server is back."""
        self._pause = _FIRST_PAUSE
        self._since: float | None = None

    def wait(self, error: BaseException) -> bool:
        """Pause; False once the server has been away for too long, or refuses us for good."""
        now = time.monotonic()
        if refuses(error):
            return False
        if self._since is None:
            self._since = now
            self._report(f"the Redis server cannot be used now, trying again: {error}")
        if now - self._since > self._patience:
            return False
        time.sleep(self._pause * random.uniform(0.5, 1.5))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True
