"""Replay, the states of every view, accessibility, phones and themes in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import (
    ANALYSIS,
    NOT_FOUND,
    UNREACHABLE,
    Complaints,
    Gateway,
    click_move,
    game_of,
    new_game,
    play_to_the_end,
    until_owing,
)
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.slow


def test_replay_step_by_step(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper", first="agent")
    play_to_the_end(page)
    moves = game_of(page)["move_number"]
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
    until_owing(page)
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
    page.wait_for_selector(".forecast__sentence")
    yield "training"
    page.press("#analyse", "Enter")
    page.wait_for_selector(".responses__grid", timeout=ANALYSIS)
    yield "training, analysed"
    page.goto("/#/policy/paper?run2=other")
    page.wait_for_selector(".pair")
    yield "policy"
