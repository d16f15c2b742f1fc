"""The ledger: a chain in which no byte can change unnoticed, and that only the games determine."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.ledger import RECORD, first_break, genesis, head_after, head_of, record
from rejoinder_learner.state import Learner, Played

CONFIG = make_config({"game": "kuhn", "method.rollouts": 1, "batch": 4, "lag": 1})
GAMES = 30


@cache
def played(config: RunConfig) -> list[Played]:
    learner, actor = Learner(config), config.actor()
    made = []
    for game in range(GAMES):
        delta = actor.play(game, learner.snapshot_for(game)).copy()
        made.append(Played(game, config.version_for(game), delta))
        learner.fold_all(made[-1:])
    return made


def ledger_of(config: RunConfig, pieces: list[int], taken: Collection[int] = ()) -> bytes:
    """The ledger of games that are folded up to each of the given numbers in turn."""
    learner, records = Learner(config), b""
    for end in [*sorted(pieces), GAMES]:
        learner.fold_all(played(config)[learner.games : end])
        if end in taken:
            records += learner.take_records()
    records += learner.take_records()
    assert learner.take_records() == b""
    assert learner.head == head_of(records)
    return records


def read(content: bytes) -> Any:
    return np.frombuffer(content, RECORD)


def test_a_record_says_what_was_folded_and_hashes_all_before_it() -> None:
    """Written out once more, from the definition."""
    head = hashlib.sha256(f"rejoinder ledger of {CONFIG.fingerprint}\n".encode()).digest()
    assert genesis(CONFIG.fingerprint) == head
    records = read(ledger_of(CONFIG, []))
    assert len(records) == GAMES
    for game, made in enumerate(records):
        delta = hashlib.sha256(played(CONFIG)[game].delta.tobytes()).digest()
        plain = game.to_bytes(8, "little") + max(0, game // 4 - 1).to_bytes(8, "little") + delta
        head = hashlib.sha256(head + plain).digest()
        assert made.tobytes() == plain + head
        assert head_after(records, game + 1, CONFIG.fingerprint) == head


def test_before_the_first_game_the_head_names_the_config() -> None:
    records = read(ledger_of(CONFIG, []))
    assert head_after(records, 0, CONFIG.fingerprint) == genesis(CONFIG.fingerprint)
    assert head_after(records[:0], 0, CONFIG.fingerprint) == genesis(CONFIG.fingerprint)
    assert genesis("a") != genesis("b")


@given(st.lists(st.integers(0, GAMES)), st.sets(st.integers(0, GAMES)))
def test_the_ledger_is_the_same_however_games_are_folded(
    pieces: list[int], taken: set[int]
) -> None:
    assert ledger_of(CONFIG, pieces, taken) == ledger_of(CONFIG, list(range(GAMES)))


def test_another_config_has_another_ledger_from_the_first_record_on() -> None:
    """Even if the games are the same ones: a lag that has not shown yet."""
    other = CONFIG.model_copy(update={"lag": 2})
    ours, theirs = read(ledger_of(CONFIG, [])), read(ledger_of(other, []))
    assert (ours["delta"][:8] == theirs["delta"][:8]).all()
    assert (ours["head"] != theirs["head"]).any(axis=1).all()
    assert first_break(ours, CONFIG.fingerprint) is None
    assert first_break(ours, other.fingerprint) == 0


@given(st.integers(0, GAMES * RECORD.itemsize - 1), st.integers(1, 255))
def test_any_changed_byte_is_found_at_its_record(place: int, change: int) -> None:
    content = bytearray(ledger_of(CONFIG, []))
    content[place] ^= change
    assert first_break(read(bytes(content)), CONFIG.fingerprint) == place // RECORD.itemsize


@pytest.mark.parametrize(
    ("spoil", "at"),
    [
        (lambda r: np.delete(r, 7), 7),
        (lambda r: np.insert(r, 7, r[7]), 8),
        (lambda r: r[1:], 0),
        (lambda r: np.concatenate([r[:5], r[5:7][::-1], r[7:]]), 5),
        (lambda r: r[:-1], None),  # the beginning of a history is a history
        (lambda r: r[:0], None),
    ],
    ids=["left out", "twice", "first missing", "swapped", "shorter", "empty"],
)
def test_records_that_do_not_follow(spoil: Any, at: int | None) -> None:
    assert first_break(spoil(read(ledger_of(CONFIG, []))), CONFIG.fingerprint) == at


def test_a_record_that_was_made_again_breaks_the_next_one() -> None:
    """Whoever rewrites a game must rewrite all after it; then the last head gives him away."""
    records = read(ledger_of(CONFIG, [])).copy()
    before = head_after(records, 9, CONFIG.fingerprint)
    records[9] = read(record(before, 9, 1, b"another delta"))[0]
    assert first_break(records, CONFIG.fingerprint) == 10
