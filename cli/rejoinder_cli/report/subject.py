"""A run as a report sees it, and what is measured for that: matches, exploitability, responses.

The matches are played anew, at every checkpoint that the run has kept, with far more games than an
evaluation during training has, and from both starts. They are a function of the checkpoints and of
the number of games.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from time import strptime
from typing import Any

from rejoinder.games.base import Game
from rejoinder.games.contract import CONCRETE
from rejoinder.games.responses import Responses
from rejoinder.measure.agents import Agent, opponents, trained_agent
from rejoinder.measure.analytics import (
    ATTACK_GAMES,
    GAMES,
    SAMPLES,
    SEED,
    Analysis,
    analyse,
    steps,
)
from rejoinder.measure.experiments import experiment_of
from rejoinder.measure.lower_bounds import dear, thinking_bound
from rejoinder.measure.match import MatchResult, Starts, play_match, seated
from rejoinder.measure.metrics import evaluation_seed
from rejoinder.methods.base import Policy
from rejoinder.run.checkpoints import DamagedError
from rejoinder.run.config import RunConfig
from rejoinder.run.rundir import RunDir
from rejoinder_cli.output import Output
from rejoinder_cli.report.work import Tell, Work
from rejoinder_cli.runs import OpenRun

FIRST: Starts = "agent"
ALTERNATING: Starts = "alternate"
STARTS = (FIRST, ALTERNATING)


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    test_games: int = 2_000  # of each match
    bounds: int = 0  # checkpoints at which a lower bound of the exploitability is looked for
    analysed_games: int = GAMES  # in which response phases are counted
    attack_games: int = ATTACK_GAMES  # for each bound, those of the analysis too
    attack_samples: int = SAMPLES  # of each move of the attacker, who thinks ahead


@dataclass(frozen=True)
class Score:
    """One match of the agent after so many games."""

    games: int
    opponent: str
    starts: Starts
    result: MatchResult


@dataclass(frozen=True)
class Exploited:
    """What a perfect opponent, or one who thinks ahead, wins of the agent after so many games."""

    games: int
    value: float  # in the real game
    inside: float | None = None  # as its abstraction shows it, where there is one
    error: float | None = None  # 95 % half-width of a lower bound; None: exact
    how: str = "exact"  # or how hard the attacker tried

    @property
    def is_found(self) -> bool:
        """Not so of a bound that may be zero, which says nothing."""
        return self.error is None or self.value > self.error


@dataclass
class Subject:
    """A run that is reported on."""

    opened: OpenRun
    name: str
    records: list[dict[str, Any]]  # of its evaluations while it trained
    scores: list[Score] = field(default_factory=list)
    exploited: list[Exploited] = field(default_factory=list)
    analysis: Analysis | None = None  # None: its game has no response phases
    # By games, as a figure of the experiment has it; only of runs that repeat one.
    experiment_policy: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def config(self) -> RunConfig:
        return self.opened.run.config

    @property
    def games(self) -> int:
        return self.opened.checkpoint.games

    @property
    def keys(self) -> Any:
        """Of the infosets it has learned."""
        return self.opened.checkpoint.rows["key"]

    @property
    def workers(self) -> int:
        return len(self.opened.run.workers()["first_unit"])

    @property
    def game(self) -> Game:
        return self.config.load_game()

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
        _plan_analysis(work, subject, effort)
        _plan_exploitability(work, subject, agents, effort)
        _plan_matches(work, subject, agents, effort.test_games)
    work.run("measuring", output)
    for subject in subjects:
        subject.scores.sort(key=lambda score: score.games)
        subject.exploited.sort(key=lambda exploited: exploited.games)
    return subjects


def _names(opened: Sequence[OpenRun]) -> list[str]:
    """What runs are called: their folders' names, with folders above where those are not enough."""
    paths = [o.run.path.resolve() for o in opened]

    def name(path: Path) -> str:
        ends = ("/".join(path.parts[-n:]) for n in range(1, len(path.parts)))
        alone = (end for end in ends if sum(str(p).endswith(f"/{end}") for p in paths) == 1)
        return next(alone, str(path))

    return [name(path) for path in paths]


class _Agents:
    """The agent of every checkpoint that is whole, by games: one at a time is in memory."""

    def __init__(self, subject: Subject, games: list[int], output: Output) -> None:
        run, self._games = subject.opened.run, games

        @lru_cache(maxsize=1)
        def agent(games: int) -> Agent | None:
            try:
                checkpoint = run.checkpoint(games)
            except DamagedError as error:  # a run that is being trained thins them out
                _leave_out(output, run, games, error)
                return None
            policy = run.config.policy(run.policy_rows(checkpoint))
            abstraction = run.config.load_abstraction()
            return trained_agent(subject.name, abstraction, policy, argmax=False)

        self.get = agent

    def __iter__(self) -> Iterator[int]:
        return iter(self._games)

    def __len__(self) -> int:
        return len(self._games)


def _agents(subject: Subject, output: Output) -> _Agents:
    """The agents of the checkpoints; notes what is read off tables."""
    run, found = subject.opened.run, []
    abstraction, experiment = run.config.load_abstraction(), experiment_of(run.config)
    for games in run.checkpoint_games():
        try:
            checkpoint = run.checkpoint(games)
        except DamagedError as error:
            _leave_out(output, run, games, error)
        else:
            if experiment is not None:
                learned = run.learned(checkpoint.rows)
                subject.experiment_policy[games] = experiment.policy.read(learned, abstraction)
            found.append(games)
    return _Agents(subject, found, output)


def _leave_out(output: Output, run: RunDir, games: int, error: DamagedError) -> None:
    output.warn(f"the checkpoint at game {games:,} of {run.path} is left out: {error}")


def _plan_matches(work: Work, subject: Subject, agents: _Agents, test_games: int) -> None:
    config = subject.config
    game = config.load_game()
    template = game.template(config.rules)

    def play(games: int, name: str, starts: Starts, tell: Tell) -> None:
        agent = agents.get(games)
        if agent is None:
            return
        result, *_ = play_match(
            *(game, template, seated(game, agent, [opponents(game)[name]])),
            games=test_games,
            seed=evaluation_seed(config.seed, games),
            starts=starts,
            progress=tell,
        )
        subject.scores.append(Score(games, name, starts, result))

    for games in agents:
        for name in opponents(game):
            for starts in STARTS:
                work.add(test_games, partial(play, games, name, starts))


def _plan_analysis(work: Work, subject: Subject, effort: Effort) -> None:
    config, opened = subject.config, subject.opened
    game = config.load_game()
    if game.capability(Responses) is None:
        return
    attacks = None if game.is_enumerable(config.rules) else effort.attack_games
    played = steps(effort.analysed_games, attacks, samples=0)
    cost = steps(effort.analysed_games, attacks, effort.attack_samples) / played

    def look(tell: Tell) -> None:
        subject.analysis = analyse(
            *(game, config.rules, opened.agent(argmax=False), opened.learned),
            games=effort.analysed_games,
            seed=SEED,
            attack_games=attacks,
            samples=effort.attack_samples,
            progress=lambda done: tell(int(done / cost)),
        )

    work.add(played, look, cost)


def _plan_exploitability(work: Work, subject: Subject, agents: _Agents, effort: Effort) -> None:
    config = subject.config
    game = config.load_game()
    if game.is_enumerable(config.rules):
        work.add(0, lambda _: _exact(subject, agents))
        return
    chosen = list(agents)[::-1][:: max(1, -(-len(agents) // max(1, effort.bounds)))]
    for games in chosen[: effort.bounds]:
        bound = partial(_bound, subject, games, agents, effort)
        work.add(effort.attack_games, bound, cost=dear(effort.attack_samples))


def _exact(subject: Subject, agents: _Agents) -> None:
    """In the real game, and as the agent's abstraction shows it."""
    from rejoinder.measure.best_response import both_exploitabilities

    config = subject.config
    game, abstraction = config.load_game(), config.load_abstraction()
    known: list[int] = []

    def policies() -> Iterator[Policy]:
        for games in agents:
            if agent := agents.get(games):
                known.append(games)
                yield agent.lookup.policy

    both = both_exploitabilities(game, config.rules, abstraction, policies())
    for games, (real, shown) in zip(known, both, strict=True):
        inside = None if abstraction.number == CONCRETE else shown.exploitability
        subject.exploited.append(Exploited(games, real.exploitability, inside))


def _bound(subject: Subject, games: int, agents: _Agents, effort: Effort, tell: Tell) -> None:
    """What an attacker wins who knows the agent and thinks ahead: a lower bound."""
    agent = agents.get(games)
    if agent is None:
        return
    found = thinking_bound(
        *(subject.config.load_game(), subject.config.rules, agent),
        samples=effort.attack_samples,
        games=effort.attack_games,
        seed=SEED,
        progress=tell,
    )
    how = f"{effort.attack_samples:,} samples a move, {found.games:,} games"
    value, error = found.mean_utility, found.utility_error
    subject.exploited.append(Exploited(games, value, error=error, how=how))
