"""Training and policies in a real browser, on real runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browsing import (
    LIVE,
    NOT_FOUND,
    PROBLEM,
    REJOINDER,
    TAKEN,
    Complaints,
)
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.slow


def test_training_updates_during_a_real_run(page: Page, page_runs: Path) -> None:
    page.set_default_timeout(LIVE)
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
        for _ in range(2):
            _until_more(page, "Games", _number(games.inner_text()))
        _until_more(page, "Throughput", 0)
        expect(page.locator("[data-tile=Workers]")).to_have_text("2", timeout=LIVE)
        points = """Math.max(0, ...[...document.querySelectorAll('.chart')]
          .map((chart) => chart.data?.[0]?.x.length ?? 0))"""
        page.wait_for_function(f"() => ({points}) > 0")
        before = page.evaluate(points)
        page.wait_for_function(f"before => ({points}) > before", arg=before)
        expect(page.locator("figure", has_text="Win rate")).to_contain_text(
            "against risk-aware", timeout=LIVE
        )
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
    titles = page.locator(".infoset__title")
    expect(titles.first).to_have_text(re.compile(r"Seat \d, play \d: .*pass"))
    assert len(set(titles.all_inner_texts())) == titles.count() > 10
    expect(page.locator(".detail")).to_contain_text("Reach: the probability that chance")
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


def test_evaluations_show_utility_and_wins_where_they_count(page: Page) -> None:
    page.goto("/#/training")
    expect(page.locator(".run", has_text="kuhn")).to_contain_text("chips a game against random")
    expect(page.locator(".run", has_text="paper")).to_contain_text("% won) against random")
    page.goto("/#/training/paper")
    expect(page.locator("figure", has_text="Win rate")).to_contain_text("against risk-aware")
    expect(page.locator("figure", has_text="Mean utility")).to_contain_text("wins a game against")
    page.goto("/#/training/leduc")
    chart = page.locator("figure", has_text="Mean utility")
    expect(chart).to_contain_text(
        re.compile(r"[+−]\d\.\d\d ± \d\.\d\d chips a game against random")
    )
    page.wait_for_function(
        """() => [...document.querySelectorAll('.chart')].some((chart) => {
          const [low, high, mean] = (chart.data ?? []).map(({ y }) => y.at(-1));
          return low < mean && mean < high;
        })""",
        timeout=60_000,
    )
    expect(page.locator("figure", has_text="Win rate")).to_be_hidden()


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


def _with(route: Route, **facts: Any) -> None:
    """Answer a request with some facts changed."""
    answer = route.fetch()
    route.fulfill(response=answer, json=answer.json() | facts)


def _until_more(page: Page, tile: str, seen: float) -> None:
    page.wait_for_function(
        """([tile, seen]) => {
          const told = document.querySelector(`[data-tile=${tile}]`).textContent;
          return Number(told.replaceAll(',', '')) > seen;
        }""",
        arg=[tile, seen],
    )


def _number(text: str) -> float:
    return float(text.replace(",", ""))
