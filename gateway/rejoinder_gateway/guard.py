"""Around everything but CORS: requests pass it on the way in, answers on the way out.

In: who asks, the rate, the Host header (against DNS rebinding), the size of the body. Out: security
headers, metrics, and a problem instead of whatever went wrong unexpectedly. One plain ASGI layer,
because every layer costs on the path of a policy query. Where origins are named, CORS is around it,
so that their pages can read its problems too.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rejoinder_gateway.problems import Problem, unexpected
from rejoinder_gateway.security import Limiter, client_behind, client_network
from rejoinder_gateway.settings import Settings
from rejoinder_gateway.telemetry import Telemetry

# The page and its own files, nothing else. Plotly sets style attributes.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
_NO_STORE = (b"cache-control", b"no-store")
_API = "/api/"
_DIGITS = 15  # of a content-length; Python refuses to read a number of thousands of them
_UNLIMITED = "/healthz"  # whoever watches the process must not take a busy client for its end


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings, telemetry: Telemetry) -> None:
        self._app = app
        self._proxies = settings.trusted_proxies
        self._hosts = settings.allowed_hosts
        self._max_body = settings.max_body
        self._limiter = Limiter(settings.rate, settings.burst)
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send)
        began = time.perf_counter()
        try:
            self._check(scope)
            await self._app(scope, _Body(receive, self._max_body).receive, answer.send)
        except Problem as problem:
            await answer.problem(problem)
        except Exception as error:
            await answer.problem(unexpected(error))
        finally:
            self._telemetry.request(scope, answer.status, time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        if self._proxies:
            scope["client"] = (client_behind(scope, self._proxies), 0)
        if scope["path"] != _UNLIMITED:
            self._limiter.check(client_network(scope))
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if name not in self._hosts and "*" not in self._hosts:
            raise Problem(400, "Unknown host", "this gateway is not called by that name")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise Problem(400, "Bad request", "content-length: a number is needed")
        if len(length) > _DIGITS or int(length) > self._max_body:
            raise too_large(self._max_body)


class _Body:
    """Counts what is really sent, whatever the header said."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left, self._most = receive, most, most

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise too_large(self._most)
        return message


class _Answer:
    """What goes out, with the headers that everything has."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._api = scope["path"].startswith(_API)
        self.status = 0  # nothing sent yet

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[Any] = list(message.get("headers", ()))
            message["headers"] = headers
            headers.extend(_HEADERS)
            if self._api and not any(name == b"cache-control" for name, _ in headers):
                headers.append(_NO_STORE)
        await self._send(message)

    async def problem(self, problem: Problem) -> None:
        """Answer with a problem, unless an answer is on its way already."""
        if self.status:
            return
        response = problem.response()
        await self.send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": list(response.raw_headers),
            }
        )
        await self._send({"type": "http.response.body", "body": response.body})


def too_large(most: int) -> Problem:
    return Problem(413, "Body too large", f"a request may have {most} bytes at most")
