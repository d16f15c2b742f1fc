"""What a player of Monopoly Deal sees, and positions set up by hand."""

from __future__ import annotations

import pytest
from deal_positions import BROWN, GREEN, NO, PINK, play, see
from pydantic import ValidationError

from rejoinder.games.deal.scenario import scenario


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
