"""A real gateway process and a real browser, for the tests of the page and its screenshots."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, sync_playwright

REJOINDER = str(Path(sys.executable).with_name("rejoinder"))
DEALING = str(Path(__file__).parents[1] / "dealing.py")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NO_BROWSER = "no Chromium here: install the system's, or run `playwright install chromium`"
WAIT = 60_000  # milliseconds; the machine may be busy
LIVE = 120_000  # until a trainer and its workers have started, or played for a while
ANALYSIS = 300_000  # until thousands of games are played; their kernels may have to be loaded

# What the browser itself says of requests that no gateway was there to answer.
UNREACHABLE = (
    "net::ERR_CONNECTION_REFUSED",
    "net::ERR_CONNECTION_RESET",
    "net::ERR_CONTENT_LENGTH_MISMATCH",
    "net::ERR_EMPTY_RESPONSE",
    "net::ERR_INCOMPLETE_CHUNKED_ENCODING",
    "net::ERR_SOCKET_NOT_CONNECTED",
)

PLAYABLE = "[data-move]:not(:disabled)"
WAITS_OR_OVER = f".result, {PLAYABLE}"

# What the browser says of requests that are answered so.
NOT_FOUND, IMPOSSIBLE = "status of 404", "status of 422"
BROKEN, TAKEN = "status of 500", "status of 503"

PROBLEM = {"title": "Broken", "detail": "the gateway is out of order"}
SECRET = """
  const { gameApi } = await import("/js/api.js");
  const id = JSON.parse(localStorage.getItem("rejoinder.current"));
  const api = gameApi(id, JSON.parse(localStorage.getItem("rejoinder.games"))[id].secret);
"""


def train(config: str, run: Path, *settings: str) -> None:
    """A small run, made at once."""
    options = [part for setting in settings for part in ("--set", setting)]
    command = [REJOINDER, "train", config, "--mode", "sequential", "--run", str(run), *options]
    subprocess.run(command, check=True, capture_output=True)


def make_runs(folder: Path) -> None:
    """A run of every game; `other` differs from `paper` in its seed."""
    deal = ("games=200", "eval_every=20", "eval_games=100", "checkpoint_every=50")
    poker = ("games=400", "eval_every=100", "eval_games=200", "checkpoint_every=200")
    train("paper", folder / "paper", *deal)
    train("paper", folder / "other", *deal, "seed=2")
    train("kuhn-rollout", folder / "kuhn", *poker)
    train("leduc-rollout", folder / "leduc", *poker)


class Gateway:
    """A gateway process that can be killed and started again at the same address."""

    def __init__(self, runs: Path, database: Path) -> None:
        self.runs, self._database = runs, database
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [sys.executable, DEALING, "gateway", "--runs", str(self.runs)]
        command += ["--port", str(self._port)]
        command += ["--database", f"sqlite:///{self._database}"]
        unlimited = {"REJOINDER_GATEWAY_RATE": "0", "REJOINDER_GATEWAY_NEW_GAMES": "0"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | unlimited
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "http://" in line, f"the gateway did not start: {line!r}"
        self._port = int(line.split("http://127.0.0.1:")[1].split(",")[0])

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Connections are taken, but nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's own, else Playwright's; LookupError if there is neither."""
    installed = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=installed, args=FLAGS)
        except Error:
            raise LookupError(NO_BROWSER) from None
        try:
            yield browser
        finally:
            browser.close()


class Complaints:
    """What the browser complained about, but for what has a part in `expected`."""

    def __init__(self, page: Page) -> None:
        self.expected: tuple[str, ...] = ()
        self._heard: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._heard.append(f"exception: {error}"))

    def unexpected(self) -> list[str]:
        return [text for text in self._heard if not any(part in text for part in self.expected)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._heard.append(f"{message.type}: {message.text} ({message.location})")


def new_game(
    page: Page, game: str = "deal", opponent: str | None = None, first: str = "you"
) -> None:
    """Through the dialogue."""
    page.click("#new-game")
    page.select_option("#game", game)
    if opponent:
        page.select_option("#opponent", opponent)
    page.check(f"input[name=first][value={first}]")
    _enter(page, "#begin")


def play_again(page: Page) -> None:
    """From the end of a game into the next one, with the same settings."""
    _enter(page, "#again")


def _enter(page: Page, button: str) -> None:
    before = page.url
    page.click(button)
    page.wait_for_function("before => location.href !== before", arg=before)
    game = page.url.rpartition("/")[2]
    page.wait_for_selector(f"[data-game='{game}'] :is({WAITS_OR_OVER})")


def instant(page: Page) -> None:
    page.add_init_script("localStorage.setItem('rejoinder.pace', JSON.stringify('0'))")


def click_move(page: Page, wanted: str | None = None) -> str:
    """Click a move: the wanted one, or a sensible one. Returns its name once it is answered."""
    page.wait_for_selector(PLAYABLE)
    moves = page.eval_on_selector_all(PLAYABLE, "all => all.map((one) => one.dataset.move)")
    move = wanted or choose(moves)
    made = moves_made(page)
    page.locator(f"[data-move='{move}']:not(:disabled)").first.click()
    wait_for_answer(page, made)
    return move


def moves_made(page: Page) -> int:
    """As the history beside the table tells them."""
    return page.locator(".history li").count()


def wait_for_answer(page: Page, made: int) -> None:
    """Until the history tells more than `made`, and the player is to move or the game is over."""
    page.wait_for_function(
        "([made, selector]) => document.querySelectorAll('.history li').length > made"
        " && document.querySelector(selector)",
        arg=[made, WAITS_OR_OVER],
    )


def choose(moves: list[str]) -> str:
    """Say no to what is owed, own properties, charge rent, keep cash to pay with."""
    for kind in ("just say no", "property", "rent", "cash", "give bank", "give property"):
        fitting = [move for move in moves if move.startswith(kind)]
        if fitting:
            return fitting[0]
    return moves[0]


def play_to_the_end(page: Page, most: int = 400) -> list[str]:
    """Click until the game is over; returns the moves."""
    made: list[str] = []
    for _ in range(most):
        page.wait_for_selector(WAITS_OR_OVER)
        if page.locator(".result").count():
            return made
        made.append(click_move(page))
    raise AssertionError(f"not over after {most} moves")


def until_owing(page: Page) -> None:
    """Play, if need be another game, until rent is owed."""
    for _ in range(10):
        while page.locator(".result").count() == 0:
            if page.locator("[data-response=payer]").count():
                return
            click_move(page)
        play_again(page)
    pytest.fail("ten games without rent")


def game_of(page: Page) -> dict[str, Any]:
    """The game as the gateway tells it, by the secret that the page keeps."""
    state: dict[str, Any] = page.evaluate(f"async () => {{ {SECRET} return api.state(); }}")
    return state


def table_text(page: Page) -> list[str]:
    return [page.locator(part).inner_text() for part in (".table", ".history")]
