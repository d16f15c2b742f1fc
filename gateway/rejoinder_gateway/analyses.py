"""What the agents of runs do in response phases: computed on request, once for each snapshot.

An analysis takes seconds of one core, so its size is fixed, it is long work, and it is kept for
longer than its snapshot, which is far bigger.
"""

from __future__ import annotations

from functools import partial

from rejoinder.games.base import Game, Rules
from rejoinder.games.responses import Responses
from rejoinder.measure.agents import Agent, trained_agent
from rejoinder.measure.analytics import ATTACK_GAMES, GAMES, SAMPLES, SEED, analyse
from rejoinder.measure.lower_bounds import thinking_bound
from rejoinder.measure.response_stats import play_refusals, watch
from rejoinder_gateway.library import Run
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import ResponseAnalysis
from rejoinder_gateway.snapshots import Snapshot
from rejoinder_gateway.work import Work

KEPT = 256  # analyses
WAITING = 8

_Key = tuple[str, int, str]  # the run's id, games of the snapshot, its digest


class Analyses:
    def __init__(self) -> None:
        self.work: Work[_Key, ResponseAnalysis] = Work(
            "analyses", kept=KEPT, most=WAITING, again=10
        )

    async def of(self, run: Run, snapshot: Snapshot) -> ResponseAnalysis:
        """That of a snapshot; a problem if the game has no response phases."""
        if run.game.capability(Responses) is None:
            raise Problem(404, "No response phases", "this game has no response phases")
        key = (run.directory.id, snapshot.games, snapshot.digest)
        rules = run.directory.config.rules
        return await self.work.get(key, partial(_analyse, run.name, run.game, rules, snapshot))


def warm_up(game: Game, agent: Agent) -> None:
    """Have the kernels at hand, by an analysis that tells nothing."""
    if game.capability(Responses) is not None:
        rules = next(iter(game.configurations.values()))
        watch(game, rules, agent, agent, games=2, seed=0)
        play_refusals(game, rules, agent, agent, deals=1, seed=0)
        thinking_bound(game, rules, agent, samples=1, games=2)


def _analyse(name: str, game: Game, rules: Rules, snapshot: Snapshot) -> ResponseAnalysis:
    agent = trained_agent(name, snapshot.abstraction, snapshot.policy, argmax=False)
    made = analyse(
        game,
        rules,
        agent,
        snapshot.rows,
        games=GAMES,
        seed=SEED,
        attack_games=ATTACK_GAMES,
        samples=SAMPLES,
    )
    return ResponseAnalysis(**dict(made), snapshot=snapshot.games, digest=snapshot.digest)
