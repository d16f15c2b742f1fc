"""Long work: made on request, once for each key, in a thread, one at a time.

Few may wait for theirs, others are told to come back, so that whoever asks for much of one kind
takes one core at most, and answers of other kinds do not wait for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from rejoinder_gateway.problems import Problem

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


class Work(Generic[_K, _T]):
    """`what` is made in the plural; the `kept` latest are remembered, `most` may wait."""

    def __init__(self, what: str, *, kept: int, most: int, again: int) -> None:
        self.kept, self.most, self.waiting = kept, most, 0
        self._what, self._again = what, again  # seconds until one may come back
        self._turn = asyncio.Lock()
        self._made: OrderedDict[_K, _T] = OrderedDict()  # the latest last

    async def get(self, key: _K, make: Callable[[], _T]) -> _T:
        if key not in self._made:
            await self._in_turn(key, make)
        self._made.move_to_end(key)
        return self._made[key]

    async def _in_turn(self, key: _K, make: Callable[[], _T]) -> None:
        if self.waiting >= self.most:
            detail = f"others wait for theirs; try again in {self._again} s"
            raise Problem(503, f"Too many {self._what}", detail, {"Retry-After": str(self._again)})
        self.waiting += 1
        try:
            async with self._turn:
                if key not in self._made:  # else somebody else has waited for it
                    self._made[key] = await asyncio.to_thread(make)
                    while len(self._made) > self.kept:
                        self._made.popitem(last=False)
        finally:
            self.waiting -= 1
