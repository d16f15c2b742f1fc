"""Intents, keys, the resolver and the baseline of Monopoly Deal, by hand."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from deal_positions import BROWN, GREEN, NO, PINK, intents, play, resolved

from rejoinder.games import queries
from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.abstraction import INTENT, PROGRESS
from rejoinder.games.deal.cards import ABSTRACT_NAMES
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import Session


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
        assert (meanings[card]["intent"], meanings[card]["progress"]) == (intent, intent)
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
        told = GAME.abstraction("intent").description(queries.infoset_key(session.states, INTENT))
        names = [ABSTRACT_NAMES[a] for a in told["actions"]]
        assert names == ["START_NEW_PROPERTY_SET", "CASH", "PASS", "OTHER"]
        assert (told["player"], told["streak_index"]) == (1, 1)
        assert told.keys() == {"actions", "player", "streak_index"}

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
        describe = GAME.abstraction("progress").description
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
        assert GAME.abstraction("progress").description(key)["own_bank"] == bucket

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
        queries.baseline(session.states, INTENT, 0, weights)
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
