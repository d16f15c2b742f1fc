"""Fixtures of the gateway's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gateway_play import BASE, make_runs, postgresql, settings

from rejoinder_gateway.app import create_app


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of every game; for reading."""
    folder = tmp_path_factory.mktemp("runs")
    make_runs(folder)
    return folder


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database; tests that ask for it run on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gateway.db'}"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def app(runs: Path, tmp_path: Path) -> FastAPI:
    return create_app(settings(runs, f"sqlite:///{tmp_path / 'gateway.db'}"))


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=BASE) as started:
        yield started
