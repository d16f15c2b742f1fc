"""The forecast and the response phases of a run in a real browser, beside what the API says."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import ANALYSIS, PROBLEM, TAKEN, Complaints
from playwright.sync_api import Page, Route, expect

from rejoinder.measure.forecast import FEWEST
from rejoinder_gateway.analysis_example import ANALYSIS as EXAMPLE

pytestmark = pytest.mark.slow

SENTENCE = ".forecast__sentence"
EXPECTED: dict[str, Any] = {
    "at": 1_000,
    "what": "mer",
    "target": 0.0125,
    "reached": None,
    "games": 2_004.4,
    "low": 1_951.3,
    "high": 2_107.9,
    "chance": 0.9975,
    "level": [0.008, 0.01, 0.011],
    "seconds": 1_260.0,
    "seconds_low": 1_140.0,
    "seconds_high": 6_480.0,
    "backtest": None,
}


def test_the_response_phases_are_those_of_the_api(page: Page) -> None:
    page.goto("/#/training/paper")
    panel = page.locator(".responses")
    expect(panel).to_contain_text("It plays some thousand games for it.")
    page.press("#analyse", "Enter")
    page.wait_for_selector(".responses__grid", timeout=ANALYSIS)
    expect(page.locator(".responses__body")).to_be_focused()
    expect(page.locator("#analyse")).to_be_hidden()  # there is no newer snapshot
    told = page.request.get("/api/v1/runs/paper/responses").json()
    expect(panel).to_contain_text("4,000 games of the agent against itself")
    expect(panel).to_contain_text("by its snapshot of 200 games")
    charges, refusal = told["charges"]["either"], told["refusal"]
    assert _figure(page, "per_game") == f"{charges['per_game']['value']:.2f}"
    for outcome in charges["outcomes"]:
        assert _figure(page, outcome["outcome"]) == _percent(outcome["share"]["value"])
    assert _figure(page, "right") == _signed(refusal["right"]["value"])
    assert _figure(page, "card") == _signed(refusal["card"]["value"])
    for name in ("by_responses", "by_main_play", "whole"):  # of what is not sure, no "at least"
        bound = told["exploitability"][name]
        sure = "at least " if bound["low"] > 0 else ""
        assert _figure(page, name) == f"{sure}{_signed(bound['value'])}"
    rows = page.locator(".numbers tbody tr")
    for number, field in enumerate(("regret_by_reach", "positive_regret_by_reach")):
        cells = rows.nth(number).locator("td").all_inner_texts()
        assert cells == [f"{told['roles'][role][field]:.4f}" for role in ("initiator", "responder")]
    times = page.locator(".choice-row__times").all_inner_texts()
    assert times == [_times(choice["times"]) for choice in charges["choices"]]
    kinds = page.locator(".choice-row__kinds").first.inner_text()
    assert all(name.capitalize() in kinds for name in charges["choices"][0]["chosen"])


def test_charts_that_come_late_move_nothing_below_them(page: Page) -> None:
    """Else a click on what is there misses it."""
    library: list[Route] = []
    page.route("**/vendor/plotly*", lambda route: library.append(route))
    page.goto("/#/training/paper")
    page.wait_for_selector(SENTENCE)
    before = page.locator("#analyse").bounding_box()
    library[0].continue_()
    page.wait_for_function("() => document.querySelectorAll('.chart .main-svg').length >= 4")
    assert page.locator("#analyse").bounding_box() == before


def test_an_analysis_that_is_exact_and_then_old(page: Page) -> None:
    page.route("**/responses", lambda route: route.fulfill(json=EXAMPLE | {"snapshot": 100}))
    page.goto("/#/training/paper")
    page.press("#analyse", "Enter")
    expect(page.locator("[data-figure=by_main_play]")).to_have_text("0.0321")
    expect(page.locator("[data-figure=whole]")).to_have_text("0.0321")
    assert _figure(page, "cancelled at once") == _percent(0.1744)
    assert _figure(page, "card") == _signed(-0.261)
    expect(page.locator(".responses")).to_contain_text(
        "This is the snapshot of 100 games; there is one of 200 games now."
    )
    page.unroute("**/responses")
    page.click("text=Analyse the newest snapshot")
    expect(page.locator(".responses")).to_contain_text(
        "by its snapshot of 200 games", timeout=ANALYSIS
    )


def test_an_analysis_that_fails_can_be_tried_again(page: Page, complaints: Complaints) -> None:
    complaints.expected = (TAKEN,)
    page.route("**/responses", lambda route: route.fulfill(status=503, json=PROBLEM))
    page.goto("/#/training/paper")
    page.press("#analyse", "Enter")
    expect(page.locator(".responses .state--error")).to_contain_text("out of order")
    page.unroute("**/responses")
    page.click(".responses >> text=Try again")
    page.wait_for_selector(".responses__grid", timeout=ANALYSIS)


def test_the_forecast_in_a_sentence(page: Page) -> None:
    page.goto("/#/training/paper")
    with page.expect_response("**/forecast?what=risk-aware&*") as answered:
        page.select_option("#forecast-what", "risk-aware")
    assert answered.value.status == 200
    with page.expect_response("**/forecast?what=risk-aware&target=0.3") as answered:
        page.fill("#forecast-value", "30")
    told = answered.value.json()
    assert told["reached"] is not None
    expect(page.locator(SENTENCE)).to_have_text(
        "A win rate of 30.0\u00a0% against risk-aware was reached after "
        f"{told['reached']:.0f} games."
    )
    page.fill("#forecast-value", "120")
    expect(page.locator(".forecast__answer")).to_have_text("Choose a win rate between 0 and 100 %.")
    page.select_option("#forecast-what", "mer")
    expect(page.locator(SENTENCE)).to_contain_text("MER 0.0")
    expect(page.locator(".forecast__answer")).to_contain_text("Backtest: from the first ")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {},
            "MER 0.0125 is expected after 2,000 games (90 %: 1,950 to 2,110), 21 min from now at "
            "this speed (19 min to 1.8 h); the chance that it ever gets there, by the refits, is "
            ">99\u00a0%.",
        ),
        (
            {"high": None, "seconds_high": None, "chance": 0.62},
            "MER 0.0125 is expected after 2,000 games (90 %: 1,950 to no end), 21 min from now at "
            "this speed (19 min to no end); the chance that it ever gets there, by the refits, is "
            "62\u00a0%.",
        ),
        (
            {"seconds": None, "high": None, "chance": 0.62},
            "MER 0.0125 is expected after 2,000 games (90 %: 1,950 to no end), 1,000 more than "
            "now; the chance that it ever gets there, by the refits, is 62\u00a0%.",
        ),
        (
            {"games": None, "low": None, "high": None, "chance": 0.0, "seconds": None},
            "MER 0.0125 is not expected, however long it trains: the fitted curve levels off at "
            "0.0100 (90 %: 0.0080 to 0.0110), and none of the refits gets there.",
        ),
        (
            {"games": None, "high": None, "chance": 0.38, "seconds": None},
            "MER 0.0125 is unlikely by this curve: 38\u00a0% of the refits get there; the fitted "
            "curve levels off at 0.0100 (90 %: 0.0080 to 0.0110).",
        ),
    ],
    ids=["expected", "without an end", "at no known speed", "never", "unlikely"],
)
def test_what_a_forecast_says(page: Page, said: dict[str, Any], sentence: str) -> None:
    page.route("**/forecast?*", lambda route: route.fulfill(json=EXPECTED | said))
    page.goto("/#/training/paper")
    expect(page.locator(SENTENCE)).to_have_text(sentence)
    expect(page.locator(".track")).to_have_count(0 if "games" in said else 1)


def test_too_few_evaluations_and_no_response_phases(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/#/training/kuhn")
    expect(page.locator(".forecast__answer")).to_have_text(
        f"Nothing can be said yet: a forecast needs {FEWEST} evaluations, and there are 4 so far."
    )
    expect(page.locator(".responses")).to_have_count(0)
    assert [url for url in asked if "/forecast?" in url] == []


def test_a_forecast_is_asked_for_again_but_not_all_the_time(page: Page) -> None:
    asked: list[str] = []

    def answered(count: int) -> None:
        expect(page.locator(SENTENCE)).to_contain_text(f"was reached after {count} game")

    def tell(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(json=EXPECTED | {"reached": len(asked), "games": None})

    page.route("**/forecast?*", tell)
    page.clock.install(time=0)
    page.clock.pause_at(1)  # else time goes by while the test talks with the browser
    page.goto("/#/training")
    page.evaluate(
        """async () => {
          const { forecastPanel } = await import("/js/forecast_panel.js");
          globalThis.panel = forecastPanel("paper");
          document.body.append(panel.element);
          const record = (_, k) => ({ games: 10 * k + 10, mer: 1 / (k + 1) });
          globalThis.measured = (count) => panel.update([...Array(count)].map(record));
        }"""
    )
    page.evaluate("measured(10)")
    page.clock.run_for(100)
    answered(1)
    for count in range(11, 21):
        page.evaluate(f"measured({count})")
        page.clock.run_for(200)
    assert len(asked) == 1
    page.clock.run_for(5_000)
    answered(2)
    page.evaluate("measured(20)")  # nothing new
    page.clock.run_for(60_000)
    assert len(asked) == 2
    page.evaluate("panel.end()")


def test_a_forecast_that_fails_can_be_tried_again(page: Page, complaints: Complaints) -> None:
    complaints.expected = (TAKEN,)
    page.route("**/forecast?*", lambda route: route.fulfill(status=503, json=PROBLEM))
    page.goto("/#/training/paper")
    expect(page.locator(".forecast .state--error")).to_contain_text("out of order")
    page.unroute("**/forecast?*")
    page.click(".forecast >> text=Try again")
    expect(page.locator(SENTENCE)).to_be_visible()


def _figure(page: Page, name: str) -> str:
    return page.locator(f"[data-figure='{name}']").inner_text()


def _percent(share: float) -> str:
    return f"{share * 100:.1f}\u00a0%"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\u2212")


def _times(times: int) -> str:
    return f"{times:,} time{'' if times == 1 else 's'}"
