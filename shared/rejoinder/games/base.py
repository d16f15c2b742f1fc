"""A game as Python sees it: the names, rules and views around the compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games.contract import CONCRETE
from rejoinder.games.numbers import Pieces

States: TypeAlias = np.ndarray[Any, np.dtype[Any]]  # a one-element array of a game's state dtype
JsonDict: TypeAlias = dict[str, Any]


class Rules(BaseModel):
    """The rules of a game that has none to choose; games with options derive from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@dataclass(frozen=True)
class Clamps:
    """Action masks that a game gives to regret matching (none by default)."""

    never: int = 0  # actions that get no weight
    passive: int = 0  # actions that get none while an active one has positive regret


NO_CLAMPS = Clamps()


@dataclass(frozen=True)
class Abstraction:
    """One way of looking at a game; `number` is what compiled code is told."""

    name: str
    number: int
    actions: tuple[str, ...]
    identifier: Callable[[int], str]  # infoset key → the name written to files
    describe: Callable[[int], JsonDict]  # infoset key → what it says
    clamps: Clamps = NO_CLAMPS
    meaning: Callable[[States, int], int] | None = None  # legal move → the action it counts as
    responses: int = 0  # mask of the actions that exist in response phases alone


# What a move of a response phase does.
NO_RESPONSE, REFUSES, GIVES_CASH, GIVES_PROPERTY, YIELDS = range(5)
RESPONSE_NAMES = ("", "refuse", "give cash", "give property", "yield")


@dataclass(frozen=True, eq=False)
class Responses:
    """The concrete moves of response phases, as whoever counts them needs it."""

    kind: np.ndarray[Any, np.dtype[np.int8]]  # by move; NO_RESPONSE for those of main play


@dataclass(frozen=True)
class Game:
    """Everything about one game that is not compiled."""

    name: str
    title: str
    players: int
    dtype: np.dtype[Any]  # of the state; the contract dispatches on it
    moves: tuple[str, ...]  # concrete moves by number
    outcomes: tuple[str, ...]  # chance outcomes by number
    abstractions: tuple[Abstraction, ...]  # by number; the first is CONCRETE
    configurations: Mapping[str, Rules]  # named rules; the first is the default
    template: Callable[[Any], States]  # rules → a state ready for `start`
    view: Callable[[States, int], BaseModel]  # what a player sees
    max_decisions: Callable[[Any], int]  # rules → decisions in one game at most
    check: Callable[[States, Any], str | None]  # state, rules → `field: why it cannot be`, or None
    starts: int = 1  # the seats 0..starts-1 begin in turn, by game index
    baseline: str | None = None  # name of its hand-made opponent, where it has one
    enumerable: frozenset[str] = frozenset()  # configurations whose whole tree fits in memory
    later: tuple[str, ...] = ()  # state fields that older saved games lack, and are 0 there
    remembered: tuple[str, ...] = ()  # state fields that no rule of play depends on
    responses: Responses | None = None  # None: the game has no response phases
    is_default: bool = False  # the game of a config that names none
    observation: Callable[[Any, Any], Pieces] | None = None  # rules, view → as numbers
    max_utility: float | None = None  # that a player can win at most
    max_chance_events: Callable[[Any], int] | None = None  # rules → random events in a game at most
    # Modules of its package that not everybody needs, by path; `load_part` imports them.
    terminal: str | None = None  # its own view in a terminal, see `rejoinder_cli.view`
    experiment: str | None = None  # a published experiment, see `rejoinder.measure.experiments`
    checkpoint_format: str | None = None  # a file format of others, see `rejoinder.run.formats`

    def abstraction(self, name: str) -> Abstraction:
        for candidate in self.abstractions:
            if candidate.name == name:
                return candidate
        known = ", ".join(a.name for a in self.abstractions)
        raise ValueError(f"abstraction: {self.name} has no {name!r}; it has {known}")

    def is_enumerable(self, rules: Rules) -> bool:
        """Whether these are the rules of a configuration whose whole tree fits in memory."""
        return any(self.configurations[name] == rules for name in self.enumerable)

    @property
    def rules_type(self) -> type[Rules]:
        return type(next(iter(self.configurations.values())))

    @property
    def default_abstraction(self) -> Abstraction:
        """The first real abstraction where there is one."""
        return self.abstractions[min(1, len(self.abstractions) - 1)]


def concrete(
    moves: tuple[str, ...],
    clamps: Clamps = NO_CLAMPS,
    responses: int = 0,
    describe: Callable[[int], JsonDict] = lambda key: {"key": f"{key:016x}"},
) -> Abstraction:
    """The abstraction that abstracts nothing."""
    return Abstraction(
        name="none",
        number=CONCRETE,
        actions=moves,
        identifier=lambda key: f"{key:016x}",
        describe=describe,
        clamps=clamps,
        responses=responses,
    )
