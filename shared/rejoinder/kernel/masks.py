"""Sets of actions: one 64-bit word for games with up to 64 actions, a tuple of words for others.

Compiled code goes through a mask in increasing order and never looks at its form:

    left = legal
    while some(left):
        a = first(left)
        left = rest(left)

Each operation is chosen by the type of the mask while numba compiles. On one word it is the machine
instruction that one would write by hand; on several it loops over them.

A record keeps a mask in a field made by `mask_field`, which has as many words as the actions need.
That may be fewer than a game's masks have: `store` drops words, which are empty then.
"""

# ruff: noqa: ARG001, SIM110 (numba fixes signatures and compiles no generators)

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from rejoinder.kernel.jit import RULE_OPTIONS, lowest_bit, popcount, rule

WORD = 64  # actions in a word

_OPTIONS: Any = RULE_OPTIONS
_with_word: Any = tuple_setitem  # (tuple, index, value) → the tuple with another value there
_as_tuple: Any = to_fixed_tuple  # (array, length) → tuple

Mask: TypeAlias = int | tuple[int, ...]  # as a kernel returns it to Python


def words_for(actions: int) -> int:
    """Words of a mask of so many actions."""
    return max(1, -(-actions // WORD))


def mask_field(name: str, actions: int) -> tuple[Any, ...]:
    """A field of a record dtype that holds a mask."""
    words = words_for(actions)
    return (name, "<u8") if words == 1 else (name, "<u8", (words,))


def mask_of(actions: Iterable[int], width: int) -> Any:
    """A mask for compiled code, of `width` actions in all."""
    bits = sum(1 << a for a in set(actions))
    return words_of(bits, words_for(width))


def words_of(bits: int, words: int) -> Any:
    """A Python integer as a mask of so many words."""
    parts = [np.uint64(bits >> WORD * w & 2**WORD - 1) for w in range(words)]
    return parts[0] if words == 1 else tuple(parts)


def actions_in(mask: Any) -> list[int]:
    """The actions of a mask, in order: one that a kernel returned, or the field of a record."""
    found = []
    for w, word in enumerate(np.atleast_1d(np.asarray(mask, np.uint64)).tolist()):
        while word:
            found.append(WORD * w + (word & -word).bit_length() - 1)
            word &= word - 1
    return found


def mask_table(masks: Any, actions: int) -> Any:
    """Masks of many records as bool[records, actions]."""
    words = masks[:, None] if masks.ndim == 1 else masks
    a = np.arange(actions)
    shifted = words[:, a // WORD] >> (a % WORD).astype(np.uint64)
    return shifted & np.uint64(1) == 1


def _by_type(word: Callable[..., Any], words: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a mask that is one function for one word and another for several."""

    def register(stub: Any) -> Any:
        stub.choices = (word, words)  # the identity of kernels covers them

        # Copied into callers as `hot` functions are: as calls they slowed solvers by about 5 %.
        @overload(stub, inline="always", jit_options=_OPTIONS)
        @functools.wraps(stub)  # numba compares the signatures
        def choose(mask: Any, *_: Any) -> Any:
            chosen: Any = words if isinstance(mask, types.BaseTuple) else word
            return chosen.py_func

        return stub

    return register


@rule
def _first_in_word(mask: Any) -> Any:
    return lowest_bit(mask)


@rule
def _first_in_words(mask: Any) -> Any:
    for w in range(len(mask)):
        if mask[w] != 0:
            return np.int64(WORD * w + lowest_bit(mask[w]))
    return np.int64(0)


@_by_type(_first_in_word, _first_in_words)
def first(mask: Any) -> Any:
    """The lowest action of a mask that has one."""


@rule
def _drop_in_word(mask: Any) -> Any:
    return mask & (mask - np.uint64(1))


@rule
def _drop_in_words(mask: Any) -> Any:
    for w in range(len(mask)):
        if mask[w] != 0:
            return _with_word(mask, w, mask[w] & (mask[w] - np.uint64(1)))
    return mask


@_by_type(_drop_in_word, _drop_in_words)
def rest(mask: Any) -> Any:
    """A mask without its lowest action."""


@rule
def _any_in_word(mask: Any) -> Any:
    return mask != 0


@rule
def _any_in_words(mask: Any) -> Any:
    for w in range(len(mask)):
        if mask[w] != 0:
            return True
    return False


@_by_type(_any_in_word, _any_in_words)
def some(mask: Any) -> Any:
    """Whether there is any action in a mask."""


@rule
def _several_in_word(mask: Any) -> Any:
    return mask & (mask - np.uint64(1)) != 0


@rule
def _several_in_words(mask: Any) -> Any:
    return _count_words(mask) > 1


@_by_type(_several_in_word, _several_in_words)
def several(mask: Any) -> Any:
    """Whether there is more than one action in a mask: a choice."""


@rule
def _count_word(mask: Any) -> Any:
    return popcount(mask)


@rule
def _count_words(mask: Any) -> Any:
    total = np.int64(0)
    for w in range(len(mask)):
        total += popcount(mask[w])
    return total


@_by_type(_count_word, _count_words)
def count(mask: Any) -> Any:
    """How many actions there are in a mask."""


@rule
def _has_in_word(mask: Any, action: Any) -> Any:
    return (mask >> np.uint64(action)) & np.uint64(1) != 0


@rule
def _has_in_words(mask: Any, action: Any) -> Any:
    return (mask[action // WORD] >> np.uint64(action % WORD)) & np.uint64(1) != 0


@_by_type(_has_in_word, _has_in_words)
def has(mask: Any, action: Any) -> Any:
    """Whether an action is in a mask."""


@rule
def _set_in_word(mask: Any, action: Any) -> Any:
    return mask | (np.uint64(1) << np.uint64(action))


@rule
def _set_in_words(mask: Any, action: Any) -> Any:
    w = action // WORD
    return _with_word(mask, w, mask[w] | (np.uint64(1) << np.uint64(action % WORD)))


@_by_type(_set_in_word, _set_in_words)
def added(mask: Any, action: Any) -> Any:
    """A mask with one action more."""


@rule
def _minus_word(mask: Any, other: Any) -> Any:
    return mask & ~other


@rule
def _minus_words(mask: Any, other: Any) -> Any:
    made = mask
    for w in range(len(mask)):
        made = _with_word(made, w, mask[w] & ~other[w])
    return made


@_by_type(_minus_word, _minus_words)
def without(mask: Any, other: Any) -> Any:
    """The actions of a mask that are not in another of the same form."""


@rule
def _word_within(mask: Any, actions: Any) -> Any:
    return actions >= WORD or mask >> np.uint64(actions) == 0


@rule
def _words_within(mask: Any, actions: Any) -> Any:
    for w in range(len(mask)):
        above = max(actions - WORD * w, 0)
        if above < WORD and mask[w] >> np.uint64(above) != 0:
            return False
    return True


@_by_type(_word_within, _words_within)
def within(mask: Any, actions: Any) -> Any:
    """Whether a mask has only actions below `actions`."""


@rule
def _no_word(mask: Any) -> Any:
    return np.uint64(0)


@rule
def _no_words(mask: Any) -> Any:
    made = mask
    for w in range(len(mask)):
        made = _with_word(made, w, np.uint64(0))
    return made


@_by_type(_no_word, _no_words)
def empty(mask: Any) -> Any:
    """An empty mask of the same form."""


def load(record: Any, field: Any) -> Any:
    """The mask in a field of a record; the field is a constant string."""


@overload(load, prefer_literal=True, jit_options=_OPTIONS)
def _choose_load(record: Any, field: Any) -> Any:
    if not isinstance(field, types.StringLiteral):
        return None
    name = field.literal_value
    kept = record.typeof(name)
    words = kept.shape[0] if isinstance(kept, types.NestedArray) else 1

    def load_word(record: Any, field: Any) -> Any:
        return record[name]

    def load_words(record: Any, field: Any) -> Any:
        return _as_tuple(record[name], words)

    return load_words if words > 1 else load_word


load.choices = (_choose_load,)  # type: ignore[attr-defined]


def store(record: Any, field: Any, mask: Any) -> None:
    """Write a mask into a field of a record."""


@overload(store, prefer_literal=True, jit_options=_OPTIONS)
def _choose_store(record: Any, field: Any, mask: Any) -> Any:
    if not isinstance(field, types.StringLiteral):
        return None
    name = field.literal_value
    kept = record.typeof(name)
    wide = isinstance(mask, types.BaseTuple)
    if isinstance(kept, types.NestedArray):
        words = kept.shape[0]

        def store_words(record: Any, field: Any, mask: Any) -> None:
            for w in range(words):
                record[name][w] = mask[w]

        return store_words if wide and len(mask) >= words else None

    def store_first(record: Any, field: Any, mask: Any) -> None:
        record[name] = mask[0]

    def store_word(record: Any, field: Any, mask: Any) -> None:
        record[name] = mask

    return store_first if wide else store_word


store.choices = (_choose_store,)  # type: ignore[attr-defined]
