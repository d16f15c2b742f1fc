"""Monopoly Deal under random rules and random play: what must be true after every single move."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pydantic import ValidationError

from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.cards import (
    COLOURS,
    HIGHEST_RENT,
    JUST_SAY_NO,
    KINDS,
    MONEY_KINDS,
    MOVES,
    RENT,
    SET_SIZE,
    WORTH,
)
from rejoinder.games.deal.response import PLAIN
from rejoinder.games.session import IllegalMove, Session

few, many = st.integers(0, 4), st.integers(2, 8)


class DealMachine(RuleBasedStateMachine):
    """Plays one game."""

    session: Session
    all_cards: Any  # by kind
    charged: Any  # the record when the response phase under way began, or None

    @initialize(
        properties=st.tuples(many, many, many),
        cash=st.tuples(few, few, few, few),
        rent=st.tuples(many, many, many),
        just_say_no=few,
        sets_needed=st.sampled_from([3, 2, 1]),
        hand_size=st.integers(1, 8),
        draw=st.integers(0, 4),
        streak=st.integers(1, 4),
        turn_cap=st.sampled_from([250, 60, 5]),
        seed=st.integers(0, 2**32),
        first=st.integers(0, 1),
        response=st.sampled_from(["plain", "ordered"]),
    )
    def deal(
        self,
        properties: tuple[int, int, int],
        cash: tuple[int, int, int, int],
        rent: tuple[int, int, int],
        just_say_no: int,
        seed: int,
        first: int,
        response: Literal["plain", "ordered"],
        **numbers: int,
    ) -> None:
        try:
            rules = DealRules(
                property_copies=properties,
                cash_copies=cash,
                rent_copies=rent,
                just_say_no=just_say_no,
                response=response,
                **numbers,
            )
        except ValidationError:
            assume(False)
        self.session = Session.start(GAME, rules, seed=seed, first_player=first)
        self.all_cards = GAME.template(rules)[0]["deck"].astype(int)
        self.charged = None

    @precondition(lambda self: not self.session.over)
    @rule(choices=st.lists(st.integers(0, 255), min_size=8, max_size=30))
    def play(self, choices: list[int]) -> None:
        for choice in choices:
            if self.session.over:
                break
            legal = self.session.legal()
            self._play_one(legal[choice % len(legal)].name)
            self.no_card_is_lost()
            self.counts_are_sums()
            self.a_response_phase_is_bounded_and_one_sided()

    def _play_one(self, move: str) -> None:
        before = self.session.states[0].copy()
        self.session.apply(move)
        after = self.session.states[0]
        if after["owed"] > 0 and before["owed"] == 0:
            self.charged = before
        self._check_move(move, before, after)
        self._check_turn(move, before, after)
        if after["owed"] == 0:
            self.charged = None

    @precondition(lambda self: not self.session.over)
    @rule(move=st.integers(-1, MOVES))
    def try_an_illegal_move(self, move: int) -> None:
        if move in {legal.number for legal in self.session.legal()}:
            return
        before = self.session.to_json()
        with pytest.raises(IllegalMove):
            self.session.apply(move)
        assert self.session.to_json() == before

    @precondition(lambda self: self.session.over)
    @rule(move=st.integers(0, MOVES - 1))
    def try_to_go_on(self, move: int) -> None:
        before = self.session.to_json()
        with pytest.raises(IllegalMove, match="over"):
            self.session.apply(move)
        assert self.session.to_json() == before

    @invariant()
    def no_card_is_lost(self) -> None:
        state = self.session.states[0]
        assert (_all_cards(state) == self.all_cards).all()
        for pile in ("hand", "bank", "properties", "deck", "discard"):
            assert (state[pile] >= 0).all()

    @invariant()
    def counts_are_sums(self) -> None:
        state = self.session.states[0]
        assert (state["hand_count"] == state["hand"].sum(axis=1)).all()
        assert state["deck_count"] == state["deck"].sum()
        assert state["due"] == 0, "chance is resolved"
        refusals = state["hand"][:, JUST_SAY_NO]
        assert (state["cannot_refuse"] >= 0).all()
        assert (state["cannot_refuse"] <= state["hand_count"] - refusals).all()

    @invariant()
    def the_streak_is_within_its_bounds(self) -> None:
        state = self.session.states[0]
        assert 0 <= state["streak_index"] < state["streak"]
        assert 0 <= state["turn"] <= state["turn_cap"]

    @invariant()
    def the_game_is_over_exactly_when_it_should_be(self) -> None:
        state = self.session.states[0]
        complete = (state["properties"] >= SET_SIZE).sum(axis=1)
        has_won = complete >= state["sets_needed"]
        assert has_won.sum() <= 1
        if has_won.any():
            assert self.session.winner == int(np.flatnonzero(has_won)[0])
        else:
            assert self.session.winner is None
        between_turns = state["owed"] == 0 and state["turn"] > 0
        no_card_left = state["deck_count"] == 0 and state["hand_count"].sum() == 0
        drawn = between_turns and (no_card_left or state["turn"] >= state["turn_cap"])
        assert self.session.over == bool(has_won.any() or drawn)

    @invariant()
    def a_response_phase_is_bounded_and_one_sided(self) -> None:
        state = self.session.states[0]
        if state["owed"] == 0:
            assert state["paid"] == state["n_responses"] == 0
            assert self.session.over or self.session.to_move == state["streak_player"]
            return
        initiator = int(state["streak_player"])
        responder = 1 - initiator
        assert self.session.to_move == responder
        assert 0 <= state["paid"] < state["owed"] <= HIGHEST_RENT
        assert state["n_responses"] < state["owed"]
        assert self.charged is not None
        gained = state["bank"][initiator] - self.charged["bank"][initiator]
        assert (gained >= 0).all()
        assert (gained * WORTH).sum() + self._extra(state) == state["paid"]
        assert gained.sum() == state["n_responses"]
        lost = self.charged["bank"][responder] - state["bank"][responder]
        lost[: len(COLOURS)] += (
            self.charged["properties"][responder] - state["properties"][responder]
        )
        assert (lost == gained).all()
        assert (state["properties"][initiator] == self.charged["properties"][initiator]).all()
        assert (state["hand"][responder] == self.charged["hand"][responder]).all()
        assert state["turn"] == self.charged["turn"]

    def _extra(self, state: Any) -> int:
        """What was counted besides the worth: under ordered responses, of a first property."""
        first = GAME.moves[state["responses"][0]] if state["n_responses"] else ""
        if state["response"] == PLAIN or not first.startswith("give property "):
            return 0
        return int(WORTH[COLOURS.index(first.removeprefix("give property "))])

    def _check_turn(self, move: str, before: Any, after: Any) -> None:
        """A turn ends unless it has become, or still is, a response phase."""
        ended = after["owed"] == 0
        assert after["turn"] == before["turn"] + ended
        player, index = before["streak_player"], before["streak_index"]
        if ended and not self.session.over:
            if move == "pass" or index + 1 == before["streak"]:
                player, index = 1 - player, 0
            else:
                index += 1
        assert (after["streak_player"], after["streak_index"]) == (player, index)

    def _check_move(self, move: str, before: Any, after: Any) -> None:
        """What one move may change, the cards drawn after it put back."""
        mover = int(before["mover"])
        other = 1 - mover
        drawn = np.zeros((2, KINDS), int)
        for event in reversed(self.session.history):
            if event.actor is not None:
                break
            drawn[int(after["streak_player"]), event.number] += 1
        hand = after["hand"] - drawn
        assert (hand[other] == before["hand"][other]).all()
        if before["owed"] == 0:
            played = before["hand"][mover] - hand[mover]
            assert played.sum() == (move != "pass")
            assert (after["bank"][other] == before["bank"][other]).all()
            assert (after["properties"][other] == before["properties"][other]).all()
            if after["owed"] > 0:
                colour = COLOURS.index(move.removeprefix("rent "))
                owned = min(before["properties"][mover][colour], SET_SIZE[colour])
                assert after["owed"] == RENT[colour, owned]
        else:
            said_no = np.zeros(KINDS, int)
            said_no[JUST_SAY_NO] = move == "just say no"
            assert (before["hand"][mover] - hand[mover] == said_no).all()
            assert (after["properties"][other] == before["properties"][other]).all()
            assert (after["bank"][other].sum() - before["bank"][other].sum()) == (
                move.startswith("give")
            )
            assert self.charged is not None
            assert self.charged["owed"] == 0


def _all_cards(state: Any) -> Any:
    cards = state["hand"].sum(axis=0) + state["deck"] + state["discard"]
    cards[:MONEY_KINDS] += state["bank"].sum(axis=0)
    cards[: len(COLOURS)] += state["properties"].sum(axis=0)
    return cards


TestDealMachine = DealMachine.TestCase
TestDealMachine.settings = settings(max_examples=200, stateful_step_count=12)
