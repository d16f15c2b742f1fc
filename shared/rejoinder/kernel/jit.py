"""Compilation: three decorators, some machine instructions, a cache that never serves other code.

numba's on-disk cache looks only at the file that holds the entry point, so a change in a rule that
lives in another module would go unnoticed, and a comment in that file would throw everything away.
Here what is cached is named after the `identity` of the code that is really compiled.
"""
# ruff: noqa: ARG001 (numba fixes the signatures of intrinsics)

from __future__ import annotations

import functools
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic as numba_intrinsic

from rejoinder.kernel.identity import Resolve, identity
from rejoinder.kernel.signature_files import CompileLock, keep

F = TypeVar("F", bound=Callable[..., Any])


def _cache_root() -> Path:
    if root := os.environ.get("REJOINDER_CACHE_DIR"):
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rejoinder"


CACHE_DIR = _cache_root() / "kernels"


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


# Where numba cannot write it would choose another place, one that we do not know of.
_CACHED = _can_write(CACHE_DIR)
if not _CACHED:
    warnings.warn(
        f"{CACHE_DIR} cannot be written, so kernels are compiled anew in every process; "
        "set REJOINDER_CACHE_DIR to a folder that can",
        stacklevel=1,
    )

_LOCK = CompileLock(CACHE_DIR / "turns")
RULE_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True}

# Read by numba when a function is decorated, so it must be set before the first `kernel`.
numba.config.CACHE_DIR = str(CACHE_DIR)  # type: ignore[attr-defined]


def rule(function: F) -> F:
    """Compile a function that other compiled code calls; linked into its callers' cache entry.

    A rule allocates nothing, so it is compiled without reference counting (`_nrt`): counting the
    arrays that pass through small functions would slow every solver down.
    """
    return cast(F, numba.njit(**RULE_OPTIONS)(function))


def hot(function: F) -> F:
    """A rule so small and so often called that it is copied into its callers."""
    return cast(F, numba.njit(inline="always", **RULE_OPTIONS)(function))


def plain(function: F) -> F:
    """The Python function that a rule was made from: for views, so that they re-implement none."""
    return cast(F, cast(Any, function).py_func)


def kernel(function: F) -> F:
    """Compile an entry point called from Python: cached on disk, releases the interpreter lock."""
    compiled: Any = numba.njit(cache=_CACHED, nogil=True, error_model="numpy")(function)
    if _CACHED and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        keep(compiled, _LOCK, functools.partial(_version, function))
    return cast(F, compiled)


def resolve_stubs_by(resolver: Callable[[Any], Resolve]) -> None:
    """Have the stubs that kernels call resolved by the types of the kernels' arguments."""
    global _resolver
    _resolver = resolver


_resolver: Callable[[Any], Resolve] = lambda _: lambda function: function  # noqa: E731


@functools.cache
def _version(function: Any, arguments: tuple[Any, ...]) -> str:
    """The version of the code that a kernel is compiled from for some types of arguments."""
    return identity([function], _resolver(arguments))


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Machine instructions; callers leave out the first argument, which is numba's."""
    return cast(Callable[..., Any], numba_intrinsic(function))


@intrinsic
def copy_record(typingctx: Any, target: Any, source: Any) -> Any:
    """Copy one record over another of the same dtype (a plain memcpy)."""
    if not isinstance(target, types.Record) or target != source:
        raise numba.TypingError(f"copy_record needs two records of one dtype: {target}, {source}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = ir.Constant(ir.IntType(64), target.size)
        byte_pointer = ir.IntType(8).as_pointer()
        to, origin = (builder.bitcast(arg, byte_pointer) for arg in args)
        cgutils.raw_memcpy(builder, to, origin, size, 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(target, source), codegen


@intrinsic
def popcount(typingctx: Any, bits: Any) -> Any:
    """Number of set bits of an unsigned 64-bit mask."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def lowest_bit(typingctx: Any, bits: Any) -> Any:
    """Index of the lowest set bit of a non-zero unsigned 64-bit mask."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


def toolchain() -> dict[str, str]:
    """Versions of what turns the sources into machine code, for provenance."""
    return {"numba": numba.__version__, "llvmlite": llvmlite.__version__, "numpy": np.__version__}
