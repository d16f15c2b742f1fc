"""Which code a result comes from: a hash of that code and of nothing else.

The code is some functions and classes, compiled or not, the functions and classes that they name
in turn, and the constants among those names. `identity` walks them as numba will: from the function
object through its globals. Of each function the syntax tree counts, without docstrings and
annotations; of each class its methods. So a comment, a view or another game changes nothing, and an
edit to any rule that is really used does.

A stub of the game contract stands for another function in every game. `resolve` maps it to the one
that is meant; this package knows no games.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

Resolve = Callable[[Any], Any]  # a stub → the function it stands for; anything else → itself

_PACKAGE = __name__.partition(".")[0]
_PLAIN = (int, float, bool, str, bytes, type(None), np.generic)


def identity(functions: Any, resolve: Resolve = lambda function: function, more: str = "") -> str:
    """The version of functions and classes by their sources; `more` goes in too."""
    found = sources(functions, resolve)
    digest = hashlib.sha256(f"numba {numba.__version__} numpy {np.__version__} {more}\n".encode())
    for name in sorted(found):
        digest.update(f"{name}\n{found[name]}\n".encode())
    return digest.hexdigest()[:16]


def sources(functions: Any, resolve: Resolve = lambda function: function) -> dict[str, str]:
    """What counts, by qualified name: functions as they are written, constants by their values."""
    walk = _Walk(resolve)
    for function in functions:
        walk.visit(function)
    return walk.found


class _Walk:
    """Collects the functions and constants that are reached from some functions."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self.found: dict[str, str] = {}  # by qualified name: source or value

    def visit(self, reached: Any) -> None:
        if isinstance(reached, type):
            self._visit_class(reached)
            return
        function = _python_function(self._resolve(reached))
        name = f"{function.__module__}.{function.__qualname__}"
        if name in self.found:
            return
        node = _definition(function)
        self.found[name] = ast.unparse(node)
        for path in _names_in(node):
            self._visit_name(function, path)
        for choice in getattr(function, "choices", ()):  # by the types of its arguments
            self.visit(choice)

    def _visit_class(self, reached: type) -> None:
        """The methods of a class of ours and of its bases."""
        for owner in reached.__mro__:
            if _is_ours(owner.__module__):
                for name, value in vars(owner).items():
                    if f"{owner.__qualname__}.{name}" in _definitions(owner.__module__):
                        self.visit(value)

    def _visit_name(self, function: Any, path: tuple[str, ...]) -> None:
        if path[0] in function.__code__.co_varnames or path[0] not in function.__globals__:
            return  # a local or a builtin
        value = function.__globals__[path[0]]
        for attribute in path[1:]:
            if not isinstance(value, types.ModuleType) or not _is_ours(value.__name__):
                break
            value = getattr(value, attribute)
        if isinstance(value, types.ModuleType):
            return  # np, math: their versions count, not their code
        if _is_function(value):
            if not _is_toolchain(value):
                self.visit(value)
        else:
            if isinstance(value, type):
                self._visit_class(value)
            self.found[f"{function.__module__}.{'.'.join(path)} ="] = _constant(value, path)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == _PACKAGE


def _is_toolchain(value: Any) -> bool:
    """Whether a function is Python's, numba's or the like: versions count, not their code."""
    package = str(getattr(_python_function(value), "__module__", None)).partition(".")[0]
    return package in ("numba", "llvmlite", "numpy") or package in sys.stdlib_module_names


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _python_function(value: Any) -> Any:
    """What compiled code, an intrinsic, a property or a function was written as."""
    for wrapper in ("py_func", "_defn", "fget", "__func__", "__wrapped__"):
        value = getattr(value, wrapper, None) or value
    return value


def _constant(value: Any, path: tuple[str, ...]) -> str:
    """A constant that compiled code may name, so that equal ones and no others look equal."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.descr} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.dtype):
        return f"dtype {value.descr} {value.itemsize}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {_constant(v, path)}' for k, v in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(_constant(item, path) for item in value)})"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, _PLAIN):
        return repr(value)
    raise TypeError(f"{'.'.join(path)}: compiled code names a {type(value).__name__}")


def _definition(function: Any) -> ast.FunctionDef:
    """The syntax tree of a function, without what does not reach the machine."""
    known = _definitions(function.__module__)
    if function.__qualname__ not in known:
        raise TypeError(f"{function.__module__}.{function.__qualname__} has no source")
    return known[function.__qualname__]


@functools.cache
def _definitions(module: str) -> dict[str, ast.FunctionDef]:
    """The top-level functions of a module, and the methods of its classes, by qualified name."""
    path = sys.modules[module].__file__
    if path is None:
        raise TypeError(f"{module} has no source")
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = [("", node) for node in tree.body]
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            found += [(f"{owner.name}.", node) for node in owner.body]
    return {
        owner + node.name: _bare(node) for owner, node in found if isinstance(node, ast.FunctionDef)
    }


def _bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """A function without docstrings, annotations and decorators, those of inner functions too."""
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
            node.returns = None
            node.decorator_list = []
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return function


def _names_in(function: ast.FunctionDef) -> Iterator[tuple[str, ...]]:
    """The names that a function reads, dotted ones as a whole."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            path = [node.attr]
            inner = node.value
            while isinstance(inner, ast.Attribute):
                path.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name):
                yield (inner.id, *reversed(path))
        elif isinstance(node, ast.Name):
            yield (node.id,)
