"""Published experiments that runs can repeat: which runs are one, and what is claimed of it.

An experiment belongs to a game, which names a module that has it as `EXPERIMENT`
(`Game.experiment`). A claim is data: the publication's words and number, how the same thing is read
off a run, and between which bounds it counts as reproduced, with the reason for those bounds.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rejoinder.games import GAMES
from rejoinder.games.base import Abstraction, Game
from rejoinder.measure.match import MatchResult, Starts
from rejoinder.run.config import RunConfig, load_config

Verdict = Literal["reproduced", "not reproduced", "not measured"]


class Evidence(Protocol):
    """A run, and what was measured of it."""

    records: list[dict[str, Any]]  # of its evaluations while it trained
    experiment_policy: dict[int, dict[str, float]]  # by games, as `PolicyFigure.read` has it

    @property
    def config(self) -> RunConfig: ...

    @property
    def games(self) -> int: ...

    @property
    def seconds(self) -> float | None:
        """That training took, if that is known."""

    @property
    def workers(self) -> int: ...

    @property
    def keys(self) -> Any:
        """Of the infosets it has learned."""

    def final(self, opponent: str, starts: Starts) -> MatchResult | None:
        """The match of the newest agent."""


@dataclass(frozen=True)
class Reading:
    """What a run says: the number that counts, and how it is told."""

    value: float
    text: str


@dataclass(frozen=True)
class Claim:
    """One claim; `least` and `most` bound what counts as reproduced, `why` is their reason."""

    where: str
    text: str
    paper: str
    read: Callable[[Evidence], Reading | None]
    least: float
    most: float
    why: str
    form: str = ".0%"  # how the bounds are written

    @property
    def counts(self) -> str:
        """Its bounds, for people."""
        if math.isinf(self.most):
            return "counts if above zero"
        return f"counts from {self.least:{self.form}} to {self.most:{self.form}}"

    def judge(self, run: Evidence) -> Judgement:
        reading = self.read(run)
        if reading is None or math.isnan(reading.value):
            return Judgement(self, None, "not measured")
        held = self.least <= reading.value <= self.most
        return Judgement(self, reading, "reproduced" if held else "not reproduced")


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    reading: Reading | None
    verdict: Verdict

    @property
    def direction(self) -> str:
        """Where ours is if it is not the paper's."""
        if self.reading is None or self.verdict != "not reproduced":
            return ""
        if math.isinf(self.claim.most):
            return ""  # a preference is there or not
        return "ours is higher" if self.reading.value > self.claim.most else "ours is lower"

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        reading = self.reading
        return {
            "claim": self.claim.text,
            "paper": self.claim.paper,
            "value": reading.value if reading else None,
            "ours": reading.text if reading else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class PolicyFigure:
    """A figure of probabilities by action that the publication takes in a way of its own."""

    title: str
    caption: str
    read: Callable[[Any, Abstraction], dict[str, float]]  # learned rows → number by action


@dataclass(frozen=True)
class Experiment:
    """What was done, and what was claimed of it."""

    source: str  # whose claims they are
    config: str  # the shipped config that repeats it
    games: int  # that it trains for
    free: frozenset[str]  # learning fields that may differ: it is the same experiment
    settings: tuple[str, ...]  # reporting fields of a run that is to be judged
    quick: tuple[str, ...]  # the same for a first look
    claims: tuple[Claim, ...]
    figures: Mapping[str, int]  # by the name of a chart: the number of the figure that it repeats
    policy: PolicyFigure

    def includes(self, config: RunConfig) -> bool:
        """Whether a run is this experiment, with whatever length."""
        ours, theirs = config.learning_fields(), load_config(self.config).learning_fields()
        return all(ours[name] == theirs[name] for name in theirs.keys() - self.free)

    def judge(self, run: Evidence) -> list[Judgement]:
        return [claim.judge(run) for claim in self.claims]


def experiment_of(config: RunConfig) -> Experiment | None:
    """The experiment that a run repeats, if it does."""
    found = game_experiment(config.load_game())
    return found if found is not None and found.includes(config) else None


def game_experiment(game: Game) -> Experiment | None:
    if game.experiment is None:
        return None
    found: Experiment = importlib.import_module(game.experiment).EXPERIMENT
    return found


def find_experiment(game: str | None = None) -> Experiment:
    """A game's experiment; without a name that of the first game that has one."""
    found = {name: game_experiment(GAMES[name]) for name in GAMES}
    known = {name: experiment for name, experiment in found.items() if experiment is not None}
    if game is None and known:
        return next(iter(known.values()))
    if game not in known:
        raise ValueError(f"{game!r} has no experiment; these games have one: {', '.join(known)}")
    return known[game]
