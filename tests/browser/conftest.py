"""A browser on a gateway with real runs, for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from browsing import NO_BROWSER, WAIT, Complaints, Gateway, chromium, instant, make_runs
from gateway_play import when_ready
from playwright.sync_api import Browser, Page, expect

expect.set_options(timeout=WAIT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of all compiles on a new machine: minutes, if others have it, too."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def page_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page-runs")
    make_runs(folder)
    return folder


@pytest.fixture(scope="session")
def gateway(page_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One that has its kernels: on a new machine they take longer than a test waits."""
    with Gateway(page_runs, tmp_path_factory.mktemp("page") / "gateway.db") as running:
        with httpx2.Client(base_url=running.address) as client:
            when_ready(client)
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer: while it is there an event loop runs in this thread, and there is but one."""
    try:
        with chromium() as launched:
            yield launched
    except LookupError:
        pytest.skip(NO_BROWSER)


@pytest.fixture
def page(browser: Browser, gateway: Gateway) -> Iterator[Page]:
    """A fresh visitor at the instant pace, without animations."""
    context = browser.new_context(
        base_url=gateway.address, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    context.set_default_timeout(WAIT)
    opened = context.new_page()
    instant(opened)
    yield opened
    opened.unroute_all(behavior="ignoreErrors")  # a request may be under way
    context.close()


@pytest.fixture(autouse=True)
def complaints(page: Page) -> Iterator[Complaints]:
    """No test may leave an error or a warning in the console."""
    heard = Complaints(page)
    yield heard
    assert heard.unexpected() == []
