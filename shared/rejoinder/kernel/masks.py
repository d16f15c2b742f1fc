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

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from rejoinder.kernel.jit import RULE_OPTIONS, intrinsic, lowest_bit, popcount, rule

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


# The operations are intrinsics: as calls, which LLVM copies into their callers, they slowed solvers
# by about 5 %, and overloads with inline="always" gave wrong code in loops (numba 0.68).
Word = Callable[..., Any]  # (LLVM builder, arguments) → value: the instructions for one word


def _operation(result: Any, arguments: tuple[Any, ...], word: Word, words: Any) -> Any:
    """What an intrinsic gives to numba: instructions for a word, a call of `words` for several."""
    wide = isinstance(arguments[0], types.BaseTuple)
    actual = arguments if wide else (types.uint64,) * len(arguments)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if wide:
            return context.compile_internal(builder, words.py_func, signature, args)
        return word(builder, *args)

    return (result or actual[0])(*actual), codegen


def _constant(value: int) -> Any:
    return ir.Constant(ir.IntType(WORD), value)


def _lowest(builder: Any, mask: Any) -> Any:
    return builder.cttz(mask, ir.Constant(ir.IntType(1), 1))


def _without_lowest(builder: Any, mask: Any) -> Any:
    return builder.and_(mask, builder.sub(mask, _constant(1)))


def _is_any(builder: Any, mask: Any) -> Any:
    return builder.icmp_unsigned("!=", mask, _constant(0))


def _is_several(builder: Any, mask: Any) -> Any:
    return _is_any(builder, _without_lowest(builder, mask))


def _is_there(builder: Any, mask: Any, action: Any) -> Any:
    return _is_any(builder, builder.and_(builder.lshr(mask, action), _constant(1)))


@rule
def _first_in_words(mask: Any) -> Any:
    for w in range(len(mask)):
        if mask[w] != 0:
            return np.int64(WORD * w + lowest_bit(mask[w]))
    return np.int64(0)


@intrinsic
def first(typingctx: Any, mask: Any) -> Any:
    """The lowest action of a mask that has one."""
    return _operation(types.int64, (mask,), _lowest, _first_in_words)


@rule
def _rest_of_words(mask: Any) -> Any:
    for w in range(len(mask)):
        if mask[w] != 0:
            return _with_word(mask, w, mask[w] & (mask[w] - np.uint64(1)))
    return mask


@intrinsic
def rest(typingctx: Any, mask: Any) -> Any:
    """A mask without its lowest action."""
    return _operation(None, (mask,), _without_lowest, _rest_of_words)


@rule
def _any_in_words(mask: Any) -> Any:
    for w in range(len(mask)):
        if mask[w] != 0:
            return True
    return False


@intrinsic
def some(typingctx: Any, mask: Any) -> Any:
    """Whether there is any action in a mask."""
    return _operation(types.boolean, (mask,), _is_any, _any_in_words)


@rule
def _several_in_words(mask: Any) -> Any:
    return _count_words(mask) > 1


@intrinsic
def several(typingctx: Any, mask: Any) -> Any:
    """Whether there is more than one action in a mask: a choice."""
    return _operation(types.boolean, (mask,), _is_several, _several_in_words)


@rule
def _count_words(mask: Any) -> Any:
    total = np.int64(0)
    for w in range(len(mask)):
        total += popcount(mask[w])
    return total


@intrinsic
def count(typingctx: Any, mask: Any) -> Any:
    """How many actions there are in a mask."""
    return _operation(types.int64, (mask,), lambda b, m: b.ctpop(m), _count_words)


@rule
def _has_in_words(mask: Any, action: Any) -> Any:
    return (mask[action // WORD] >> np.uint64(action % WORD)) & np.uint64(1) != 0


@intrinsic
def has(typingctx: Any, mask: Any, action: Any) -> Any:
    """Whether an action is in a mask."""
    return _operation(types.boolean, (mask, action), _is_there, _has_in_words)


@rule
def _words_without(mask: Any, other: Any) -> Any:
    made = mask
    for w in range(len(mask)):
        made = _with_word(made, w, mask[w] & ~other[w])
    return made


@intrinsic
def without(typingctx: Any, mask: Any, other: Any) -> Any:
    """The actions of a mask that are not in another of the same form."""
    return _operation(None, (mask, other), lambda b, m, o: b.and_(m, b.not_(o)), _words_without)


@rule
def within(mask: Any, actions: Any) -> Any:
    """Whether a mask has only actions below `actions`."""
    left = mask
    while some(left):
        if first(left) >= actions:
            return False
        left = rest(left)
    return True


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
