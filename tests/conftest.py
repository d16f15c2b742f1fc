"""Settings and fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from rejoinder.transport.server import EmbeddedServer

# The same examples on every run: a failure is a bug, never the weather.
settings.register_profile("rejoinder", derandomize=True, deadline=None, database=None)
settings.load_profile("rejoinder")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One real server for all tests; each uses run ids of its own."""
    with EmbeddedServer(tmp_path_factory.mktemp("server") / "server.log") as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that the test may flush, kill and start again."""
    with EmbeddedServer(tmp_path / "server.log") as running:
        yield running
