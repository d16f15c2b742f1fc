"""The games for OpenSpiel: `pyspiel.load_game("rejoinder_deal(rules=micro)")`.

Importing this module registers one Python game for each of ours that declares its observation and
its largest utility and number of chance events, with the parameters `rules` (the
name of a configuration, or a JSON table as in a run config) and `first_player` (a seat; −1: chance
decides, where the game has no fixed one).

Chance is explicit, card by card. An information state is everything that a player has seen, in
order, so players have perfect recall; an observation is what he sees now (see `observations`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel

from rejoinder.games import GAMES, queries
from rejoinder.games.base import Game, Rules
from rejoinder.games.contract import CHANCE, HIDDEN, OVER
from rejoinder.interop.observations import Observer
from rejoinder.run.config import make_config

CHANCE_DECIDES = -1  # for first_player

_BEGINS = -2  # the actor of the event that tells who begins


class Setting:
    """What all states of one game share: copies of a state too, and it is never written out."""

    def __init__(self, game: Game, rules: Rules, first_player: int) -> None:
        self.game, self.rules, self.first_player = game, rules, first_player
        self.observer = Observer(game, rules)
        self.template = game.template(rules)

    def __deepcopy__(self, _: Any) -> Setting:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _setting, (self.game.name, self.rules.model_dump_json(), self.first_player)

    @property
    def events(self) -> int:
        """That one may see at most: who begins, the cards, the moves."""
        assert self.game.max_chance_events is not None  # else it is not registered
        cards = self.game.max_chance_events(self.rules)
        return 1 + cards + self.game.max_decisions(self.rules)

    @property
    def actors(self) -> int:
        """Of events: who begins, chance, the seats."""
        return self.game.players + 2

    @property
    def numbers(self) -> int:
        """Of events: hidden, or one of the moves or outcomes."""
        return 1 + max(len(self.game.moves), len(self.game.outcomes), self.game.players)


def _setting(name: str, rules: str, first_player: int) -> Setting:
    return Setting(GAMES[name], _rules(GAMES[name], rules), first_player)


class SpielGame(pyspiel.Game):  # type: ignore[misc, unused-ignore]
    """One of our games; OpenSpiel is given a class for each."""

    game: Game
    game_type: Any

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        game, given = self.game, params or {}
        rules = _rules(game, given.get("rules", ""))
        first = given.get("first_player", CHANCE_DECIDES)
        if not CHANCE_DECIDES <= first < game.players:
            raise ValueError(f"first_player: {first} is neither a seat nor {CHANCE_DECIDES}")
        if game.starts == 1:
            first = max(first, 0)
        assert game.max_utility is not None  # else it is not registered
        info = pyspiel.GameInfo(
            num_distinct_actions=len(game.moves),
            max_chance_outcomes=max(len(game.outcomes), game.starts),
            num_players=game.players,
            min_utility=-game.max_utility,
            max_utility=game.max_utility,
            utility_sum=0.0,
            max_game_length=game.max_decisions(rules),
        )
        super().__init__(self.game_type, info, given)
        self.setting = Setting(game, rules, first)

    def new_initial_state(self) -> SpielState:
        return SpielState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> SpielObserver:
        return SpielObserver(self.setting, iig_obs_type, params)


class SpielState(pyspiel.State):  # type: ignore[misc, unused-ignore]
    """A state of the engine, and what every player has seen on the way to it."""

    def __init__(self, game: SpielGame) -> None:
        super().__init__(game)
        self.setting = game.setting
        self.states = np.zeros(1, game.setting.game.dtype)
        # By seat, two bytes an event: actor and number. Bytes, because copies are many and cheap.
        self.seen = (b"",) * game.setting.game.players
        self._mover = CHANCE
        self._begun = False
        if game.setting.first_player != CHANCE_DECIDES:
            self._begin(game.setting.first_player)

    def current_player(self) -> Any:
        if self._mover == OVER:
            return pyspiel.PlayerId.TERMINAL
        return pyspiel.PlayerId.CHANCE if self._mover == CHANCE else self._mover

    def _legal_actions(self, player: int) -> list[int]:  # noqa: ARG002 (only the mover is asked)
        return queries.legal_numbers(self.setting.game, self.states)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        if not self._begun:
            starts = self.setting.game.starts
            return [(seat, 1 / starts) for seat in range(starts)]
        odds = np.zeros(len(self.setting.game.outcomes))
        queries.chance_outcomes(self.states, odds)
        return [(int(outcome), float(odds[outcome])) for outcome in np.flatnonzero(odds)]

    def _apply_action(self, action: int) -> None:
        players = range(self.setting.game.players)
        if not self._begun:
            self._record([action for _ in players], _BEGINS)
            self._begin(action)
            return
        mover = self._mover
        told = [
            action if p == mover else int(queries.observed(self.states, action, p)) for p in players
        ]
        self._record(told, mover)
        queries.apply(self.states, action)
        self._mover = int(queries.current_player(self.states))

    def _begin(self, seat: int) -> None:
        queries.start(self.states, self.setting.template, seat)
        self._mover = int(queries.current_player(self.states))
        self._begun = True

    def _record(self, numbers: list[int], actor: int) -> None:
        event = [bytes((actor - _BEGINS, number - HIDDEN)) for number in numbers]
        self.seen = tuple(seen + new for seen, new in zip(self.seen, event, strict=True))

    def _action_to_string(self, player: int, action: int) -> str:
        game = self.setting.game
        if player != pyspiel.PlayerId.CHANCE:
            return game.moves[action]
        return f"deal {game.outcomes[action]}" if self._begun else f"seat {action} begins"

    def is_terminal(self) -> bool:
        return self._mover == OVER

    def returns(self) -> list[float]:
        won = np.zeros(self.setting.game.players)
        if self.is_terminal():
            queries.utilities(self.states, won)
        return [float(value) for value in won]

    def __str__(self) -> str:
        return " | ".join(remembered(self, p) for p in range(self.setting.game.players))


def remembered(state: SpielState, player: int) -> str:
    """Everything that a player has seen, in words."""
    game = state.setting.game
    words = [f"player {player}"]
    for actor, number in _events(state.seen[player]):
        if actor == _BEGINS:
            words.append(f"seat {number} begins")
        else:
            names = game.outcomes if actor == CHANCE else game.moves
            event = "hidden" if number == HIDDEN else names[number]
            words.append(f"deal {event}" if actor == CHANCE else f"{actor}: {event}")
    return ", ".join(words)


def _events(seen: bytes) -> Iterator[tuple[int, int]]:
    """Actor and number of each event."""
    return ((seen[k] + _BEGINS, seen[k + 1] + HIDDEN) for k in range(0, len(seen), 2))


class SpielObserver:
    """What one player sees now; with perfect recall what he has seen so far (a row an event)."""

    def __init__(self, setting: Setting, iig_obs_type: Any, params: Any) -> None:
        wanted = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        if params:
            raise ValueError(f"observation parameters are not supported; passed {params}")
        if not wanted.public_info or wanted.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            raise ValueError("an observation is all that one player sees")
        self._setting, self._recall = setting, wanted.perfect_recall
        sizes = setting.observer.sizes
        shapes: dict[str, tuple[int, ...]] = {name: (size,) for name, size in sizes.items()}
        if self._recall:
            shapes = {
                "seat": (setting.game.players,),
                "history": (setting.events, setting.actors + setting.numbers),
            }
        parts = [int(np.prod(shape)) for shape in shapes.values()]
        self.tensor = np.zeros(sum(parts), np.float32)
        pieces = np.split(self.tensor, np.cumsum(parts)[:-1])
        self.dict = {
            name: piece.reshape(shape)
            for piece, (name, shape) in zip(pieces, shapes.items(), strict=True)
        }

    def set_from(self, state: SpielState, player: int) -> None:
        self.tensor.fill(0)
        if not self._recall:
            for name, values in self._setting.observer.pieces(state.states, player).items():
                self.dict[name][:] = values
            return
        self.dict["seat"][player] = 1
        for k, (actor, number) in enumerate(_events(state.seen[player])):
            row = self.dict["history"][k]
            row[actor - _BEGINS] = row[self._setting.actors + number - HIDDEN] = 1

    def string_from(self, state: SpielState, player: int) -> str:
        if self._recall:
            return remembered(state, player)
        return self._setting.game.view(state.states, player).model_dump_json()


def _rules(game: Game, given: str) -> Rules:
    """The rules of a name or a JSON table; the game's first configuration without one."""
    table = json.loads(given) if given.startswith("{") else given or "default"
    return make_config({"game": game.name, "rules": table}, source=f"rejoinder_{game.name}").rules


def _register(game: Game) -> None:
    game_type = pyspiel.GameType(
        short_name=f"rejoinder_{game.name}",
        long_name=game.title,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=game.players,
        min_num_players=game.players,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={
            "rules": next(iter(game.configurations)),
            "first_player": CHANCE_DECIDES,
        },
    )
    named = {"game": game, "game_type": game_type}
    pyspiel.register_game(game_type, type(f"{game.name.title()}Game", (SpielGame,), named))


for _game in GAMES.values():
    if None not in (_game.observation, _game.max_utility, _game.max_chance_events):
        _register(_game)
