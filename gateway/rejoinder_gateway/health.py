"""Whether everything that the gateway needs is there."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from rejoinder_gateway.kernels import Kernels
from rejoinder_gateway.problems import note
from rejoinder_gateway.store import Store

_PATIENCE = 2.0  # seconds that a database which is well may take
_FRESH = 1.0  # seconds for which an answer of the database is good


class Health:
    """What is asked of the database is asked once a second, however many want to know."""

    def __init__(self, store: Store, runs: Path, kernels: Kernels) -> None:
        self._store, self._runs, self._kernels = store, runs, kernels
        self._answer: asyncio.Task[str] | None = None
        self._asked = 0.0

    async def checks(self) -> dict[str, str]:
        """By what is checked: "ok", or what is wrong with it."""
        readable = os.access(self._runs, os.R_OK | os.X_OK)
        return {
            "database": await self._database(),
            "runs": "ok" if readable else "the folder of the runs cannot be read",
            "kernels": self._kernels.state,
        }

    async def _database(self) -> str:
        now = time.monotonic()
        if self._answer is None or (self._answer.done() and now - self._asked > _FRESH):
            self._asked, self._answer = now, asyncio.create_task(self._ask())
        return await asyncio.shield(self._answer)  # whoever gives up leaves it to the others

    async def _ask(self) -> str:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._store.do(lambda db: db.execute(text("SELECT 1")).scalar())
        except TimeoutError:
            return f"has not answered for {_PATIENCE:.0f} s"
        except SQLAlchemyError as error:
            return f"cannot be used; the log has more under {note(error)}"
        return "ok"
