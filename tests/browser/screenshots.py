"""Write the pictures of docs/gateway.md: `python tests/browser/screenshots.py`.

Every view, light and dark, of a gateway with runs made for it; the game is played to a moment
worth showing.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from browsing import (
    ANALYSIS,
    PLAYABLE,
    REJOINDER,
    WAIT,
    Gateway,
    chromium,
    click_move,
    instant,
    make_runs,
    new_game,
    play_to_the_end,
    train,
)
from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
SIZE = {"width": 1180, "height": 860}
PHONE = {"width": 360, "height": 740}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        runs = Path(made) / "runs"
        make_runs(runs)
        train("paper", runs / "long", "games=1000", "eval_every=50", "eval_games=200")
        with Gateway(runs, Path(made) / "gateway.db") as gateway:
            kept = Path(made) / "storage.json"
            _prepare(browser, gateway, kept)
            for theme in ("light", "dark"):
                _shoot(browser, gateway, kept, theme)
            _shoot_live(browser, gateway)


def _prepare(browser: Browser, gateway: Gateway, kept: Path) -> None:
    """A finished game to replay, and one in which the player owes rent with something to give."""
    context = browser.new_context(base_url=gateway.address)
    page = context.new_page()
    instant(page)
    page.goto("/")
    new_game(page, opponent="run:long", first="agent")
    play_to_the_end(page)
    for _ in range(30):
        page.goto("/#/play")
        new_game(page, opponent="run:long")
        if _worth_showing(page):
            break
    context.storage_state(path=kept)
    context.close()


def _worth_showing(page: Page) -> bool:
    """Play until rent is owed that can be refused, or paid in several ways."""
    while page.locator(".result").count() == 0:
        owing = page.locator("[data-response=payer]").count()
        if owing and page.locator("[data-move='just say no']:not(:disabled)").count():
            if page.locator(PLAYABLE).count() >= 5:
                return True
            click_move(page, "just say no")
        else:
            click_move(page)
    return False


def _shoot(browser: Browser, gateway: Gateway, kept: Path, theme: str) -> None:
    def visitor(size: dict[str, int]) -> Page:
        context = browser.new_context(
            base_url=gateway.address,
            viewport=size,  # type: ignore[arg-type] # a width and a height
            color_scheme=theme,  # type: ignore[arg-type] # light or dark
            reduced_motion="reduce",
            storage_state=kept,
        )
        context.set_default_timeout(WAIT)
        page = context.new_page()
        instant(page)
        return page

    def save(name: str, *, whole: bool = True, of: str | None = None) -> None:
        page.mouse.move(0, 0)
        page.wait_for_timeout(300)
        path = FOLDER / f"{name}-{theme}.png"
        if of is None:
            page.screenshot(path=path, full_page=whole)
        else:
            page.locator(of).screenshot(path=path)

    page = visitor(SIZE)
    page.goto("/#/play")
    page.wait_for_selector(PLAYABLE)
    page.click("#tab-advice")
    page.wait_for_selector("#side-body .bars")
    save("play-response")
    page.click("#tab-history")
    page.click("#new-game")
    page.wait_for_selector("#begin")
    save("new-game", whole=False)
    page.goto(f"/#/policy/long?run2=long&snapshot2=250&search=add&infoset={_undecided(page)}")
    page.wait_for_selector(".pair")
    save("policy", whole=False)
    page.goto("/#/replay")
    page.click(".run a")
    page.wait_for_selector(".replay__bar")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    while page.locator(".replay__decision .bars__row").count() < 3:
        page.keyboard.press("ArrowRight")
    save("replay", whole=False)
    page.goto("/#/training")
    page.wait_for_selector(".run")
    save("runs", whole=False)
    page.goto("/#/training/long")
    page.wait_for_selector(".chart .main-svg")
    page.wait_for_selector(".forecast__sentence")
    page.wait_for_timeout(1_500)
    save("training")
    _analyse(page)
    save("responses", of=".responses")
    page.goto("/#/play")
    page.wait_for_selector(PLAYABLE)
    new_game(page, opponent="run:long")
    for _ in range(6):
        click_move(page)
    while page.locator("[data-response]").count():
        click_move(page)
    page.click("#tab-rules")
    save("play")
    new_game(page, "leduc", "run:leduc", first="agent")
    page.click("#tab-advice")
    page.wait_for_selector("#side-body .bars")
    save("generic", whole=False)
    page.context.close()
    page = visitor(PHONE)
    page.goto("/#/play")
    page.wait_for_selector(PLAYABLE)
    save("phone")
    page.goto("/#/training/long")
    _analyse(page)
    save("responses-phone", of=".responses")
    page.context.close()


def _analyse(page: Page) -> None:
    """The response phases of the run that is shown."""
    page.wait_for_selector(".chart .main-svg")
    page.wait_for_selector(".forecast__sentence")
    page.wait_for_timeout(1_500)  # what moves when charts are drawn has moved
    page.click("#analyse")
    page.wait_for_selector(".responses__grid", timeout=ANALYSIS)


def _undecided(page: Page) -> str:
    """The identifier of an infoset at which several actions are likely."""
    identifier: str = page.evaluate(
        """async () => {
          const path = "/api/v1/runs/long/policy?search=add&min_visits=50&limit=200";
          const { infosets } = await (await fetch(path)).json();
          const surest = ({ actions }) => Math.max(...actions.map(({ average }) => average));
          const some = infosets.filter(({ actions }) => actions.length >= 3);
          return some.reduce((a, b) => (surest(a) <= surest(b) ? a : b)).identifier;
        }"""
    )
    return identifier


def _shoot_live(browser: Browser, gateway: Gateway) -> None:
    """A run under way."""
    run = str(gateway.runs / "under-way")
    command = [REJOINDER, "train", "paper", "--workers", "2", "--games", "20000", "--run", run]
    command += ["--set", "eval_every=100", "--set", "eval_games=40"]
    trainer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        page = browser.new_context(base_url=gateway.address, viewport=SIZE).new_page()  # type: ignore[arg-type]
        page.goto("/#/training")
        page.wait_for_selector(".tag--live", timeout=60_000)
        page.click(".run a:text-is('under-way')")
        rated = "() => document.querySelectorAll('.chart')[1]?.data?.at(-1)?.x.length >= 8"
        page.wait_for_function(rated, timeout=120_000)
        page.wait_for_timeout(1_000)
        page.screenshot(path=FOLDER / "training-live.png", full_page=True)
    finally:
        trainer.terminate()
        trainer.wait()


if __name__ == "__main__":
    main()
