"""Work for several cores. Threads are enough: kernels release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from rejoinder_cli.options import cores
from rejoinder_cli.output import Output

_POLL = 0.1  # seconds between two looks at how far it is

Tell = Callable[[int], None]  # by which a piece tells how many of its games it has played
Job = Callable[[Tell], object]


@dataclass
class _Piece:
    job: Job
    games: int
    cost: float  # of a game
    played: int = 0

    def run(self) -> None:
        self.job(self.tell)
        self.played = self.games

    def tell(self, played: int) -> None:
        self.played = min(played, self.games)


class Work:
    """Pieces of work for as many threads as there are cores."""

    def __init__(self) -> None:
        self.pieces: list[_Piece] = []

    def add(self, games: int, job: Job, cost: float = 1.0) -> None:
        """A piece of so many games, each of which takes as long as `cost` games of policies."""
        self.pieces.append(_Piece(job, games, cost))

    def run(self, what: str, output: Output) -> None:
        """Do it all, and show how far it is."""
        games = sum(piece.games for piece in self.pieces)
        output.say(f"{what}: {games:,} games")
        # Long pieces first, so that no core waits for another one at the end.
        queue = sorted(self.pieces, key=lambda piece: -piece.games * piece.cost)
        with ThreadPoolExecutor(cores()) as pool, output.progress(what, 100, "%") as update:
            waiting: set[Future[None]] = {pool.submit(piece.run) for piece in queue}
            try:
                while waiting:
                    if (percent := self._percent()) > 0:  # before, kernels may be compiled
                        update(percent)
                    done, waiting = wait(waiting, _POLL)
                    for finished in done:
                        finished.result()
                update(100)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _percent(self) -> int:
        whole = sum(piece.games * piece.cost for piece in self.pieces)
        played = sum(piece.played * piece.cost for piece in self.pieces)
        return int(100 * played / whole) if whole else 0
