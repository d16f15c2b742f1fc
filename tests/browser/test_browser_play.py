"""Play in a real browser: whole games by clicking and by keyboard, and what is told beside them."""

from __future__ import annotations

import re

import pytest
from browsing import (
    PLAYABLE,
    UNREACHABLE,
    Complaints,
    Gateway,
    click_move,
    game_of,
    moves_made,
    new_game,
    play_again,
    play_to_the_end,
    table_text,
    until_owing,
    wait_for_answer,
)
from playwright.sync_api import Page, expect

from rejoinder.games.deal import cards

pytestmark = pytest.mark.slow


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
    until_owing(page)
    view = game_of(page)["view"]
    owed, paid = view["response"]["owed"], view["response"]["paid"]
    phase = page.locator("[data-response=payer]")
    expect(phase).to_contain_text(f"You owe {owed}")
    expect(phase).to_contain_text(f"{paid} paid, {owed - paid} to go")
    offered = page.eval_on_selector_all(PLAYABLE, "all => all.map((one) => one.dataset.move)")
    assert set(offered) == {move["name"] for move in game_of(page)["legal"]}
    assert page.locator("[aria-live] p").last.inner_text().startswith("You owe")


def test_a_property_that_counts_double_is_shown_so(page: Page) -> None:
    """The table and the rules, in a phase of ordered responses and after its first card."""
    page.goto("/")
    told = page.evaluate(
        """async () => {
          const { dealTable } = await import("/js/play/deal_table.js");
          const { rulesText } = await import("/js/play/rules.js");
          const { after, tell } = await import("/js/play/deal_events.js");
          const { createGame } = await import("/js/api.js");
          const opponent = (configuration) => ({ baseline: "random", configuration });
          const { game } = await createGame({ opponent: opponent("deal-ordered"), first: "you" });
          const other = await createGame({ opponent: opponent("deal-medium"), first: "you" });
          const view = structuredClone(game.view);
          Object.assign(view.own, { properties: { green: 1 }, bank: { "cash 1": 1 } });
          view.opponent.properties = { green: 3 };
          const event = (actor, name) => ({ number: 0, actor, name, text: "" });
          const legal = ["give property green", "give bank cash 1"].map((name) => ({ name }));
          const seen = (view) => {
            view.to_move = view.player;
            const shown = { view, legal, touched: [], streak: 2, headline: null, note: null };
            const table = dealTable({ ...shown, onMove: () => {} });
            const note = table.querySelector(".response__note");
            return [table.querySelector(".give").textContent, note.textContent];
          };
          const charged = after(view, event(1, "rent green"), 0).view;
          const paid = after(charged, event(0, "give bank cash 1"), 0).view;
          return {
            first: seen(charged),
            later: seen(paid),
            left: [paid.response.owed, paid.response.paid],
            words: [charged, paid].map((v) => tell(event(0, "give property green"), 0, v)),
            ordered: rulesText(game).textContent,
            plain: rulesText(other.game).textContent,
          };
        }"""
    )
    assert told["first"][0] == "Give · 8"
    assert told["first"][1].endswith("A property given now counts double.")
    assert told["later"][0] == "Give · 4"
    assert "double" not in told["later"][1]
    assert told["left"] == [7, 1]
    assert told["words"] == [
        "You give a green property, worth 4, counts 8",
        "You give a green property, worth 4",
    ]
    assert "A property given as the first card counts double." in told["ordered"]
    assert "double" not in told["plain"]


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
    page.clock.install(time=0)
    page.clock.pause_at(1)  # nothing is shown because its time has come
    page.locator(PLAYABLE).first.click()
    page.click("[data-key=skip]")
    page.wait_for_selector(PLAYABLE)


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
          for (let k = 0; k < 8; k += 1) {
            const configuration = k < 4 ? "deal-medium" : "deal-ordered";
            const { secret, game: begun } = await createGame({
              opponent: { baseline: k % 2 ? "random" : "risk-aware", configuration },
              first: k % 4 < 2 ? "you" : "agent",
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
    assert differences["compared"] > 100
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
    before = table_text(page)
    page.reload()
    page.wait_for_selector(PLAYABLE)
    assert table_text(page) == before
    click_move(page)


def test_a_killed_gateway_loses_nothing(
    page: Page, gateway: Gateway, complaints: Complaints
) -> None:
    complaints.expected = UNREACHABLE
    page.goto("/")
    new_game(page)
    for _ in range(4):
        click_move(page)
    number = game_of(page)["move_number"]
    made = moves_made(page)
    gateway.kill()
    page.locator(PLAYABLE).first.click()  # is sent again until it is answered
    expect(page.locator(".lost")).to_contain_text("Connection to the gateway lost")
    gateway.start()
    expect(page.locator(".lost")).to_have_count(0)
    wait_for_answer(page, made)
    assert game_of(page)["move_number"] > number
    play_to_the_end(page)
    expect(page.locator("#result")).to_be_visible()


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
        number = game_of(page)["move_number"]
        made = moves_made(page)
        page.keyboard.press("Enter")
        wait_for_answer(page, made)
        assert game_of(page)["move_number"] > number
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


def test_an_agent_that_thinks_ahead_says_so_and_values_moves(page: Page) -> None:
    page.goto("/")
    page.click("#new-game")
    page.select_option("#game", "deal")
    page.select_option("#opponent", "run:paper")
    page.check("input[name=style][value=search]")
    page.click("#begin")
    page.wait_for_selector(PLAYABLE)
    assert game_of(page)["search"] == 2000
    expect(page.locator(".page-head .lede")).to_contain_text(
        "thinking ahead (2,000 samples a move)"
    )
    page.click("#tab-advice")
    values = page.locator("#side-body .bars__value")
    expect(values).to_have_count(len(game_of(page)["legal"]))
    assert all(re.fullmatch(r"[+−]?\d\.\d\d", text) for text in values.all_inner_texts())
    expect(page.locator("#side-body .bars__note")).to_have_text(["best"])
    page.click("#tab-history")
    click_move(page, "pass")


def test_a_random_opponent_has_no_advice(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="baseline:random")
    page.click("#tab-advice")
    expect(page.locator("#side-body")).to_contain_text("It has no policy")


def test_a_resigned_game_asks_for_nothing_any_more(page: Page) -> None:
    page.goto("/")
    new_game(page, opponent="run:paper")
    until_owing(page)
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_have_text("You resigned")
    expect(page.locator(f"[data-response], .turn--mine, .table {PLAYABLE}")).to_have_count(0)


def test_on_a_phone_the_result_of_a_resigned_game_comes_into_sight(page: Page) -> None:
    """Also once the agent's hand is shown, which makes the table longer."""
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto("/")
    new_game(page, opponent="run:paper")
    page.locator(".side--own").scroll_into_view_if_needed()
    page.click("#resign")
    page.click("#resign-now")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator(".table")).to_contain_text("The agent's hand is shown above.")
    expect(page.locator("#result")).to_be_in_viewport(ratio=1)
    expect(page.locator("#again")).to_be_in_viewport(ratio=1)
    expect(page.locator("#result")).to_be_focused()


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
