"""Every rule of Monopoly Deal, by hand: a position, a few moves, what must then be true."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from deal_positions import BROWN, GREEN, NO, PINK, moves, play, see
from pydantic import ValidationError

from rejoinder.games import queries
from rejoinder.games.contract import CHANCE
from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import IllegalMove, Session
from rejoinder.kernel import rng


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
