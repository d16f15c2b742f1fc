"""The page in a real browser, on a real gateway with real runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser's tests need `pip install playwright`")

from axe_playwright_python.sync_playwright import Axe
from browsing import (
    NO_BROWSER,
    PLAYABLE,
    REJOINDER,
    UNREACHABLE,
    WAIT,
    Complaints,
    Gateway,
    chromium,
    click_move,
    instant,
    make_runs,
    moves_made,
    new_game,
    play_again,
    play_to_the_end,
    wait_for_answer,
)
from playwright.sync_api import Browser, Page, Route, expect

from rejoinder.games.deal import cards

pytestmark = pytest.mark.slow
expect.set_options(timeout=WAIT)

# What the browser says of requests that are answered so.
NOT_FOUND, IMPOSSIBLE = "status of 404", "status of 422"
BROKEN, TAKEN = "status of 500", "status of 503"

PROBLEM = {"title": "Broken", "detail": "the gateway is out of order"}
SECRET = """
  const { gameApi } = await import("/js/api.js");
  const id = JSON.parse(localStorage.getItem("rejoinder.current"));
  const api = gameApi(id, JSON.parse(localStorage.getItem("rejoinder.games"))[id].secret);
"""


HELD = "navigator.locks.query().then(({ held }) => held.length)"  # streams of all tabs


@pytest.fixture(scope="module")
def page_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page-runs")
    make_runs(folder)
    return folder


@pytest.fixture(scope="module")
def gateway(page_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Gateway(page_runs, tmp_path_factory.mktemp("page") / "gateway.db") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
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
    context.close()


@pytest.fixture(autouse=True)
def complaints(page: Page) -> Iterator[Complaints]:
    """No test may leave an error or a warning in the console."""
    heard = Complaints(page)
    yield heard
    assert heard.unexpected() == []


# Play


def test_whole_games_by_clicking_with_payments_and_just_say_no(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper")
    seen: set[str] = set()
    for _ in range(15):
        moves = play_to_the_end(page)
        seen |= {"paid" for move in moves if move.startswith("give ")}
        seen |= {"said no" for move in moves if move == "just say no"}
        expect(page.locator("#result")).to_have_text(re.compile("You won|The agent won|A draw"))
        if seen == {"paid", "said no"}:
            return
        play_again(page)
    pytest.fail(f"15 games had only {seen or 'neither'}")


def test_the_response_phase_says_what_is_owed_and_what_may_be_given(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper")
    _until_owing(page)
    view = _game(page)["view"]
    owed, paid = view["response"]["owed"], view["response"]["paid"]
    phase = page.locator("[data-response=payer]")
    expect(phase).to_contain_text(f"You owe {owed}")
    expect(phase).to_contain_text(f"{paid} paid, {owed - paid} to go")
    offered = page.eval_on_selector_all(PLAYABLE, "all => all.map((one) => one.dataset.move)")
    assert set(offered) == {move["name"] for move in _game(page)["legal"]}
    assert page.locator("[aria-live] p").last.inner_text().startswith("You owe")


def test_the_agents_replies_are_shown_one_after_the_other(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="baseline:risk-aware")
    page.select_option("#pace", "Quick")
    page.evaluate(
        """() => {
          window.told = [];
          const note = () => {
            const text = document.querySelector("[data-key=status]")?.textContent;
            if (text && text !== window.told.at(-1)) window.told.push(text);
          };
          const watched = { childList: true, subtree: true };
          new MutationObserver(note).observe(document.getElementById("main"), watched);
        }"""
    )
    click_move(page, "pass")
    told = page.evaluate("window.told")
    assert "You pass" in told
    assert "The agent draws 2 cards" in told
    assert sum(text.startswith("The agent") for text in told) >= 2
    page.select_option("#pace", "Slow")
    page.locator(PLAYABLE).first.click()
    page.click("[data-key=skip]")
    page.wait_for_selector(PLAYABLE, timeout=3_000)


def test_the_shown_table_follows_the_engine(page: Page) -> None:
    """Each event applied by the page gives the view that the gateway has after it."""
    page.goto("/")
    differences = page.evaluate(
        """async () => {
          const { after } = await import("/js/play/deal_events.js");
          const { createGame, gameApi } = await import("/js/api.js");
          const told = ({ hand, own, opponent, discard, deck_size, response }) => {
            const sorted = (pile) => Object.entries(pile).sort();
            const side = (p) => ({ ...p, properties: sorted(p.properties), bank: sorted(p.bank) });
            const owing = response && !response.settled ? [response.owed, response.paid] : [];
            const piles = [sorted(hand), side(own), side(opponent), sorted(discard), deck_size];
            return JSON.stringify([...piles, owing]);
          };
          const found = [];
          let compared = 0;
          for (let k = 0; k < 4; k += 1) {
            const { secret, game: begun } = await createGame({
              opponent: { baseline: k % 2 ? "random" : "risk-aware", configuration: "deal-medium" },
              first: k < 2 ? "you" : "agent",
            });
            const api = gameApi(begun.id, secret);
            for (let game = begun; !game.over; ) {
              const { name } = game.legal[game.move_number % game.legal.length];
              const moved = await api.move(game.move_number, name);
              let view = game.view;
              for (const event of moved.events) view = after(view, event, game.seat).view;
              compared += 1;
              game = moved.game;
              if (told(view) !== told(game.view)) found.push([name, told(view), told(game.view)]);
            }
          }
          return { found, compared };
        }"""
    )
    assert differences["compared"] > 50
    assert differences["found"] == []


def test_the_pages_card_facts_are_the_engines(page: Page) -> None:
    page.goto("/")
    facts = page.evaluate(
        """async () => {
          const { COLOURS, RENT, SET_SIZE, worth } = await import("/js/play/deal_facts.js");
          const properties = COLOURS.map((colour) => `property ${colour}`);
          const cash = [1, 2, 3, 4].map((value) => `cash ${value}`);
          const worths = [...properties, ...cash].map(worth);
          return { colours: COLOURS, sizes: SET_SIZE, rent: RENT, worth: worths };
        }"""
    )
    sizes = dict(zip(cards.COLOURS, cards.SET_SIZE.tolist(), strict=True))
    assert facts["colours"] == list(cards.COLOURS)
    assert facts["sizes"] == sizes
    assert facts["worth"] == cards.WORTH.tolist()
    for number, colour in enumerate(cards.COLOURS):
        assert facts["rent"][colour] == cards.RENT[number, : sizes[colour] + 1].tolist()


def test_a_reload_continues_the_game(page: Page) -> None:
    page.goto("/")
    new_game(page)
    for _ in range(5):
        click_move(page)
    before = _table(page)
    page.reload()
    page.wait_for_selector(PLAYABLE)
    assert _table(page) == before
    click_move(page)


def test_a_killed_gateway_loses_nothing(
    page: Page, gateway: Gateway, complaints: Complaints
) -> None:
    complaints.expected = UNREACHABLE
    page.goto("/")
    new_game(page)
    for _ in range(4):
        click_move(page)
    number = _game(page)["move_number"]
    made = moves_made(page)
    gateway.kill()
    page.locator(PLAYABLE).first.click()  # is sent again until it is answered
    expect(page.locator(".lost")).to_contain_text("Connection to the gateway lost")
    gateway.start()
    expect(page.locator(".lost")).to_have_count(0)
    wait_for_answer(page, made)
    assert _game(page)["move_number"] > number
    play_to_the_end(page)
    expect(page.locator("#result")).to_be_visible()


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
    page.click("[data-move=pass]")
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
    first, before = page.url, _table(page)
    page.click("#new-game")
    expect(page.locator("dialog .note")).to_contain_text("You can continue it later")
    expect(page.locator(".unfinished")).to_have_count(0)
    page.click("text=Cancel")
    new_game(page, "leduc", "run:leduc")
    page.click("#new-game")
    page.click(".unfinished a:text-is('Continue')")
    page.wait_for_selector(".hand")
    assert page.url == first
    assert _table(page) == before
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_be_visible()
    page.evaluate("localStorage.removeItem('rejoinder.current')")
    page.goto("/#/play")
    page.reload()
    expect(page.locator(".unfinished li")).to_have_count(1)
    expect(page.locator(".unfinished")).to_contain_text("Leduc")


@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_other_games_on_the_generic_table(page: Page, game: str) -> None:
    page.goto("/")
    for opponent in (f"run:{game}", "baseline:random"):
        new_game(page, game, opponent)
        expect(page.locator(".facts")).to_contain_text("Card")
        play_to_the_end(page)
        expect(page.locator(".result")).to_contain_text(re.compile(r"Result: ([+−]\d+|0)\."))


def test_a_lifted_card_stays_under_the_pointer(page: Page) -> None:
    page.goto("/")
    new_game(page)
    place = page.locator(".hand " + PLAYABLE).first.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 20, place["y"] + place["height"] - 2)
    seen = page.evaluate(
        """async () => {
          const tops = new Set();
          for (let frame = 0; frame < 20; frame += 1) {
            await new Promise(requestAnimationFrame);
            if (frame > 4) tops.add(document.querySelector(".card:hover")?.offsetTop ?? "lost");
          }
          return [...tops];
        }"""
    )
    assert "lost" not in seen


def test_a_game_by_keyboard(page: Page) -> None:
    page.goto("/")
    page.focus("#new-game")
    page.keyboard.press("Enter")
    page.wait_for_selector("#begin")
    page.focus("#begin")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hand " + PLAYABLE)
    page.locator(".hand " + PLAYABLE).first.focus()
    page.keyboard.press("ArrowRight")
    for _ in range(4):
        move = page.evaluate("document.activeElement.dataset.move")
        assert move, "the focus is on a card that can be played"
        number = _game(page)["move_number"]
        made = moves_made(page)
        page.keyboard.press("Enter")
        wait_for_answer(page, made)
        assert _game(page)["move_number"] > number
        assert page.evaluate("document.querySelector('.table').contains(document.activeElement)")


def test_advice_rules_and_the_agents_decisions(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper")
    page.click("#tab-advice")
    expect(page.locator("#side-body .bars__row").first).to_contain_text("%")
    page.click("#tab-decisions")
    expect(page.locator("#side-body")).to_contain_text("stays hidden until the game is over")
    page.click("#tab-rules")
    expect(page.locator("#side-body")).to_contain_text("Be the first to own 2 complete sets")
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_have_text("You resigned")
    page.click("text=The agent's decisions")
    expect(page.locator("#side-body")).not_to_contain_text("stays hidden")


def test_a_random_opponent_has_no_advice(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="baseline:random")
    page.click("#tab-advice")
    expect(page.locator("#side-body")).to_contain_text("It has no policy")


def test_a_resigned_game_asks_for_nothing_any_more(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper")
    _until_owing(page)
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_have_text("You resigned")
    expect(page.locator(f"[data-response], .turn--mine, .table {PLAYABLE}")).to_have_count(0)


def test_an_open_game_warns_and_shows_the_agents_decisions(page: Page) -> None:
    page.goto("/")
    page.click("#new-game")
    page.check("#open-game")
    expect(page.locator("dialog .warning").first).to_contain_text("gives its hand away")
    page.check("input[name=first][value=agent]")
    page.click("#begin")
    expect(page.locator(".page-head")).to_contain_text("Open game")
    page.click("#tab-decisions")
    expect(page.locator("#side-body details").first).to_contain_text("played")


# Training, policy, replay


def test_training_updates_during_a_real_run(page: Page, page_runs: Path) -> None:
    page.goto("/#/training")
    expect(page.locator(".run")).to_have_count(4)
    settings = ("games=20000", "eval_every=50", "eval_games=40", "checkpoint_every=500")
    options = [part for setting in settings for part in ("--set", setting)]
    command = [REJOINDER, "train", "paper", "--workers", "2", "--run", str(page_runs / "live")]
    trainer = subprocess.Popen(
        [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        page.locator(".run", has_text="live").locator(".tag--live").wait_for()
        page.click(".run a:text-is('live')")
        games = page.locator("[data-tile=Games]")
        seen = [_number(games.inner_text())]
        for _ in range(2):
            page.wait_for_function(
                """seen => {
                  const told = document.querySelector('[data-tile=Games]').textContent;
                  return Number(told.replaceAll(',', '')) > seen;
                }""",
                arg=seen[-1],
            )
            seen.append(_number(games.inner_text()))
        assert _number(page.locator("[data-tile=Throughput]").inner_text()) > 0
        assert page.locator("[data-tile=Workers]").inner_text() == "2"
        points = """Math.max(0, ...[...document.querySelectorAll('.chart')]
          .map((chart) => chart.data?.[0]?.x.length ?? 0))"""
        page.wait_for_function(f"() => ({points}) > 0")
        before = page.evaluate(points)
        page.wait_for_function(f"before => ({points}) > before", arg=before)
        expect(page.locator("figure", has_text="Win rate")).to_contain_text("against risk-aware")
    finally:
        trainer.terminate()
        trainer.wait()


def test_policy_search_and_comparison(page: Page) -> None:
    page.goto("/#/policy/paper")
    page.wait_for_selector(".policy__action")
    everything = page.locator(".infosets__page .hint").inner_text()
    page.fill("input[type=search]", "complete property set")
    expect(page.locator(".infosets__page .hint")).not_to_have_text(everything)
    assert all(
        "Complete property set" in text for text in page.locator(".infoset__text").all_inner_texts()
    )
    page.locator(".infoset").nth(1).click()
    identifier = page.locator(".infoset[aria-current]").get_attribute("data-infoset")
    expect(page.locator(".detail code")).to_have_text(identifier or "")
    sides = page.locator(".pair__side")
    page.select_option("#compare-run", "paper")  # the first with the last, the earlier one left
    expect(sides.nth(0)).to_contain_text("paper, 50 games")
    expect(sides.nth(1)).to_contain_text("paper, 200 games")
    page.select_option("#compare-snapshot", "150")
    expect(sides.nth(0)).to_contain_text("paper, 150 games")
    page.select_option("#compare-run", "other")
    expect(sides.nth(1)).to_contain_text("other, 200 games")
    page.reload()  # the address holds it all
    expect(page.locator(".pair__side")).to_have_count(2)
    expect(page.locator(".detail code")).to_have_text(identifier or "")
    page.fill("input[type=search]", "no such thing")
    expect(page.locator(".infosets")).to_contain_text("Nothing matches")
    expect(page.locator(".detail")).to_be_empty()
    page.fill("input[type=search]", "")
    expect(page.locator(".policy__action").first).to_be_visible()


def test_infosets_can_be_told_apart(page: Page) -> None:
    page.goto("/#/policy/kuhn")
    search = page.locator("input[type=search]")
    expect(search).to_have_attribute("placeholder", re.compile("^pass"))
    rows = page.locator(".infoset")
    assert len({text.split("update")[0] for text in rows.all_inner_texts()}) == rows.count() == 12
    page.goto("/#/policy/paper")
    expect(page.locator(".infoset__title").first).to_have_text(re.compile(r"Seat \d, play \d"))
    assert "0, 0, 0" not in page.locator(".browse").inner_text()


def test_an_infoset_that_a_snapshot_has_not_met(page: Page, complaints: Complaints) -> None:
    complaints.expected = (NOT_FOUND,)
    page.goto("/#/policy/paper?infoset=nothing")
    expect(page.locator(".detail")).to_contain_text("does not know the infoset")
    page.goto("/#/policy/paper?infoset=nothing&snapshot=7")
    expect(page.locator(".detail")).to_contain_text("Unknown snapshot")


def test_an_infoset_is_told_by_its_description(page: Page) -> None:
    description = {"player": 0, "card": "K", "moves": ["pass", "bet"], "raises": 0, "key": "1a"}

    def described(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        for infoset in told["infosets"]:
            infoset["description"] = description
        route.fulfill(response=answer, json=told)

    page.route("**/policy?*", described)
    page.route("**/policy/*", lambda route: _with(route, description=description))
    page.goto("/#/policy/kuhn")
    row = page.locator(".infoset").first
    expect(row.locator(".infoset__title")).to_have_text("Seat 0, card K")
    expect(row.locator(".infoset__facts")).to_have_text("Moves: pass, bet")
    expect(page.locator(".detail__head dl")).to_have_text("Movespass, bet")
    expect(page.locator("input[type=search]")).to_have_attribute(
        "placeholder", re.compile("card=K")
    )


def test_evaluations_are_measured_by_what_is_at_stake(page: Page) -> None:
    page.goto("/#/training")
    expect(page.locator(".run", has_text="kuhn")).to_contain_text("Mean utility")
    expect(page.locator(".run", has_text="paper")).to_contain_text("Win rate")
    page.goto("/#/training/leduc")
    expect(page.locator("figure", has_text="Mean utility")).to_contain_text("a game against random")
    expect(page.locator("figure", has_text="Win rate")).to_have_count(0)


def test_the_throughput_of_a_long_time_is_thinned_out(page: Page) -> None:
    page.goto("/")
    kept = page.evaluate(
        """async () => {
          const { Rates } = await import("/js/training_charts.js");
          const rates = new Rates();
          for (let k = 0; k < 100_001; k += 1) rates.add(k);
          return rates.points;
        }"""
    )
    assert kept == [*range(0, 100_000, 64), 100_000]


def test_a_run_without_a_stream_is_looked_at(page: Page, complaints: Complaints) -> None:
    complaints.expected = (TAKEN,)
    page.route("**/events*", lambda route: route.fulfill(status=503, json=PROBLEM))
    page.goto("/#/training/paper")
    page.wait_for_selector(".tile")
    told = {"games": 123, "state": "running", "alive": True}
    page.route("**/runs/paper", lambda route: _with(route, **told))
    expect(page.locator("[data-tile=Games]")).to_have_text("123")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("new", "Not started"),
        ("starting", "Starting"),
        ("waiting", "Waiting for workers"),
        ("running", "Training"),
        ("gone", "Interrupted"),
    ],
)
def test_a_runs_state_in_words(page: Page, state: str, words: str) -> None:
    alive = state in ("starting", "waiting", "running")
    silence = {"content_type": "text/event-stream", "body": ""}
    page.route("**/runs/paper/events", lambda route: route.fulfill(**silence))
    page.route("**/runs/paper", lambda route: _with(route, state=state, alive=alive, games=0))
    page.goto("/#/training/paper")
    expect(page.locator(".standing .tag")).to_have_text(words)


def test_replay_step_by_step(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper", first="agent")
    play_to_the_end(page)
    moves = _game(page)["move_number"]
    page.click("text=Watch the replay")
    where = page.locator(".replay__where")
    expect(where).to_have_text(f"0 / {moves}")
    page.keyboard.press("ArrowRight")
    expect(where).to_have_text(f"1 / {moves}")
    expect(page.locator(".replay__decision")).to_contain_text("What the agent weighed")
    expect(page.locator(".shown-hand .mini").first).to_be_visible()
    expect(page.locator(".hand .card").first).to_be_visible()
    page.keyboard.press("End")
    expect(where).to_have_text(f"{moves} / {moves}")
    page.locator("#step").fill("3")
    expect(where).to_have_text(f"3 / {moves}")
    page.reload()
    expect(where).to_have_text(f"3 / {moves}")
    page.click("text=All replays")
    expect(page.locator(".run")).to_have_count(1)


# States, access, width


def test_states_for_nothing_and_for_what_is_not_there(
    browser: Browser, tmp_path: Path, page: Page, complaints: Complaints
) -> None:
    complaints.expected = (NOT_FOUND,)
    with Gateway(tmp_path / "none", tmp_path / "gateway.db") as bare:
        page.goto(f"{bare.address}/#/training")
        expect(page.locator("main")).to_contain_text("No runs yet")
        page.goto(f"{bare.address}/#/policy")
        expect(page.locator("main")).to_contain_text("No policy yet")
        page.goto(f"{bare.address}/#/replay")
        expect(page.locator("main")).to_contain_text("Nothing to replay yet")
        page.goto(f"{bare.address}/#/training/nobody")
        expect(page.locator(".state--error")).to_contain_text("Unknown run")
        page.goto(f"{bare.address}/#/policy?run=nobody")
        expect(page.locator("main")).to_contain_text("There is no run called nobody")
        page.goto(f"{bare.address}/#/play/nothing")
        expect(page.locator("main")).to_contain_text("That game is not here")
        page.click("#new-game")
        expect(page.locator("#opponent")).to_contain_text("baseline")


def test_a_lost_connection_is_shown_in_every_view(
    page: Page, gateway: Gateway, complaints: Complaints
) -> None:
    complaints.expected = UNREACHABLE
    page.goto("/#/training/paper")
    page.wait_for_selector(".tile")
    gateway.kill()
    expect(page.locator(".lost")).to_be_visible()
    page.evaluate("location.hash = '#/policy'")
    expect(page.locator("main")).to_contain_text("Loading")
    gateway.start()
    expect(page.locator(".lost")).to_have_count(0)
    expect(page.locator(".policy__action").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_findings(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    findings = {}
    for name in _every_view(page):
        findings[name] = [
            f"{found['id']}: {node['html']}"
            for found in Axe().run(page).response["violations"]
            if found["impact"] in ("serious", "critical")
            for node in found["nodes"][:3]
        ]
    assert {name: found for name, found in findings.items() if found} == {}
    assert len(findings) >= 10


def test_no_view_scrolls_sideways_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    widths = {
        name: page.evaluate("document.documentElement.scrollWidth") for name in _every_view(page)
    }
    assert {name: width for name, width in widths.items() if width > 360} == {}


def test_on_a_phone_the_prompt_and_the_hand_stay_in_sight(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/")
    new_game(page, opponent="run:paper")
    for _ in range(12):
        if page.locator(".result").count():
            break
        click_move(page)
        seen = page.evaluate(
            """() => {
              const inSight = (selector) => [...document.querySelectorAll(selector)].some((one) => {
                const { top, bottom } = one.getBoundingClientRect();
                return bottom > 40 && top < innerHeight - 40;
              });
              const own = inSight(".hand") || inSight(".side--own");
              return inSight(".result") || (own && inSight(".turn, .response"));
            }"""
        )
        assert seen


def test_a_charts_legend_has_room_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/#/training/paper")
    figure = page.locator("figure", has_text="Policy evolution")
    figure.locator(".main-svg").first.wait_for()
    expect(figure.locator(".legend li")).not_to_have_count(0)
    chart, legend = (
        figure.locator(".chart").bounding_box(),
        figure.locator(".legend").bounding_box(),
    )
    assert chart is not None
    assert legend is not None
    assert legend["y"] >= chart["y"] + chart["height"]
    assert legend["x"] + legend["width"] <= 360


def test_the_theme_can_be_chosen_and_is_kept(page: Page) -> None:
    page.goto("/#/training/paper")
    page.wait_for_selector(".chart .main-svg")
    bright = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != bright
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def _every_view(page: Page) -> Iterator[str]:
    """Show each view in each of its states, and tell its name."""
    page.goto("/")
    page.wait_for_selector("#new-game")
    yield "welcome"
    page.click("#new-game")
    page.check("#open-game")
    yield "new game"
    page.click("text=Cancel")
    new_game(page, opponent="run:paper")
    for tab in ("advice", "decisions", "rules", "history"):
        page.click(f"#tab-{tab}")
        page.wait_for_selector(
            "#side-body .bars, #side-body .hint, #side-body .rules, #side-body .history"
        )
        yield f"play, {tab}"
    _until_owing(page)
    yield "play, owing"
    play_to_the_end(page)
    yield "play, over"
    page.click("text=Watch the replay")
    page.keyboard.press("End")
    page.wait_for_selector(".shown-hand")
    yield "replay"
    page.goto("/#/replay")
    page.wait_for_selector(".run")
    yield "replays"
    page.goto("/#/play")
    new_game(page, "leduc", "run:leduc")
    yield "generic table"
    page.goto("/#/training")
    page.wait_for_selector(".run")
    yield "runs"
    page.goto("/#/training/paper")
    page.wait_for_selector(".chart .main-svg")
    yield "training"
    page.goto("/#/policy/paper?run2=other")
    page.wait_for_selector(".pair")
    yield "policy"


def _until_owing(page: Page) -> None:
    """Play, if need be another game, until rent is owed."""
    for _ in range(10):
        while page.locator(".result").count() == 0:
            if page.locator("[data-response=payer]").count():
                return
            click_move(page)
        play_again(page)
    pytest.fail("ten games without rent")


def _game(page: Page) -> dict[str, Any]:
    """The game as the gateway tells it, by the secret that the page keeps."""
    state: dict[str, Any] = page.evaluate(f"async () => {{ {SECRET} return api.state(); }}")
    return state


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


def _with(route: Route, **facts: Any) -> None:
    """Answer a request with some facts changed."""
    answer = route.fetch()
    route.fulfill(response=answer, json=answer.json() | facts)


def _table(page: Page) -> list[str]:
    return [page.locator(part).inner_text() for part in (".table", ".history")]


def _number(text: str) -> float:
    return float(text.replace(",", ""))
