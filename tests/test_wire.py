"""The wire: what is encoded is decoded, and whatever else arrives is refused in one line."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import resource
import struct
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rejoinder.measure.match import _summary
from rejoinder.measure.metrics import plain_result
from rejoinder.methods.base import Task
from rejoinder.methods.patch import Patch
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.rollout import MAX_REGRET, entry_dtype, first_flaw
from rejoinder.run.config import MAX_GAMES, RunConfig, make_config
from rejoinder.run.ledger import SnapshotId
from rejoinder.transport import wire
from rejoinder.transport.wire import (
    MAGIC,
    MAX_LEASE,
    WIRE_VERSION,
    Codec,
    Deltas,
    Evaluation,
    EvaluationLease,
    ForeignError,
    Lease,
    Message,
    Refusal,
    SnapshotPart,
    WireError,
)

CONFIGS = {
    "kuhn": make_config({"game": "kuhn", "method.rollouts": 2}),
    "deal": make_config({"game": "deal", "rules": "tiny", "method.rollouts": 1}),
}
GAMES_PLAYED = 6


@cache
def codec(game: str = "kuhn") -> Codec:
    return Codec(CONFIGS[game])


def actions(config: RunConfig) -> int:
    return len(config.load_abstraction().actions)


@cache
def real_deltas(game: str) -> list[Any]:
    """The deltas of the first games with the empty snapshot, as a worker makes them."""
    config = CONFIGS[game]
    actor, policy = config.actor(), config.load_method().snapshot(config.task())
    return [actor.play(g, policy).copy() for g in range(GAMES_PLAYED)]


def plain(value: Any) -> Any:
    """A message as data that can be compared, arrays by their bytes and their type.

    Without the digests that encoding adds.
    """
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if f.name != "digests"]
        fields = {name: plain(getattr(value, name)) for name in names}
        return [type(value).__name__, fields]
    if isinstance(value, Patch):
        return [plain(value.index), plain(value.rows)]
    if isinstance(value, np.ndarray):
        return [value.dtype.descr, value.tobytes()]
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    return value


snapshot_ids = st.builds(SnapshotId, st.integers(0, MAX_GAMES), st.binary(min_size=32, max_size=32))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def leases(draw: st.DrawFn) -> Lease:
    first = draw(st.integers(0, MAX_GAMES - 1))
    end = draw(st.integers(first + 1, min(first + MAX_LEASE, MAX_GAMES)))
    return Lease(first, end, draw(st.none() | snapshot_ids), draw(texts))


@st.composite
def deltas(draw: st.DrawFn, game: str) -> Deltas:
    made = real_deltas(game)
    start = draw(st.integers(0, len(made) - 1))
    part = made[start : draw(st.integers(start + 1, len(made)))]
    return Deltas(
        first=draw(st.integers(0, MAX_GAMES - len(part))),
        snapshot=draw(snapshot_ids),
        worker=draw(texts),
        seconds=draw(st.floats(0, 1e9)),
        counts=tuple(len(delta) for delta in part),
        entries=np.concatenate(part),
    )


@st.composite
def snapshots(draw: st.DrawFn, game: str = "kuhn") -> SnapshotPart:
    width = actions(CONFIGS[game])
    name = draw(snapshot_ids.filter(lambda name: name.games > 0))
    older = st.builds(SnapshotId, st.integers(0, name.games - 1), st.just(b"b" * 32))
    index = sorted(draw(st.sets(st.integers(0, 1_000), max_size=6)))
    rows = np.zeros(len(index), policy_dtype(width))
    rows["key"] = draw(
        st.lists(st.integers(0, 2**64 - 1), min_size=len(index), max_size=len(index))
    )
    weights = np.array(
        draw(
            st.lists(
                st.floats(0, 1), min_size=2 * width * len(index), max_size=2 * width * len(index)
            )
        )
    ).reshape(len(index), 2, width)
    weights[:, :, 0] += 0.5
    rows["policy"] = weights / weights.sum(axis=2, keepdims=True)
    parts = draw(st.integers(1, 2**20))
    return SnapshotPart(
        id=name,
        base=draw(st.none() | older),
        part=draw(st.integers(0, parts - 1)),
        parts=parts,
        size=draw(st.integers(index[-1] + 1 if index else 0, 2**40)),
        policies=False,
        patch=Patch(np.array(index, np.int64), rows),
    )


@st.composite
def matches(draw: st.DrawFn, game: str = "kuhn") -> dict[str, Any]:
    games = draw(st.integers(2, 10**7))
    match = {"mean_utility": draw(st.floats(-1e9, 1e9)), "games": games}
    if games > 2:
        match["utility_error"] = draw(st.floats(0, 1e9))
    if CONFIGS[game].load_game().counts_wins:
        low, rate, high = sorted(draw(st.tuples(*[st.floats(0, 1)] * 3)))
        match |= {"win_rate": rate, "low": low, "high": high, "draw_rate": draw(st.floats(0, 1))}
    return match


messages: st.SearchStrategy[Message] = st.one_of(
    leases(),
    st.builds(EvaluationLease, snapshot_ids, st.integers(2, 10**7), texts),
    deltas("kuhn"),
    snapshots(),
    st.builds(Evaluation, snapshot_ids, texts, st.dictionaries(texts, matches(), max_size=3)),
    st.builds(Refusal, texts, texts, texts, st.booleans()),
)

NAME, OLDER = SnapshotId(40, b"n" * 32), SnapshotId(20, b"o" * 32)
MATCH: Any = {"mean_utility": -0.1, "utility_error": 0.05, "games": 400}
RATES = {"win_rate": 0.5, "low": 0.25, "high": 0.75, "draw_rate": 0.0}


def sample(kind: str) -> Message:
    """One message of each kind, for tests that spoil it."""
    made = real_deltas("kuhn")
    rows = np.zeros(3, policy_dtype(2))
    rows["key"], rows["policy"] = [5, 6, 7], 0.5
    samples: dict[str, Message] = {
        "lease": Lease(20, 40, NAME, "kernel"),
        "evaluation_lease": EvaluationLease(NAME, 400, "kernel"),
        "deltas": Deltas(20, NAME, "w1", 0.5, tuple(map(len, made)), np.concatenate(made)),
        "snapshot": SnapshotPart(NAME, OLDER, 0, 2, 9, False, Patch(np.array([1, 3, 8]), rows)),
        "evaluation": Evaluation(NAME, "w1", {"random": MATCH}),
        "refusal": Refusal("games 20 to 39", "w1", "no", snapshot_missing=True),
    }
    return samples[kind]


KINDS = ["lease", "evaluation_lease", "deltas", "snapshot", "evaluation", "refusal"]


def body_of(message: Message, using: Codec | None = None) -> dict[str, Any]:
    *_, body, entries = msgpack.unpackb((using or codec()).encode(message))
    return dict(msgpack.unpackb(body)) | ({"entries": entries} if entries else {})


def sealed(kind: str, body: Any, using: Codec | None = None) -> bytes:
    """An envelope whose checksum is right, around any body: what a broken worker would send."""
    fingerprint = (using or codec())._fingerprint
    entries: Any = b""
    if isinstance(body, dict) and kind == "deltas":
        body = dict(body)
        entries = body.pop("entries", b"")
    content = body if isinstance(body, bytes) else msgpack.packb(body)
    checksum = wire._checksum(WIRE_VERSION, kind, fingerprint, content)
    head = [MAGIC, WIRE_VERSION, kind, fingerprint, checksum]
    return bytes(msgpack.packb([*head, content, entries]))


def refusal_of(data: bytes, using: Codec | None = None) -> str:
    with pytest.raises(WireError) as caught:
        (using or codec()).decode(data)
    said = str(caught.value)
    assert said.strip()
    assert len(said.splitlines()) == 1
    assert len(said) < 400
    return said


def decoded_or_refused(data: bytes, using: Codec | None = None) -> Message | None:
    """The two things that may happen; any other exception fails the test."""
    try:
        message = (using or codec()).decode(data)
    except WireError:
        refusal_of(data, using)
        return None
    assert_valid(message)
    return message


def assert_valid(message: Message) -> None:
    """What the rest of the program takes for granted about a decoded message."""
    for field in ("snapshot", "id", "base"):
        name = getattr(message, field, None)
        if name is not None:
            assert type(name.games) is int
            assert 0 <= name.games <= MAX_GAMES
            assert type(name.head) is bytes
            assert len(name.head) == 32
    match message:
        case Lease():
            assert 0 <= message.first < message.end <= message.first + MAX_LEASE
            assert message.end <= MAX_GAMES
        case EvaluationLease():
            assert 2 <= message.match_games <= 10**7
        case Deltas():
            assert 0 < len(message.counts) <= MAX_LEASE
            assert 0 <= message.first <= MAX_GAMES - len(message.counts)
            assert sum(message.counts) == len(message.entries)
            assert list(message.by_unit()) == list(message.units)
            assert np.isfinite(message.entries["regret"]).all()
            assert (message.entries["reach"] <= 1 + 1e-9).all()
            assert 0 <= message.seconds < math.inf
        case SnapshotPart():
            assert message.base is None or message.base.games < message.id.games
            assert 0 <= message.part < message.parts
            index, rows = message.patch
            assert len(index) == len(rows)
            assert (np.diff(index) > 0).all()
            assert not len(index) or (index[0] >= 0 and index[-1] < message.size)
            assert np.allclose(rows["policy"].sum(axis=2), 1)
        case Evaluation():
            for match in message.matches.values():
                assert math.isfinite(match["mean_utility"])
                assert 0 <= match.get("utility_error", 0) < math.inf
                assert "win_rate" not in match
        case Refusal():
            assert type(message.snapshot_missing) is bool


# Round trips


@settings(max_examples=200)
@given(messages)
def test_what_is_encoded_is_decoded(message: Message) -> None:
    data = codec().encode(message)
    decoded = codec().decode(data)
    assert plain(decoded) == plain(message)
    assert plain(codec().decode(codec().encode(decoded))) == plain(message)
    assert_valid(decoded)


@pytest.mark.parametrize("game", CONFIGS)
@given(data=st.data())
def test_real_deltas_come_through_game_by_game(game: str, data: st.DataObject) -> None:
    message = data.draw(deltas(game))
    decoded = codec(game).decode(codec(game).encode(message))
    assert plain(decoded) == plain(message)
    assert isinstance(decoded, Deltas)
    sent, come = message.by_unit(), decoded.by_unit()
    assert list(come) == list(range(message.first, message.first + len(message.counts)))
    assert [d.tobytes() for d in come.values()] == [d.tobytes() for d in sent.values()]


@given(snapshots("deal"))
def test_snapshots_of_a_game_with_many_actions(message: SnapshotPart) -> None:
    assert plain(codec("deal").decode(codec("deal").encode(message))) == plain(message)


def test_decoded_arrays_may_be_written_and_are_aligned() -> None:
    deltas_, snapshot = (codec().decode(codec().encode(sample(k))) for k in ("deltas", "snapshot"))
    assert isinstance(deltas_, Deltas)
    assert isinstance(snapshot, SnapshotPart)
    for array in (deltas_.entries, snapshot.patch.rows, snapshot.patch.index):
        assert array.flags.writeable
        assert array.flags.aligned


def test_long_texts_are_cut_by_the_sender() -> None:
    message = Refusal("l" * 999, "w" * 999, "r" * 999, snapshot_missing=False)
    decoded = codec().decode(codec().encode(message))
    assert decoded == Refusal("l" * 500, "w" * 500, "r" * 500, snapshot_missing=False)


# Messages that are not for this run


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_of_another_run_is_refused(kind: str) -> None:
    other = Codec(make_config({"game": "kuhn", "method.rollouts": 2, "seed": 2}))
    said = refusal_of(other.encode(sample(kind)))
    assert "it belongs to the run" in said
    assert CONFIGS["kuhn"].fingerprint[:12] in said


@pytest.mark.parametrize("version", [0, 1, WIRE_VERSION + 1, 2**64 - 1, -1])
def test_another_wire_version_is_refused(version: int) -> None:
    envelope = msgpack.unpackb(codec().encode(sample("lease")))
    envelope[1] = version
    assert "checksum is wrong" in refusal_of(msgpack.packb(envelope))  # damage, for all we know
    _, _, kind, fingerprint, _, body, _ = envelope
    envelope[4] = wire._checksum(version, kind, fingerprint, body)
    with pytest.raises(
        ForeignError, match=f"wire version {version}; this side speaks {WIRE_VERSION}"
    ):
        codec().decode(msgpack.packb(envelope))


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (0, "rejoinders", "not a message of Rejoinder"),
        (0, b"rejoinder", "not a message of Rejoinder"),
        (1, True, "envelope is damaged"),
        (1, 1.0, "envelope is damaged"),
        (1, None, "envelope is damaged"),
        (2, "leases", "checksum is wrong"),
        (2, b"lease", "envelope is damaged"),
        (2, ["lease"], "envelope is damaged"),
        (2, {}, "envelope is damaged"),
        (2, "\x1b[2J\n" * 100, "checksum is wrong"),
        (2, "evaluation_lease", "checksum is wrong"),
        (3, b"", "checksum is wrong"),
        (3, "f" * 32, "envelope is damaged"),
        (4, b"", "checksum is wrong"),
        (4, None, "envelope is damaged"),
        (5, None, "envelope is damaged"),
        (5, b"", "checksum is wrong"),
        (5, "text", "envelope is damaged"),
        (6, None, "envelope is damaged"),
        (6, b"entries", "entries are out of place"),
    ],
)
def test_a_wrong_envelope_is_refused(place: int, value: Any, reason: str) -> None:
    envelope = msgpack.unpackb(codec().encode(sample("lease")))
    envelope[place] = value
    said = refusal_of(msgpack.packb(envelope))
    assert reason in said
    assert said.isprintable()


@pytest.mark.parametrize("game", CONFIGS)
@pytest.mark.parametrize(("won", "games"), [(0, 20), (1, 20), (10, 20), (19, 20), (20, 20), (1, 2)])
def test_every_result_of_a_real_match_gets_through(won: int, games: int, game: str) -> None:
    """Intervals end a rounding error beyond the rate when all games are won or lost."""
    outcomes = np.array([1.0] * won + [-1.0] * (games - won))
    result: Any = plain_result(_summary(CONFIGS[game].load_game(), outcomes))
    assert ("win_rate" in result) is (game == "deal")
    message = Evaluation(SnapshotId(20, bytes(32)), "worker", {"random": result})
    assert codec(game).decode(codec(game).encode(message)) == message


@pytest.mark.parametrize(
    ("match", "reason"),
    [
        (MATCH, "match against 'random': it must have draw_rate, games, high, low, mean_utility"),
        (MATCH | RATES | {"low": 0.6}, "match against 'random': the rates make no sense"),
        (MATCH | RATES | {"high": 1.1}, "make no sense"),
        (MATCH | RATES | {"draw_rate": 1.1}, "make no sense"),
        (
            MATCH | RATES | {"low": math.nan},
            "'matches.random.low': Input should be a finite number",
        ),
    ],
)
def test_rates_are_checked_where_the_game_counts_wins(match: dict[str, Any], reason: str) -> None:
    body = body_of(sample("evaluation")) | {"matches": {"random": match}}
    assert reason in refusal_of(sealed("evaluation", body, codec("deal")), codec("deal"))


@pytest.mark.parametrize("kind", ["leases", "", "\x1b[2J\n" * 100])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    _, version, _, fingerprint, _, body, _ = msgpack.unpackb(codec().encode(sample("lease")))
    checksum = wire._checksum(version, kind, fingerprint, body)
    said = refusal_of(msgpack.packb([MAGIC, version, kind, fingerprint, checksum, body, b""]))
    assert "unknown kind of message" in said
    assert said.isprintable()


@pytest.mark.parametrize("length", [0, 1, 6, 8])
def test_an_envelope_of_another_length_is_refused(length: int) -> None:
    envelope = [*msgpack.unpackb(codec().encode(sample("lease"))), b""][:length]
    refusal_of(msgpack.packb(envelope))


# Damage on the way


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(data=st.data())
def test_no_damage_goes_unnoticed(kind: str, data: st.DataObject) -> None:
    """Whatever happens to the bytes: refused, or the very message that was sent."""
    message = sample(kind)
    sent = codec().encode(message)
    at = data.draw(st.integers(0, len(sent) - 1))
    ways = ["flip", "insert", "delete", "cut", "twice", "append", "move"]
    match data.draw(st.sampled_from(ways)):
        case "flip":
            come = sent[:at] + bytes([sent[at] ^ data.draw(st.integers(1, 255))]) + sent[at + 1 :]
        case "insert":
            come = sent[:at] + data.draw(st.binary(min_size=1, max_size=9)) + sent[at:]
        case "delete":
            come = sent[:at] + sent[data.draw(st.integers(at + 1, len(sent))) :]
        case "cut":
            come = sent[:at]
        case "twice":
            come = sent[:at] + sent[at // 2 :]
        case "append":
            come = sent + data.draw(st.sampled_from([sent, b"\0", b"\xc0", sent[:at]]))
        case _:
            come = sent[at:] + sent[:at]
    decoded = decoded_or_refused(come)
    assert decoded is None or plain(decoded) == plain(message)


@pytest.mark.parametrize("kind", ["lease", "refusal"])
def test_every_single_flipped_bit(kind: str) -> None:
    sent, unchanged = codec().encode(sample(kind)), 0
    for bit in range(8 * len(sent)):
        come = bytearray(sent)
        come[bit // 8] ^= 1 << bit % 8
        unchanged += decoded_or_refused(bytes(come)) is not None
    assert unchanged == 0


@settings(max_examples=500)
@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    refusal_of(data)


plain_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=40),
    st.just(msgpack.Timestamp(1, 5)),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=9)),
)
structures = st.recursive(
    plain_values,
    lambda inner: (
        st.lists(inner, max_size=7)
        | st.dictionaries(st.text(max_size=8) | st.binary(max_size=4), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(structures)
@example([])
@example({})
@example([MAGIC])
@example([MAGIC, 1, "lease", b"", b"", b""])
def test_random_structures_are_refused(value: Any) -> None:
    refusal_of(msgpack.packb(value))
    for kind in KINDS:
        refusal_of(sealed(kind, value))


@settings(max_examples=200)
@given(st.sampled_from(KINDS), st.binary(max_size=100))
def test_random_bytes_under_a_right_checksum_are_refused(kind: str, body: bytes) -> None:
    refusal_of(sealed(kind, body))


# A right checksum around a wrong body


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_field_of_any_value_is_refused_or_valid(kind: str, data: st.DataObject) -> None:
    body = body_of(sample(kind))
    for name in data.draw(st.lists(st.sampled_from(sorted(body)), min_size=1, max_size=2)):
        body[name] = data.draw(structures)
    decoded_or_refused(sealed(kind, body))


@pytest.mark.parametrize("kind", ["deltas", "snapshot"])
@settings(max_examples=300)
@given(data=st.data())
def test_any_change_inside_the_arrays_is_refused_or_valid(kind: str, data: st.DataObject) -> None:
    body = body_of(sample(kind))
    fields = body["patch"] if kind == "snapshot" else body
    name = data.draw(st.sampled_from([n for n in sorted(fields) if type(fields[n]) is bytes]))
    content = bytearray(fields[name])
    at = data.draw(st.integers(0, len(content) - 8)) // 8 * 8
    content[at : at + 8] = data.draw(
        st.one_of(
            st.binary(max_size=17),
            st.floats().map(lambda value: struct.pack("<d", value)),
            st.integers(0, 2**64 - 1).map(lambda value: struct.pack("<Q", value)),
        )
    )
    fields[name] = bytes(content)
    decoded_or_refused(sealed(kind, body))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (kind, field)
        for kind in KINDS
        for field in sorted(body_of(sample(kind)))
        if field not in ("digests", "entries")  # see the next test
    ],
)
def test_every_field_is_needed_and_has_its_type(kind: str, field: str) -> None:
    whole = body_of(sample(kind))
    assert plain(codec().decode(sealed(kind, whole))) == plain(sample(kind))
    rest = {name: value for name, value in whole.items() if name != field}
    assert f"{kind}: '{field}': Field required" in refusal_of(sealed(kind, rest))
    wrongs = [-1.5, -1, 2**63, 10**13, math.nan, math.inf, [], [1], {"a": 1}, b"odd"]
    may_be_none = (kind, field) in {("lease", "snapshot"), ("snapshot", "base")}
    for wrong in wrongs if may_be_none else [None, *wrongs]:
        said = refusal_of(sealed(kind, whole | {field: wrong}))
        assert field in said or "not msgpack" in said or "match against" in said
    if type(whole[field]) is not bool:
        refusal_of(sealed(kind, whole | {field: True}))
    if type(whole[field]) is not str:
        refusal_of(sealed(kind, whole | {field: "text"}))
    for extra in (msgpack.Timestamp(3), msgpack.ExtType(5, b"12345")):
        assert "not msgpack" in refusal_of(sealed(kind, whole | {field: extra}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"digests": b""}, "the entries do not match their digests"),
        ({"digests": bytes(31)}, "'digests': bytes in pieces of 32 are needed"),
        ({"digests": bytes(32 * (MAX_LEASE + 1))}, "'digests': a message has at most 100000 units"),
        ({"digests": [1]}, "'digests'"),
        ({"digests": bytes(32 * 6)}, "the entries do not match their digests"),
        ({"entries": b"odd"}, "'entries': bytes in rows of"),
        ({"entries": [1]}, "the envelope is damaged"),
    ],
)
def test_entries_are_those_of_their_digests(change: dict[str, Any], said: str) -> None:
    whole = body_of(sample("deltas"))
    assert plain(codec().decode(sealed("deltas", whole))) == plain(sample("deltas"))
    refused = refusal_of(sealed("deltas", whole | change))
    assert said in refused or "not msgpack" in refused
    without = {name: value for name, value in whole.items() if name not in change}
    refusal_of(sealed("deltas", without))
    twice = codec().decode(codec().encode(sample("deltas")))
    assert isinstance(twice, Deltas)
    assert twice.digests == tuple(
        hashlib.sha256(delta.tobytes()).digest() for delta in twice.by_unit().values()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_are_refused(kind: str) -> None:
    body = body_of(sample(kind))
    assert "'more': Unexpected keyword argument" in refusal_of(sealed(kind, body | {"more": 1}))
    assert "Field required" in refusal_of(sealed(kind, {b"first": 1}))
    assert "the body: Input should be a dictionary" in refusal_of(sealed(kind, b"\xc0"))
    said = refusal_of(sealed(kind, {f"field {n}": n for n in range(101)}))
    assert "not msgpack: 101 exceeds" in said


def packed(games: int) -> bytes:
    """The name of a snapshot as it travels."""
    return struct.pack("<Q32s", games, b"h" * 32)


def patch_with(index: bytes) -> dict[str, Any]:
    """The sample snapshot's patch with other row numbers."""
    return {"patch": body_of(sample("snapshot"))["patch"] | {"index": index}}


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("lease", {"end": 20}, "end must be from 21 to 100020"),
        ("lease", {"end": 20 + MAX_LEASE + 1}, "end must be from 21 to 100020"),
        ("lease", {"first": MAX_GAMES, "end": MAX_GAMES}, "end must be from"),
        ("lease", {"end": MAX_GAMES + 1}, "'end': Input should be less than or equal"),
        ("lease", {"first": -1}, "'first': Input should be greater than or equal to 0"),
        ("lease", {"snapshot": b"h" * 39}, "'snapshot': 40 bytes are needed"),
        ("lease", {"snapshot": packed(MAX_GAMES + 1)}, "'snapshot': a snapshot has at most"),
        ("lease", {"kernel": "k" * 501}, "'kernel': String should have at most 500"),
        ("evaluation_lease", {"match_games": 1}, "'match_games': Input should be greater"),
        ("evaluation_lease", {"match_games": 10**7 + 1}, "'match_games': Input should be less"),
        ("deltas", {"first": MAX_GAMES - 1}, "6 units in one message"),
        ("deltas", {"counts": b""}, "0 units in one message"),
        ("deltas", {"counts": bytes(4 * (MAX_LEASE + 1))}, "a message has at most 100000 units"),
        ("deltas", {"counts": bytes(4)}, "entries, not 0"),
        ("deltas", {"counts": b"\xff" * 24}, "counts must be at most"),
        ("deltas", {"counts": struct.pack("<I", 1)}, "entries, not 1"),
        ("deltas", {"entries": b""}, "0 entries, not"),
        ("deltas", {"seconds": -1e-9}, "'seconds': Input should be greater"),
        ("deltas", {"seconds": 2e9}, "'seconds': Input should be less"),
        ("deltas", {"seconds": math.nan}, "'seconds': Input should be a finite number"),
        ("snapshot", {"base": packed(40)}, "40 games cannot be the base of 40"),
        ("snapshot", {"base": packed(41)}, "41 games cannot be the base of 40"),
        ("snapshot", {"part": 2}, "part 2 of 2"),
        ("snapshot", {"parts": 0}, "'parts': Input should be greater"),
        ("snapshot", {"size": 8}, "inside the table"),
        ("snapshot", {"size": 2**40 + 1}, "'size': Input should be less"),
        ("snapshot", patch_with(struct.pack("<2Q", 1, 3)), "2 row numbers for 3 rows"),
        ("snapshot", patch_with(struct.pack("<3Q", 1, 1, 8)), "must increase"),
        ("snapshot", patch_with(struct.pack("<3Q", 3, 1, 8)), "must increase"),
        ("snapshot", patch_with(struct.pack("<3Q", 1, 3, 2**64 - 1)), "inside the table"),
        ("snapshot", patch_with(struct.pack("<3Q", 2**63, 3, 8)), "must increase"),
        ("snapshot", {"patch": {"index": b"\0" * 24, "rows": b""}}, "3 row numbers for 0 rows"),
        ("snapshot", {"patch": {"index": b""}}, "'patch': a map of index and rows"),
        ("snapshot", {"patch": {"index": b"", "rows": b"odd"}}, "bytes in rows of"),
        ("evaluation", {"matches": {"random": {}}}, "'matches.random.games': Field required"),
        ("evaluation", {"matches": {"random": MATCH | {"mean_utility": math.nan}}}, "mean_utility"),
        ("evaluation", {"matches": {"random": MATCH | {"utility_error": -0.1}}}, "utility_error"),
        (
            "evaluation",
            {"matches": {"random": MATCH | RATES}},
            "'random': it must have games, mean",
        ),
        (
            "evaluation",
            {"matches": {"random": MATCH | {"games": 1}}},
            "random.games': Input should",
        ),
        (
            "evaluation",
            {"matches": {"random": MATCH | {"more": 1}}},
            "'matches.random.more': Extra",
        ),
        ("evaluation", {"matches": {"r" * 501: MATCH}}, "String should have at most 500"),
        ("evaluation", {"matches": {"random": [1]}}, "not msgpack"),
        ("refusal", {"snapshot_missing": 1}, "'snapshot_missing': Input should be a valid boolean"),
        ("refusal", {"reason": "r" * 501}, "'reason': String should have at most 500"),
    ],
)
def test_what_no_sender_would_say_is_refused(
    kind: str, change: dict[str, Any], reason: str
) -> None:
    assert reason in refusal_of(sealed(kind, body_of(sample(kind)) | change))


Spoil = Callable[[Any], None]


def spoil(field: str, value: Any, at: int = 2) -> Spoil:
    def change(rows: Any) -> None:
        rows[field][at] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        spoil("legal", 0),
        spoil("legal", 4),  # kuhn has two actions
        spoil("legal", 2**63 + 3),
        spoil("reach", -0.1),
        spoil("reach", 1.001),
        spoil("reach", math.nan),
        spoil("reach", math.inf),
        spoil("regret", [math.nan, 0]),
        spoil("regret", [0, -math.inf]),
        spoil("regret", [0, 1.01 * MAX_REGRET]),
        spoil("regret", [1e308, 0]),
    ],
)
@pytest.mark.parametrize("at", [0, 2, -1])
def test_an_entry_that_no_game_gives_is_refused(change: Spoil, at: int) -> None:
    message = sample("deltas")
    assert isinstance(message, Deltas)
    entries = message.entries.copy()
    moved = np.roll(entries, 2 - at)  # the spoilt entry comes first, third or last
    change(moved)
    entries = np.roll(moved, at - 2)
    said = refusal_of(codec().encode(dataclasses.replace(message, entries=entries)))
    assert f"entry {at % len(entries)} is not what a game gives" in said


def test_a_regret_of_an_action_that_is_not_legal_is_refused() -> None:
    entries = np.zeros(1, entry_dtype(2))
    entries["legal"], entries["regret"] = 0b01, [0.5, 0.0]
    message = Deltas(0, NAME, "w1", 0.0, (1,), entries)
    assert_valid(codec().decode(codec().encode(message)))
    entries["regret"] = [0.5, -1e-300]
    assert "entry 0 is not what a game gives" in refusal_of(codec().encode(message))


def test_a_unit_may_give_nothing() -> None:
    """A block of iterations in which every move was forced."""
    message = Deltas(0, NAME, "w1", 0.0, (0, 0), np.zeros(0, entry_dtype(2)))
    assert_valid(codec().decode(codec().encode(message)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"visits": 0}, "entry 1 is not what a unit gives"),
        ({"spare": 1}, "'entries': spare bytes must be zero"),
    ],
)
def test_an_entry_that_no_block_gives_is_refused(change: dict[str, int], reason: str) -> None:
    config = make_config({"game": "leduc", "method.name": "external"})
    entries = config.actor().play(0, config.load_method().snapshot(config.task())).copy()
    for field, value in change.items():
        entries[field][1] = value
    message = Deltas(0, NAME, "w1", 0.0, (len(entries),), entries)
    assert reason in refusal_of(Codec(config).encode(message), Codec(config))


def test_a_refused_entry_of_a_game_with_many_actions_is_told_on_one_line() -> None:
    made = real_deltas("deal")[0].copy()
    made["regret"][0] = math.nan
    message = Deltas(0, NAME, "w1", 0.0, (len(made),), made)
    assert "entry 0 is not" in refusal_of(codec("deal").encode(message), codec("deal"))


@pytest.mark.parametrize("game", CONFIGS)
def test_what_games_give_has_no_flaw(game: str) -> None:
    for delta in real_deltas(game):
        assert first_flaw(delta, actions(CONFIGS[game])) == -1


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ([0.5, 0.6], "sum to 1"),
        ([0.0, 0.0], "sum to 1"),
        ([1.5, -0.5], "between 0 and 1"),
        ([math.nan, 1.0], "between 0 and 1"),
        ([math.inf, 0.0], "between 0 and 1"),
    ],
)
@pytest.mark.parametrize("column", [0, 1])
def test_a_policy_that_is_none_is_refused(policy: list[float], column: int, reason: str) -> None:
    message = sample("snapshot")
    assert isinstance(message, SnapshotPart)
    message.patch.rows["policy"][1, column] = policy
    assert reason in refusal_of(codec().encode(message))


# Sizes


def nested(opening: bytes, depth: int, core: bytes = b"\xc0") -> bytes:
    return opening * depth + core


@pytest.mark.parametrize("depth", [3, 500, 1_000, 1_023, 1_024, 5_000, 1_000_000])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\x96\xa9rejoinder\x01"])
def test_deep_nesting_is_refused(opening: bytes, depth: int) -> None:
    deep = nested(opening, depth)
    refusal_of(deep)
    head = b"\x96\xa9rejoinder\x01"
    refusal_of(head + deep + b"\xc0" * 3)  # as the kind
    for kind in KINDS:
        refusal_of(sealed(kind, deep))
        field = sorted(body_of(sample(kind)))[0]
        refusal_of(sealed(kind, b"\x81" + msgpack.packb(field) + deep))


@pytest.mark.parametrize("mark", [b"\xdd", b"\xdf", b"\xc6", b"\xdb", b"\xc9"])
@pytest.mark.parametrize("length", [2**16, 2**31 - 1, 2**32 - 1])
def test_announced_lengths_are_not_believed(mark: bytes, length: int) -> None:
    """Arrays of 2³² elements, inside each other, in a message of a megabyte: no memory, no time."""
    header = mark + struct.pack(">I", length)
    data = header * 1_000
    data += b"\xc0" * (10**6 - len(data))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    refusal_of(data)
    for kind in ("lease", "deltas"):
        refusal_of(sealed(kind, data))
        refusal_of(sealed(kind, b"\x81\xa5first" + data))
    assert time.process_time() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_room_is_never_made_for_more_than_was_sent() -> None:
    """Lists inside each other that all claim to be as long as the whole message."""
    size = 10**6
    data = (b"\xdd" + struct.pack(">I", size - 1)) * 500
    data += b"\xc0" * (size - len(data))
    body = sealed("deltas", data)
    tracemalloc.start()
    try:
        refusal_of(data)
        refusal_of(body)
        assert tracemalloc.get_traced_memory()[1] < 10 * size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", ["rollout", "external", "outcome", "chance"])
@pytest.mark.parametrize("policies", [False, True])
def test_keys_of_a_snapshot_are_dense_where_the_game_says_so(
    monkeypatch: pytest.MonkeyPatch, method: str, policies: bool
) -> None:
    """A table has no room for others: a worker would search it for ever."""
    config = make_config({"game": "kuhn", "method.name": method})
    task, kind = config.task(), config.load_method()
    rows = np.zeros(2, kind.policy_dtype(task) if policies else kind.snapshot_dtype(task))
    rows["key"] = 11, 12
    for name, value in (("policy", 1 / task.actions), ("strategy", 1 / task.actions), ("legal", 3)):
        if name in (rows.dtype.names or ()):
            rows[name] = value
    part = SnapshotPart(NAME, None, 0, 1, 2, policies, Patch(np.arange(2), rows))
    using = Codec(config)
    data = using.encode(part)
    for keys in (None, 13):
        monkeypatch.setattr(Task, "dense", keys)
        assert plain(using.decode(data)) == plain(part)
    monkeypatch.setattr(Task, "dense", 12)
    with pytest.raises(WireError, match="snapshot: keys must be below 12"):
        using.decode(data)
