"""Every rule of Monopoly Deal, by hand: a position, a few moves, what must then be true."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from pydantic import ValidationError

from rejoinder import rng
from rejoinder.games import queries
from rejoinder.games.contract import CHANCE
from rejoinder.games.deal import GAME, DealRules, DealView
from rejoinder.games.deal.abstraction import INTENT, PROGRESS
from rejoinder.games.deal.cards import ABSTRACT_NAMES
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import IllegalMove, Session

BROWN, GREEN, PINK = "property brown", "property green", "property pink"
NO = "just say no"


def see(session: Session, player: int) -> DealView:
    return cast(DealView, session.view(player))


def moves(session: Session) -> set[str]:
    return {move.name for move in session.legal()}


def intents(session: Session, abstraction: str = "intent") -> list[str]:
    return [action.name for action in session.legal_abstract(abstraction)]


def resolved(session: Session, intent: str) -> str:
    return {a.name: a.move_name for a in session.legal_abstract("intent")}[intent]


def play(session: Session, *names: str) -> Session:
    for name in names:
        session.apply(name)
    return session


class TestCards:
    def test_the_papers_deck(self) -> None:
        deck = GAME.template(DealRules())[0]["deck"]
        named = {name: int(n) for name, n in zip(GAME.outcomes, deck, strict=True) if n}
        assert named == {
            **dict.fromkeys([BROWN, GREEN, PINK, "cash 1", "cash 3"], 10),
            **dict.fromkeys(["rent brown", "rent green", "rent pink"], 10),
            NO: 3,
        }
        assert DealRules().cards == sum(named.values()) == 83

    @pytest.mark.parametrize(
        ("card", "worth"),
        [(BROWN, 1), (GREEN, 4), (PINK, 2)] + [(f"cash {v}", v) for v in (1, 2, 3, 4)],
    )
    def test_worth(self, card: str, worth: int) -> None:
        session = scenario(banks=[[card], []], hands=[["cash 1"], []])
        assert see(session, 0).own.bank_value == worth

    @pytest.mark.parametrize(
        ("colour", "owned", "amount"),
        [
            *(("brown", n, amount) for n, amount in enumerate([1, 2, 2, 2], start=1)),
            *(("green", n, amount) for n, amount in enumerate([2, 4, 7, 7, 7], start=1)),
            *(("pink", n, amount) for n, amount in enumerate([1, 2, 4, 4, 4], start=1)),
        ],
    )
    def test_rent_follows_the_progression_up_to_the_set(
        self, colour: str, owned: int, amount: int
    ) -> None:
        session = scenario(
            hands=[[f"rent {colour}"], []], properties=[[f"property {colour}"] * owned, []]
        )
        session.apply(f"rent {colour}")
        response = see(session, 1).response
        assert response is not None
        assert response.owed == amount

    @pytest.mark.parametrize(("colour", "size"), [("brown", 2), ("green", 3), ("pink", 3)])
    def test_set_sizes(self, colour: str, size: int) -> None:
        session = scenario(
            rules=DealRules(sets_needed=1, streak=3), hands=[[f"property {colour}"] * 3, []]
        )
        for played in range(1, size + 1):
            assert not session.over
            session.apply(f"property {colour}")
            assert session.over == (played == size)


class TestConfigurations:
    def test_medium_is_the_default_and_the_papers(self) -> None:
        assert next(iter(GAME.configurations)) == "medium"
        assert GAME.configurations["medium"] == DealRules()
        rules = DealRules()
        assert (rules.sets_needed, rules.hand_size, rules.draw) == (2, 5, 2)
        assert (rules.streak, rules.turn_cap) == (2, 250)

    def test_small_and_large_differ_in_the_sets_needed(self) -> None:
        assert GAME.configurations["small"] == DealRules(sets_needed=1)
        assert GAME.configurations["large"] == DealRules(sets_needed=3)

    def test_tiny_has_no_rent(self) -> None:
        assert GAME.configurations["tiny"] == DealRules(
            property_copies=(5, 5, 5),
            cash_copies=(5, 0, 0, 0),
            rent_copies=(0, 0, 0),
            just_say_no=0,
            sets_needed=1,
            hand_size=3,
            draw=1,
            streak=1,
        )

    def test_micro_has_everything_and_can_be_enumerated(self) -> None:
        rules = cast(DealRules, GAME.configurations["micro"])
        assert sum(rules.rent_copies) > 0
        assert rules.just_say_no > 0
        assert sum(rules.cash_copies) > 0
        assert rules.cards <= 10
        assert "micro" in GAME.enumerable

    def test_the_document_tells_the_same(self) -> None:
        """docs/rules.md has a row for every named configuration, with its very numbers."""
        text = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
        head = f"| name | {' | '.join(DealRules.model_fields)} |"
        table = text[text.index(head) :].split("\n\n")[0].splitlines()[2:]
        assert table == [
            f"| {name} | {' | '.join(str(v).strip('()') for v in dict(rules).values())} |"
            for name, rules in GAME.configurations.items()
        ]

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"sets_needed": 4}, "sets_needed"),
            ({"sets_needed": 0}, "sets_needed"),
            ({"sets_needed": 2, "property_copies": (10, 2, 2)}, "sets_needed"),
            ({"sets_needed": 1, "property_copies": (1, 2, 2)}, "sets_needed"),
            ({"hand_size": 42}, "hand_size"),
            ({"hand_size": 0}, "hand_size"),
            ({"hand_size": 1000}, "hand_size"),
            ({"property_copies": (-1, 10, 10)}, "property_copies"),
            ({"property_copies": (10, 10)}, "property_copies"),
            ({"property_copies": (101, 10, 10)}, "property_copies"),
            ({"cash_copies": (1, 1, 1, -1)}, "cash_copies"),
            ({"cash_copies": (1, 1, 1, 1, 1)}, "cash_copies"),
            ({"rent_copies": (1, -1, 1)}, "rent_copies"),
            ({"just_say_no": -1}, "just_say_no"),
            ({"draw": -1}, "draw"),
            ({"streak": 0}, "streak"),
            ({"streak": 16}, "streak"),
            ({"turn_cap": 0}, "turn_cap"),
            ({"sets_neded": 2}, "sets_neded"),
            ({"draw": "two"}, "draw"),
        ],
    )
    def test_what_cannot_be_played_is_refused_by_name(
        self, changes: dict[str, object], field: str
    ) -> None:
        with pytest.raises(ValidationError, match=field):
            DealRules.model_validate(changes)

    def test_the_largest_hand_that_can_be_dealt(self) -> None:
        session = Session.start(GAME, DealRules(hand_size=41), seed=1)
        assert see(session, 0).own.hand_size == 42, "one card was left to draw"
        assert see(session, 1).own.hand_size == 41
        assert see(session, 0).deck_size == 0


class TestDrawing:
    DECK = (
        *("cash 1", "cash 1", "cash 1", "cash 1", "cash 1"),
        *("cash 3", "cash 3", "cash 3", "cash 3", "cash 3"),
        *("rent pink", "rent green"),
    )

    @pytest.mark.parametrize("first", [0, 1])
    def test_five_cards_each_then_two_for_whoever_begins(self, first: int) -> None:
        session = Session.start(GAME, DealRules(), seed=1, first_player=first, deck=self.DECK)
        hands = [{"cash 1": 5}, {"cash 3": 5}]
        hands[first] |= {"rent pink": 1, "rent green": 1}
        assert [see(session, seat).hand for seat in (0, 1)] == hands
        assert session.to_move == first
        assert see(session, 0).deck_size == 83 - 12
        assert see(session, 0).turn == 0

    def test_two_cards_at_the_start_of_a_streak(self) -> None:
        session = scenario(hands=[["cash 1"], ["cash 1"]], deck=["cash 3", NO, "cash 4"])
        play(session, "pass")
        assert session.to_move == 1
        assert see(session, 1).hand == {"cash 1": 1, "cash 3": 1, NO: 1}
        assert see(session, 0).hand == {"cash 1": 1}

    def test_nothing_is_drawn_within_a_streak(self) -> None:
        session = scenario(hands=[["cash 1"], []], deck=["cash 3"] * 9)
        play(session, "cash 1")
        assert session.to_move == 0
        assert see(session, 0).hand == {}
        assert moves(session) == {"pass"}

    def test_five_cards_for_an_empty_hand(self) -> None:
        session = scenario(hands=[["cash 1"], []], deck=["cash 3"] * 9)
        play(session, "pass")
        assert see(session, 1).hand == {"cash 3": 5}

    def test_the_number_of_cards_is_the_rules(self) -> None:
        rules = DealRules(hand_size=4, draw=3)
        session = scenario(rules=rules, hands=[["cash 1"], []], deck=["cash 3"] * 9)
        play(session, "pass")
        assert see(session, 1).own.hand_size == 4
        play(session, "pass")
        assert see(session, 0).own.hand_size == 1 + 3

    @pytest.mark.parametrize(("hand", "left"), [(["cash 1"], 1), ([], 3)])
    def test_a_short_deck_gives_what_is_left(self, hand: list[str], left: int) -> None:
        session = scenario(hands=[["cash 1"], hand], deck=["cash 3"] * left)
        play(session, "pass")
        assert see(session, 1).own.hand_size == len(hand) + left
        assert see(session, 1).deck_size == 0
        assert session.to_move == 1

    def test_an_empty_deck_gives_nothing(self) -> None:
        session = scenario(hands=[["cash 1"], []])
        play(session, "pass")
        assert session.to_move == 1
        assert see(session, 1).hand == {}
        assert moves(session) == {"pass"}

    def test_draw_of_nothing(self) -> None:
        rules = DealRules(draw=0)
        session = scenario(rules=rules, hands=[["cash 1"], ["cash 1"]], deck=["cash 3"] * 9)
        play(session, "pass")
        assert see(session, 1).hand == {"cash 1": 1}


class TestStreaks:
    @pytest.mark.parametrize("streak", [1, 2, 3])
    def test_a_streak_has_at_most_so_many_turns(self, streak: int) -> None:
        session = scenario(
            rules=DealRules(streak=streak), hands=[["cash 1"] * 5, ["cash 1"]], deck=["cash 3"] * 9
        )
        for turn in range(streak):
            assert session.to_move == 0
            assert see(session, 0).streak_index == turn
            session.apply("cash 1")
            assert see(session, 0).turn == turn + 1
        assert session.to_move == 1
        assert see(session, 1).streak_player == 1
        assert see(session, 1).streak_index == 0

    def test_passing_ends_it(self) -> None:
        session = scenario(hands=[["cash 1"] * 5, ["cash 1"]], deck=["cash 3"] * 9)
        play(session, "pass")
        assert session.to_move == 1
        assert see(session, 0).turn == 1, "a pass is a turn"

    def test_a_turn_with_its_response_phase_is_one_turn(self) -> None:
        session = scenario(
            hands=[["rent green", "cash 1"], []],
            properties=[[GREEN, GREEN], []],
            banks=[[], ["cash 1"] * 4],
            deck=["cash 3"] * 9,
        )
        play(session, "rent green", *["give bank cash 1"] * 3)
        assert see(session, 0).turn == 0
        play(session, "give bank cash 1")
        assert see(session, 0).turn == 1
        assert session.to_move == 0, "the streak goes on"
        assert see(session, 0).streak_index == 1

    def test_a_response_phase_may_end_the_streak(self) -> None:
        session = scenario(
            hands=[["rent green", "cash 1"], []],
            properties=[[GREEN], []],
            streak_index=1,
            deck=["cash 3"] * 9,
        )
        play(session, "rent green", "yield")
        assert session.to_move == 1
        assert see(session, 1).streak_index == 0
        assert see(session, 1).own.hand_size == 5, "and the next player has drawn"


class TestMainActions:
    def test_every_card_but_just_say_no_can_be_played(self) -> None:
        hand = [BROWN, "cash 4", "cash 4", "rent pink", NO]
        session = scenario(hands=[hand, []], deck=["cash 1"])
        assert moves(session) == {BROWN, "cash 4", "rent pink", "pass"}
        with pytest.raises(IllegalMove, match=NO):
            session.apply(NO)

    def test_a_property_goes_to_ones_properties(self) -> None:
        session = play(scenario(hands=[[PINK, "cash 1"], []], deck=["cash 1"]), PINK)
        own = see(session, 0).own
        assert (own.properties, own.bank, own.hand_size) == ({"pink": 1}, {}, 1)

    def test_cash_goes_to_ones_bank(self) -> None:
        session = play(scenario(hands=[["cash 3", "cash 1"], []], deck=["cash 1"]), "cash 3")
        own = see(session, 0).own
        assert (own.properties, own.bank, own.bank_value) == ({}, {"cash 3": 1}, 3)

    def test_a_surplus_property_stays_a_property_and_only_pays(self) -> None:
        session = scenario(
            hands=[[BROWN], ["rent pink"]],
            properties=[[BROWN, BROWN], [PINK, PINK]],
            deck=["cash 1"] * 5,
        )
        play(session, BROWN)
        assert not session.over, "three browns are one set"
        own = see(session, 0).own
        assert (own.properties, own.complete_sets, own.bank) == ({"brown": 3}, ["brown"], {})
        play(session, "pass", "rent pink", "give property brown")
        own = see(session, 0).own
        assert (own.properties, own.complete_sets) == ({"brown": 2}, ["brown"])

    def test_a_rent_card_is_discarded(self) -> None:
        session = scenario(hands=[["rent pink"], []], properties=[[PINK], []], deck=["cash 1"])
        play(session, "rent pink")
        assert see(session, 0).discard == {"rent pink": 1}
        assert see(session, 0).own.hand_size == 0

    def test_rent_of_nothing_is_only_discarded(self) -> None:
        session = scenario(
            hands=[["rent green", "cash 1"], [NO]],
            properties=[[PINK], [GREEN]],
            banks=[[], ["cash 3"]],
            deck=["cash 1"],
        )
        play(session, "rent green")
        assert see(session, 0).discard == {"rent green": 1}
        assert see(session, 0).response is None
        assert session.to_move == 0
        assert see(session, 0).turn == 1
        assert see(session, 1).own.bank == {"cash 3": 1}


class TestResponsePhase:
    def charged(
        self,
        amount: int = 4,
        *,
        hand: tuple[str, ...] = (),
        streak_index: int = 0,
        **piles: list[str],
    ) -> Session:
        """Seat 0 has charged green rent; seat 1 has these piles."""
        owned = {2: 1, 4: 2, 7: 3}[amount]
        session = scenario(
            hands=[["rent green", "cash 1"], list(hand)],
            properties=[[GREEN] * owned, piles.get("properties", [])],
            banks=[["cash 2"], piles.get("bank", [])],
            deck=["cash 1"] * 9,
            streak_index=streak_index,
        )
        return play(session, "rent green")

    def test_only_the_opponent_acts_with_bank_properties_and_just_say_no(self) -> None:
        session = self.charged(
            hand=(NO, "cash 4", PINK), bank=["cash 1", GREEN], properties=[BROWN]
        )
        assert session.to_move == 1
        assert moves(session) == {
            "give bank cash 1",
            "give bank property green",
            "give property brown",
            NO,
        }, "the hand's own money cannot be given, nor can he yield"

    def test_it_ends_when_the_amount_is_reached_exactly(self) -> None:
        session = self.charged(bank=["cash 3", "cash 1", "cash 1"])
        play(session, "give bank cash 1", "give bank cash 3")
        assert see(session, 0).response is None
        assert see(session, 0).own.bank == {"cash 2": 1, "cash 1": 1, "cash 3": 1}
        assert see(session, 1).own.bank == {"cash 1": 1}
        assert session.to_move == 0

    def test_one_short_is_not_enough(self) -> None:
        session = play(self.charged(bank=["cash 3", "cash 1"]), "give bank cash 3")
        response = see(session, 1).response
        assert response is not None
        assert (response.owed, response.paid) == (4, 3)
        assert session.to_move == 1

    def test_no_change_is_given(self) -> None:
        session = self.charged(2, bank=["cash 4", "cash 1"])
        play(session, "give bank cash 4")
        assert see(session, 0).response is None
        assert see(session, 0).own.bank_value == 2 + 4
        assert see(session, 1).own.bank == {"cash 1": 1}

    def test_given_properties_become_money(self) -> None:
        session = self.charged(properties=[GREEN, PINK])
        play(session, "give property green")
        own = see(session, 0).own
        assert own.bank == {"cash 2": 1, GREEN: 1}
        assert own.bank_value == 2 + 4
        assert own.properties == {"green": 2}, "not to the initiator's properties"
        assert see(session, 1).own.properties == {"pink": 1}

    def test_a_banked_property_can_be_given_again_as_money(self) -> None:
        session = self.charged(bank=[GREEN])
        play(session, "give bank property green")
        assert see(session, 0).own.bank == {"cash 2": 1, GREEN: 1}
        assert see(session, 1).own.bank == {}

    def test_giving_from_a_complete_set_breaks_it(self) -> None:
        session = self.charged(properties=[PINK, PINK, PINK])
        assert see(session, 1).own.complete_sets == ["pink"]
        play(session, "give property pink")
        assert see(session, 1).own.complete_sets == []

    def test_just_say_no_ends_it_at_once(self) -> None:
        session = self.charged(hand=(NO, NO), bank=["cash 4"])
        play(session, NO)
        assert see(session, 0).response is None
        assert see(session, 1).own.bank == {"cash 4": 1}
        assert see(session, 1).hand == {NO: 1}
        assert see(session, 0).discard == {"rent green": 1, NO: 1}
        assert session.to_move == 0
        assert see(session, 0).turn == 1

    def test_just_say_no_midway_leaves_what_was_given(self) -> None:
        session = self.charged(7, hand=(NO,), bank=["cash 3", "cash 4"], properties=[BROWN])
        play(session, "give bank cash 3", "give property brown", NO)
        assert see(session, 0).response is None
        assert see(session, 0).own.bank == {"cash 2": 1, "cash 3": 1, BROWN: 1}
        assert see(session, 1).own.bank == {"cash 4": 1}
        assert see(session, 1).own.properties == {}

    def test_with_only_just_say_no_he_must_say_it(self) -> None:
        assert moves(self.charged(hand=(NO,))) == {NO}

    def test_with_nothing_he_yields(self) -> None:
        session = self.charged(hand=("cash 4", GREEN))
        assert moves(session) == {"yield"}
        play(session, "yield")
        assert see(session, 0).response is None
        assert session.to_move == 0
        assert see(session, 1).own.hand_size == 2

    def test_when_all_is_given_and_it_is_not_enough_he_yields(self) -> None:
        session = self.charged(7, bank=["cash 1"], properties=[PINK])
        play(session, "give bank cash 1", "give property pink")
        assert moves(session) == {"yield"}
        play(session, "yield")
        assert see(session, 0).own.bank == {"cash 2": 1, "cash 1": 1, PINK: 1}
        assert session.to_move == 0

    def test_yield_is_no_main_action(self) -> None:
        with pytest.raises(IllegalMove, match="yield"):
            scenario(hands=[["cash 1"], []], deck=["cash 1"]).apply("yield")

    def test_pass_is_no_response(self) -> None:
        with pytest.raises(IllegalMove, match="pass"):
            self.charged(bank=["cash 1"]).apply("pass")

    def test_the_longest_phase(self) -> None:
        session = self.charged(7, hand=(NO,), bank=["cash 1"] * 9)
        play(session, *["give bank cash 1"] * 6)
        response = see(session, 0).response
        assert response is not None
        assert response.responses == ["give bank cash 1"] * 6
        play(session.copy(), NO)
        play(session, "give bank cash 1")
        assert see(session, 0).own.bank == {"cash 2": 1, "cash 1": 7}

    def test_the_next_phase_starts_from_nothing(self) -> None:
        session = scenario(
            hands=[["rent green", "rent green"], []],
            properties=[[GREEN], []],
            banks=[[], ["cash 4", "cash 1", "cash 1"]],
            deck=["cash 1"] * 9,
        )
        play(session, "rent green", "give bank cash 4", "rent green", "give bank cash 1")
        response = see(session, 1).response
        assert response is not None
        assert (response.owed, response.paid) == (2, 1)
        assert response.responses == ["give bank cash 1"]

    def test_the_context_of_a_response(self) -> None:
        session = self.charged(7, bank=["cash 1"], properties=[PINK, BROWN])
        before = see(session, 1).response
        assert before is not None
        play(session, "give bank cash 1", "give property pink")
        for player in (0, 1):
            view = see(session, player)
            response = view.response
            assert response is not None
            assert (response.initiator, response.responder) == (0, 1)
            assert response.action == "rent green"
            assert (response.owed, response.paid) == (7, 3)
            assert response.responses == ["give bank cash 1", "give property pink"]
            assert response.initiator_before.bank == {"cash 2": 1}
            assert response.initiator_before.bank_value == 2
            assert response.initiator_before.properties == {"green": 3}
            assert response.initiator_before.hand_size == 2
            assert response.initiator_before == before.initiator_before
            assert view.to_move == 1


class TestEnd:
    def test_the_moment_the_sets_are_complete(self) -> None:
        session = scenario(
            hands=[[GREEN, "cash 1"], ["cash 1"]],
            properties=[[BROWN, BROWN, GREEN, GREEN], []],
            deck=["cash 1"] * 5,
        )
        play(session, GREEN)
        assert session.over, "in the middle of the streak"
        assert session.to_move is None
        assert session.winner == 0
        assert session.utilities == (1.0, -1.0)
        assert see(session, 1).winner == 0
        assert see(session, 1).turn == 1
        with pytest.raises(IllegalMove, match="over"):
            session.apply("pass")

    def test_the_other_seat_can_win_too(self) -> None:
        session = scenario(
            hands=[[], [BROWN]],
            properties=[[], [BROWN, PINK, PINK, PINK]],
            to_move=1,
            deck=["cash 1"],
        )
        play(session, BROWN)
        assert session.winner == 1
        assert session.utilities == (-1.0, 1.0)

    def test_a_colour_counts_once(self) -> None:
        session = scenario(hands=[[GREEN], []], properties=[[GREEN] * 5, []], deck=["cash 1"] * 5)
        play(session, GREEN)
        assert not session.over
        assert see(session, 0).own.complete_sets == ["green"]

    def test_banked_properties_do_not_count(self) -> None:
        session = scenario(
            hands=[["rent pink"], []],
            properties=[[PINK, PINK, PINK, GREEN, GREEN], [GREEN]],
            deck=["cash 1"] * 5,
        )
        play(session, "rent pink", "give property green")
        assert not session.over
        assert see(session, 0).own.properties == {"green": 2, "pink": 3}

    def test_a_lost_set_must_be_completed_again(self) -> None:
        session = scenario(
            hands=[["rent brown"], [PINK]],
            properties=[[BROWN], [BROWN, BROWN, PINK, PINK]],
            deck=["cash 1"] * 9,
        )
        play(session, "rent brown", "give property brown", "pass", PINK)
        assert not session.over
        assert see(session, 1).own.complete_sets == ["pink"]

    def test_deck_and_hands_empty_is_a_draw(self) -> None:
        session = scenario(hands=[["cash 1"], []])
        play(session, "cash 1")
        assert session.over
        assert session.winner is None
        assert session.utilities == (0.0, 0.0)
        assert see(session, 0).winner is None

    @pytest.mark.parametrize(
        "left",
        [
            {"deck": ["cash 1"]},
            {"hands": [["cash 1"], ["cash 1"]]},
            {"hands": [["cash 1", NO], []]},
        ],
    )
    def test_not_while_a_card_is_left(self, left: dict[str, object]) -> None:
        session = scenario(**{"hands": [["cash 1"], []], **left})  # type: ignore[arg-type]
        play(session, "cash 1")
        assert not session.over

    def test_the_last_card_can_win(self) -> None:
        session = scenario(
            rules=DealRules(sets_needed=1), hands=[[BROWN], []], properties=[[BROWN], []]
        )
        play(session, BROWN)
        assert session.winner == 0

    def test_the_draw_is_seen_after_the_response_phase(self) -> None:
        session = scenario(
            hands=[["rent pink"], [NO]], properties=[[PINK], []], banks=[[], ["cash 1"]]
        )
        play(session, "rent pink")
        assert not session.over
        play(session, NO)
        assert session.over
        assert session.winner is None

    def test_the_turn_cap_is_a_draw(self) -> None:
        session = scenario(hands=[["cash 1"], ["cash 1"]], turn=248, deck=["cash 1"] * 9)
        play(session, "pass")
        assert not session.over
        play(session, "pass")
        assert session.over
        assert see(session, 0).turn == 250
        assert session.utilities == (0.0, 0.0)

    def test_a_win_in_the_last_turn_is_a_win(self) -> None:
        session = scenario(
            rules=DealRules(sets_needed=1),
            hands=[[BROWN], []],
            properties=[[BROWN], []],
            turn=249,
            deck=["cash 1"],
        )
        play(session, BROWN)
        assert session.winner == 0

    def test_the_response_phase_of_the_last_turn_is_played(self) -> None:
        session = scenario(
            hands=[["rent pink"], []],
            properties=[[PINK], []],
            banks=[[], ["cash 1"]],
            turn=249,
            deck=["cash 1"],
        )
        play(session, "rent pink")
        assert session.to_move == 1
        play(session, "give bank cash 1")
        assert session.over
        assert see(session, 0).own.bank == {"cash 1": 1}


class TestAbstraction:
    def test_names_in_the_papers_order(self) -> None:
        expected = (
            "START_NEW_PROPERTY_SET ADD_TO_PROPERTY_SET COMPLETE_PROPERTY_SET CASH "
            "ATTEMPT_COLLECT_RENT JUST_SAY_NO GIVE_OPPONENT_CASH GIVE_OPPONENT_PROPERTY "
            "PASS YIELD OTHER"
        )
        assert tuple(expected.split()) == ABSTRACT_NAMES
        assert GAME.abstraction("intent").actions == ABSTRACT_NAMES
        assert GAME.abstraction("progress").actions == ABSTRACT_NAMES

    @pytest.mark.parametrize(
        ("card", "owned", "intent"),
        [
            (BROWN, [], "START_NEW_PROPERTY_SET"),
            (BROWN, [BROWN], "COMPLETE_PROPERTY_SET"),
            (BROWN, [BROWN] * 2, "CASH"),
            (GREEN, [BROWN], "START_NEW_PROPERTY_SET"),
            (GREEN, [GREEN], "ADD_TO_PROPERTY_SET"),
            (GREEN, [GREEN] * 2, "COMPLETE_PROPERTY_SET"),
            (GREEN, [GREEN] * 3, "CASH"),
            (GREEN, [GREEN] * 4, "CASH"),
            (PINK, [PINK], "ADD_TO_PROPERTY_SET"),
            ("cash 2", [], "CASH"),
            ("rent pink", [PINK], "ATTEMPT_COLLECT_RENT"),
            ("rent pink", [GREEN], "OTHER"),
            ("pass", [], "PASS"),
        ],
    )
    def test_what_a_main_action_counts_as(self, card: str, owned: list[str], intent: str) -> None:
        hand = ["cash 1"] if card == "pass" else [card]
        session = scenario(hands=[hand, []], properties=[owned, []], deck=["cash 1"])
        meanings = {move.name: move.meanings for move in session.legal()}
        assert meanings[card] == {"intent": intent, "progress": intent}
        assert intent in intents(session)
        assert intents(session) == intents(session, "progress")

    def test_what_a_response_counts_as(self) -> None:
        session = scenario(
            hands=[["rent pink"], [NO]],
            properties=[[PINK], [GREEN]],
            banks=[[], ["cash 2", BROWN]],
            deck=["cash 1"],
        )
        play(session, "rent pink")
        assert {move.name: move.meanings["intent"] for move in session.legal()} == {
            NO: "JUST_SAY_NO",
            "give bank cash 2": "GIVE_OPPONENT_CASH",
            "give bank property brown": "GIVE_OPPONENT_CASH",
            "give property green": "GIVE_OPPONENT_PROPERTY",
        }
        assert intents(session) == ["JUST_SAY_NO", "GIVE_OPPONENT_CASH", "GIVE_OPPONENT_PROPERTY"]

    def test_yield(self) -> None:
        session = scenario(hands=[["rent pink"], []], properties=[[PINK], []], deck=["cash 1"])
        assert intents(play(session, "rent pink")) == ["YIELD"]

    def test_the_intent_infoset_is_actions_streak_and_player(self) -> None:
        hand = [GREEN, "rent pink", "cash 1"]
        session = scenario(hands=[[], hand], to_move=1, streak_index=1, deck=["cash 1"])
        told = GAME.abstraction("intent").describe(queries.infoset_key(session.states, INTENT))
        names = [ABSTRACT_NAMES[a] for a in told["actions"]]
        assert names == ["START_NEW_PROPERTY_SET", "CASH", "PASS", "OTHER"]
        assert (told["player"], told["streak_index"]) == (1, 1)

    def test_the_intent_infoset_knows_nothing_else(self) -> None:
        keys = {
            queries.infoset_key(
                scenario(hands=[hand, []], banks=[bank, ["cash 4"]], turn=turn, deck=deck).states,
                INTENT,
            )
            for hand, bank, turn, deck in [
                (["cash 1"], [], 0, ["cash 1"]),
                (["cash 4", "cash 1"], ["cash 3"], 7, []),
                (["cash 4", NO], [GREEN], 100, ["cash 1"] * 4),
            ]
        }
        assert len(keys) == 1

    def test_the_progress_infoset(self) -> None:
        session = scenario(
            hands=[["rent green"], [NO]],
            properties=[[GREEN] * 4 + [BROWN], [PINK, PINK]],
            banks=[["cash 4", "cash 3"], ["cash 1", "cash 1"]],
            deck=["cash 1"],
        )
        describe = GAME.abstraction("progress").describe
        told = describe(queries.infoset_key(session.states, PROGRESS))
        assert told["own_sets"] == [1, 3, 0], "capped at the set's size"
        assert told["opponent_sets"] == [0, 0, 2]
        assert (told["own_bank"], told["opponent_bank"]) == (3, 1)
        assert told["to_pay"] == 0
        assert not told["holds_just_say_no"]
        play(session, "rent green", "give bank cash 1")
        told = describe(queries.infoset_key(session.states, PROGRESS))
        assert told["player"] == 1
        assert told["own_sets"] == [0, 0, 2]
        assert told["to_pay"] == 6
        assert told["holds_just_say_no"]

    @pytest.mark.parametrize(
        ("bank", "bucket"),
        [
            ([], 0),
            (["cash 1"], 1),
            (["cash 2"], 1),
            (["cash 3"], 2),
            (["cash 4", "cash 2"], 2),
            (["cash 4", "cash 3"], 3),
            ([GREEN, GREEN], 3),
        ],
    )
    def test_bank_buckets(self, bank: list[str], bucket: int) -> None:
        session = scenario(hands=[["cash 1"], []], banks=[bank, []], deck=["cash 1"])
        key = queries.infoset_key(session.states, PROGRESS)
        assert GAME.abstraction("progress").describe(key)["own_bank"] == bucket

    def test_the_identifier_is_the_papers(self) -> None:
        session = scenario(hands=[[GREEN, "cash 1"], []], streak_index=1, deck=["cash 1"])
        content = '{"opponent":{},"player":{"actions":[0,3,8]},"streak_idx":1}'
        digest = hashlib.md5(content.encode()).hexdigest()
        key = queries.infoset_key(session.states, INTENT)
        identifier = GAME.abstraction("intent").identifier(key)
        assert identifier == f"0@IntentStateAbstraction@{digest}"
        assert identifier == "0@IntentStateAbstraction@0bc8ccd004affa79567bfb71e112954e"

    def test_progress_identifiers_tell_more(self) -> None:
        abstraction = GAME.abstraction("progress")
        identifiers = set()
        for bank in ([], ["cash 1"], ["cash 4"]):
            session = scenario(hands=[["cash 1"], []], banks=[bank, []], deck=["cash 1"])
            key = queries.infoset_key(session.states, PROGRESS)
            identifiers.add(abstraction.identifier(key))
        assert len(identifiers) == 3
        assert all(i.startswith("0@ProgressStateAbstraction@") for i in identifiers)


class TestResolver:
    @pytest.mark.parametrize(
        ("intent", "hand", "owned", "card"),
        [
            # rent: the largest amount; ties go to the lowest colour
            ("ATTEMPT_COLLECT_RENT", ["rent brown", "rent pink"], [BROWN, PINK, PINK], "rent pink"),
            ("ATTEMPT_COLLECT_RENT", ["rent green", "rent pink"], [GREEN, PINK], "rent green"),
            ("ATTEMPT_COLLECT_RENT", ["rent pink", "rent brown"], [BROWN, PINK], "rent brown"),
            ("ATTEMPT_COLLECT_RENT", ["rent green", "rent pink"], [PINK], "rent pink"),
            # CASH: the highest value, cash before a surplus property
            ("CASH", ["cash 1", "cash 3", "cash 2"], [], "cash 3"),
            ("CASH", ["cash 4", GREEN], [GREEN] * 3, "cash 4"),
            ("CASH", ["cash 3", GREEN], [GREEN] * 3, GREEN),
            ("CASH", ["cash 1", BROWN], [BROWN] * 2, "cash 1"),
            ("CASH", [BROWN, PINK], [BROWN] * 2 + [PINK] * 3, PINK),
            # START and ADD: the fewest still missing, then the most in hand, then the lowest colour
            ("START_NEW_PROPERTY_SET", [GREEN, GREEN, GREEN, BROWN], [], BROWN),
            ("START_NEW_PROPERTY_SET", [GREEN, PINK, PINK], [], PINK),
            ("START_NEW_PROPERTY_SET", [PINK, GREEN], [], GREEN),
            ("ADD_TO_PROPERTY_SET", [GREEN, PINK, PINK], [GREEN, PINK], PINK),
            ("ADD_TO_PROPERTY_SET", [GREEN, PINK], [GREEN, PINK], GREEN),
            # COMPLETE: the highest full rent
            ("COMPLETE_PROPERTY_SET", [BROWN, PINK], [BROWN, PINK, PINK], PINK),
            ("COMPLETE_PROPERTY_SET", [PINK, GREEN], [PINK] * 2 + [GREEN] * 2, GREEN),
            # OTHER: the rent card held most often, of a colour not owned
            ("OTHER", ["rent brown", "rent pink", "rent pink"], [], "rent pink"),
            ("OTHER", ["rent brown", "rent green"], [], "rent brown"),
            ("OTHER", ["rent pink", "rent pink", "rent green"], [PINK], "rent green"),
            ("PASS", ["cash 1"], [], "pass"),
        ],
    )
    def test_main_actions(self, intent: str, hand: list[str], owned: list[str], card: str) -> None:
        rules = DealRules(sets_needed=3)
        session = scenario(rules=rules, hands=[hand, []], properties=[owned, []], deck=["cash 1"])
        assert resolved(session, intent) == card
        twin = session.copy()
        session.apply_abstract(intent, "intent")
        twin.apply(card)
        assert session.to_json() == twin.to_json()

    @pytest.mark.parametrize(
        ("intent", "bank", "owned", "given"),
        [
            # the card worth least; ties go to the lowest number, properties first
            ("GIVE_OPPONENT_CASH", ["cash 3", "cash 2"], [], "give bank cash 2"),
            ("GIVE_OPPONENT_CASH", ["cash 1", BROWN], [], "give bank property brown"),
            ("GIVE_OPPONENT_CASH", [GREEN, "cash 3"], [], "give bank cash 3"),
            ("GIVE_OPPONENT_PROPERTY", [], [GREEN, PINK], "give property pink"),
            ("GIVE_OPPONENT_PROPERTY", [], [GREEN, PINK, BROWN], "give property brown"),
            ("JUST_SAY_NO", [], [], NO),
        ],
    )
    def test_responses(self, intent: str, bank: list[str], owned: list[str], given: str) -> None:
        session = scenario(
            hands=[["rent green"], [NO]],
            properties=[[GREEN] * 3, owned],
            banks=[[], bank],
            deck=["cash 1"],
        )
        play(session, "rent green")
        assert resolved(session, intent) == given


class TestRiskAware:
    def weights(self, session: Session) -> dict[str, float]:
        weights = np.full(len(ABSTRACT_NAMES), np.nan)
        queries.baseline(session.states, INTENT, weights)
        return {name: float(w) for name, w in zip(ABSTRACT_NAMES, weights, strict=True) if w}

    def test_main_actions(self) -> None:
        session = scenario(
            rules=DealRules(sets_needed=3),
            hands=[[BROWN, GREEN, PINK, "cash 1", "rent pink", "rent green"], []],
            properties=[[BROWN, PINK], []],
            deck=["cash 1"],
        )
        assert self.weights(session) == pytest.approx(
            {
                "START_NEW_PROPERTY_SET": math.exp(1.0),
                "ADD_TO_PROPERTY_SET": math.exp(1.0),
                "COMPLETE_PROPERTY_SET": math.exp(1.0),
                "CASH": math.exp(1.0),
                "ATTEMPT_COLLECT_RENT": 1.0,
            }
        ), "neither pass nor other while there is something else"

    def test_responses(self) -> None:
        session = scenario(
            hands=[["rent pink"], [NO]],
            properties=[[PINK], [PINK]],
            banks=[[], ["cash 1"]],
            deck=["cash 1"],
        )
        play(session, "rent pink")
        responses = ("JUST_SAY_NO", "GIVE_OPPONENT_CASH", "GIVE_OPPONENT_PROPERTY")
        assert self.weights(session) == dict.fromkeys(responses, 1.0)

    def test_the_rest_only_when_alone(self) -> None:
        session = scenario(hands=[["rent pink"], []], deck=["cash 1"])
        assert self.weights(session) == {"PASS": 1.0, "OTHER": 1.0}
        session = scenario(hands=[["rent pink"], []], properties=[[PINK], []], deck=["cash 1"])
        assert self.weights(play(session, "rent pink")) == {"YIELD": 1.0}


class TestViews:
    def test_each_sees_his_hand_and_the_size_of_the_other(self) -> None:
        session = scenario(
            hands=[["cash 1", NO, NO], [GREEN, "rent pink"]],
            banks=[["cash 3", PINK], []],
            properties=[[BROWN, BROWN], [PINK]],
            deck=["cash 4", "cash 4"],
            discard=["rent green"],
            turn=6,
        )
        first, second = see(session, 0), see(session, 1)
        assert first.hand == {"cash 1": 1, NO: 2}
        assert second.hand == {GREEN: 1, "rent pink": 1}
        assert (first.own, first.opponent) == (second.opponent, second.own)
        assert first.opponent.hand_size == 2
        assert first.own.bank == {"cash 3": 1, PINK: 1}
        assert first.own.bank_value == 5
        assert first.own.complete_sets == ["brown"]
        assert first.discard == second.discard == {"rent green": 1}
        assert first.deck_size == 2
        assert (first.turn, first.to_move, first.over, first.sets_needed) == (6, 0, False, 2)
        assert first.response is None

    def test_the_other_hand_is_nowhere_in_it(self) -> None:
        session = scenario(hands=[["cash 1"], [GREEN, "cash 4"]], deck=["cash 2", "cash 2"])
        told = session.view(0).model_dump_json()
        assert "green" not in told
        assert "cash 4" not in told
        assert "cash 2" not in told

    def test_a_view_cannot_be_changed(self) -> None:
        with pytest.raises(ValidationError):
            see(scenario(hands=[["cash 1"], []]), 0).turn = 3

    def test_drawn_cards_are_seen_by_whoever_draws_them(self) -> None:
        session = scenario(hands=[["cash 1"], ["cash 1"]], deck=["cash 3", NO])
        play(session, "pass")
        assert [e.name for e in session.history] == ["pass", "cash 3", NO]
        assert [e.name for e in session.seen_by(1)] == ["pass", "cash 3", NO]
        assert [e.name for e in session.seen_by(0)] == ["pass", "hidden", "hidden"]


class TestScenario:
    @pytest.mark.parametrize(
        ("piles", "field", "card"),
        [
            ({"hands": [["cash 5"], []]}, r"hands\[0\]", "cash 5"),
            ({"hands": [[], ["brown"]]}, r"hands\[1\]", "brown"),
            ({"banks": [[], ["rent pink"]]}, r"banks\[1\]", "rent pink"),
            ({"banks": [[NO], []]}, r"banks\[0\]", NO),
            ({"properties": [["cash 1"], []]}, r"properties\[0\]", "cash 1"),
            ({"deck": ["cash 1", "joker"]}, "deck", "joker"),
            ({"discard": ["jail"]}, "discard", "jail"),
            ({"hands": [["cash 1"] * 60, []], "deck": ["cash 1"] * 41}, "cash 1", "101"),
            ({"hands": [[]]}, "hands", "1"),
            ({"properties": [[], [BROWN] * 2 + [PINK] * 3]}, r"properties\[1\]", "won"),
            ({"to_move": 2}, "to_move", "2"),
            ({"streak_index": 2}, "streak_index", "2"),
            ({"turn": 250}, "turn", "250"),
        ],
    )
    def test_errors_name_the_field_and_the_card(
        self, piles: dict[str, object], field: str, card: str
    ) -> None:
        with pytest.raises(ValueError, match=f"^{field}.*{card}"):
            scenario(**piles)  # type: ignore[arg-type]

    def test_the_deck_is_the_order_of_drawing(self) -> None:
        deck = ["cash 4", "cash 2", NO, PINK]
        session = scenario(hands=[["cash 1"], ["cash 1"]], deck=deck)
        play(session, "pass", "pass")
        assert [e.name for e in session.history if e.actor is None] == deck
        assert see(session, 1).hand == {"cash 1": 1, "cash 4": 1, "cash 2": 1}
        assert see(session, 0).hand == {"cash 1": 1, NO: 1, PINK: 1}


def test_the_probability_of_a_long_deal_stays_a_number() -> None:
    rules = DealRules(
        property_copies=(100, 100, 100),
        cash_copies=(100, 100, 100, 100),
        rent_copies=(100, 100, 100),
        just_say_no=100,
        hand_size=60,
        draw=60,
    )
    states = np.zeros(1, GAME.dtype)
    queries.start(states, GAME.template(rules), 0)
    same = states.copy()
    reach = queries.resolve_chance(states, rng.stream(1, 0, rng.DEALS))
    logarithm, stream = 0.0, rng.stream(1, 0, rng.DEALS)
    while queries.current_player(same) == CHANCE:
        outcome = queries.sample_outcome(same, stream)
        logarithm += math.log(same[0]["deck"][outcome] / same[0]["deck_count"])
        queries.apply(same, outcome)
    assert logarithm < math.log(1e-150)
    assert math.log(reach) == pytest.approx(logarithm)
