"""What travels between learner and workers: the messages, and one codec for them.

A message is a msgpack array

    [magic, wire version, kind, fingerprint of the run, checksum, body]

whose body is a msgpack map; arrays are `bin` fields of little-endian rows. Decoding trusts nothing:
the checksum covers all the rest, every field is checked for type, range and size before it is used,
and whatever is wrong becomes a `WireError` that says what. A decoded message is as good as one made
here; whether its content is *true* is what audits are for.

A snapshot is named by the number of games folded when it was taken and by the head of the ledger at
that point (`SnapshotId`), so a delta is tied to the exact policies that it was made with.
"""

from __future__ import annotations

import hashlib
import itertools
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgpack
import numpy as np

from rejoinder.methods.base import Delta
from rejoinder.methods.patch import Patch
from rejoinder.run.config import MAX_GAMES, Learning
from rejoinder.run.ledger import SnapshotId

MAGIC = "rejoinder"
WIRE_VERSION = 3
MAX_LEASE = 100_000  # units in one lease or one message of deltas
HASH_BYTES = 32
_CHECKSUM_BYTES = 16
_MAX_ROWS = 2**40
_MAX_TEXT = 500
_ROUNDING = 1e-9  # of rates: the interval of a match that was won altogether ends just below 1
_MAX_OPPONENTS = 100  # in one evaluation
_MAX_MATCH_GAMES = 10**7 + 1_000  # what a config may ask for, rounded up to whole deals
_RATE_FIELDS = ("win_rate", "low", "high", "draw_rate")  # where the game counts wins
_COUNT = np.dtype("<u4")
_INDEX = np.dtype("<u8")

Matches: TypeAlias = Mapping[str, Mapping[str, Any]]  # opponent → figures of the match


class WireError(ValueError):
    """A message that is refused; the text is one line that says why."""


class ForeignError(WireError):
    """A whole message, but of another run or another version of Rejoinder."""


@dataclass(frozen=True)
class Lease:
    """Play the units first … end−1."""

    first: int
    end: int
    snapshot: SnapshotId | None  # None: the newest there is (unordered mode)
    kernel: str


@dataclass(frozen=True)
class EvaluationLease:
    """Play matches with the policies of a snapshot."""

    snapshot: SnapshotId
    match_games: int
    kernel: str


@dataclass(frozen=True)
class Deltas:
    """The deltas of consecutive units."""

    first: int
    snapshot: SnapshotId
    worker: str
    seconds: float  # that it took to play them
    counts: tuple[int, ...]  # entries of each unit
    entries: Delta  # of all units, end to end

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

    id: SnapshotId
    base: SnapshotId | None  # None: it is complete by itself
    part: int
    parts: int
    size: int  # rows of the whole
    patch: Patch
    policies: bool = False  # for an evaluation


@dataclass(frozen=True)
class Evaluation:
    """How the policies of a snapshot did against each opponent."""

    snapshot: SnapshotId
    worker: str
    matches: Matches


@dataclass(frozen=True)
class Refusal:
    """A worker could not do what a lease asked for."""

    lease: str  # the lease in words
    worker: str
    reason: str
    snapshot_missing: bool  # the one reason that the learner can mend by itself


Message: TypeAlias = Lease | EvaluationLease | Deltas | SnapshotPart | Evaluation | Refusal


class Codec:
    """Encodes and decodes the messages of one run."""

    def __init__(self, config: Learning) -> None:
        self._game = config.load_game()
        self._method, self._task = config.load_method(), config.task()
        self._fingerprint = bytes.fromhex(config.fingerprint)
        self._entry = self._method.delta_dtype(self._task)
        self._row = self._method.snapshot_dtype(self._task)
        self._policy = self._method.policy_dtype(self._task)
        self._most_entries = self._method.most_entries(self._task)

    def encode(self, message: Message) -> bytes:
        kind = _KINDS[type(message)]
        body = msgpack.packb(_WRITERS[kind](message))
        checksum = _checksum(WIRE_VERSION, kind, self._fingerprint, body)
        return bytes(msgpack.packb([MAGIC, WIRE_VERSION, kind, self._fingerprint, checksum, body]))

    def decode(self, data: bytes) -> Message:
        """The message; `WireError` says what is wrong with it."""
        kind, body = self._open(data)
        fields = _Fields(kind, _unpack(body, arrays_of=0))
        message = getattr(self, f"_read_{kind}")(fields)
        fields.nothing_left()
        return message  # type: ignore[no-any-return]

    def _open(self, data: bytes) -> tuple[str, bytes]:
        envelope = _unpack(data, arrays_of=6)
        if not isinstance(envelope, list) or not envelope or envelope[0] != MAGIC:
            raise WireError("not a message of Rejoinder")
        if [type(part) for part in envelope] != [str, int, str, bytes, bytes, bytes]:
            raise WireError("the envelope is damaged")
        _, version, kind, fingerprint, checksum, body = envelope
        if checksum != _checksum(version, kind, fingerprint, body):
            raise WireError("its checksum is wrong")
        if version != WIRE_VERSION:
            raise ForeignError(f"wire version {version}; this side speaks {WIRE_VERSION}")
        if fingerprint != self._fingerprint:
            raise ForeignError(
                f"it belongs to the run {fingerprint.hex()[:12]}…, "
                f"not to {self._fingerprint.hex()[:12]}…"
            )
        if kind not in _WRITERS:
            raise WireError(f"unknown kind of message {_short(kind)}")
        return kind, body

    def _read_lease(self, fields: _Fields) -> Lease:
        first = fields.integer("first", 0, MAX_GAMES)
        end = fields.integer("end", first + 1, min(first + MAX_LEASE, MAX_GAMES))
        snapshot = fields.snapshot() if fields.boolean("pinned") else None
        return Lease(first, end, snapshot, fields.text("kernel"))

    def _read_evaluation_lease(self, fields: _Fields) -> EvaluationLease:
        match_games = fields.integer("match_games", 2, 10**7)
        return EvaluationLease(fields.snapshot(), match_games, fields.text("kernel"))

    def _read_deltas(self, fields: _Fields) -> Deltas:
        first = fields.integer("first", 0, MAX_GAMES - 1)
        counts = tuple(fields.array("counts", _COUNT).tolist())
        if not 0 < len(counts) <= min(MAX_LEASE, MAX_GAMES - first):
            raise WireError(f"deltas: {len(counts)} units in one message")
        if min(counts) < 1 or max(counts) > self._most_entries:
            raise WireError(f"deltas: counts must be from 1 to {self._most_entries}")
        entries = fields.array("entries", self._entry)
        if len(entries) != sum(counts):
            raise WireError(f"deltas: {len(entries)} entries, not {sum(counts)}")
        if flaw := self._method.check_delta(self._task, entries):
            raise WireError(f"deltas: {flaw}")
        return Deltas(
            first=first,
            snapshot=fields.snapshot(),
            worker=fields.text("worker"),
            seconds=fields.number("seconds", 0.0, 1e9),
            counts=counts,
            entries=entries,
        )

    def _read_snapshot(self, fields: _Fields) -> SnapshotPart:
        name = fields.snapshot()
        base = fields.snapshot("base_") if fields.boolean("patch") else None
        if base is not None and base.games >= name.games:
            raise WireError(f"snapshot: {base.games} games cannot be the base of {name.games}")
        size = fields.integer("size", 0, _MAX_ROWS)
        parts = fields.integer("parts", 1, 2**20)
        policies = fields.boolean("policies")
        dtype = self._policy if policies else self._row
        index, rows = fields.array("index", _INDEX), fields.array("rows", dtype)
        if len(index) != len(rows):
            raise WireError(f"snapshot: {len(index)} row numbers for {len(rows)} rows")
        if len(index) and (index[-1] >= size or (index[1:] <= index[:-1]).any()):
            raise WireError("snapshot: row numbers must increase and lie inside the table")
        method = self._method
        check = method.check_policies if policies else method.check_snapshot
        if flaw := check(self._task, rows):
            raise WireError(f"snapshot: {flaw}")
        return SnapshotPart(
            id=name,
            base=base,
            part=fields.integer("part", 0, parts - 1),
            parts=parts,
            size=size,
            patch=Patch(index.astype(np.int64), rows),
            policies=policies,
        )

    def _read_evaluation(self, fields: _Fields) -> Evaluation:
        matches = {}
        for opponent, values in fields.table("matches"):
            match = _Fields(f"match against {_short(opponent)}", values)
            matches[opponent] = self._read_match(match)
            match.nothing_left()
        return Evaluation(fields.snapshot(), fields.text("worker"), matches)

    def _read_match(self, match: _Fields) -> dict[str, Any]:
        seats = self._game.players
        figures: dict[str, Any] = {"games": match.integer("games", seats, _MAX_MATCH_GAMES)}
        figures["mean_utility"] = match.number("mean_utility", -1e9, 1e9)
        if figures["games"] > seats:  # of one deal there is none
            figures["utility_error"] = match.number("utility_error", 0.0, 1e9)
        if self._game.counts_wins:
            rates = {name: match.number(name, 0.0, 1e9) for name in _RATE_FIELDS}
            low, high = rates["low"] - _ROUNDING, rates["high"] + _ROUNDING
            possible = low <= rates["win_rate"] <= high <= 1 + 2 * _ROUNDING
            if not possible or rates["draw_rate"] > 1:
                raise WireError(f"{match.what}: the rates make no sense")
            figures |= rates
        return figures

    def _read_refusal(self, fields: _Fields) -> Refusal:
        return Refusal(
            lease=fields.text("lease"),
            worker=fields.text("worker"),
            reason=fields.text("reason"),
            snapshot_missing=fields.boolean("snapshot_missing"),
        )


def _write_lease(lease: Lease) -> dict[str, Any]:
    pinned = lease.snapshot is not None
    name = _write_id(lease.snapshot) if lease.snapshot else {}
    return {"first": lease.first, "end": lease.end, "pinned": pinned, "kernel": lease.kernel} | name


def _write_evaluation_lease(lease: EvaluationLease) -> dict[str, Any]:
    return {"match_games": lease.match_games, "kernel": lease.kernel} | _write_id(lease.snapshot)


def _write_deltas(deltas: Deltas) -> dict[str, Any]:
    return {
        "first": deltas.first,
        "worker": deltas.worker[:_MAX_TEXT],
        "seconds": float(deltas.seconds),
        "counts": np.array(deltas.counts, _COUNT).tobytes(),
        "entries": deltas.entries.tobytes(),
    } | _write_id(deltas.snapshot)


def _write_snapshot(snapshot: SnapshotPart) -> dict[str, Any]:
    base = _write_id(snapshot.base, "base_") if snapshot.base else {}
    return {
        "patch": snapshot.base is not None,
        "part": snapshot.part,
        "parts": snapshot.parts,
        "size": snapshot.size,
        "policies": snapshot.policies,
        "index": snapshot.patch.index.astype(_INDEX).tobytes(),
        "rows": snapshot.patch.rows.tobytes(),
    } | (_write_id(snapshot.id) | base)


def _write_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    matches = {name: dict(figures) for name, figures in evaluation.matches.items()}
    return {"worker": evaluation.worker[:_MAX_TEXT], "matches": matches} | _write_id(
        evaluation.snapshot
    )


def _write_refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "lease": refusal.lease[:_MAX_TEXT],
        "worker": refusal.worker[:_MAX_TEXT],
        "reason": refusal.reason[:_MAX_TEXT],
        "snapshot_missing": refusal.snapshot_missing,
    }


def _write_id(name: SnapshotId, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}games": name.games, f"{prefix}head": name.head}


_KINDS: dict[type, str] = {
    Lease: "lease",
    EvaluationLease: "evaluation_lease",
    Deltas: "deltas",
    SnapshotPart: "snapshot",
    Evaluation: "evaluation",
    Refusal: "refusal",
}
_WRITERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    kind: globals()[f"_write_{kind}"] for kind in _KINDS.values()
}


class _Fields:
    """A body that is taken apart field by field; every field must be asked for."""

    def __init__(self, what: str, body: Any) -> None:
        if not isinstance(body, dict) or not all(isinstance(name, str) for name in body):
            raise WireError(f"{what}: the body is not a map of fields")
        self.what = what
        self._left = dict(body)

    def integer(self, name: str, low: int, high: int) -> int:
        value = self._take(name)
        if type(value) is not int or not low <= value <= high:
            raise self._wrong(name, f"an integer from {low} to {high}", value)
        return value

    def number(self, name: str, low: float, high: float) -> float:
        value = self._take(name)
        if type(value) is not float or not low <= value <= high:  # NaN fails too
            raise self._wrong(name, f"a number from {low:g} to {high:g}", value)
        return value

    def boolean(self, name: str) -> bool:
        value = self._take(name)
        if type(value) is not bool:
            raise self._wrong(name, "a boolean", value)
        return value

    def text(self, name: str) -> str:
        value = self._take(name)
        if type(value) is not str or len(value) > _MAX_TEXT:
            raise self._wrong(name, f"a text of at most {_MAX_TEXT} characters", value)
        return value

    def array(self, name: str, dtype: np.dtype[Any]) -> Any:
        """Rows, in memory of their own that is aligned and may be written."""
        value = self._take(name)
        if type(value) is not bytes or len(value) % dtype.itemsize:
            raise self._wrong(name, f"bytes in rows of {dtype.itemsize}", value)
        return np.frombuffer(bytearray(value), dtype)  # NumPy copies rows field by field

    def snapshot(self, prefix: str = "") -> SnapshotId:
        games = self.integer(f"{prefix}games", 0, MAX_GAMES)
        head = self._take(f"{prefix}head")
        if type(head) is not bytes or len(head) != HASH_BYTES:
            raise self._wrong(f"{prefix}head", f"{HASH_BYTES} bytes", head)
        return SnapshotId(games, head)

    def table(self, name: str) -> list[tuple[str, Any]]:
        value = self._take(name)
        if type(value) is not dict or len(value) > _MAX_OPPONENTS:
            raise self._wrong(name, f"a map of at most {_MAX_OPPONENTS} entries", value)
        for key in value:
            if type(key) is not str or len(key) > _MAX_TEXT:
                raise self._wrong(name, "a map of texts", value)
        return list(value.items())

    def nothing_left(self) -> None:
        if self._left:
            raise WireError(f"{self.what}: unknown fields {_short(sorted(self._left))}")

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise WireError(f"{self.what}: {name} is missing")
        return self._left.pop(name)

    def _wrong(self, name: str, wanted: str, value: Any) -> WireError:
        return WireError(f"{self.what}: {name} must be {wanted}, not {_short(value)}")


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
