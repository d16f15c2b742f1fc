"""What everybody knows of a hidden hand of Monopoly Deal: who yielded held no Just Say No."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from deal_positions import BROWN, GREEN, NO, PINK, play

from rejoinder.games import queries
from rejoinder.games.base import States
from rejoinder.games.contract import CHANCE, CONCRETE, OVER
from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.cards import JUST_SAY_NO, KIND_NAMES, YIELD
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.responses import hand_refusal
from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder.kernel.jit import kernel

# Every history can be looked at, and there are cards to come after a yield.
FEW = DealRules(
    property_copies=(2, 0, 0),
    cash_copies=(1, 0, 0, 0),
    rent_copies=(3, 0, 0),
    just_say_no=2,
    sets_needed=1,
    hand_size=2,
    draw=1,
    streak=2,
    turn_cap=4,
)


def yielded(*, after: tuple[str, ...] = (), hand: tuple[str, ...] = (PINK, "cash 3")) -> Session:
    """Seat 1 could not pay, with two Just Say No in the deck; then come the moves `after`."""
    session = scenario(
        hands=[["rent brown", "cash 1", "cash 1"], list(hand)],
        properties=[[BROWN], []],
        deck=[NO, GREEN, NO, "cash 1", "cash 1", GREEN],
    )
    return play(session, "rent brown", "yield", *after)


def known(session: Session, seat: int = 1) -> int:
    return int(session.states[0]["cannot_refuse"][seat])


def redealt(states: States, player: int, draws: int) -> Iterator[Any]:
    """The other hand as dealt anew so many times."""
    stream = rng.stream(21, 0, rng.REDEALS)
    for _ in range(draws):
        other = states.copy()
        queries.shuffle_hidden(other, player, stream)
        yield other[0]["hand"][1 - player]


class TestCards:
    def test_who_yields_holds_no_just_say_no(self) -> None:
        session = yielded()
        assert known(session) == 2
        assert known(session, seat=0) == 0
        for hand in redealt(session.states, 0, 300):
            assert hand[JUST_SAY_NO] == 0

    def test_who_pays_or_refuses_may_hold_one(self) -> None:
        for pile in ({"banks": [[], ["cash 1"]]}, {"hands": [["rent brown", "cash 1"], [NO]]}):
            piles: dict[str, Any] = {"hands": [["rent brown", "cash 1"], ["cash 3"]]} | pile
            session = scenario(properties=[[BROWN], []], deck=[NO] * 4, **piles)
            play(session, "rent brown")
            play(session, session.legal()[0].name)
            assert known(session) == 0

    def test_what_he_draws_may_be_one(self) -> None:
        session = yielded(after=("pass",))
        assert session.to_move == 1
        assert known(session) == 2
        found = {int(hand[JUST_SAY_NO]) for hand in redealt(session.states, 0, 500)}
        assert found == {0, 1, 2}

    def test_what_he_plays_may_have_been_one_of_the_old_cards(self) -> None:
        session = yielded(after=("pass", "cash 3"))
        assert known(session) == 1
        play(session, "property pink")
        assert known(session) == 0
        play(session, "pass")
        assert known(session) == 0

    def test_the_odds_are_those_of_the_deal(self) -> None:
        """Two cards that are no Just Say No, then two of all that are left."""
        session = yielded(after=("pass",))
        state = session.states[0]
        pool = np.repeat(np.arange(len(KIND_NAMES)), state["deck"] + state["hand"][1]).tolist()
        exact: Counter[bytes] = Counter()
        for order in itertools.permutations(range(len(pool)), 4):
            dealt = [pool[k] for k in order]
            if JUST_SAY_NO not in dealt[:2]:
                exact[np.bincount(dealt, minlength=len(KIND_NAMES)).tobytes()] += 1
        draws, orders = 6000, exact.total()
        found = Counter(
            np.asarray(hand, np.int64).tobytes() for hand in redealt(session.states, 0, draws)
        )
        assert set(found) <= set(exact)
        for hand, n in exact.items():
            expected = draws * n / orders
            assert abs(found[hand] - expected) < 5 * expected**0.5

    def test_a_refusal_is_not_put_where_there_is_none(self) -> None:
        session = yielded()
        assert not _hand_refusal(session.states, 1, rng.stream(1, 0, rng.REDEALS))
        assert _hand_refusal(session.states, 0, rng.stream(1, 0, rng.REDEALS))


def test_of_every_history_exactly_the_possible_hands_are_dealt() -> None:
    """What the rules allow, given all that a player has seen; both know what is known of it."""
    possible: dict[tuple[int, ...], set[bytes]] = {}
    examples: dict[tuple[int, ...], States] = {}
    for states, seen in _histories(FEW):
        for player in range(2):
            what = (player, *seen[player])
            possible.setdefault(what, set()).add(_hand(states, 1 - player))
            alike = examples.setdefault(what, states)
            assert (alike["cannot_refuse"] == states["cannot_refuse"]).all()
    told = [what for what in examples if YIELD in what]
    assert {len(possible[what]) for what in told} >= {1, 2, 3, 4}
    for what in told:
        hands = redealt(examples[what], what[0], 300)
        assert {hand.tobytes() for hand in hands} == possible[what]


class TestSavedGames:
    def test_it_is_kept(self) -> None:
        session = yielded()
        assert Session.from_json(session.to_json()).to_json() == session.to_json()

    def test_one_from_before_it_was_kept_knows_nothing_and_goes_on(self) -> None:
        saved = json.loads(yielded().to_json())
        del saved["state"]["cannot_refuse"]
        again = Session.from_json(json.dumps(saved))
        assert known(again) == 0
        play(again, "cash 1")

    @pytest.mark.parametrize(("seat", "number"), [(1, 8), (0, -1)])
    def test_what_the_hand_contradicts_is_refused_by_name(self, seat: int, number: int) -> None:
        session = Session.start("deal-medium", seed=1, deck=["cash 1"] * 5 + [NO] * 3)
        assert GAME.check(session.states, session.rules) is None
        session.states[0]["cannot_refuse"][seat] = number
        assert (GAME.check(session.states, session.rules) or "").startswith("cannot_refuse: ")

    def test_as_many_as_there_are_and_not_one_more(self) -> None:
        session = Session.start("deal-medium", seed=1, deck=["cash 1"] * 5 + [NO] * 3)
        for number, fits in ((2, True), (3, False)):
            session.states[0]["cannot_refuse"][1] = number
            assert (GAME.check(session.states, session.rules) is None) == fits


def test_no_byte_of_a_state_is_padding() -> None:
    """States are compared and hashed as bytes."""
    names = GAME.dtype.names or ()
    assert sum(GAME.dtype[name].itemsize for name in names) == GAME.dtype.itemsize


@kernel
def _hand_refusal(states: Any, player: Any, stream: Any) -> Any:
    return hand_refusal(states[0], player, stream[0])


def _histories(rules: DealRules) -> Iterator[tuple[States, list[list[int]]]]:
    """Every position of the game with what each player has seen on the way to it."""
    states = np.zeros(1, GAME.dtype)
    queries.start(states, GAME.template(rules), 0)
    yield from _from(states, [[], []])


def _from(states: States, seen: list[list[int]]) -> Iterator[tuple[States, list[list[int]]]]:
    mover = queries.current_player(states)
    if mover == OVER:
        return
    if mover == CHANCE:
        choices = np.flatnonzero(states[0]["deck"]).tolist()
    else:
        yield states, seen
        choices = queries.bits(queries.legal_actions(states, CONCRETE))
    for choice in choices:
        after = states.copy()
        told = [[*seen[p], int(queries.observed(states, choice, p))] for p in range(2)]
        queries.apply(after, choice)
        yield from _from(after, told)


def _hand(states: States, seat: int) -> bytes:
    hand: bytes = states[0]["hand"][seat].tobytes()
    return hand
