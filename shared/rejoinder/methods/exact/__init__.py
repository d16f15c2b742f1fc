"""Game trees, and the methods that walk the whole of one."""

from __future__ import annotations

from rejoinder.methods.exact.full_method import FULL

METHODS = (FULL,)
