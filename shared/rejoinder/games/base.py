"""A game as Python sees it: the names, rules and views around the compiled functions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games.contract import CONCRETE
from rejoinder.games.numbers import Pieces
from rejoinder.kernel.masks import WORD

States: TypeAlias = np.ndarray[Any, np.dtype[Any]]  # a one-element array of a game's state dtype
JsonDict: TypeAlias = dict[str, Any]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
C = TypeVar("C")


class Rules(BaseModel):
    """The rules of a game that has none to choose; games with options derive from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Capable:
    """Has optional capabilities: values of types that only those know who ask for them."""

    capabilities: tuple[Any, ...]

    def capability(self, kind: type[C]) -> C | None:
        """Its capability of that type, if it has one."""
        return next((found for found in self.capabilities if isinstance(found, kind)), None)


def hexadecimal(key: int) -> str:
    """An infoset's name where a game has no better one."""
    return f"{key:016x}"


def hexadecimal_key(identifier: str) -> int | None:
    """The key of an identifier that is the key in 16 hexadecimal digits; None if it is not one."""
    return int(identifier, 16) if re.fullmatch("[0-9a-f]{16}", identifier) else None


@dataclass(frozen=True, eq=False)  # compared by identity, so that caches can have it as a key
class Abstraction(Capable):
    """One way of looking at a game."""

    name: str
    number: int
    actions: tuple[str, ...]
    identifier: Callable[[int], str] = hexadecimal  # infoset key → the name written to files
    describe: Callable[[int], JsonDict] | None = None  # infoset key → what it says, if it does
    describe_state: Callable[[States], JsonDict] | None = None  # the same for the player to move
    meaning: Callable[[States, int], int] | None = None  # legal move → the action it counts as
    options: bool = False  # whether an action may stand for more than one move
    data: Callable[[], Mapping[str, Array]] | None = None  # arrays that it brings, such as buckets
    make_argument: Callable[[Mapping[str, Array]], Any] | None = None  # data → see `argument`
    dense_keys: Callable[[Any], int | None] | None = None  # rules → n, if all keys are below n
    capabilities: tuple[Any, ...] = ()

    def argument(self) -> Any:
        """What compiled code takes as `abstraction`: its number, or what it makes of its data.

        It may have scratch memory in it, so every call makes one, for one thread.
        """
        return self.number if self.make_argument is None else self.make_argument(self._data)

    @cached_property
    def data_hash(self) -> str | None:
        """SHA-256 of the data that it brings."""
        if self.data is None:
            return None
        made = hashlib.sha256()
        for name, array in sorted(self._data.items()):
            made.update(f"{name} {array.dtype.descr} {array.shape}\n".encode())
            made.update(np.ascontiguousarray(array).tobytes())
        return made.hexdigest()

    @cached_property
    def _data(self) -> Mapping[str, Array]:
        return {} if self.data is None else self.data()

    @property
    def read_identifier(self) -> Callable[[str], int | None] | None:
        """The inverse of `identifier`, where identifiers are keys."""
        return hexadecimal_key if self.identifier is hexadecimal else None

    def description(self, key: int) -> JsonDict:
        """What an infoset key says; only the key itself where it cannot be read."""
        return {"key": hexadecimal(key)} if self.describe is None else self.describe(key)

    def description_at(self, states: States, key: int) -> JsonDict:
        """The same of the player to move, whose key is given; a state can always be read."""
        if self.describe_state is not None:
            return self.describe_state(states)
        return self.description(key)


@dataclass(frozen=True, eq=False)  # as above
class Game(Capable):
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
    max_decisions: Callable[[Any], int]  # rules → moves of players in one game at most
    check: Callable[[States, Any], str | None]  # state, rules → `field: why it cannot be`, or None
    starts: int = 1  # the seats 0..starts-1 begin in turn, by game index
    mask_words: int = 1  # 64-bit words of its masks of actions; more than one: they are tuples
    baselines: tuple[str, ...] = ()  # names of its hand-made opponents, by number
    enumerable: frozenset[str] = frozenset()  # configurations whose whole tree fits in memory
    zero_sum: bool = True  # utilities of all seats sum to zero
    utility_unit: str = "points"  # what utility counts: wins, chips, points
    counts_wins: bool = True  # whether a win rate means something beside mean utility
    later: tuple[str, ...] = ()  # state fields that older saved games lack, and are 0 there
    remembered: tuple[str, ...] = ()  # state fields that no rule of play depends on
    is_default: bool = False  # the game of a config that names none
    observation: Callable[[Any, Any], Pieces] | None = None  # rules, view → as numbers
    max_utility: float | None = None  # that a player can win at most
    max_chance_events: Callable[[Any], int] | None = None  # rules → random events in a game at most
    # Modules of its package that not everybody needs, by path; `load_part` imports them.
    terminal: str | None = None  # its own view in a terminal, see `rejoinder_cli.view`
    experiment: str | None = None  # a published experiment, see `rejoinder.measure.experiments`
    checkpoint_format: str | None = None  # a file format of others, see `rejoinder.run.formats`
    capabilities: tuple[Any, ...] = ()

    def abstraction(self, name: str) -> Abstraction:
        for candidate in self.abstractions:
            if candidate.name == name:
                return candidate
        known = ", ".join(a.name for a in self.abstractions)
        raise ValueError(f"abstraction: {self.name} has no {name!r}; it has {known}")

    @property
    def concrete(self) -> Abstraction:
        """The abstraction that abstracts nothing."""
        return self.abstractions[CONCRETE]

    def fits_masks(self, abstraction: Abstraction) -> bool:
        """Whether masks hold the actions, so that solvers can work with them."""
        return len(abstraction.actions) <= WORD * self.mask_words

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


def concrete(moves: tuple[str, ...], **more: Any) -> Abstraction:
    """The abstraction that abstracts nothing; `more` are further fields."""
    return Abstraction(name="none", number=CONCRETE, actions=moves, **more)
