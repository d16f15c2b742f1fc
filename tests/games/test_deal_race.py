"""The `race` abstraction of Monopoly Deal: its actions, its keys, the cards it chooses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from deal_positions import BROWN, GREEN, NO, PINK, intents, play
from hypothesis import assume, given
from hypothesis import strategies as st

from rejoinder.games import queries
from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.race import RACE
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.responses import response_actions
from rejoinder.games.session import Session

ABSTRACTION = GAME.abstraction("race")
ALL_SETS = DealRules(sets_needed=3)


def told(session: Session) -> dict[str, Any]:
    return ABSTRACTION.description(queries.infoset_key(session.states, RACE))


def card_of(session: Session, action: str) -> str:
    return {a.name: a.move_name for a in session.legal_abstract("race")}[action]


def asked(amount_owned: list[str], rent: str, **responder: Any) -> Session:
    """Seat 1 is about to answer a rent card of seat 0."""
    session = scenario(
        hands=[[rent], responder.get("hand", [])],
        properties=[amount_owned, responder.get("owned", [])],
        banks=[[], responder.get("bank", [])],
        deck=["cash 1"],
    )
    return play(session, rent)


class TestActions:
    @pytest.mark.parametrize(
        ("card", "owned", "action"),
        [
            (BROWN, [], "BUILD_BROWN"),
            (BROWN, [BROWN], "BUILD_BROWN"),
            (BROWN, [BROWN] * 2, "CASH"),
            (GREEN, [GREEN] * 2, "BUILD_GREEN"),
            (PINK, [PINK] * 4, "CASH"),
            ("cash 3", [], "CASH"),
            ("rent pink", [PINK], "COLLECT_RENT"),
            ("rent pink", [GREEN], "PASS"),
            ("pass", [], "PASS"),
        ],
    )
    def test_what_a_main_action_counts_as(self, card: str, owned: list[str], action: str) -> None:
        hand = ["cash 1"] if card == "pass" else [card]
        session = scenario(hands=[hand, []], properties=[owned, []], deck=["cash 1"])
        assert {move.name: move.meanings["race"] for move in session.legal()}[card] == action
        assert action in intents(session, "race")

    def test_what_a_response_counts_as(self) -> None:
        owned, bank = [GREEN, PINK], ["cash 2", BROWN]
        session = asked([PINK], "rent pink", hand=[NO], owned=owned, bank=bank)
        assert {move.name: move.meanings["race"] for move in session.legal()} == {
            NO: "JUST_SAY_NO",
            "give bank cash 2": "GIVE_CASH",
            "give bank property brown": "GIVE_CASH",
            "give property green": "GIVE_GREEN",
            "give property pink": "GIVE_PINK",
        }
        assert intents(asked([PINK], "rent pink"), "race") == ["YIELD"]

    def test_responses_are_those_that_answer_a_rent(self) -> None:
        mask = response_actions(GAME, ABSTRACTION)
        names = {a for k, a in enumerate(ABSTRACTION.actions) if mask >> k & 1}
        assert names == {"JUST_SAY_NO", "GIVE_CASH", "YIELD"} | {
            f"GIVE_{colour}" for colour in ("BROWN", "GREEN", "PINK")
        }


class TestKey:
    def test_of_a_turn(self) -> None:
        session = scenario(
            hands=[["cash 1", "rent green"], []],
            properties=[[GREEN] * 2 + [BROWN], [PINK, PINK]],
            banks=[["cash 4"], ["cash 3"]],
            streak_index=1,
            deck=["cash 1"],
        )
        assert told(session) == {
            "player": 0,
            "actions": [3, 4, 5],
            "streak_index": 1,
            "own_lacks": 2,
            "opponent_lacks": 3,
            "has_money": True,
            "rent_takes_property": True,
            "can_win_now": False,
        }

    def test_of_a_response(self) -> None:
        session = asked([GREEN] * 3, "rent green", owned=[PINK] * 4, bank=["cash 4", "cash 3"])
        expected = {
            "player": 1,
            "actions": [7, 10],
            "opponent_lacks": 2,
            "due": "5 or more",
            "bank_covers": True,
            "own_sets": [0, 0, 3],
        }
        assert told(session) == expected
        play(session, "give bank cash 3")
        assert told(session) == expected | {"due": "3 or 4"}

    @pytest.mark.parametrize(
        ("sets_needed", "owned", "lacks"),
        [
            (1, [], 2),
            (1, [PINK, PINK], 1),
            (2, [], 5),
            (2, [BROWN, BROWN, GREEN], 2),
            (3, [], 8),
            (3, [BROWN] * 5, 6),
        ],
    )
    def test_lacks_counts_towards_the_nearest_sets(
        self, sets_needed: int, owned: list[str], lacks: int
    ) -> None:
        rules = DealRules(sets_needed=sets_needed)
        properties = [owned, owned]
        session = scenario(
            rules=rules, hands=[["cash 1"], []], properties=properties, deck=["cash 1"]
        )
        assert (told(session)["own_lacks"], told(session)["opponent_lacks"]) == (lacks, lacks)

    @pytest.mark.parametrize(
        ("hand", "streak_index", "can"),
        [
            ([BROWN, PINK], 0, True),
            ([BROWN, PINK], 1, False),
            ([BROWN, BROWN], 0, False),
            ([PINK, PINK], 0, False),
        ],
    )
    def test_winning_now_needs_the_cards_and_the_turns(
        self, hand: list[str], streak_index: int, can: bool
    ) -> None:
        session = scenario(
            hands=[hand, []],
            properties=[[BROWN, PINK, PINK], []],
            streak_index=streak_index,
            deck=["cash 1"],
        )
        assert told(session)["can_win_now"] is can

    @pytest.mark.parametrize(
        ("rent", "bank", "owned", "takes"),
        [
            ("rent green", ["cash 3"], [BROWN], True),
            ("rent green", ["cash 4"], [BROWN], False),
            ("rent green", [], [], False),
            ("rent pink", [], [BROWN], False),
        ],
    )
    def test_rent_takes_property_when_the_bank_cannot_pay(
        self, rent: str, bank: list[str], owned: list[str], takes: bool
    ) -> None:
        session = scenario(
            hands=[[rent], []],
            properties=[[GREEN, GREEN], owned],
            banks=[[], bank],
            deck=["cash 1"],
        )
        assert told(session)["rent_takes_property"] is takes

    def test_the_rest_does_not_show(self) -> None:
        """Neither what is hidden, nor the turn, nor which money it is."""
        keys = {
            queries.infoset_key(
                scenario(hands=[hand, his], banks=[bank, ["cash 4"]], turn=turn, deck=deck).states,
                RACE,
            )
            for hand, his, bank, turn, deck in [
                (["cash 1"], [], ["cash 1"], 0, ["cash 1"]),
                (["cash 4", "cash 1"], [NO], ["cash 3"], 7, []),
                (["cash 3", NO], [GREEN] * 3, [GREEN], 100, ["cash 1"] * 4),
            ]
        }
        assert len(keys) == 1

    @pytest.mark.parametrize("rules", ["medium", "ordered"])
    def test_identifiers_are_one_to_one_with_keys(self, rules: str) -> None:
        names: dict[str, int] = {}
        for index in range(40):
            session = Session.start(GAME, GAME.configurations[rules], seed=2, index=index)
            while not session.over:
                key = queries.infoset_key(session.states, RACE)
                name = ABSTRACTION.identifier(key)
                assert name.startswith(f"{session.to_move}@RaceStateAbstraction@")
                assert names.setdefault(name, key) == key
                legal = session.legal_abstract("race")
                session.apply_abstract(legal[index % len(legal)].number, "race")
        assert len(set(names.values())) == len(names) > 100


class TestResolver:
    @pytest.mark.parametrize(
        ("action", "hand", "owned", "card"),
        [
            ("BUILD_PINK", [GREEN, PINK], [PINK], PINK),
            ("COLLECT_RENT", ["rent brown", "rent pink"], [BROWN, PINK, PINK], "rent pink"),
            ("COLLECT_RENT", ["rent pink", "rent brown"], [BROWN, PINK], "rent brown"),
            ("COLLECT_RENT", ["rent green", "rent pink"], [PINK], "rent pink"),
            ("CASH", ["cash 1", "cash 3", "cash 2"], [], "cash 3"),
            ("CASH", ["cash 4", GREEN], [GREEN] * 3, "cash 4"),
            ("CASH", ["cash 3", GREEN], [GREEN] * 3, GREEN),
            ("PASS", ["rent pink"], [], "pass"),
        ],
    )
    def test_main_actions(self, action: str, hand: list[str], owned: list[str], card: str) -> None:
        session = scenario(
            rules=ALL_SETS, hands=[hand, []], properties=[owned, []], deck=["cash 1"]
        )
        assert card_of(session, action) == card

    @pytest.mark.parametrize(
        ("bank", "given"),
        [
            (["cash 1", "cash 3", "cash 4"], "cash 4"),  # 4 is due: exactly
            (["cash 1", "cash 3"], "cash 3"),
            (["cash 2", "cash 3", "cash 1"], "cash 3"),
            (["cash 1", "cash 2", GREEN], "property green"),
            (["cash 1", "cash 1"], "cash 1"),
        ],
    )
    def test_payments(self, bank: list[str], given: str) -> None:
        session = asked([GREEN] * 2, "rent green", bank=bank, owned=[PINK])
        assert card_of(session, "GIVE_CASH") == f"give bank {given}"

    @given(st.integers(0, 5), st.integers(0, 3), st.sampled_from([(1, 2), (2, 4), (3, 7)]))
    def test_with_the_papers_cash_nobody_pays_more_than_he_must(
        self, ones: int, threes: int, rent: tuple[int, int]
    ) -> None:
        owned, due = rent
        values = [1] * ones + [3] * threes
        assume(sum(values) >= due)
        session = asked([GREEN] * owned, "rent green", bank=[f"cash {v}" for v in values])
        paid = 0
        while session.states[0]["owed"] > 0:
            paid += int(card_of(session, "GIVE_CASH").rsplit(" ", 1)[1])
            session.apply_abstract("GIVE_CASH", "race")
        sums = {
            sum(chosen)
            for size in range(len(values) + 1)
            for chosen in itertools.combinations(values, size)
        }
        assert paid == min(total for total in sums if total >= due)
