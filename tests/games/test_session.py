"""Sessions: errors that help, histories, fixed luck, JSON that refuses garbage."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rejoinder.games import GAMES, find_game, game_names, queries
from rejoinder.games.base import Rules
from rejoinder.games.contract import HIDDEN
from rejoinder.games.deal import DealRules
from rejoinder.games.session import Event, IllegalMove, Session
from rejoinder.kernel import rng

DEAL = GAMES["deal"]


def saved(**changes: Any) -> dict[str, Any]:
    """The JSON of a session under way, with a fixed card to come."""
    deck = [*["cash 1"] * 5, *["cash 3"] * 5, "rent pink", "rent pink", "property green"]
    session = Session.start("deal", seed=5, deck=deck)
    session.apply("cash 1")
    data: dict[str, Any] = json.loads(session.to_json())
    assert data["upcoming"] == [DEAL.outcomes.index("property green")]
    return data | changes


class TestStart:
    def test_by_name_or_by_game_and_rules(self) -> None:
        by_name = Session.start("deal-small", seed=3, index=4)
        by_rules = Session.start(DEAL, DEAL.configurations["small"], seed=3, index=4)
        assert by_name.to_json() == by_rules.to_json()
        assert Session.start(DEAL, seed=3).rules == DEAL.configurations["medium"]
        assert Session.start("deal", DealRules(draw=1), seed=3).rules == DealRules(draw=1)

    def test_every_name_is_found(self) -> None:
        for name in game_names():
            game, configuration = find_game(name)
            assert Session.start(name, seed=1).rules == game.configurations[configuration]
        for name in ("chess", "deal-huge", ""):
            with pytest.raises(ValueError, match="no game is called"):
                Session.start(name, seed=1)

    def test_the_rules_of_another_game(self) -> None:
        with pytest.raises(TypeError, match="rules: deal takes DealRules, not Rules"):
            Session.start(DEAL, Rules(), seed=1)
        with pytest.raises(TypeError, match="rules: kuhn takes Rules, not DealRules"):
            Session.start("kuhn", DealRules(), seed=1)

    def test_the_first_player_is_a_seat(self) -> None:
        with pytest.raises(ValueError, match="first_player: deal has seats 0 to 1, not 2"):
            Session.start("deal", seed=1, first_player=2)

    def test_cards_do_not_depend_on_play(self) -> None:
        """The k-th card off the deck is the same whatever is played."""

        def drawn(choose: int) -> list[str]:
            session = Session.start("deal", seed=9, index=2)
            while not session.over and len(session.history) < 60:
                session.apply(session.legal()[choose].number)
            return [event.name for event in session.history if event.actor is None]

        eager, idle = drawn(0), drawn(-1)
        shared = min(len(eager), len(idle))
        assert shared > 20
        assert eager[:shared] == idle[:shared]

    def test_chance_is_the_deals_stream_of_compiled_code(self) -> None:
        session = Session.start("deal", seed=9, index=2, first_player=1)
        states = np.zeros(1, DEAL.dtype)
        queries.start(states, DEAL.template(session.rules), 1)
        queries.resolve_chance(states, rng.stream(9, 2, rng.DEALS))
        assert states == session.states


class TestFixedOutcomes:
    def test_names_and_numbers_come_first_then_the_stream(self) -> None:
        deck: list[str | int] = ["cash 1", 3, "cash 1", "cash 1", "cash 1", 10]
        session = Session.start("deal", seed=1, deck=deck)
        names = [event.name for event in session.history]
        assert names[:6] == [*["cash 1"] * 5, "just say no"]
        assert len(names) == 12
        again = Session.start("deal", seed=1, deck=deck)
        assert again.history == session.history

    @pytest.mark.parametrize("outcome", ["ace", 11, -1])
    def test_unknown(self, outcome: str | int) -> None:
        with pytest.raises(ValueError, match=rf"deck\[1\]: {outcome!r} is no chance outcome"):
            Session.start("deal", seed=1, deck=["cash 1", outcome])

    def test_impossible_at_the_deal(self) -> None:
        with pytest.raises(ValueError, match="deck: 'just say no' cannot come next; possible are"):
            Session.start("deal", seed=1, deck=["just say no"] * 4)

    def test_impossible_after_a_move_changes_nothing(self) -> None:
        deck = [*["cash 1"] * 10, "cash 3", "cash 3", "cash 3", "cash 1"]
        session = Session.start("deal", seed=1, deck=deck)
        before = session.to_json()
        with pytest.raises(ValueError, match="deck: 'cash 1' cannot come next"):
            session.apply("pass")
        assert session.to_json() == before


class TestMoves:
    def session(self) -> Session:
        return Session.start(
            "deal", seed=1, deck=["cash 1"] * 5 + ["cash 3"] * 5 + ["rent pink"] * 2
        )

    def test_by_name_or_number(self) -> None:
        by_name, by_number = self.session(), self.session()
        by_name.apply("rent pink")
        by_number.apply(9)
        assert by_name.to_json() == by_number.to_json()

    def test_abstract_by_name_or_number(self) -> None:
        by_name, by_number, concrete = self.session(), self.session(), self.session()
        by_name.apply_abstract("CASH", "intent")
        by_number.apply_abstract(3, "progress")
        concrete.apply_abstract("cash 1", "none")
        assert by_name.to_json() == by_number.to_json() == concrete.to_json()

    @pytest.mark.parametrize(
        ("tried", "why"),
        [
            ("rent green", "not legal now"),
            (8, "not legal now"),
            ("flee", "unknown"),
            (23, "unknown"),
            (-1, "unknown"),
            ("CASH", "unknown"),
        ],
    )
    def test_an_illegal_move_says_who_what_and_what_was_legal(
        self, tried: str | int, why: str
    ) -> None:
        session = self.session()
        before = session.to_json()
        with pytest.raises(IllegalMove) as caught:
            session.apply(tried)
        assert str(caught.value) == (
            f"seat 0 tried {tried!r}, which is {why}; "
            "legal: 'cash 1' (3), 'rent pink' (9), 'pass' (21)"
        )
        assert session.to_json() == before

    def test_an_illegal_action(self) -> None:
        session = self.session()
        before = session.to_json()
        with pytest.raises(
            IllegalMove, match=r"tried 'YIELD', .*legal: 'CASH' \(3\), 'PASS' \(8\)"
        ):
            session.apply_abstract("YIELD", "intent")
        with pytest.raises(IllegalMove, match="tried 'cash 1', which is unknown"):
            session.apply_abstract("cash 1", "intent")
        assert session.to_json() == before

    def test_an_unknown_abstraction(self) -> None:
        with pytest.raises(ValueError, match="abstraction: deal has no 'intend'"):
            self.session().apply_abstract("CASH", "intend")
        with pytest.raises(ValueError, match="abstraction: deal has no 'intend'"):
            self.session().legal_abstract("intend")

    def test_after_the_end(self) -> None:
        session = Session.start("kuhn", seed=1)
        session.apply("bet")
        session.apply("pass")
        before = session.to_json()
        for tried in ("bet", 0, "flee"):
            with pytest.raises(IllegalMove, match=f"{tried!r} was tried, but the game is over"):
                session.apply(tried)
            with pytest.raises(IllegalMove, match="over"):
                session.apply_abstract(tried, "none")
        assert session.to_json() == before

    def test_no_seat_no_view(self) -> None:
        for player in (-1, 2):
            with pytest.raises(ValueError, match="player: deal has seats 0 to 1"):
                self.session().view(player)
            with pytest.raises(ValueError, match="player: deal has seats 0 to 1"):
                self.session().seen_by(player)


def test_history_tells_who_did_what_and_hides_what_was_hidden() -> None:
    session = Session.start("kuhn", seed=1, first_player=1, deck=["K", "J"])
    session.apply("pass")
    session.apply("bet")
    assert session.history == [
        Event(None, 2, "K"),
        Event(None, 0, "J"),
        Event(1, 0, "pass"),
        Event(0, 1, "bet"),
    ]
    hidden = Event(None, HIDDEN, "hidden")
    assert session.seen_by(1) == [Event(None, 2, "K"), hidden, *session.history[2:]]
    assert session.seen_by(0) == [hidden, *session.history[1:]]


class TestJson:
    def test_the_chance_stream_is_written_as_decimal_text(self) -> None:
        assert all(isinstance(word, str) for word in saved()["chance"].values())

    def test_a_saved_game_goes_on_with_the_same_luck(self) -> None:
        session = Session.from_json(json.dumps(saved()))
        again = Session.from_json(session.to_json())
        for each in (session, again):
            each.apply("pass")
        assert session.to_json() == again.to_json()
        drawn = [event.name for event in session.history[-2:]]
        assert drawn[0] == "property green"

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"game": "deal"}'])
    def test_no_session_at_all(self, text: str) -> None:
        with pytest.raises(ValueError, match="_Saved"):
            Session.from_json(text)

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (["game"], "chess", "game: no game is called 'chess'"),
            (["game"], 7, "game"),
            (["rules", "hand_size"], "5", "hand_size"),
            (["rules", "hand_size"], 500, "hand_size"),
            (["rules", "colour"], 1, "colour"),
            (["rules"], [], "rules"),
            (["state", "hand"], [1, 2], r"state\.hand\[0\]: a list of 11 is needed"),
            (["state", "hand"], [[0] * 11], r"state\.hand: a list of 2 is needed"),
            (["state", "hand", 1, 3], 128, r"state\.hand\[1\]\[3\]: 128 is not in -128 to 127"),
            (["state", "hand", 1, 3], 1.0, r"state\.hand\[1\]\[3\]: an integer is needed"),
            (["state", "hand", 1, 3], True, r"state\.hand\[1\]\[3\]: an integer is needed"),
            (["state", "hand", 1, 3], None, r"state\.hand\[1\]\[3\]: an integer is needed"),
            (["state", "turn"], 40000, r"state\.turn: 40000 is not in -32768 to 32767"),
            (["state", "turn"], [1], r"state\.turn: an integer is needed"),
            (["state", "mover"], 5, "state: it waits for 5"),
            (["state", "mover"], -1, "state: it waits for -1"),
            (["state", "joker"], 1, r"state\.joker: unknown field"),
            (["chance", "s0"], 5, "s0"),
            (["chance", "s0"], "-5", r"chance\.s0: a decimal number is needed"),
            (["chance", "s0"], "0x5", r"chance\.s0: a decimal number is needed"),
            (["chance", "s0"], str(2**64), r"chance\.s0: 18446744073709551616 is not in"),
            (["chance", "s4"], "1", r"chance\.s4: unknown field"),
            (["upcoming", 0], 11, r"upcoming\[0\]: 11 is no chance outcome"),
            (["upcoming", 0], "cash 1", "upcoming"),
            (["history", 0, "number"], 11, r"history\[0\]\.number: 11 is no event"),
            (["history", 0, "seen"], [1], r"history\[0\]\.seen: 2 seats"),
            (["history", 0, "seen", 1], 99, r"history\[0\]\.seen\[1\]: 99 is no event"),
            (["history", 12, "actor"], 2, r"history\[12\]\.actor: deal has seats 0 to 1"),
            (["history", 12, "who"], 2, "who"),
            (["speed"], 2, "speed"),
        ],
    )
    def test_garbage_is_refused_by_name(self, path: list[Any], value: Any, message: str) -> None:
        data = saved()
        inner = data
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value
        with pytest.raises(ValueError, match=message):
            Session.from_json(json.dumps(data))

    @pytest.mark.parametrize(
        "path",
        [["game"], ["rules"], ["state"], ["chance"], ["upcoming"], ["history"]]
        + [["state", name] for name in ("hand", "turn", "winner")]
        + [["chance", "s3"], ["history", "0", "seen"]],
    )
    def test_what_is_missing_is_named(self, path: list[str]) -> None:
        data = saved()
        inner: Any = data
        for step in path[:-1]:
            inner = inner[int(step) if step.isdigit() else step]
        del inner[path[-1]]
        with pytest.raises(ValueError, match=path[-1]):
            Session.from_json(json.dumps(data))
