"""The methods there are, by name; the first is the default."""

from __future__ import annotations

from typing import Any

from rejoinder.methods.base import Method
from rejoinder.methods.exact.full_method import FULL
from rejoinder.methods.tabular.rollout_method import ROLLOUT
from rejoinder.methods.tabular.sampling_method import CHANCE, EXTERNAL, OUTCOME

METHODS: dict[str, Method] = {
    method.name: method for method in (ROLLOUT, FULL, EXTERNAL, OUTCOME, CHANCE)
}


def find_method(name: Any) -> Method:
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(f"no method is called {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


__all__ = ["METHODS", "Method", "find_method"]
