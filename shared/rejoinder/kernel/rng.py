"""Random streams: xoshiro256++ in a record, one independent stream per (seed, index, purpose).

There is no global random state anywhere in Rejoinder. Whoever needs randomness is given a stream,
and a stream is a pure function of its three coordinates, so game g of a run draws the same numbers
on any machine, in any process, in any order.

Reference: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021); the 256-bit
state is filled by SplitMix64, as its authors recommend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.kernel.jit import kernel, rule

STREAM = np.dtype([("s0", "<u8"), ("s1", "<u8"), ("s2", "<u8"), ("s3", "<u8")], align=True)

# Purposes keep streams apart that share seed and index.
TRAINING = 0
DEALS = 1  # the cards of a match or of a table, apart from the players' own choices
CHOICES = 2
REDEALS = 3  # re-dealing what a player cannot see

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def stream(seed: int, index: int, purpose: int) -> Any:
    """A fresh stream as a one-element array of `STREAM` (what compiled code takes)."""
    made = np.zeros(1, STREAM)
    _open(made, np.uint64(seed % 2**64), np.uint64(index % 2**64), np.uint64(purpose))
    return made


@rule
def open_stream(rng: Any, seed: Any, index: Any, purpose: Any) -> None:
    """Put `rng` at the start of the stream (seed, index, purpose); all three unsigned 64-bit."""
    x = mix(mix(mix(np.uint64(seed)) ^ np.uint64(index)) ^ np.uint64(purpose))
    rng.s0 = mix(x + _GOLDEN)
    rng.s1 = mix(x + np.uint64(2) * _GOLDEN)
    rng.s2 = mix(x + np.uint64(3) * _GOLDEN)
    rng.s3 = mix(x + np.uint64(4) * _GOLDEN)


@rule
def next_u64(rng: Any) -> Any:
    """The next 64 random bits."""
    s0, s1, s2, s3 = rng.s0, rng.s1, rng.s2, rng.s3
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    rng.s1 = s1 ^ s2
    rng.s0 = s0 ^ s3
    rng.s2 = s2 ^ shifted
    rng.s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return result


@rule
def uniform(rng: Any) -> Any:
    """A float in [0, 1) with 53 random bits."""
    return np.float64(next_u64(rng) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@rule
def below(rng: Any, n: Any) -> Any:
    """An integer in [0, n) for n < 2**32. The bias is below n / 2**32, far under sampling noise."""
    return np.int64(((next_u64(rng) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@rule
def mix(x: Any) -> Any:
    """SplitMix64's finaliser: a bijection of 64-bit words that scatters nearby inputs."""
    x = np.uint64(x) + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@kernel
def _open(made: Any, seed: Any, index: Any, purpose: Any) -> None:
    open_stream(made[0], seed, index, purpose)
