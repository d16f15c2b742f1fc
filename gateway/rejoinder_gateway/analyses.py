"""What the agents of runs do in response phases: computed on request, once for each snapshot.

An analysis takes seconds of one core, so its size is fixed, it is made in a thread, one at a time,
few may wait for theirs, and it is kept for longer than its snapshot, which is far bigger.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from rejoinder.evaluate.agents import Agent, trained_agent
from rejoinder.evaluate.analytics import analyse
from rejoinder.evaluate.phases import play_refusals, watch
from rejoinder.evaluate.respond import best_response_bound
from rejoinder.games.base import Game, Rules
from rejoinder_gateway.library import Run
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import ResponseAnalysis
from rejoinder_gateway.snapshots import Snapshot

GAMES, TRAINING_GAMES, SEED = 4_000, 300, 1
KEPT = 256  # analyses
WAITING = 8  # who are answered once theirs is made; others are told to come back
_AGAIN = 10  # seconds

_Key = tuple[str, int, str]  # the run's id, games of the snapshot, its digest


class Analyses:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._made: OrderedDict[_Key, ResponseAnalysis] = OrderedDict()  # the latest last

    async def of(self, run: Run, snapshot: Snapshot) -> ResponseAnalysis:
        """That of a snapshot; a problem if the game has no response phases."""
        if run.game.responses is None:
            raise Problem(404, "No response phases", "this game has no response phases")
        key = (run.directory.id, snapshot.games, snapshot.digest)
        if key not in self._made:
            if self._waiting >= WAITING:
                detail = f"others wait for theirs; try again in {_AGAIN} s"
                raise Problem(503, "Too many analyses", detail, {"Retry-After": str(_AGAIN)})
            self._waiting += 1
            try:
                async with self._turn:
                    if key not in self._made:  # else somebody else has waited for it
                        await self._make(key, run, snapshot)
            finally:
                self._waiting -= 1
        self._made.move_to_end(key)
        return self._made[key]

    async def _make(self, key: _Key, run: Run, snapshot: Snapshot) -> None:
        rules = run.directory.config.rules
        self._made[key] = await asyncio.to_thread(_analyse, run.name, run.game, rules, snapshot)
        while len(self._made) > KEPT:
            self._made.popitem(last=False)


def warm_up(game: Game, agent: Agent) -> None:
    """Have the kernels at hand, by an analysis that tells nothing."""
    if game.responses is not None:
        rules = next(iter(game.configurations.values()))
        watch(game, rules, agent, agent, games=2, seed=0)
        play_refusals(game, rules, agent, agent, deals=1, seed=0)
        best_response_bound(game, rules, agent, training_games=1, match_games=2, seed=0)


def _analyse(name: str, game: Game, rules: Rules, snapshot: Snapshot) -> ResponseAnalysis:
    agent = trained_agent(name, snapshot.abstraction, snapshot.policy, argmax=False)
    made = analyse(
        game,
        rules,
        agent,
        snapshot.rows,
        games=GAMES,
        seed=SEED,
        training_games=TRAINING_GAMES,
    )
    return ResponseAnalysis(**dict(made), snapshot=snapshot.games, digest=snapshot.digest)
