"""What the gateway tells Prometheus about itself: one registry for each app."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

from rejoinder.telemetry import new_registry

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Telemetry:
    """Counters by route, never by anything that a client can make up."""

    def __init__(self) -> None:
        self.registry = new_registry()
        self._requests = Counter(
            "rejoinder_gateway_requests",
            "Requests answered",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "rejoinder_gateway_request_seconds",
            "Time to the end of the answer",
            ("route",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.games = Counter("rejoinder_gateway_games", "Games", ("event",), registry=self.registry)
        self.moves = Counter(
            "rejoinder_gateway_moves", "Moves made", ("by",), registry=self.registry
        )
        self.cached_games = Gauge(
            "rejoinder_gateway_cached_games", "Games in memory", registry=self.registry
        )
        self.streams = Gauge(
            "rejoinder_gateway_streams", "Event streams open", registry=self.registry
        )
        self._known: dict[tuple[str, str, int], Counter] = {}
        self._timers: dict[str, Histogram] = {}

    def request(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        key = (method, route, status)
        counter = self._known.get(key)
        if counter is None:
            counter = self._known[key] = self._requests.labels(method, route, str(status))
        counter.inc()
        timer = self._timers.get(route)
        if timer is None:
            timer = self._timers[route] = self._seconds.labels(route)
        timer.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
