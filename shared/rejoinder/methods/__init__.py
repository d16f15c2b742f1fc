"""The methods there are, by name.

Every package in this folder is a family of methods and has its `METHODS`; modules are the contract
and what all methods have in common. So adding a family is adding its package.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from rejoinder.methods.base import Method


def _discover() -> dict[str, Method]:
    packages = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    families = [importlib.import_module(f"{__name__}.{package}").METHODS for package in packages]
    methods = [method for family in families for method in family]
    return {method.name: method for method in sorted(methods, key=lambda m: not m.is_default)}


METHODS: dict[str, Method] = _discover()  # the default one first
(DEFAULT_METHOD,) = (name for name, method in METHODS.items() if method.is_default)


def find_method(name: Any) -> Method:
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(f"no method is called {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


__all__ = ["DEFAULT_METHOD", "METHODS", "Method", "find_method"]
