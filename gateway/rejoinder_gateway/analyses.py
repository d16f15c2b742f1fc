"""What the agents of runs do in response phases: computed on request, once for each snapshot.

An analysis takes seconds of one core, so its size is fixed, it is made in a thread, one at a time,
and it is kept with its snapshot.
"""

from __future__ import annotations

import asyncio

from rejoinder.evaluate.agents import random_agent, trained_agent
from rejoinder.evaluate.analytics import analyse
from rejoinder.evaluate.phases import play_refusals, watch
from rejoinder.evaluate.respond import best_response_bound
from rejoinder.games.base import Game, Rules
from rejoinder_gateway.library import Run
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import ResponseAnalysis
from rejoinder_gateway.snapshots import Snapshot

GAMES, TRAINING_GAMES, SEED = 4_000, 300, 1


class Analyses:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def of(self, run: Run, snapshot: Snapshot) -> ResponseAnalysis:
        """That of a snapshot; a problem if the game has no response phases."""
        if run.game.responses is None:
            raise Problem(404, "No response phases", "this game has no response phases")
        if snapshot.analysis is None:
            async with self._turn:
                if snapshot.analysis is None:  # else somebody else has waited for it
                    rules = run.directory.config.rules
                    made = await asyncio.to_thread(_analyse, run.name, run.game, rules, snapshot)
                    snapshot.analysis = made
        return snapshot.analysis


def warm_up(game: Game) -> None:
    """Have the kernels at hand, by an analysis that tells nothing."""
    if game.responses is not None:
        agent, rules = random_agent(game), next(iter(game.configurations.values()))
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
