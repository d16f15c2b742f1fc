"""The compiled engine against the naive one of naive_deal.py, move by move, on over 10,000 games.

The naive engine's legal moves are drawn from at random and drive both. After every move the two
must agree on who acts, on every legal move with its abstract name, on the information set and on
every pile; at the end on the result.
"""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest
from naive_deal import NaiveDeal, full_deck

from rejoinder.games import queries
from rejoinder.games.base import States
from rejoinder.games.contract import CHANCE, CONCRETE, OVER
from rejoinder.games.deal import GAME, DealRules
from rejoinder.games.deal.abstraction import INTENT, intent_identifier, meaning
from rejoinder.games.deal.cards import (
    ABSTRACT_NAMES,
    COLOURS,
    KIND_NAMES,
    MONEY_KINDS,
    MOVE_NAMES,
)

NAMED = {
    "micro": 2500,
    "tiny": 2500,
    "small": 2000,
    "medium": 1500,
    "large": 600,
    "ordered": 1500,
    "micro-plain": 500,
    "micro-ordered": 500,
}
RANDOM_RULES, GAMES_EACH = 150, 8
assert sum(NAMED.values()) + RANDOM_RULES * GAMES_EACH >= 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_named_configurations_agree(name: str) -> None:
    rules = GAME.configurations[name]
    assert isinstance(rules, DealRules)
    for index in range(NAMED[name]):
        _play_both(rules, random.Random(f"{name} {index}"))


@pytest.mark.slow
def test_random_rules_agree() -> None:
    played = set()
    for k in range(RANDOM_RULES):
        rules = _random_rules(random.Random(f"rules {k}"))
        for index in range(GAMES_EACH):
            played |= _play_both(rules, random.Random(f"rules {k} {index}"))
    assert played == set(MOVE_NAMES), "every move there is was compared"


def _play_both(rules: DealRules, choose: random.Random) -> set[str]:
    """One game; returns the moves that occurred in it."""
    deck = full_deck(rules.property_copies, rules.cash_copies, rules.rent_copies, rules.just_say_no)
    choose.shuffle(deck)
    first = choose.randrange(2)
    patience = choose.choice([0.05, 0.3, 1.0])  # how readily a drawn pass is played
    naive = NaiveDeal(
        deck=deck,
        first_player=first,
        sets_needed=rules.sets_needed,
        hand_size=rules.hand_size,
        draw=rules.draw,
        streak=rules.streak,
        turn_cap=rules.turn_cap,
        response=rules.response,
    )
    to_come = [KIND_NAMES.index(card) for card in reversed(deck)]
    states = np.zeros(1, GAME.dtype)
    queries.start(states, GAME.template(rules), first)
    _draw(states, to_come)
    played = set()
    while not naive.is_over():
        _compare(naive, states)
        legal = sorted(naive.legal())
        move = choose.choice(legal)
        if move == "pass" and choose.random() > patience:
            move = choose.choice(legal)
        played.add(move)
        naive.apply(move)
        queries.apply(states, MOVE_NAMES.index(move))
        _draw(states, to_come)
    assert queries.current_player(states) == OVER
    assert _snapshot(states) == naive.snapshot()
    won = np.zeros(2)
    queries.utilities(states, won)
    assert won.tolist() == naive.utilities()
    return played


def _draw(states: States, to_come: list[int]) -> None:
    while queries.current_player(states) == CHANCE:
        queries.apply(states, to_come.pop())


def _compare(naive: NaiveDeal, states: States) -> None:
    assert queries.current_player(states) == naive.current_player()
    assert _snapshot(states) == naive.snapshot()
    legal = naive.legal()
    assert _move_names(queries.legal_actions(states, CONCRETE)) == legal
    for move in legal:
        assert ABSTRACT_NAMES[meaning(states, MOVE_NAMES.index(move))] == naive.abstract(move)
    available = _abstract_names(queries.legal_actions(states, INTENT))
    assert available == naive.available_abstract()
    assert _identifier(queries.infoset_key(states, INTENT)) == naive.infoset_id()


def _snapshot(states: States) -> dict[str, object]:
    """The state in the form of `NaiveDeal.snapshot`."""
    state = states[0]
    response = None
    if state["owed"] > 0:
        given = state["responses"][: state["n_responses"]].tolist()
        response = {
            "owed": state["owed"],
            "paid": state["paid"],
            "initiator": 1 - state["mover"],
            "action": MOVE_NAMES[state["initiating"]],
            "responses": [MOVE_NAMES[move] for move in given],
        }
    return {
        "hands": [_cards(state["hand"][p].tobytes()) for p in (0, 1)],
        "banks": [_cards(state["bank"][p].tobytes()) for p in (0, 1)],
        "properties": [_cards(state["properties"][p].tobytes()) for p in (0, 1)],
        "deck_size": state["deck_count"],
        "discard": _cards(state["discard"].tobytes()),
        "cannot_refuse": state["cannot_refuse"].tolist(),
        "turn": state["turn"],
        "streak_player": state["streak_player"],
        "streak_index": state["streak_index"],
        "response": response,
    }


@functools.cache
def _cards(counts: bytes) -> list[str]:
    """A pile of counts (signed bytes, by kind) as the sorted names of its cards."""
    assert len(counts) in (len(KIND_NAMES), MONEY_KINDS, len(COLOURS))
    copies = zip(KIND_NAMES, np.frombuffer(counts, np.int8).tolist(), strict=False)
    return sorted(card for name, n in copies for card in [name] * n)


@functools.cache
def _move_names(mask: int) -> set[str]:
    return {MOVE_NAMES[move] for move in queries.bits(mask)}


@functools.cache
def _abstract_names(mask: int) -> list[str]:
    return [ABSTRACT_NAMES[action] for action in queries.bits(mask)]


_identifier = functools.cache(intent_identifier)


def _random_rules(choose: random.Random) -> DealRules:
    """Playable rules, far from the named ones."""
    while True:
        try:
            return DealRules.model_validate(
                {
                    "property_copies": [choose.randrange(0, 8) for _ in range(3)],
                    "cash_copies": [choose.randrange(0, 5) for _ in range(4)],
                    "rent_copies": [choose.randrange(0, 8) for _ in range(3)],
                    "just_say_no": choose.randrange(0, 6),
                    "sets_needed": choose.randrange(1, 4),
                    "hand_size": choose.randrange(1, 9),
                    "draw": choose.randrange(0, 5),
                    "streak": choose.randrange(1, 5),
                    "turn_cap": choose.choice([1, 3, 20, 60, 120]),
                    "response": choose.choice(["plain", "ordered"]),
                }
            )
        except ValueError:
            continue
