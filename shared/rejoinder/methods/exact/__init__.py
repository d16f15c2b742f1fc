"""Game trees, and the methods that walk the whole of one."""

from __future__ import annotations

from rejoinder.methods.base import Method

METHODS: tuple[Method, ...] = ()
