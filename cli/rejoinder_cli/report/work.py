"""Work for several cores. Threads are enough: kernels release the interpreter lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from rejoinder_cli.options import cores
from rejoinder_cli.output import Output

_POLL = 0.1  # seconds between two looks at how far it is


class Work:
    """Jobs for as many threads as there are cores. A job tells how many games it has played."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.total = 0
        self._done = 0
        self._lock = threading.Lock()

    def add(self, games: int, job: Callable[[], None]) -> None:
        self.jobs.append(job)
        self.total += games

    def played(self, games: int) -> None:
        with self._lock:
            self._done += games

    def run(self, what: str, output: Output) -> None:
        """Do it all, and show how far it is."""
        output.say(f"{what}: {self.total:,} games in {len(self.jobs):,} pieces")
        with ThreadPoolExecutor(cores()) as pool, output.progress(what, self.total) as update:
            waiting: set[Future[None]] = {pool.submit(job) for job in self.jobs}
            try:
                while waiting:
                    done, waiting = wait(waiting, _POLL)
                    for finished in done:
                        finished.result()
                    update(self._done)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
