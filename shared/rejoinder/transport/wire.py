"""What travels between learner and workers: the messages, and one codec for them.

A message is a msgpack array

    [magic, wire version, kind, fingerprint of the run, checksum, body, entries]

whose body is a msgpack map of the message's fields; arrays are `bin` fields of little-endian rows.
The entries of deltas stand outside: the body has their SHA-256 by unit, which the ledger needs as
well, so that they are hashed once.
Decoding trusts nothing: the checksum covers all but the entries, pydantic checks the type, range
and size
of every field, the codec what fields must be to each other and to the run, and whatever is wrong
becomes a `WireError` that states it. A decoded message is as good as one made here; whether its
content is *true* is what audits are for.

A snapshot is named by the number of games folded when it was taken and by the head of the ledger at
that point (`SnapshotId`), so a delta is tied to the exact policies that it was made with.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import reprlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NotRequired, TypeAlias, cast

import msgpack
import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    TypeAdapter,
    ValidationError,
)
from pydantic_core.core_schema import ValidationInfo
from typing_extensions import TypedDict

from rejoinder.methods.base import Delta
from rejoinder.methods.patch import Patch
from rejoinder.methods.rows import spare_is_zero
from rejoinder.run.config import MAX_GAMES, Learning
from rejoinder.run.ledger import SnapshotId

MAGIC = "rejoinder"
WIRE_VERSION = 5
MAX_LEASE = 100_000  # units in one lease or one message of deltas
_CHECKSUM_BYTES = 16
_DIGEST_BYTES = hashlib.sha256().digest_size
_MAX_ROWS = 2**40
_MAX_PARTS = 2**20  # of a snapshot
_MAX_TEXT = 500
_MAX_MATCH_GAMES = 10**7
_ROUNDING = 1e-9  # of rates: the interval of a match that was won altogether ends just below 1
_MAX_OPPONENTS = 100  # in one evaluation
_ENTRIES = "entries"
_RATE_FIELDS = ("win_rate", "low", "high", "draw_rate")  # where the game counts wins
_COUNT = np.dtype("<u4")
_INDEX = np.dtype("<u8")
_NAME = struct.Struct("<Q32s")  # a snapshot's name


class WireError(ValueError):
    """A message that is refused; the text is one line that states why."""


class ForeignError(WireError):
    """A whole message, but of another run or another version of Rejoinder."""


def _read_name(value: Any) -> SnapshotId:
    if type(value) is not bytes or len(value) != _NAME.size:
        raise ValueError(f"{_NAME.size} bytes are needed")
    name = SnapshotId(*_NAME.unpack(value))
    if name.games > MAX_GAMES:
        raise ValueError(f"a snapshot has at most {MAX_GAMES} games")
    return name


def _read_rows(value: Any, dtype: np.dtype[Any]) -> Any:
    """Rows, in memory of their own that is aligned and may be written."""
    if type(value) is not bytes or len(value) % dtype.itemsize:
        raise ValueError(f"bytes in rows of {dtype.itemsize} are needed")
    return np.frombuffer(bytearray(value), dtype)  # NumPy copies rows field by field


def _read_counts(value: Any) -> tuple[int, ...]:
    if type(value) is bytes and len(value) > MAX_LEASE * _COUNT.itemsize:
        raise ValueError(f"a message has at most {MAX_LEASE} units")
    return tuple(_read_rows(value, _COUNT).tolist())


def _read_digests(value: Any) -> tuple[bytes, ...]:
    if type(value) is not bytes or len(value) % _DIGEST_BYTES:
        raise ValueError(f"bytes in pieces of {_DIGEST_BYTES} are needed")
    if len(value) > MAX_LEASE * _DIGEST_BYTES:
        raise ValueError(f"a message has at most {MAX_LEASE} units")
    starts = range(0, len(value), _DIGEST_BYTES)
    return tuple(value[start : start + _DIGEST_BYTES] for start in starts)


def _read_entries(value: Any, info: ValidationInfo) -> Delta:
    entries: Delta = _read_rows(value, cast(Codec, info.context).entry)
    if not spare_is_zero(entries):
        raise ValueError("spare bytes must be zero")
    return entries


def _read_patch(value: Any, info: ValidationInfo) -> Patch:
    if type(value) is not dict or value.keys() != {"index", "rows"}:
        raise ValueError("a map of index and rows is needed")
    codec = cast(Codec, info.context)
    dtype = codec.policy_row if info.data.get("policies") else codec.snapshot_row
    index, rows = _read_rows(value["index"], _INDEX), _read_rows(value["rows"], dtype)
    if len(index) != len(rows):
        raise ValueError(f"{len(index)} row numbers for {len(rows)} rows")
    if (index >= _MAX_ROWS).any() or (index[1:] <= index[:-1]).any():
        raise ValueError("row numbers must increase and lie inside the table")
    return Patch(index.astype(np.int64), rows)


def _write_patch(patch: Patch) -> dict[str, bytes]:
    return {"index": patch.index.astype(_INDEX).tobytes(), "rows": patch.rows.tobytes()}


# Types of fields, as they are in a message and as they travel.
Whole = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Unit = Annotated[Whole, Field(ge=0, le=MAX_GAMES)]
Text = Annotated[
    str, Strict(), Field(max_length=_MAX_TEXT), PlainSerializer(lambda text: text[:_MAX_TEXT])
]
Name = Annotated[
    SnapshotId, PlainValidator(_read_name), PlainSerializer(lambda name: _NAME.pack(*name))
]
Counts = Annotated[
    tuple[int, ...],
    PlainValidator(_read_counts),
    PlainSerializer(lambda counts: np.array(counts, _COUNT).tobytes()),
]
Digests = Annotated[
    tuple[bytes, ...], PlainValidator(_read_digests), PlainSerializer(lambda made: b"".join(made))
]
Entries = Annotated[
    Any, PlainValidator(_read_entries), PlainSerializer(lambda entries: entries.tobytes())
]
PatchedRows = Annotated[Patch, PlainValidator(_read_patch), PlainSerializer(_write_patch)]
Utility = Annotated[Number, Field(ge=-1e9, le=1e9)]
NotNegative = Annotated[Number, Field(ge=0, le=1e9)]

_NO_MORE = ConfigDict(extra="forbid")  # fields than these


@dataclass(frozen=True)
class Lease:
    """Play the units first … end−1."""

    __pydantic_config__: ClassVar = _NO_MORE

    first: Unit
    end: Unit
    snapshot: Name | None  # None: the newest there is (unordered mode)
    kernel: Text


@dataclass(frozen=True)
class EvaluationLease:
    """Play matches with the policies of a snapshot."""

    __pydantic_config__: ClassVar = _NO_MORE

    snapshot: Name
    match_games: Annotated[Whole, Field(ge=2, le=_MAX_MATCH_GAMES)]
    kernel: Text


@dataclass(frozen=True)
class Deltas:
    """The deltas of consecutive units."""

    __pydantic_config__: ClassVar = _NO_MORE

    first: Unit
    snapshot: Name
    worker: Text
    seconds: NotNegative  # that it took to play them
    counts: Counts  # entries of each unit
    entries: Entries  # of all units, end to end
    digests: Digests = ()  # SHA-256 of each unit's entries; `encode` fills it in

    @property
    def units(self) -> range:
        return range(self.first, self.first + len(self.counts))

    def by_unit(self) -> dict[int, Delta]:
        ends = itertools.accumulate(self.counts)
        return {
            unit: self.entries[end - count : end]
            for unit, count, end in zip(self.units, self.counts, ends, strict=True)
        }


@dataclass(frozen=True)
class SnapshotPart:
    """One part of a snapshot: rows to write over those of its base, or into an empty one.

    An evaluation's holds the policies at that point instead of what actors read.
    """

    __pydantic_config__: ClassVar = _NO_MORE

    id: Name
    base: Name | None  # None: it is complete by itself
    part: Annotated[Whole, Field(ge=0, lt=_MAX_PARTS)]
    parts: Annotated[Whole, Field(ge=1, le=_MAX_PARTS)]
    size: Annotated[Whole, Field(ge=0, le=_MAX_ROWS)]  # rows of the whole
    policies: Flag  # for an evaluation
    patch: PatchedRows  # what its rows are depends on `policies`


class Match(TypedDict):
    """Figures of a match; rates where the game counts wins."""

    __pydantic_config__ = _NO_MORE  # type: ignore[misc]

    games: Annotated[Whole, Field(ge=2, le=_MAX_MATCH_GAMES + 1_000)]  # rounded up to whole deals
    mean_utility: Utility
    utility_error: NotRequired[NotNegative]  # of one deal there is none
    win_rate: NotRequired[NotNegative]
    low: NotRequired[NotNegative]
    high: NotRequired[NotNegative]
    draw_rate: NotRequired[NotNegative]


@dataclass(frozen=True)
class Evaluation:
    """How the policies of a snapshot did against each opponent."""

    __pydantic_config__: ClassVar = _NO_MORE

    snapshot: Name
    worker: Text
    matches: Annotated[dict[Text, Match], Field(max_length=_MAX_OPPONENTS)]


@dataclass(frozen=True)
class Refusal:
    """A worker could not do what a lease asked for."""

    __pydantic_config__: ClassVar = _NO_MORE

    lease: Text  # the lease in words
    worker: Text
    reason: Text
    snapshot_missing: Flag  # the one reason that the learner can remove by itself


Message: TypeAlias = Lease | EvaluationLease | Deltas | SnapshotPart | Evaluation | Refusal

_KINDS: dict[str, type[Any]] = {
    "lease": Lease,
    "evaluation_lease": EvaluationLease,
    "deltas": Deltas,
    "snapshot": SnapshotPart,
    "evaluation": Evaluation,
    "refusal": Refusal,
}
_NAMES = {message: kind for kind, message in _KINDS.items()}
_ADAPTERS: dict[str, TypeAdapter[Any]] = {kind: TypeAdapter(m) for kind, m in _KINDS.items()}


class Codec:
    """Encodes and decodes the messages of one run."""

    def __init__(self, config: Learning) -> None:
        self._game = config.load_game()
        self._method, self._task = config.load_method(), config.task()
        self._fingerprint = bytes.fromhex(config.fingerprint)
        self._most_entries = self._method.most_entries(self._task)
        self._check_delta = self._method.delta_check(self._task)
        self.entry = self._method.delta_dtype(self._task)
        self.snapshot_row = self._method.snapshot_dtype(self._task)
        self.policy_row = self._method.policy_dtype(self._task)

    def encode(self, message: Message) -> bytes:
        kind = _NAMES[type(message)]
        if isinstance(message, Deltas):
            message = dataclasses.replace(message, digests=_digests(message))
        fields = _ADAPTERS[kind].dump_python(message, warnings="error")
        entries = fields.pop(_ENTRIES, b"")
        body = msgpack.packb(fields)
        checksum = _checksum(WIRE_VERSION, kind, self._fingerprint, body)
        head = [MAGIC, WIRE_VERSION, kind, self._fingerprint, checksum]
        return bytes(msgpack.packb([*head, body, entries]))

    def decode(self, data: bytes) -> Message:
        """The message; `WireError` states what is wrong with it."""
        kind, body, entries = self._open(data)
        fields = _unpack(body, arrays_of=0)
        if isinstance(fields, dict):
            if _ENTRIES in fields or (entries and kind != _NAMES[Deltas]):
                raise WireError(f"{kind}: entries are out of place")
            if kind == _NAMES[Deltas]:
                fields[_ENTRIES] = entries
        try:
            message: Message = _ADAPTERS[kind].validate_python(fields, context=self)
        except ValidationError as error:
            raise WireError(f"{kind}: {_explain(error)}") from None
        if flaw := self._flaw(message):
            raise WireError(f"{kind}: {flaw}")
        return message

    def _open(self, data: bytes) -> tuple[str, bytes, bytes]:
        envelope = _unpack(data, arrays_of=7)
        if not isinstance(envelope, list) or not envelope or envelope[0] != MAGIC:
            raise WireError("not a message of Rejoinder")
        if [type(part) for part in envelope] != [str, int, str, bytes, bytes, bytes, bytes]:
            raise WireError("the envelope is damaged")
        _, version, kind, fingerprint, checksum, body, entries = envelope
        if checksum != _checksum(version, kind, fingerprint, body):
            raise WireError("its checksum is wrong")
        if version != WIRE_VERSION:
            raise ForeignError(f"wire version {version}; this side speaks {WIRE_VERSION}")
        if fingerprint != self._fingerprint:
            raise ForeignError(
                f"it belongs to the run {fingerprint.hex()[:12]}…, "
                f"not to {self._fingerprint.hex()[:12]}…"
            )
        if kind not in _KINDS:
            raise WireError(f"unknown kind of message {_short(kind)}")
        return kind, body, entries

    def _flaw(self, message: Message) -> str | None:
        """Why no sender has made it, though every field by itself could be."""
        match message:
            case Lease(first=first, end=end):
                last = min(first + MAX_LEASE, MAX_GAMES)
                return None if first < end <= last else f"end must be from {first + 1} to {last}"
            case Deltas():
                return self._flaw_of_deltas(message)
            case SnapshotPart():
                return self._flaw_of_snapshot(message)
            case Evaluation():
                flaws = (
                    f"match against {_short(opponent)}: {flaw}"
                    for opponent, figures in message.matches.items()
                    if (flaw := self._flaw_of_match(figures))
                )
                return next(flaws, None)
        return None

    def _flaw_of_deltas(self, deltas: Deltas) -> str | None:
        counts = deltas.counts
        if not 0 < len(counts) <= min(MAX_LEASE, MAX_GAMES - deltas.first):
            return f"{len(counts)} units in one message"
        if max(counts) > self._most_entries:
            return f"counts must be at most {self._most_entries}"
        if len(deltas.entries) != sum(counts):
            return f"{len(deltas.entries)} entries, not {sum(counts)}"
        if deltas.digests != _digests(deltas):
            return "the entries do not match their digests"
        return self._check_delta(deltas.entries)

    def _flaw_of_snapshot(self, snapshot: SnapshotPart) -> str | None:
        games, base, (index, rows) = snapshot.id.games, snapshot.base, snapshot.patch
        if base is not None and base.games >= games:
            return f"{base.games} games cannot be the base of {games}"
        if snapshot.part >= snapshot.parts:
            return f"part {snapshot.part} of {snapshot.parts}"
        if len(index) and index[-1] >= snapshot.size:
            return "row numbers must increase and lie inside the table"
        method = self._method
        check = method.check_policies if snapshot.policies else method.check_snapshot
        return check(self._task, rows)

    def _flaw_of_match(self, figures: Mapping[str, Any]) -> str | None:
        rates = _RATE_FIELDS if self._game.counts_wins else ()
        error = ("utility_error",) if figures["games"] > self._game.players else ()
        expected = {"games", "mean_utility", *error, *rates}
        if figures.keys() != expected:
            return f"it must have {', '.join(sorted(expected))} and no other fields"
        if figures["games"] < self._game.players:
            return f"a deal is {self._game.players} games"
        if rates:
            low, high = figures["low"] - _ROUNDING, figures["high"] + _ROUNDING
            possible = low <= figures["win_rate"] <= high <= 1 + 2 * _ROUNDING
            if not possible or figures["draw_rate"] > 1:
                return "the rates make no sense"
        return None


def _digests(deltas: Deltas) -> tuple[bytes, ...]:
    units: Iterable[Any] = deltas.by_unit().values()
    return tuple(hashlib.sha256(delta).digest() for delta in units)


def _explain(error: ValidationError) -> str:
    """The first thing that is wrong, on one line."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = _short(".".join(map(str, found["loc"]))) if found["loc"] else "the body"
    return f"{where}: {found['msg'].removeprefix('Value error, ')}"


def _checksum(version: int, kind: str, fingerprint: bytes, body: bytes) -> bytes:
    made = hashlib.sha256(f"{version} {kind} ".encode() + fingerprint)
    made.update(body)
    return made.digest()[:_CHECKSUM_BYTES]


def _unpack(data: bytes, arrays_of: int) -> Any:
    """The content. msgpack makes room for announced lengths at once, so they are limited."""
    try:
        return msgpack.unpackb(
            data, max_array_len=arrays_of, max_map_len=_MAX_OPPONENTS, max_ext_len=0
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise WireError(f"not msgpack: {str(error) or type(error).__name__}") from None


def _short(value: Any) -> str:
    """A value for people: quoted, on one line, not long, however big or deep it is."""
    text = reprlib.repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
