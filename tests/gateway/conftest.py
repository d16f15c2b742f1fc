"""Fixtures of the gateway's tests."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from dealing import dealt_by
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import BASE, make_runs, postgresql, settings

from rejoinder_gateway.app import create_app

# Tests with a `database` run on both kinds. Those that have it by way of `app` or `client` run on
# SQLite, and in these modules on both: what they are about must hold on either.
_ON_BOTH = {"test_gateway_play", "test_gateway_security"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = metafunc.fixturenames
    if "database" in names and ("app" not in names or metafunc.module.__name__ in _ON_BOTH):
        metafunc.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(autouse=True)
def dealt(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test plays games of its own, the same on every run."""
    with dealt_by(zlib.crc32(request.node.name.encode())):
        yield


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of every game; for reading."""
    folder = tmp_path_factory.mktemp("runs")
    make_runs(folder)
    return folder


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a database from which others can be made."""
    with postgresql() as url:
        yield url


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """An empty database of the test's own."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgresql_server, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield postgresql_server.rpartition("/")[0] + f"/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return f"sqlite:///{tmp_path / 'gateway.db'}"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def app(runs: Path, database: str) -> FastAPI:
    return create_app(settings(runs, database))


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=BASE) as started:
        yield started
