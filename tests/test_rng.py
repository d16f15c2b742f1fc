"""Random streams against published test vectors and a second implementation in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernel.jit import kernel
from rejoinder.kernel.rng import (
    CHOICES,
    DEALS,
    REDEALS,
    STREAM,
    TRAINING,
    below,
    mix,
    next_u64,
    stream,
    uniform,
)

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
words = st.integers(0, WORD - 1)


@kernel
def draw_words(rng: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = next_u64(rng[0])


@kernel
def draw_below(rng: Any, n: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = below(rng[0], n)


@kernel
def draw_uniform(rng: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = uniform(rng[0])


@kernel
def mixed(x: Any) -> Any:
    return mix(x)


def next_words(rng: Any, n: int) -> list[int]:
    out = np.zeros(n, np.uint64)
    draw_words(rng, out)
    return [int(word) for word in out]


def split_mix(x: int) -> int:
    x = (x + GOLDEN) % WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def xoshiro(state: tuple[int, ...]) -> Iterator[int]:
    """xoshiro256++ as its authors' C program has it."""

    def rotate(x: int, k: int) -> int:
        return (x << k | x >> 64 - k) % WORD

    s = list(state)
    while True:
        yield (rotate((s[0] + s[3]) % WORD, 23) + s[0]) % WORD
        t = (s[1] << 17) % WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)


def test_xoshiro_gives_the_published_outputs() -> None:
    rng = np.array([(1, 2, 3, 4)], STREAM)
    published = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]
    assert list(islice(xoshiro((1, 2, 3, 4)), 10)) == published
    assert next_words(rng, 10) == published


def test_mix_gives_the_published_outputs_of_splitmix64() -> None:
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    for k, expected in enumerate(published):
        assert int(mixed(np.uint64((1234567 + k * GOLDEN) % WORD))) == expected


@given(seed=words, index=words, purpose=st.integers(0, 3))
def test_a_stream_is_the_reference_generator_filled_by_splitmix64(
    seed: int, index: int, purpose: int
) -> None:
    x = split_mix(split_mix(split_mix(seed) ^ index) ^ purpose)
    state = tuple(split_mix((x + k * GOLDEN) % WORD) for k in range(1, 5))
    made = stream(seed, index, purpose)
    assert tuple(int(word) for word in made[0]) == state
    assert next_words(made, 5) == list(islice(xoshiro(state), 5))


def test_a_stream_is_reproducible() -> None:
    first = next_words(stream(7, 3, TRAINING), 100)
    next_words(stream(8, 4, DEALS), 17)
    assert next_words(stream(7, 3, TRAINING), 100) == first


def test_streams_differ_by_seed_by_index_and_by_purpose() -> None:
    coordinates = [
        (seed, index, purpose)
        for seed in range(20)
        for index in range(20)
        for purpose in (TRAINING, DEALS, CHOICES, REDEALS)
    ]
    seen = [word for where in coordinates for word in next_words(stream(*where), 2)]
    assert len(set(seen)) == 2 * len(coordinates)


def test_a_negative_seed_is_a_seed() -> None:
    assert next_words(stream(-1, 0, 0), 3) == next_words(stream(WORD - 1, 0, 0), 3)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 11, 52])
def test_below_is_the_high_part_of_a_product_and_about_uniform(n: int) -> None:
    draws = 1000 * n
    out = np.zeros(draws, np.int64)
    draw_below(stream(5, n, TRAINING), n, out)
    reference = [(word >> 32) * n >> 32 for word in next_words(stream(5, n, TRAINING), draws)]
    assert out.tolist() == reference
    assert (out.min(), out.max()) == (0, n - 1)
    counts = np.bincount(out, minlength=n)
    chi_square = ((counts - 1000.0) ** 2 / 1000.0).sum()
    assert chi_square < (n - 1) + 4 * np.sqrt(2 * (n - 1)) + 1e-9


def test_below_reaches_the_ends_of_a_large_range() -> None:
    n = 2**32 - 1
    out = np.zeros(10_000, np.int64)
    draw_below(stream(6, 0, TRAINING), n, out)
    assert 0 <= out.min() < n / 1000
    assert n - n / 1000 < out.max() < n


def test_uniform_has_53_bits_in_the_half_open_interval() -> None:
    out = np.zeros(20_000)
    draw_uniform(stream(9, 0, TRAINING), out)
    reference = [(word >> 11) / 2**53 for word in next_words(stream(9, 0, TRAINING), 20_000)]
    assert out.tolist() == reference
    assert out.min() >= 0.0
    assert out.max() < 1.0
    counts, _ = np.histogram(out, bins=20, range=(0.0, 1.0))
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 43.8  # 99.9 % of chi-square, 19 degrees


def test_uniform_of_the_largest_word_is_below_one() -> None:
    # s0 + s3 = 0 makes the rotation 0, so that the output is s0 itself.
    rng = np.array([(WORD - 1, 0, 0, 1)], STREAM)
    out = np.zeros(1)
    draw_uniform(rng, out)
    assert out[0] == 1.0 - 2.0**-53
