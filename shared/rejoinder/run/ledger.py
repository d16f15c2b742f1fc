"""The ledger: for every folded unit its index, the snapshot version it was played with and the
SHA-256 of its delta, each record chained to the one before.

Invariant: the head after n records names the whole history, config included, and nothing else: who
played the games, when and how often is not in it. So runs that claim the same digest have the same
ledger, byte for byte, whatever number of workers made them.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, NamedTuple

import numpy as np

RECORD = np.dtype(
    [
        ("unit", "<u8"),
        ("version", "<u8"),  # of the snapshot that the unit was played with
        ("delta", "u1", (32,)),  # SHA-256 of the delta's bytes
        ("head", "u1", (32,)),  # SHA-256 of the head before, and of this record up to here
    ]
)


class SnapshotId(NamedTuple):
    """Which policies: after how many games, and by which history."""

    games: int
    head: bytes  # of the ledger after those games


_PLAIN = struct.Struct("<QQ32s")


def genesis(fingerprint: str) -> bytes:
    """The head before the first record."""
    return hashlib.sha256(f"rejoinder ledger of {fingerprint}\n".encode()).digest()


def record(head: bytes, unit: int, version: int, delta: Any, digest: bytes | None = None) -> bytes:
    """The next record; its last 32 bytes are the new head. `digest` is the delta's, if known."""
    plain = _PLAIN.pack(unit, version, digest or hashlib.sha256(delta).digest())
    return plain + hashlib.sha256(head + plain).digest()


def head_of(made: bytes) -> bytes:
    return made[-32:]


def head_after(records: Any, units: int, fingerprint: str) -> bytes:
    """The head that the ledger had after so many units."""
    return records["head"][units - 1].tobytes() if units else genesis(fingerprint)


def first_break(records: Any, fingerprint: str) -> int | None:
    """The first record that does not follow from the one before, or None."""
    head = genesis(fingerprint)
    for n, raw in enumerate(records):
        content = raw.tobytes()
        plain, claimed = content[: _PLAIN.size], content[_PLAIN.size :]
        head = hashlib.sha256(head + plain).digest()
        if head != claimed:
            return n
    return None
