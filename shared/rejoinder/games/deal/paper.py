"""The paper's checkpoint file (its appendix C): one JSON object that holds a learner's whole state.

    game_config, …          the rules, and how training games are played
    policy_manager          how often each infoset was updated, and by player the latest policies of
                            each, oldest first: vectors with a probability for every action
    regret_manager          by infoset and action: sum and number of the regrets
    cf_reach_prob_counter   by infoset: the sum of its counterfactual reach

Invariant: rows and file say the same. `read` makes of a file that `write` has made the same rows
again, bit by bit and in the same order (that of `update_count`), and `write` makes of them the same
bytes. What one of the two cannot say is refused, by one line that names the entry.

An infoset's name is a hash (appendix A), so `read` finds out what it stands for by making the names
of all infosets there are. The authors' program knows 22 actions, of which the intent abstraction
has the first eleven; its earlier versions wrote vectors of those alone, which are read too.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rejoinder.games.deal import GAME
from rejoinder.games.queries import bits
from rejoinder.methods.base import Rows
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.run.config import ConfigError, Learning, RunConfig, make_config
from rejoinder.run.formats import FormatError

NAME = "paper"
ACTIONS = 22  # in the authors' program; those after the abstraction's own are cards by name
SUM_TOLERANCE = 1e-6  # how far probabilities may be from one

_INTENT = GAME.abstraction("intent")
_INTENTS = len(_INTENT.actions)
_FIXED = {"game": GAME.name, "abstraction": _INTENT.name}
_METHOD = {"name": "rollout", "averaging": "buffer"}
_KEYS = 1 << 16  # keys of the abstraction are smaller
_RATIO = 3  # cards of a kind to a special card, in the paper
_NO_LIMIT = 10**10  # streaks in a rollout
_MOST = 1e100  # of any number; a learner's sums with such stay finite


class PaperError(FormatError):
    """Something that this format cannot say, or that no learner can have written."""


def write(config: Learning, rows: Rows) -> bytes:
    """The file of a run's rows."""
    there = config.learning_fields()
    for name, value in (_FIXED | {f"method.{name}": _METHOD[name] for name in _METHOD}).items():
        table, _, field = name.rpartition(".")
        found = (there[table] if table else there)[field]
        if found != value:
            raise PaperError(f"{name}: the paper's format is for {value!r}, not {found!r}")
    rules: Any = config.rules  # those of the game and of the method, as was just seen
    settings: Any = config.method
    names = [_INTENT.identifier(int(key)) for key in rows["key"].tolist()]
    known = dict(zip(names, rows, strict=True))
    content = {
        "game_config": _game_config(rules),
        "abstraction_cls": "IntentStateAbstraction",
        "resolver_cls": "GreedyActionResolver",
        "target_player_index": 0,
        "sims_per_action": settings.rollouts,
        "max_turns_per_game": rules.turn_cap,
        "max_streaks": _NO_LIMIT,
        "uniform_external_sampling": True,
        "verbose": False,
        "epsilon": settings.epsilon,
        "policy_manager": _policy_manager(known, settings.buffer_size),
        "regret_manager": {name: _regrets(known[name]) for name in sorted(known)},
        "cf_reach_prob_counter": {name: float(known[name]["reach"]) for name in sorted(known)},
        "model_cls": "CFR",
    }
    return json.dumps(content, indent=4, allow_nan=False).encode()


def _game_config(rules: Any) -> dict[str, Any]:
    """The rules in the paper's terms; all copies there are multiples of the properties'."""
    copies = max(rules.property_copies[0], 1)
    fitting = [_RATIO, *range(1, copies + 2)]
    said = _GameConfig.model_construct(
        card_to_special_card_ratio=next(
            (ratio for ratio in fitting if copies // ratio == rules.just_say_no), _RATIO
        ),
        cash_card_values=[
            value for value, n in enumerate(rules.cash_copies, 1) for _ in range(n // copies)
        ],
        deck_size_multiplier=copies,
        initial_hand_size=rules.hand_size,
        max_consecutive_player_actions=rules.streak,
        new_cards_per_turn=rules.draw,
        rent_cards_per_property_type=rules.rent_copies[0] // copies,
        required_property_sets=rules.sets_needed,
    )
    understood = {name: field.default for name, field in type(rules).model_fields.items()}
    understood |= said.rules(rules.turn_cap)
    for name, value in understood.items():
        if getattr(rules, name) != value:
            raise PaperError(
                f"rules.{name}: {getattr(rules, name)} cannot be said in the paper's format"
            )
    return said.model_dump()


def _policy_manager(known: Mapping[str, Any], buffer_size: int) -> dict[str, Any]:
    updated = {name: row for name, row in known.items() if row["updates"] > 0}
    by_action = {
        a: sorted(name for name, row in updated.items() if int(row["legal"]) >> a & 1)
        for a in range(_INTENTS)
    }
    return {
        "action_to_keys": {str(a): names for a, names in by_action.items() if names},
        "buffer_size": buffer_size,
        "player_buffers": [
            {
                "buffer": {
                    name: [[*policy.tolist(), *[0.0] * (ACTIONS - _INTENTS)] for policy in kept]
                    for name, kept in (
                        (name, row["buffer"][_oldest_first(int(row["updates"]), buffer_size)])
                        for name, row in updated.items()
                        if _INTENT.describe(int(row["key"]))["player"] == player
                    )
                },
                "buffer_size": buffer_size,
            }
            for player in range(GAME.players)
        ],
        "update_count": {name: int(row["updates"]) for name, row in updated.items()},
    }


def _oldest_first(updates: int, size: int) -> list[int]:
    """The places of the ring of policies in the order in which they were written."""
    return [place % size for place in range(max(0, updates - size), updates)]


def _regrets(row: Any) -> dict[str, dict[str, float]]:
    return {
        str(a): {"sum": float(row["regret"][a]), "n": float(row["count"][a])}
        for a in bits(row["legal"])
        if row["count"][a] > 0
    }


def read(content: bytes) -> tuple[RunConfig, Rows]:
    """What a file says, if every entry of it can be taken: a config, as far as that is in the file
    (the rest is at its default), and the learner's rows.
    """
    file = _parse(content)
    if file.max_streaks < file.max_turns_per_game:
        raise PaperError(
            f"max_streaks: rollouts are not cut short here, but by {file.max_streaks} they were"
        )
    known = _FIXED | {
        "rules": file.game_config.rules(file.max_turns_per_game),
        "method": {
            **_METHOD,
            "rollouts": file.sims_per_action,
            "epsilon": file.epsilon,
            "buffer_size": file.policy_manager.buffer_size,
        },
    }
    try:
        config = make_config(known, source="game_config")
    except ConfigError as error:
        raise PaperError(str(error)) from None
    return config, _rows(file, config.load_method().state_dtype(config.task()))


def _parse(content: bytes) -> _File:
    try:
        found = json.loads(content, object_pairs_hook=_unique)
        if not isinstance(found, dict):
            raise PaperError("a checkpoint in the paper's format is one JSON object; this is none")
        return _File.model_validate(found)
    except json.JSONDecodeError as error:
        if error.pos == 0 and content:
            raise PaperError(
                "this is not JSON, as checkpoints in the paper's format are "
                "(`rejoinder export --format paper` writes them)"
            ) from None
        where = f"line {error.lineno}, column {error.colno}"
        what = error.msg.removesuffix(" at")
        raise PaperError(f"damaged JSON: {what} at {where}") from None
    except UnicodeDecodeError:
        raise PaperError("damaged JSON: it is not text") from None
    except RecursionError:
        raise PaperError("damaged JSON: it is nested too deeply") from None
    except PaperError:
        raise
    except ValidationError as error:
        first, *more = error.errors()
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        what = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        count = f" (and {len(more)} more)" if more else ""
        raise PaperError(f"{where}: {what}{count}") from None
    except ValueError as error:  # a number with thousands of digits
        raise PaperError(f"damaged JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise PaperError(f"{twice}: it is there twice")
    return made


def _rows(file: _File, dtype: np.dtype[Any]) -> Rows:
    """The learner's rows, in the order of `update_count`; those never updated come last."""
    manager = file.policy_manager
    places = {name: place for place, names in reversed(file.named_infosets()) for name in names}
    order = dict.fromkeys([*manager.update_count, *file.regret_manager, *places])
    keys = _keys_by_name(file.game_config.max_consecutive_player_actions)
    for name in order:
        if name not in keys:
            raise PaperError(f"{places[name]}.{name}: no infoset has that identifier")
    buffers = _buffers(file, keys)
    rows = np.zeros(len(order), dtype)
    for row, name in zip(rows, order, strict=True):
        key = keys[name]
        legal = _INTENT.describe(key)["actions"]
        row["key"], row["legal"] = key, sum(1 << a for a in legal)
        row["updates"] = manager.update_count.get(name, 0)
        row["reach"] = file.cf_reach_prob_counter.get(name, 0.0)
        for a, estimate in file.regret_manager.get(name, {}).items():
            place = f"regret_manager.{name}.{a}"
            number = _action(place, a, legal)
            row["regret"][number], row["count"][number] = estimate.sum, estimate.n
        _set_policies(row, legal, buffers.get(name, []))
    _check_actions(file, rows, order)
    return rows


@functools.cache
def _keys_by_name(streak: int) -> dict[str, int]:
    """The key of every infoset that has a name, with so many turns in a streak."""
    told = ((key, _INTENT.describe(key)) for key in range(_KEYS))
    return {
        _INTENT.identifier(key): key
        for key, what in told
        if what["actions"] and what["streak_index"] < streak
    }


def _buffers(file: _File, keys: Mapping[str, int]) -> dict[str, list[list[float]]]:
    """The kept policies of every infoset, checked."""
    manager, made = file.policy_manager, {}
    width: int | None = None
    for player, kept in enumerate(manager.player_buffers):
        where = f"policy_manager.player_buffers.{player}"
        if kept.buffer_size != manager.buffer_size:
            raise PaperError(f"{where}.buffer_size: {kept.buffer_size} is not the manager's")
        for name, policies in kept.buffer.items():
            place = f"{where}.buffer.{name}"
            told = _INTENT.describe(keys[name])
            if told["player"] != player:
                raise PaperError(f"{place}: that is an infoset of player {told['player']}")
            updates = manager.update_count.get(name, 0)
            most = min(updates, manager.buffer_size)
            if len(policies) != most:
                raise PaperError(
                    f"{place}: it has {len(policies)} policies, not the {most} that update_count "
                    f"{updates} and buffer_size {manager.buffer_size} leave"
                )
            for k, policy in enumerate(policies):
                width = width or len(policy)
                _check_policy(f"{place}.{k}", policy, width, told["actions"])
            made[name] = policies
    for name in manager.update_count:
        if name not in made:
            raise PaperError(f"policy_manager.update_count.{name}: no buffer has its policies")
    return made


def _check_policy(place: str, policy: list[float], width: int, legal: list[int]) -> None:
    if len(policy) not in (ACTIONS, _INTENTS):
        raise PaperError(f"{place}: it has {len(policy)} actions, not {ACTIONS}")
    if len(policy) != width:
        raise PaperError(f"{place}: it has {len(policy)} actions; those before have {width}")
    for a, p in enumerate(policy):
        if p < 0:
            raise PaperError(f"{place}.{a}: {p} is no probability")
        if p > 0 and a not in legal:
            raise PaperError(f"{place}.{a}: {p} for an action that is not available there")
    if abs(sum(policy) - 1) > SUM_TOLERANCE:
        raise PaperError(f"{place}: the probabilities sum to {sum(policy)}, not to one")


def _set_policies(row: Any, legal: list[int], policies: list[list[float]]) -> None:
    """Latest and average policy as the learner has them after those updates."""
    row["policy"][:, legal] = 1 / len(legal)
    size, updates = len(row["buffer"]), int(row["updates"])
    for place, policy in zip(_oldest_first(updates, size), policies, strict=True):
        row["buffer"][place] = row["policy"][LATEST] = policy[:_INTENTS]
    if policies:
        total = np.zeros(_INTENTS)
        for policy in row["buffer"][: len(policies)]:  # in the learner's order, for the same bits
            total += policy
        row["policy"][AVERAGE] = total / len(policies)


def _check_actions(file: _File, rows: Rows, names: Iterable[str]) -> None:
    """`action_to_keys` says again where an action is available."""
    given = file.policy_manager.action_to_keys
    if given is None:
        return
    available = {
        (a, name)
        for name, row in zip(names, rows, strict=True)
        if row["updates"] > 0
        for a in bits(row["legal"])
    }
    for text, listed in given.items():
        number = _action(f"policy_manager.action_to_keys.{text}", text, range(_INTENTS))
        for name in listed:
            if (number, name) not in available:
                raise PaperError(
                    f"policy_manager.action_to_keys.{text}: {name} does not have that action"
                )
            available.discard((number, name))
    for number, name in sorted(available):
        raise PaperError(f"policy_manager.action_to_keys.{number}: {name} is missing")


def _action(place: str, text: str, legal: Iterable[int]) -> int:
    if text not in {str(a) for a in legal}:
        raise PaperError(f"{place}: no action that is available there has that index")
    return int(text)


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _GameConfig(_Checked):
    card_to_special_card_ratio: int = Field(ge=1)
    cash_card_values: list[Annotated[int, Field(ge=1, le=4)]]
    deck_size_multiplier: int = Field(ge=1)
    initial_hand_size: int
    max_consecutive_player_actions: int = Field(ge=1, le=15)
    new_cards_per_turn: int
    rent_cards_per_property_type: int = Field(ge=0)
    required_property_sets: int

    def rules(self, turn_cap: int) -> dict[str, Any]:
        """The rules of ours that these are."""
        copies = self.deck_size_multiplier
        return {
            "property_copies": (copies,) * 3,
            "cash_copies": tuple(copies * self.cash_card_values.count(v) for v in (1, 2, 3, 4)),
            "rent_copies": (copies * self.rent_cards_per_property_type,) * 3,
            "just_say_no": copies // self.card_to_special_card_ratio,
            "sets_needed": self.required_property_sets,
            "hand_size": self.initial_hand_size,
            "draw": self.new_cards_per_turn,
            "streak": self.max_consecutive_player_actions,
            "turn_cap": turn_cap,
        }


class _PlayerBuffer(_Checked):
    buffer: dict[str, list[list[float]]]
    buffer_size: int


class _PolicyManager(_Checked):
    action_to_keys: dict[str, list[str]] | None = None
    buffer_size: int = Field(ge=1, le=1_000)
    player_buffers: list[_PlayerBuffer] = Field(min_length=2, max_length=2)
    update_count: dict[str, Annotated[int, Field(ge=1, le=2**53)]]


class _Estimate(_Checked):
    sum: float = Field(ge=-_MOST, le=_MOST)
    n: float = Field(ge=1, le=_MOST)


class _File(_Checked):
    game_config: _GameConfig
    abstraction_cls: Literal["IntentStateAbstraction"]
    resolver_cls: Literal["GreedyActionResolver"]
    target_player_index: int = Field(ge=0, le=1)
    sims_per_action: int = Field(ge=1, le=1_000_000)
    max_turns_per_game: int = Field(ge=1)
    max_streaks: int | float
    uniform_external_sampling: Literal[True]
    verbose: bool
    epsilon: float = Field(ge=0, le=1)
    policy_manager: _PolicyManager
    regret_manager: dict[str, dict[str, _Estimate]]
    cf_reach_prob_counter: dict[str, Annotated[float, Field(ge=0, le=_MOST)]]
    model_cls: Literal["CFR"] = "CFR"

    def named_infosets(self) -> list[tuple[str, Iterable[str]]]:
        """Where infosets are named."""
        manager = self.policy_manager
        return [
            ("policy_manager.update_count", manager.update_count),
            *(
                (f"policy_manager.player_buffers.{player}.buffer", kept.buffer)
                for player, kept in enumerate(manager.player_buffers)
            ),
            ("regret_manager", self.regret_manager),
            ("cf_reach_prob_counter", self.cf_reach_prob_counter),
        ]
