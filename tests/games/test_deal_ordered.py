"""Ordered responses: the order in which cards are given changes the outcome, and only there."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any, Literal

import pytest
from deal_positions import BROWN, GREEN, NO, PINK, moves, play, resolved, see
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.games import queries
from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.cards import WORTH
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import Session
from rejoinder.measure.best_response import exploitability
from rejoinder.methods.exact.full import FullSolver
from rejoinder.methods.exact.tree import build_tree

Definition = Literal["plain", "ordered"]
CARDS = [f"give bank cash {v}" for v in (1, 2, 3, 4)] + [
    f"give property {c}" for c in ("brown", "green", "pink")
]


def charged(
    response: Definition = "ordered",
    *,
    greens: int = 2,
    hand: tuple[str, ...] = (),
    bank: tuple[str, ...] = (),
    properties: tuple[str, ...] = (),
) -> Session:
    """Seat 0 has charged green rent (2, 4 or 7); seat 1 has these piles."""
    session = scenario(
        rules=DealRules(response=response),
        hands=[["rent green", "cash 1"], list(hand)],
        properties=[[GREEN] * greens, list(properties)],
        banks=[[], list(bank)],
        deck=["cash 1"] * 9,
    )
    return play(session, "rent green")


def still_owed(session: Session) -> int:
    response = see(session, 0).response
    return response.owed - response.paid if response else 0


class TestTheRule:
    def test_the_same_cards_in_two_orders(self) -> None:
        """Owed 4: pink, then cash 1 is more than enough; cash 1, then pink is 1 short."""
        at_once = charged(bank=("cash 1",), properties=(PINK, BROWN))
        play(at_once, "give property pink")
        assert see(at_once, 0).response is None
        assert see(at_once, 1).own.bank == {"cash 1": 1}
        assert see(at_once, 1).own.properties == {"brown": 1}

        late = charged(bank=("cash 1",), properties=(PINK, BROWN))
        play(late, "give bank cash 1", "give property pink")
        assert still_owed(late) == 1
        assert moves(late) == {"give property brown"}
        play(late, "give property brown")
        assert see(late, 1).own.bank == see(late, 1).own.properties == {}

    def test_the_same_multiset_ends_the_phase_or_does_not(self) -> None:
        """Owed 7: green first counts 8 alone; brown first 2, then green 4, is 1 short."""
        green_first = charged(greens=3, properties=(GREEN, BROWN))
        assert still_owed(play(green_first, "give property green")) == 0
        brown_first = charged(greens=3, properties=(GREEN, BROWN))
        play(brown_first, "give property brown", "give property green")
        assert still_owed(brown_first) == 1
        assert moves(brown_first) == {"yield"}

    @pytest.mark.parametrize("order", list(itertools.permutations(["brown", "pink"])))
    def test_in_the_papers_game_the_order_does_not_matter(self, order: tuple[str, ...]) -> None:
        session = charged("plain", greens=3, properties=(PINK, BROWN))
        play(session, *(f"give property {colour}" for colour in order))
        assert still_owed(session) == 7 - 3

    def test_a_first_card_from_the_bank_counts_its_worth_even_a_property(self) -> None:
        session = charged(greens=3, bank=(PINK, "cash 3"), properties=(BROWN,))
        assert still_owed(play(session.copy(), "give bank property pink")) == 5
        assert still_owed(play(session.copy(), "give bank cash 3")) == 4
        assert still_owed(play(session.copy(), "give property brown")) == 5

    def test_only_what_is_counted_is_doubled(self) -> None:
        session = play(charged(properties=(PINK,)), "give property pink")
        assert see(session, 0).own.bank == {PINK: 1}
        assert see(session, 0).own.bank_value == 2

    def test_just_say_no_after_it_leaves_what_was_given(self) -> None:
        session = charged(greens=3, hand=(NO,), bank=("cash 3",), properties=(BROWN,))
        play(session, "give property brown", NO)
        assert see(session, 0).own.bank == {BROWN: 1}
        assert see(session, 1).own.bank == {"cash 3": 1}

    def test_the_next_phase_has_its_own_first_card(self) -> None:
        session = scenario(
            rules=DealRules(response="ordered"),
            hands=[["rent green", "rent green"], []],
            properties=[[GREEN], [BROWN, BROWN, PINK]],
            banks=[[], []],
            deck=["cash 1"] * 9,
        )
        play(session, "rent green", "give property brown", "rent green", "give property brown")
        assert see(session, 1).own.properties == {"pink": 1}, "2 was owed and 2 counted, twice"

    def test_who_sees_what(self) -> None:
        session = charged(greens=3, bank=("cash 1",), properties=(BROWN,))
        for player in (0, 1):
            view = see(session, player)
            assert view.response_rule == "ordered"
            assert view.response is not None
            assert view.response.property_doubled
        play(session, "give bank cash 1")
        response = see(session, 1).response
        assert response is not None
        assert not response.property_doubled
        plain = see(charged("plain", properties=(BROWN,)), 1)
        assert plain.response_rule == "plain"
        assert plain.response is not None
        assert not plain.response.property_doubled


@st.composite
def responses(draw: st.DrawFn) -> tuple[int, list[str], list[str]]:
    """Green properties of the initiator, gifts that leave a debt, and another order of them."""
    greens = draw(st.integers(1, 3))
    owed = {1: 2, 2: 4, 3: 7}[greens]
    gifts = draw(st.lists(st.sampled_from(CARDS), min_size=1, max_size=4))
    while _worth(gifts) >= owed:
        gifts.pop()
    return greens, gifts, draw(st.permutations(gifts))


def _worth(gifts: list[str]) -> int:
    names = [gift.removeprefix("give bank ").removeprefix("give ") for gift in gifts]
    return sum(int(WORTH[GAME.outcomes.index(name)]) for name in names)


def _able(response: Definition, greens: int, gifts: list[str]) -> Session:
    """A charge to somebody who has just these cards, and one more green property to end it."""
    bank = tuple(g.removeprefix("give bank ") for g in gifts if "bank" in g)
    owned = tuple(g.removeprefix("give ") for g in gifts if "bank" not in g)
    return charged(response, greens=greens, bank=bank, properties=(*owned, GREEN, GREEN))


@given(responses())
@settings(max_examples=150)
def test_any_order_of_the_same_gifts_leads_to_one_state_in_the_papers_game(
    case: tuple[int, list[str], list[str]],
) -> None:
    """As long as only the last card completes the payment; the order is remembered till then."""
    greens, gifts, shuffled = case
    after = [play(_able("plain", greens, gifts), *order) for order in (gifts, shuffled)]
    assert still_owed(after[0]) == still_owed(after[1]) > 0
    for session in after:
        while still_owed(session):
            session.apply("give property green")
    assert after[0].states == after[1].states


@given(responses())
@settings(max_examples=150)
def test_what_is_owed_follows_from_the_first_card_alone(
    case: tuple[int, list[str], list[str]],
) -> None:
    greens, _, gifts = case
    session = _able("ordered", greens, gifts)
    owed, counted = still_owed(session), 0
    for place, gift in enumerate(gifts):
        doubled = place == 0 and gift.startswith("give property ")
        counted += _worth([gift]) * (2 if doubled else 1)
        play(session, gift)
        assert still_owed(session) == max(0, owed - counted)
        if counted >= owed:
            break


class TestTheBestResponse:
    """Seat 1 wins with his second brown next turn, if he still has the first one."""

    def position(self, response: Definition) -> Session:
        session = scenario(
            rules=DealRules(
                sets_needed=1, streak=1, hand_size=1, draw=0, turn_cap=10, response=response
            ),
            hands=[["rent green", "cash 1"], [BROWN]],
            properties=[[GREEN, GREEN], [BROWN, PINK]],
        )
        return play(session, "rent green")

    def best(self, session: Session) -> tuple[float, set[str]]:
        """What seat 1 gets with best play of both (nothing is hidden that matters), and how."""
        if session.over:
            assert session.utilities is not None
            return session.utilities[1], set()
        value: dict[str, float] = {}
        for move in session.legal():
            value[move.name] = self.best(play(session.copy(), move.name))[0]
        best = (max if session.to_move == 1 else min)(value.values())
        return best, {name for name, v in value.items() if v == best}

    def test_it_depends_on_the_order(self) -> None:
        assert self.best(self.position("plain")) == (
            0.0,
            {"give property brown", "give property pink"},
        )
        assert self.best(self.position("ordered")) == (1.0, {"give property pink"})


@pytest.mark.slow
def test_order_changes_the_value_of_a_small_game() -> None:
    """Exactly: `micro-plain` is worth more to whoever begins than `micro-ordered`."""
    first_begins = dataclasses.replace(GAME, starts=1)
    value = {}
    for name in ("micro-plain", "micro-ordered"):
        tree = build_tree(first_begins, GAME.configurations[name])
        solver = FullSolver(tree, "dcfr")
        solver.run(60)
        found = exploitability(tree, solver.average_strategy())
        assert found.exploitability < 1e-4
        value[name] = found.value
    assert value["micro-plain"] == pytest.approx(12 / 35, abs=1e-3)
    assert value["micro-ordered"] == pytest.approx(9 / 35, abs=1e-3)


class TestWhatAnAgentIsTold:
    def told(self, session: Session, name: str) -> dict[str, Any]:
        abstraction = GAME.abstraction(name)
        return abstraction.description(queries.infoset_key(session.states, abstraction.number))

    @pytest.mark.parametrize("name", ["intent", "progress", "race"])
    def test_whether_a_property_counts_double(self, name: str) -> None:
        session = charged(greens=3, bank=("cash 1",), properties=(BROWN, PINK))
        assert self.told(session, name)["property_doubled"] is True
        assert self.told(session, name)["bank_covers"] is False
        rich = charged(greens=3, bank=("cash 3", "cash 4"), properties=(BROWN,))
        assert self.told(rich, name)["bank_covers"] is True
        play(session, "give bank cash 1")
        assert "property_doubled" not in self.told(session, name)
        no_property = charged(greens=3, bank=("cash 1",))
        assert "property_doubled" not in self.told(no_property, name)

    def test_with_race_the_offer_and_what_is_left_of_it_are_two_information_sets(self) -> None:
        """Owed 4 or 3, which is one bucket, and nothing else that differs."""
        race = GAME.abstraction("race")
        expected: dict[Definition, int] = {"ordered": 2, "plain": 1}
        for response, information_sets in expected.items():
            session = charged(response, bank=("cash 1", "cash 1"), properties=(PINK,))
            first = int(queries.infoset_key(session.states, race.number))
            play(session, "give bank cash 1")
            later = int(queries.infoset_key(session.states, race.number))
            assert len({first, later}) == information_sets
            assert len({race.identifier(key) for key in (first, later)}) == information_sets
            assert ("property_doubled" in race.description(first)) == (response == "ordered")
            assert "property_doubled" not in race.description(later)
            assert race.description(first)["due"] == race.description(later)["due"] == "3 or 4"

    @pytest.mark.parametrize(
        ("greens", "response", "property_given"),
        [(1, "ordered", "brown"), (2, "ordered", "pink"), (3, "ordered", "green")]
        + [(n, "plain", "brown") for n in (1, 2, 3)],
    )
    def test_the_property_that_settles_at_least_loss_is_given(
        self, greens: int, response: Definition, property_given: str
    ) -> None:
        session = charged(response, greens=greens, properties=(BROWN, PINK, GREEN))
        assert resolved(session, "GIVE_OPPONENT_PROPERTY") == f"give property {property_given}"

    def test_if_none_settles_it_the_property_worth_least_is_given(self) -> None:
        session = charged(greens=3, properties=(PINK, BROWN))
        assert resolved(session, "GIVE_OPPONENT_PROPERTY") == "give property brown"

    def test_what_is_still_owed(self) -> None:
        session = charged(greens=3, bank=("cash 1",), properties=(BROWN, PINK))
        play(session, "give property pink")
        assert self.told(session, "progress")["to_pay"] == 3

    @pytest.mark.parametrize("name", ["intent", "progress", "race"])
    def test_the_papers_information_sets_keep_their_names(self, name: str) -> None:
        abstraction = GAME.abstraction(name)
        keys = []
        for response in ("plain", "ordered"):
            session = charged(response, bank=("cash 1",), properties=(BROWN,))
            keys.append(int(queries.infoset_key(session.states, abstraction.number)))
        assert keys[0] != keys[1]
        assert len({abstraction.identifier(key) for key in keys}) == 2
        assert "property_doubled" not in abstraction.description(keys[0])
        main = [
            scenario(rules=DealRules(response=r), hands=[[BROWN, "cash 1"], []], deck=["cash 1"])
            for r in ("plain", "ordered")
        ]
        numbers = {int(queries.infoset_key(s.states, abstraction.number)) for s in main}
        assert len(numbers) == 1, "outside response phases nothing differs"


class TestSavedGames:
    def test_one_from_before_there_was_a_choice_goes_on(self) -> None:
        """Neither its rules nor its state has the field."""
        session = play(Session.start("deal-medium", seed=4), "pass")
        saved = json.loads(session.to_json())
        del saved["rules"]["response"], saved["state"]["response"]
        again = Session.from_json(json.dumps(saved))
        assert again.to_json() == session.to_json()

    def test_an_ordered_one_keeps_its_rule(self) -> None:
        session = charged(greens=3, properties=(PINK, BROWN))
        again = Session.from_json(session.to_json())
        assert still_owed(play(again, "give property pink")) == 3

    def test_a_state_of_other_rules_is_refused(self) -> None:
        session = Session.start("deal-ordered", seed=1)
        plain = GAME.configurations["medium"]
        assert GAME.check(session.states, session.rules) is None
        assert GAME.check(session.states, plain) == "response: the rules say 0, not 1"

    def test_a_payment_is_checked_by_its_order(self) -> None:
        """In a game from its beginning, where a property was given first and more is owed."""
        session = self.half_paid()
        response = see(session, 0).response
        assert response is not None
        worth = _worth(response.responses)
        assert response.paid == 2 * worth
        assert GAME.check(session.states, session.rules) is None
        wrong = session.states.copy()
        wrong[0]["paid"] = worth
        problem = GAME.check(wrong, session.rules)
        assert problem is not None
        assert problem.startswith("paid: ")

    def half_paid(self) -> Session:
        for index in range(50):
            session = Session.start("deal-ordered", seed=1, index=index)
            while not session.over:
                legal = [move.name for move in session.legal()]
                wanted = [n for n in legal if n.startswith(("give property", "rent", "property"))]
                session.apply((wanted or legal)[0])
                response = see(session, 0).response
                if response and response.responses and "bank" not in response.responses[0]:
                    return session
        raise AssertionError("no such game")
