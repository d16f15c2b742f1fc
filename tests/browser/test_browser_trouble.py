"""The page when something fails: lost answers, taken streams, many tabs, full storage."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from browsing import (
    BROKEN,
    IMPOSSIBLE,
    PLAYABLE,
    PROBLEM,
    SECRET,
    TAKEN,
    Complaints,
    Gateway,
    click_move,
    instant,
    moves_made,
    new_game,
    table_text,
    wait_for_answer,
)
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.slow

HELD = "navigator.locks.query().then(({ held }) => held.length)"  # streams of all tabs


def test_a_move_that_fails_leaves_a_table_to_play_on(page: Page, complaints: Complaints) -> None:
    complaints.expected = (BROKEN,)
    page.goto("/")
    new_game(page)
    warning = page.locator(".play .warning")
    page.route("**/moves", lambda route: route.fulfill(status=500, json=PROBLEM))
    page.locator(PLAYABLE).first.click()
    expect(warning).to_contain_text("The move has not been made so far")
    page.unroute("**/moves")
    click_move(page)
    expect(warning).to_have_count(0)
    page.route("**/moves", lambda route: route.fulfill(status=422, json=PROBLEM))
    complaints.expected += (IMPOSSIBLE,)
    page.locator(PLAYABLE).first.click()
    expect(warning).to_contain_text("That move was not made")
    page.unroute("**/moves")
    click_move(page)
    expect(warning).to_have_count(0)


def test_a_move_whose_answer_is_lost_is_found_out_about(page: Page, complaints: Complaints) -> None:
    complaints.expected = (BROKEN,)
    page.route("**/events*", lambda route: route.abort())  # the game alone can tell
    complaints.expected += ("net::ERR_FAILED",)
    page.goto("/")
    new_game(page)
    address = re.compile(r"/games/[0-9a-f]+$")

    def made_but_not_told(route: Route) -> None:
        route.fetch()
        route.fulfill(status=500, json=PROBLEM)

    page.route("**/moves", made_but_not_told)
    made = moves_made(page)
    page.click("[data-move=pass]")
    wait_for_answer(page, made)
    expect(page.locator(".history")).to_contain_text("You pass")
    expect(page.locator(".play .warning")).to_have_count(0)
    page.route(address, lambda route: route.fulfill(status=500, json=PROBLEM))
    page.locator(PLAYABLE).first.click()  # the agent may have charged rent
    unknown = "It is not known whether the move was made"
    expect(page.locator(".play .warning")).to_contain_text(unknown)
    made = moves_made(page)
    page.unroute(address)
    page.unroute("**/moves")
    wait_for_answer(page, made)
    expect(page.locator(".play .warning")).to_have_count(0)


def test_a_history_that_fails_leaves_a_table_to_play_on(page: Page, complaints: Complaints) -> None:
    complaints.expected = (BROKEN,)
    page.goto("/")
    new_game(page)

    def only_the_last_event(route: Route) -> None:
        answer = route.fetch()
        moved = answer.json()
        moved["game"]["events"] = moved["game"]["events"][-1:]
        route.fulfill(response=answer, json=moved)

    page.route("**/moves", only_the_last_event)
    page.route("**/history", lambda route: route.fulfill(status=500, json=PROBLEM))
    page.click("[data-move=pass]")
    expect(page.locator(".play .warning")).to_contain_text("What happened since your move")
    expect(page.locator(PLAYABLE).first).to_be_visible()
    page.unroute("**/history")
    click_move(page)
    expect(page.locator(".play .warning")).to_have_count(0)
    numbers = page.eval_on_selector_all(".history li", "all => all.map((one) => one.value)")
    assert numbers[0] == len(_told(page))
    expect(page.locator(".history")).to_contain_text("You pass")


def test_a_replay_that_fails_is_told_and_can_be_tried_again(
    page: Page, complaints: Complaints
) -> None:
    complaints.expected = (BROKEN,)
    page.goto("/")
    new_game(page)
    page.route("**/replay", lambda route: route.fulfill(status=500, json=PROBLEM))
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_have_text("You resigned")
    expect(page.locator(".play .warning")).to_contain_text("The agent's hand cannot be shown")
    page.click("text=Watch the replay")
    expect(page.locator(".state--error")).to_contain_text("out of order")
    page.unroute("**/replay")
    page.click("text=Try again")
    expect(page.locator(".replay__bar")).to_be_visible()


def test_without_a_stream_the_page_looks_for_itself(page: Page, complaints: Complaints) -> None:
    complaints.expected = (TAKEN,)
    page.route("**/events*", lambda route: route.fulfill(status=503, json=PROBLEM))
    page.goto("/")
    new_game(page)
    made = moves_made(page)
    _move_elsewhere(page)
    wait_for_answer(page, made)
    expect(page.locator(".lost, .warning")).to_have_count(0)
    with page.expect_response(re.compile(r"/games/.*/events")) as opened:
        page.unroute("**/events*")
    assert opened.value.status == 200
    made = moves_made(page)
    _move_elsewhere(page)
    wait_for_answer(page, made)


def test_more_tabs_than_a_browser_has_connections(page: Page) -> None:
    page.goto("/")
    new_game(page)
    tabs = [page]
    for _ in range(7):
        tabs.append(page.context.new_page())
        instant(tabs[-1])
        tabs[-1].goto("/")
        tabs[-1].wait_for_selector(PLAYABLE)
    made = moves_made(page)
    click_move(tabs[-1])
    for tab in tabs:  # by a stream, or by looking
        wait_for_answer(tab, made)
    for tab in tabs[1:]:
        tab.goto("/#/training/paper")
        tab.wait_for_selector(".tile")
    click_move(page)
    assert 1 <= page.evaluate(HELD) <= 4


def test_a_hidden_tab_has_no_stream_and_catches_up_when_shown(page: Page) -> None:
    page.goto("/")
    with page.expect_response(re.compile(r"/events\?ticket=")):
        new_game(page)
    page.wait_for_function(f"async () => (await {HELD}) === 1")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    _become(page, "hidden")
    page.wait_for_function(f"async () => (await {HELD}) === 0")
    made = moves_made(page)
    other = page.context.new_page()
    other.goto("/")
    other.wait_for_selector(PLAYABLE)
    _move_elsewhere(other)
    page.wait_for_timeout(3_000)
    assert moves_made(page) == made
    assert asked == []
    _become(page, "visible")
    wait_for_answer(page, made)
    other.close()
    page.wait_for_function(f"async () => (await {HELD}) === 1")


def test_without_locks_the_page_looks_for_itself(page: Page) -> None:
    page.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', {value: undefined})")
    page.goto("/")
    new_game(page)
    made = moves_made(page)
    _move_elsewhere(page)
    wait_for_answer(page, made)


def test_a_gateway_that_is_silent_is_noticed(page: Page, gateway: Gateway) -> None:
    page.goto("/")
    new_game(page)
    made = moves_made(page)
    with gateway.silent():
        page.locator(PLAYABLE).first.click()
        expect(page.locator(".lost")).to_contain_text("Connection to the gateway lost")
    expect(page.locator(".lost")).to_have_count(0)
    wait_for_answer(page, made)
    page.click("#new-game")
    page.wait_for_selector("#begin")
    with gateway.silent():
        page.click("#begin")  # would begin two games if it were asked for again
        expect(page.locator("dialog .warning:visible")).to_contain_text("Try again once")
    page.click("#begin")
    expect(page.locator("dialog")).to_have_count(0)


def test_without_storage_a_game_lasts_as_long_as_the_page(page: Page) -> None:
    page.goto("/")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    new_game(page)
    expect(page.locator(".play .warning")).to_contain_text("only while this page stays open")
    click_move(page)
    page.click("#resign")
    page.click("#resign-now")
    page.click("text=Watch the replay")
    expect(page.locator(".replay__bar")).to_be_visible()


def test_only_old_finished_games_are_forgotten(page: Page) -> None:
    page.goto("/")
    new_game(page)
    mine = page.evaluate("JSON.parse(localStorage['rejoinder.current'])")
    known = page.evaluate(
        """async () => {
          const { games, rememberGame } = await import("/js/store.js");
          const facts = { secret: "s", game: "deal", title: "t", opponent: "o" };
          for (let k = 0; k < 60; k += 1) {
            const begun = new Date(k * 1000).toISOString();
            rememberGame(`finished-${k}`, { ...facts, begun, ended: begun, outcome: "won" });
            rememberGame(`unfinished-${k}`, { ...facts, begun, outcome: null });
          }
          rememberGame("unfinished-0", { outcome: "lost" });  // began first, ended last
          rememberGame("unknown", { outcome: "won" });
          return Object.keys(games());
        }"""
    )
    finished = {f"finished-{k}" for k in range(11, 60)}
    assert set(known) == {mine} | finished | {f"unfinished-{k}" for k in range(60)}
    assert known[0] == mine


def test_an_address_that_is_none_shows_the_default_view(page: Page) -> None:
    for address in ("/?1#/play/%zz", "/?2#/constructor", "/?3#main"):
        page.goto(address)
        expect(page.locator("#new-game")).to_be_visible()
        assert page.url.endswith("#/play")
    page.goto("/#/training")
    page.wait_for_selector(".run")
    page.evaluate("location.hash = '#/policy/%'")
    expect(page.locator("#new-game")).to_be_visible()


def test_a_finished_game_is_not_followed(page: Page) -> None:
    page.goto("/")
    new_game(page)
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3_000)
    page.reload()
    expect(page.locator("#result")).to_be_visible()
    page.wait_for_timeout(3_000)
    assert [url for url in asked if "/ticket" in url or "/events" in url] == []


def test_the_newest_run_is_the_opponent_unless_there_is_none(
    page: Page, page_runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(page_runs / "paper", tmp_path / "runs" / "before")
    shutil.copytree(page_runs / "other", tmp_path / "runs" / "later")
    with Gateway(tmp_path / "runs", tmp_path / "gateway.db") as few:
        page.goto(few.address)
        new_game(page, "kuhn")  # against the only one there is
        expect(page.locator(".page-head")).to_contain_text("the random baseline")
        page.click("#new-game")
        expect(page.locator("#opponent")).to_have_value("baseline:random")
        page.select_option("#game", "deal")
        expect(page.locator("#opponent")).to_have_value("run:later")
        expect(page.locator("#snapshot")).to_have_value("")  # the newest


def test_an_unfinished_game_can_be_continued(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper")
    click_move(page)
    first, before = page.url, table_text(page)
    page.click("#new-game")
    expect(page.locator("dialog .note")).to_contain_text("You can continue it later")
    expect(page.locator(".unfinished")).to_have_count(0)
    page.click("text=Cancel")
    new_game(page, "leduc", "run:leduc")
    page.click("#new-game")
    page.click(".unfinished a:text-is('Continue')")
    page.wait_for_selector(".hand")
    assert page.url == first
    assert table_text(page) == before
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_be_visible()
    page.evaluate("localStorage.removeItem('rejoinder.current')")
    page.goto("/#/play")
    page.reload()
    expect(page.locator(".unfinished li")).to_have_count(1)
    expect(page.locator(".unfinished")).to_contain_text("Leduc")


def _told(page: Page) -> list[Any]:
    """All events of the game, by the secret that the page keeps."""
    events: list[Any] = page.evaluate(f"async () => {{ {SECRET} return api.history(); }}")
    return events


def _move_elsewhere(page: Page) -> None:
    """Make a move as another tab would."""
    page.evaluate(
        f"""async () => {{
          {SECRET}
          const game = await api.state();
          await api.move(game.move_number, game.legal[0].name);
        }}"""
    )


def _become(page: Page, visibility: str) -> None:
    """As if the tab were shown or hidden; without a screen all tabs are shown."""
    page.evaluate(
        """state => {
          Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        visibility,
    )
