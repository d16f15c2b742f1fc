"""The response phase of Monopoly Deal, by hand: who owes what, and what ends it."""

from __future__ import annotations

import pytest
from deal_positions import BROWN, GREEN, NO, PINK, moves, play, see

from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import IllegalMove, Session


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
