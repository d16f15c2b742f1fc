"""One game in progress, for people, tests and tables: every game through its contract.

    session = Session.start("deal-medium", seed=7)
    while not session.over:
        session.apply(session.legal()[0].number)

Chance is drawn from a stream of its own and resolved after every move, so a session always waits
for a player or is over. The k-th random event takes the k-th number of the stream, whatever was
played, as in matches. A move either happens altogether, with the chance that follows it, or raises
and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games import GAMES, find_game, queries
from rejoinder.games.base import Abstraction, Game, JsonDict, Rules, States
from rejoinder.games.contract import CHANCE, DECIDE, HIDDEN, OVER
from rejoinder.kernel import rng


class IllegalMove(ValueError):
    """A move that cannot be made now. The message says who tried what, and what was legal."""


@dataclass(frozen=True)
class Move:
    """A concrete move that is legal now."""

    number: int
    name: str
    meanings: dict[str, str]  # by abstraction: the name of the action that it counts as


@dataclass(frozen=True)
class AbstractAction:
    """An action of an abstraction that is legal now, and the concrete move that it stands for."""

    number: int
    name: str
    move: int
    move_name: str


@dataclass(frozen=True)
class Event:
    """A move or a chance outcome that happened, as told to somebody."""

    actor: int | None  # a seat; None: chance
    number: int  # of the move or the outcome, or HIDDEN
    name: str


class Session:
    """A game, its rules and its state; `states` is for reading (agents and compiled code)."""

    def __init__(
        self,
        game: Game,
        rules: Rules,
        states: States,
        *,
        chance: Any,
        deck: Iterable[str | int] = (),
    ) -> None:
        """A session from any position; `start` is the usual way to begin one."""
        self.game = game
        self.rules = rules
        self.states: States = states.copy()
        self._chance = chance.copy()
        self._upcoming = [
            _number(outcome, game.outcomes, f"deck[{k}]", "chance outcome")
            for k, outcome in enumerate(deck)
        ]
        self._events: list[_Event] = []
        self._resolve_chance()

    @classmethod
    def start(
        cls,
        game: Game | str,
        rules: Rules | None = None,
        *,
        seed: int,
        index: int = 0,
        first_player: int = 0,
        deck: Iterable[str | int] = (),
    ) -> Self:
        """A new game: `game` or its name; without `rules`, those of its named configuration.

        Chance takes the outcomes of `deck` (names or numbers) first, one for each random event,
        then those of the stream (seed, index).
        """
        if isinstance(game, str):
            game, configuration = find_game(game)
            rules = rules or game.configurations[configuration]
        rules = rules or next(iter(game.configurations.values()))
        if type(rules) is not game.rules_type:
            raise TypeError(
                f"rules: {game.name} takes {game.rules_type.__name__}, not {type(rules).__name__}"
            )
        _check_seat(game, first_player, "first_player")
        states = np.zeros(1, game.dtype)
        queries.start(states, game.template(rules), first_player)
        return cls(game, rules, states, chance=rng.stream(seed, index, rng.DEALS), deck=deck)

    @property
    def to_move(self) -> int | None:
        """The seat that must act, None after the end."""
        seat = int(queries.current_player(self.states))
        return None if seat == OVER else seat

    @property
    def over(self) -> bool:
        return self.to_move is None

    @property
    def utilities(self) -> tuple[float, ...] | None:
        """What every seat has won, None before the end."""
        if not self.over:
            return None
        won = np.zeros(self.game.players)
        queries.utilities(self.states, won)
        return tuple(won.tolist())

    @property
    def winner(self) -> int | None:
        """The one seat that has won most, None before the end and for a draw."""
        won = self.utilities or (0.0,)
        best = max(won)
        return won.index(best) if self.over and won.count(best) == 1 else None

    def legal(self) -> list[Move]:
        """The concrete moves of the player to move, by number; none after the end."""
        return [
            Move(number, self.game.moves[number], self._meanings(number))
            for number in self._legal_numbers(self.game.concrete)
        ]

    def legal_abstract(self, abstraction: str) -> list[AbstractAction]:
        """The actions of an abstraction, by number; none after the end."""
        chosen = self.game.abstraction(abstraction)
        return [self._abstract(chosen, number) for number in self._legal_numbers(chosen)]

    def apply(self, move: str | int) -> None:
        """Play a concrete move, by name or number, and the chance that follows."""
        number = self._legal_number(move, self.game.concrete)
        self._commit(self.game.concrete, number)

    def apply_abstract(self, action: str | int, abstraction: str) -> None:
        """Play an abstract action, to the next decision under that abstraction."""
        chosen = self.game.abstraction(abstraction)
        self._commit(chosen, self._legal_number(action, chosen))

    def view(self, player: int) -> BaseModel:
        """What `player` sees now."""
        _check_seat(self.game, player, "player")
        return self.game.view(self.states, player)

    @property
    def history(self) -> list[Event]:
        """Everything that happened, in order."""
        return [self._told(event, event.number) for event in self._events]

    def seen_by(self, player: int, since: int = 0) -> list[Event]:
        """The history, from event `since` on, as `player` saw it: what he could not is HIDDEN."""
        _check_seat(self.game, player, "player")
        return [self._told(event, event.seen[player]) for event in self._events[since:]]

    def copy(self) -> Self:
        """An independent session in the same position, with the same luck to come."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.states = self.states.copy()
        twin._chance = self._chance.copy()
        twin._upcoming = list(self._upcoming)
        twin._events = list(self._events)
        return twin

    def to_json(self) -> str:
        """The whole session, hidden things and luck to come included."""
        return _Saved(
            game=self.game.name,
            rules=self.rules.model_dump(mode="json"),
            state={name: self.states[0][name].tolist() for name in _names(self.game.dtype)},
            chance={name: str(self._chance[0][name]) for name in _names(rng.STREAM)},
            upcoming=self._upcoming,
            history=self._events,
        ).model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The session that `to_json` wrote. Errors name the field.

        The form is checked, not whether the rules could lead to the position, so it is for what
        comes from a trusted place.
        """
        saved = _Saved.model_validate_json(text, strict=True)
        game = GAMES.get(saved.game)
        if game is None:
            raise ValueError(
                f"game: no game is called {saved.game!r}; there are {', '.join(GAMES)}"
            )
        session = cls.__new__(cls)
        session.game = game
        session.rules = game.rules_type.model_validate_json(json.dumps(saved.rules), strict=True)
        session.states = _record("state", game.dtype, saved.state, later=game.later)
        words = {name: _decimal(f"chance.{name}", word) for name, word in saved.chance.items()}
        session._chance = _record("chance", rng.STREAM, words)
        for k, outcome in enumerate(saved.upcoming):
            _number(outcome, game.outcomes, f"upcoming[{k}]", "chance outcome")
        session._upcoming = saved.upcoming
        for k, event in enumerate(saved.history):
            _check_event(game, event, f"history[{k}]")
        session._events = saved.history
        seat = int(queries.current_player(session.states))
        if seat != OVER and not 0 <= seat < game.players:
            raise ValueError(f"state: it waits for {seat}, which is no seat of {game.name}")
        return session

    def _legal_numbers(self, abstraction: Abstraction) -> list[int]:
        return [] if self.over else queries.legal_numbers(self.game, self.states, abstraction)

    def _meanings(self, move: int) -> dict[str, str]:
        return {
            abstraction.name: abstraction.actions[int(abstraction.meaning(self.states, move))]
            for abstraction in self.game.abstractions
            if abstraction.meaning is not None
        }

    def _abstract(self, abstraction: Abstraction, number: int) -> AbstractAction:
        move = int(queries.resolve(self.states, abstraction.argument(), number))
        return AbstractAction(number, abstraction.actions[number], move, self.game.moves[move])

    def _legal_number(self, tried: str | int, abstraction: Abstraction) -> int:
        seat = self.to_move
        if seat is None:
            raise IllegalMove(f"{tried!r} was tried, but the game is over")
        legal = {abstraction.actions[n]: n for n in self._legal_numbers(abstraction)}
        number = legal.get(tried) if isinstance(tried, str) else tried
        if number is None or number not in legal.values():
            known = tried in abstraction.actions or number in range(len(abstraction.actions))
            why = "not legal now" if known else "unknown"
            choices = ", ".join(f"{name!r} ({n})" for name, n in legal.items())
            raise IllegalMove(f"seat {seat} tried {tried!r}, which is {why}; legal: {choices}")
        return number

    def _commit(self, abstraction: Abstraction, action: int) -> None:
        """Play a legal action and what follows from it without a decision, or nothing at all."""
        after, argument = self.copy(), abstraction.argument()
        move = self._abstract(abstraction, action).move
        if abstraction.options:
            queries.begin_option(after.states, argument, action)
        while move != DECIDE:
            after._apply(move)
            after._resolve_chance()
            move = int(queries.pending_move(after.states, argument))
        self.__dict__.update(after.__dict__)

    def _resolve_chance(self) -> None:
        while queries.current_player(self.states) == CHANCE:
            if self._upcoming:
                outcome = self._upcoming.pop(0)
                self._check_possible(outcome)
            else:
                outcome = int(queries.sample_outcome(self.states, self._chance))
            self._apply(outcome)

    def _check_possible(self, outcome: int) -> None:
        probabilities = np.zeros(len(self.game.outcomes))
        queries.chance_outcomes(self.states, probabilities)
        if probabilities[outcome] == 0.0:
            names = self.game.outcomes
            possible = ", ".join(repr(names[k]) for k in np.flatnonzero(probabilities))
            raise ValueError(f"deck: {names[outcome]!r} cannot come next; possible are {possible}")

    def _apply(self, number: int) -> None:
        seat = int(queries.current_player(self.states))
        seen = [queries.observed(self.states, number, p) for p in range(self.game.players)]
        actor = None if seat == CHANCE else seat
        self._events.append(_Event(actor=actor, number=number, seen=seen))
        queries.apply(self.states, number)

    def _told(self, event: _Event, number: int) -> Event:
        names = self.game.outcomes if event.actor is None else self.game.moves
        return Event(event.actor, number, "hidden" if number == HIDDEN else names[number])


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    actor: int | None  # a seat; None: chance
    number: int
    seen: list[int]  # by seat: what he saw of it, a number or HIDDEN


class _Saved(BaseModel):
    """The form of a session's JSON."""

    model_config = ConfigDict(extra="forbid")

    game: str
    rules: JsonDict
    state: JsonDict  # by field of the game's dtype
    chance: dict[str, str]  # the stream's words; decimal, since JSON numbers may lose bits
    upcoming: list[int]  # fixed chance outcomes still to come
    history: list[_Event]


def _number(chosen: str | int, names: tuple[str, ...], field: str, what: str) -> int:
    """A name or number as a number."""
    if isinstance(chosen, str) and chosen in names:
        return names.index(chosen)
    if not isinstance(chosen, str) and 0 <= chosen < len(names):
        return int(chosen)
    raise ValueError(f"{field}: {chosen!r} is no {what}; there are {', '.join(names)}")


def _check_seat(game: Game, seat: int, field: str) -> None:
    if not 0 <= seat < game.players:
        raise ValueError(f"{field}: {game.name} has seats 0 to {game.players - 1}, not {seat}")


def _check_event(game: Game, event: _Event, field: str) -> None:
    if event.actor is not None:
        _check_seat(game, event.actor, f"{field}.actor")
    names = game.outcomes if event.actor is None else game.moves
    _number(event.number, names, f"{field}.number", "event")
    if len(event.seen) != game.players:
        raise ValueError(f"{field}.seen: {game.players} seats need as many entries")
    for k, number in enumerate(event.seen):
        if number != HIDDEN:
            _number(number, names, f"{field}.seen[{k}]", "event")


def _names(dtype: np.dtype[Any]) -> tuple[str, ...]:
    assert dtype.names is not None, "a state is a record"
    return dtype.names


def _record(
    what: str, dtype: np.dtype[Any], values: JsonDict, later: tuple[str, ...] = ()
) -> States:
    """A one-element array of a record dtype of integers, every field checked.

    Those of `later` may be missing: they are 0 then.
    """
    names = _names(dtype)
    for name in values.keys() - set(names):
        raise ValueError(f"{what}.{name}: unknown field; there are {', '.join(names)}")
    made = np.zeros(1, dtype)
    for name in names:
        if name not in values:
            if name in later:
                continue
            raise ValueError(f"{what}.{name}: missing")
        field = dtype[name]
        _check_integers(f"{what}.{name}", values[name], field.shape, np.iinfo(field.base))
        made[0][name] = values[name]
    return made


def _check_integers(field: str, value: Any, shape: tuple[int, ...], limits: np.iinfo[Any]) -> None:
    if shape:
        if not isinstance(value, list) or len(value) != shape[0]:
            raise ValueError(f"{field}: a list of {shape[0]} is needed, not {value!r}")
        for k, part in enumerate(value):
            _check_integers(f"{field}[{k}]", part, shape[1:], limits)
    elif type(value) is not int:
        raise ValueError(f"{field}: an integer is needed, not {value!r}")
    elif not limits.min <= value <= limits.max:
        raise ValueError(f"{field}: {value} is not in {limits.min} to {limits.max}")


def _decimal(field: str, word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise ValueError(f"{field}: a decimal number is needed, not {word!r}")
    return int(word)
