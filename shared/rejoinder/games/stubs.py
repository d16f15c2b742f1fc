"""Functions that every game has its own of, chosen by the type of the state.

A *stub* is a function without a body whose first argument is a state. While numba compiles a call
of it, the implementation that the game has registered for its state dtype takes its place, so that
compiled code is written once and turns into direct calls for every game. `Stubs` is a set of them:
the game contract is one, and an optional capability (see `responses`) is another.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

from rejoinder.kernel.identity import Resolve, identity
from rejoinder.kernel.jit import resolve_stubs_by

Function = Callable[..., Any]

_defaults: dict[Function, Function | None] = {}  # of every stub
_implementations: dict[Any, dict[Function, Function]] = {}  # by record type, by stub


class Stubs:
    """A set of stubs with their defaults; those without one must be implemented."""

    def __init__(self, what: str, stubs: Mapping[Function, Function | None]) -> None:
        self._what = what
        self._by_name = {stub.__name__: stub for stub in stubs}
        self._required = {stub.__name__ for stub, default in stubs.items() if default is None}
        _defaults.update(stubs)
        for stub in stubs:
            _dispatch(stub)

    def implement(self, dtype: np.dtype[Any], **functions: Function) -> None:
        """Register a game's compiled functions for its state dtype; called once by each game."""
        unknown, missing = set(functions) - set(self._by_name), self._required - set(functions)
        if unknown or missing:
            parts = {"missing": missing, "unknown": unknown}
            told = [f"{what} {', '.join(sorted(names))}" for what, names in parts.items() if names]
            raise TypeError(f"functions of the {self._what}: {'; '.join(told)}")
        for name, made in functions.items():
            _give_signature_of(self._by_name[name], made)
        known = _implementations.setdefault(numba.from_dtype(dtype), {})
        known.update({self._by_name[name]: made for name, made in functions.items()})


def _give_signature_of(stub: Function, made: Function) -> None:
    """Have an implementation the stub's signature; its arguments must be the same.

    numba compares annotations too, and a game need not have them.
    """
    if not hasattr(made, "py_func") and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise TypeError(f"{stub.__name__} is not compiled: it needs @rule")
    function: Any = getattr(made, "py_func", made)
    meant = inspect.signature(stub)
    if list(inspect.signature(function).parameters) != list(meant.parameters):
        raise TypeError(f"{stub.__name__} must take ({', '.join(meant.parameters)})")
    if inspect.signature(function) != meant:
        function.__signature__ = meant


def kernel_identity(dtype: np.dtype[Any], functions: Iterable[Any], more: str = "") -> str:
    """The version of kernels for a game: a hash of the sources that they are made of."""
    states = numba.from_dtype(dtype)[::1]
    return identity(functions, _resolver([states]), f"{dtype.descr} {dtype.itemsize} {more}")


def _resolver(arguments: Iterable[Any]) -> Resolve:
    """Maps stubs to the functions of the game whose states are among the arguments' types."""
    records = [getattr(argument, "dtype", argument) for argument in arguments]
    games = [record for record in records if record in _implementations]

    def resolve(function: Any) -> Any:
        if not games or not _is_stub(function):
            return function
        return _implementation(games[0], function) or function

    return resolve


resolve_stubs_by(_resolver)


def _is_stub(function: Any) -> bool:
    return callable(function) and function in _defaults


def _implementation(record: Any, stub: Function) -> Function | None:
    return _implementations.get(record, {}).get(stub, _defaults[stub])


def _dispatch(stub: Function) -> None:
    @functools.wraps(stub)  # numba compares the signatures of stub, overload and implementation
    def choose(state: Any, *rest: Any) -> Any:
        known = isinstance(state, types.Record) and state in _implementations
        return getattr(_implementation(state, stub), "py_func", None) if known else None

    overload(stub)(choose)
