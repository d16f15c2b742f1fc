"""A run as a report sees it, and what is measured for that: matches and exploitability.

The matches are played anew, at every checkpoint that the run has kept, with far more games than an
evaluation during training has, and from both starts. They are a function of the checkpoints and of
the number of games.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import strptime
from typing import Any

from rejoinder.cfr.rollout import policies
from rejoinder.cfr.table import Table, table_of
from rejoinder.checkpoints import DamagedError
from rejoinder.config import RunConfig
from rejoinder.evaluate.agents import Agent, opponents, trained_agent
from rejoinder.evaluate.match import MatchResult, Starts, play_match
from rejoinder.games.contract import CONCRETE
from rejoinder.metrics import evaluation_seed
from rejoinder_cli.output import Output
from rejoinder_cli.report.work import Work
from rejoinder_cli.runs import OpenRun

FIRST: Starts = "agent"
ALTERNATING: Starts = "alternate"
STARTS = (FIRST, ALTERNATING)

_SAME_STAKE = 1e-6


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    test_games: int = 2_000  # of each match
    bounds: int = 0  # checkpoints at which a lower bound of the exploitability is looked for
    bound_training: int = 1_500  # games for each of those
    bound_games: int = 20_000


@dataclass(frozen=True)
class Score:
    """One match of the agent after so many games."""

    games: int
    opponent: str
    starts: Starts
    result: MatchResult


@dataclass(frozen=True)
class Exploited:
    """What a perfect, or a trained, opponent wins of the agent after so many games."""

    games: int
    value: float  # in the real game
    inside: float | None = None  # as its abstraction shows it, where there is one
    error: float | None = None  # 95 % half-width of a lower bound; None: exact


@dataclass
class Subject:
    """A run that is reported on."""

    opened: OpenRun
    name: str
    records: list[dict[str, Any]]  # of its evaluations while it trained
    scores: list[Score] = field(default_factory=list)
    exploited: list[Exploited] = field(default_factory=list)

    @property
    def config(self) -> RunConfig:
        return self.opened.run.config

    @property
    def games(self) -> int:
        return self.opened.checkpoint.games

    @property
    def staked(self) -> bool:
        """Whether winning often is not winning much, because games are worth different amounts."""
        return any(
            abs(r.mean_utility - (2 * r.wins + r.draws - r.games) / r.games) > _SAME_STAKE
            for r in (score.result for score in self.scores)
        )

    def final(self, opponent: str, starts: Starts) -> MatchResult | None:
        """The match of the newest agent."""
        found = [s for s in self.scores if (s.opponent, s.starts) == (opponent, starts)]
        return max(found, key=lambda score: score.games).result if found else None

    @property
    def seconds(self) -> float | None:
        """From the trainer's start to its end; None for a run that was resumed, or is not over."""
        sessions, status = self.opened.run.sessions(), self.opened.run.standing()
        if len(sessions) != 1 or status.get("state") != "finished" or "time" not in status:
            return None
        try:
            began = timegm(strptime(str(sessions[0].get("time")), "%Y-%m-%dT%H:%M:%SZ"))
        except ValueError:
            return None
        return max(0.0, float(status["time"]) - began)


def measure(opened: Sequence[OpenRun], effort: Effort, output: Output) -> list[Subject]:
    """Play and enumerate all that a report on these runs needs."""
    names = _names(opened)
    subjects = [Subject(o, name, o.run.metrics()) for o, name in zip(opened, names, strict=True)]
    work = Work()
    for subject in subjects:
        agents = _agents(subject, output)
        _plan_exploitability(work, subject, agents, effort)  # first: its pieces are the longest
        _plan_matches(work, subject, agents, effort.test_games)
    work.run("measuring", output)
    for subject in subjects:
        subject.scores.sort(key=lambda score: score.games)
        subject.exploited.sort(key=lambda exploited: exploited.games)
    return subjects


def _names(opened: Sequence[OpenRun]) -> list[str]:
    """What runs are called: their folders' names, or their paths where those are not enough."""
    short = [o.run.path.resolve().name for o in opened]
    return [
        name if short.count(name) == 1 else str(o.run.path)
        for o, name in zip(opened, short, strict=True)
    ]


def _agents(subject: Subject, output: Output) -> dict[int, Agent]:
    """The agent of every checkpoint that is whole, by games."""
    run, found = subject.opened.run, {}
    abstraction = run.config.load_abstraction()
    for games in run.checkpoint_games():
        try:
            rows = run.checkpoint(games).rows
        except DamagedError as error:
            output.warn(f"the checkpoint at game {games:,} of {run.path} is left out: {error}")
        else:
            policy = policies(table_of(rows))
            found[games] = trained_agent(subject.name, abstraction, policy, argmax=False)
    return found


def _plan_matches(work: Work, subject: Subject, agents: dict[int, Agent], test_games: int) -> None:
    config = subject.config
    game = config.load_game()
    template = game.template(config.rules)

    def play(games: int, name: str, starts: Starts) -> None:
        result = play_match(
            *(game, template, agents[games], opponents(game)[name]),
            games=test_games,
            seed=evaluation_seed(config.seed, games),
            starts=starts,
        )
        subject.scores.append(Score(games, name, starts, result))
        work.played(test_games)

    for games in agents:
        for name in opponents(game):
            for starts in STARTS:
                work.add(test_games, lambda g=games, n=name, s=starts: play(g, n, s))  # type: ignore[misc]


def _plan_exploitability(
    work: Work, subject: Subject, agents: dict[int, Agent], effort: Effort
) -> None:
    config = subject.config
    game = config.load_game()
    if game.is_enumerable(config.rules):
        work.add(0, lambda: _exact(subject, {n: a.book.policy for n, a in agents.items()}))
        return
    chosen = list(agents)[::-1][:: max(1, -(-len(agents) // max(1, effort.bounds)))]
    for games in chosen[: effort.bounds]:
        each = effort.bound_training + effort.bound_games
        work.add(each, lambda g=games: _bound(work, subject, g, agents[g], effort))  # type: ignore[misc]


def _exact(subject: Subject, tables: dict[int, Table]) -> None:
    """In the real game, and as the agent's abstraction shows it."""
    from rejoinder.cfr.tree import build_tree
    from rejoinder.evaluate.exploit import policy_exploitability

    config = subject.config
    game, abstraction = config.load_game(), config.load_abstraction()
    real = build_tree(game, config.rules, policy=abstraction)
    shown = build_tree(game, config.rules, abstraction) if abstraction.number != CONCRETE else None
    for games, table in tables.items():
        value = policy_exploitability(real, table).exploitability
        inside = policy_exploitability(shown, table).exploitability if shown else None
        subject.exploited.append(Exploited(games, value, inside))


def _bound(work: Work, subject: Subject, games: int, agent: Agent, effort: Effort) -> None:
    """What an opponent wins that was trained against the agent: a lower bound."""
    from rejoinder.evaluate.respond import best_response_bound

    found = best_response_bound(
        *(subject.config.load_game(), subject.config.rules, agent),
        training_games=effort.bound_training,
        match_games=effort.bound_games,
        progress=lambda _: work.played(1),
    )
    work.played(effort.bound_games)
    error = found.match.utility_error
    subject.exploited.append(Exploited(games, found.exploitability, error=error))
