"""The run config: what a run is, read once, typed, and refused with one clear line when wrong.

Invariant: the learner's state after n games is a function of the fields of `Learning` and of n,
and of nothing else. The *fingerprint*, the SHA-256 of those fields as canonical JSON, therefore
names a run: it stays the same when the run is made longer or reports at other moments, and it
changes when anything changes that the learner could notice.

A config comes from a TOML file, or by name from the shipped ones, with overrides on top.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from rejoinder.games import DEFAULT_GAME, GAMES
from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.games.clamps import Clamps
from rejoinder.games.contract import kernel_identity
from rejoinder.methods import DEFAULT_METHOD, METHODS, find_method
from rejoinder.methods.base import Actor, CheckedActor, Method, Policy, Rows, Settings, Task

DEFAULT = "default"  # for rules and abstraction: the game's own first choice
MAX_GAMES = 10**12  # in one run
_TABLES = ("rules", "method")  # fields that have fields of their own
BASE = "base"  # in a table of rules: the named configuration that it changes

Overrides = Mapping[str, Any] | Sequence[str]


class ConfigError(ValueError):
    """A config that cannot be used; the message is one line that names the field."""


class Learning(BaseModel):
    """What the learner's state after n games depends on: exactly these fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    game: str = DEFAULT_GAME
    """Which game, by name."""
    rules: SerializeAsAny[Rules] = Field(DEFAULT, validate_default=True)
    """The name of one of the game's configurations, or a table of the game's own rules; `base`
    in the table names the configuration that the other entries change."""
    abstraction: str = Field(DEFAULT, validate_default=True)
    """How infosets are told apart and actions grouped; the game's first abstraction by default."""
    seed: int = Field(1, ge=0, lt=2**63)
    """All randomness of unit u comes from (seed, u)."""
    method: SerializeAsAny[Settings] = Field({}, validate_default=True)
    """How it is learned: the method's `name`, and the method's own settings."""
    order: Literal["index", "arrival"] = "index"
    """How deltas are folded: strictly by index, so that the result is a function of these
    fields alone; or as they arrive, which depends on who was faster (unordered mode)."""
    batch: int = Field(20, ge=1, le=1_000_000)
    """B: units (games, or blocks of iterations) between two snapshots."""
    lag: int = Field(1, ge=0, le=1_000)
    """L: how many snapshots behind the newest one a unit is played; see `version_for`."""
    start: str = Field("", pattern="^([0-9a-f]{64})?$")
    """SHA-256 of the rows that the learner starts with, which are the checkpoint at game 0; empty:
    it starts from nothing."""

    @model_validator(mode="before")
    @classmethod
    def _fields_that_the_method_requires(cls, given: Any) -> Any:
        """A method may require values of other fields; those are then the defaults."""
        method = METHODS.get(_method_name(given.get("method"))) if isinstance(given, dict) else None
        return {**method.requires, **given} if method else given

    @model_validator(mode="after")
    def _method_can_learn_it(self) -> Self:
        method = self.load_method()
        for name, value in method.requires.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}: the method {method.name} requires {value}, not {getattr(self, name)}"
                )
        if flaw := method.check_task(self.task()):
            raise ValueError(f"method.name: {method.name} does not work here: {flaw}")
        return self

    @field_validator("game")
    @classmethod
    def _known_game(cls, name: str) -> str:
        if name not in GAMES:
            raise ValueError(f"no game is called {name!r}; there are {', '.join(GAMES)}")
        return name

    @field_validator("rules", mode="plain")
    @classmethod
    def _rules_of_the_game(cls, given: Any, info: ValidationInfo) -> Any:
        return _rules(info.data["game"], given) if "game" in info.data else given

    @field_validator("abstraction")
    @classmethod
    def _known_abstraction(cls, name: str, info: ValidationInfo) -> str:
        if "game" not in info.data:
            return name
        game = GAMES[info.data["game"]]
        if name == DEFAULT:
            return game.default_abstraction.name
        known = [abstraction.name for abstraction in game.abstractions]
        if name not in known:
            raise ValueError(f"{game.name} has no {name!r}; it has {', '.join(known)}")
        if not game.fits_masks(game.abstraction(name)):
            trainable = [a.name for a in game.abstractions if game.fits_masks(a)]
            raise ValueError(
                f"{name!r} has too many actions to be trained; {game.name} has "
                f"{', '.join(trainable)}"
            )
        return name

    @field_validator("method", mode="plain")
    @classmethod
    def _settings_of_the_method(cls, given: Any) -> Any:
        return _method(given)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of the learning fields."""
        return hashlib.sha256(canonical_json(self.learning_fields()).encode()).hexdigest()

    def learning_fields(self) -> dict[str, Any]:
        """What the fingerprint covers, as plain data."""
        data = self.load_abstraction().data_hash
        brought = {} if data is None else {"abstraction_data": data}
        return self.model_dump(mode="json", include=set(Learning.model_fields)) | brought

    def version_for(self, unit: int) -> int:
        """The snapshot version that a unit is played with. Version v is taken after v·B units."""
        return max(0, unit // self.batch - self.lag)

    def playable_before(self, units: int) -> int:
        """Once so many units are folded, those before this one can be played."""
        return (units // self.batch + self.lag + 1) * self.batch

    @property
    def block(self) -> int:
        """Games (iterations of the method) in a unit, which is what is leased and folded."""
        return self.method.block

    @property
    def counts(self) -> str:
        """The word for what `games` counts: games, or iterations."""
        return self.load_method().counts

    def load_game(self) -> Game:
        return GAMES[self.game]

    def load_abstraction(self) -> Abstraction:
        return self.load_game().abstraction(self.abstraction)

    def load_method(self) -> Method:
        return METHODS[self.method.name]

    def decisions(self, delta: Rows) -> Rows:
        """A delta as readers take it: with a key, a reach and regrets for each infoset met."""
        return self.load_method().decisions(delta)

    def policy(self, rows: Rows) -> Policy:
        """What agents go by, of policy rows."""
        return self.load_method().policy(self.task(), rows)

    def actor(self) -> Actor:
        """Somebody to play units."""
        return CheckedActor(self.load_method(), self.task())

    def task(self) -> Task:
        """What is to be learned, as the method needs it."""
        return Task(self.load_game(), self.rules, self.load_abstraction(), self.seed, self.method)

    @property
    def kernel(self) -> str:
        """The version of the code that makes deltas and states, and of what a game begins with."""
        return _kernel(self.game, self.rules, self.abstraction, self.method.name)


class RunConfig(Learning):
    """A run: what is learned, how far, and what is reported on the way.

    The fields of this class, unlike those of `Learning`, never change the learner's state after n
    games, so a run may be continued with other values of them.
    """

    games: int = Field(1_000, ge=1, le=MAX_GAMES)
    """Training games, or iterations of a method that plays blocks of them (then rounded up to
    whole blocks)."""
    eval_every: int = Field(50, ge=0)
    """Games between evaluations (there is one at the end too); 0: no evaluation at all."""
    eval_games: int = Field(400, ge=2, le=10**7)
    """Test games against each baseline in an evaluation."""
    checkpoint_every: int = Field(250, ge=0)
    """Games between checkpoints (there is one at the end too); 0: only that one."""
    checkpoints_kept: int = Field(16, ge=3)
    """Checkpoints kept: the newest ones, and older ones evenly spread for `rejoinder verify`."""
    audit: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    """Share of the deltas from workers that the learner plays again before it folds them."""

    @model_validator(mode="after")
    def _not_too_many_units(self) -> Self:
        method = self.load_method()
        if self.units > method.max_units:
            raise ValueError(
                f"games: {self.games:,} are {self.units:,} units; the method {method.name} takes "
                f"{method.max_units:,} at most, so give its units more iterations"
            )
        return self

    def in_units(self, games: int) -> int:
        """So many games in units, rounded up."""
        return -(-games // self.block)

    @property
    def units(self) -> int:
        """Units to train."""
        return self.in_units(self.games)

    @property
    def target(self) -> int:
        """Games to train: what was asked for, rounded up to whole units."""
        return self.units * self.block


def canonical_json(value: Any) -> str:
    """The one way in which a value is written where its hash matters: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@functools.cache
def _kernel(game_name: str, rules: Rules, abstraction: str, method: str) -> str:
    game = GAMES[game_name]
    template = hashlib.sha256(game.template(rules).tobytes()).hexdigest()
    clamps = game.abstraction(abstraction).capability(Clamps)
    facts = (template, clamps, game.players, game.starts, game.max_decisions(rules))
    code = (*METHODS[method].code, METHODS[method].settings)
    return kernel_identity(game.dtype, code, " ".join(map(str, facts)))


def load_config(name_or_path: str | Path, overrides: Overrides = ()) -> RunConfig:
    """A shipped config by name, or a TOML file, with `field=value` overrides."""
    return make_config(_read(str(name_or_path)), overrides, source=str(name_or_path))


def make_config(
    fields: Mapping[str, Any], overrides: Overrides = (), source: str = "config"
) -> RunConfig:
    """A config from plain data; `source` is what messages call it."""
    merged: dict[str, Any] = {}
    for path, value in (*fields.items(), *_parse(overrides).items()):
        _override(merged, path, value)
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error, _fields_of(merged))}") from None


def _fields_of(fields: Mapping[str, Any]) -> list[str]:
    """The names that a config may have, those in tables too."""
    method = METHODS.get(_method_name(fields.get("method")), METHODS[DEFAULT_METHOD])
    inner = [f"method.{name}" for name in method.settings.model_fields]
    return [*RunConfig.model_fields, *inner]


def shipped_configs() -> dict[str, str]:
    """Names of the configs that come with the package, with the comment in their first line."""
    folder = resources.files("rejoinder.run") / "configs"
    files = {f.name.removesuffix(".toml"): f for f in folder.iterdir() if f.name.endswith(".toml")}
    return {
        name: files[name].read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        for name in sorted(files)
    }


def describe_difference(there: Learning, here: Learning, limit: int = 3) -> str:
    """The first learning fields that differ, for people."""
    old, new = (_flat(config.learning_fields()) for config in (there, here))
    names = [name for name in old | new if old.get(name) != new.get(name)]
    told = [f"{name} is {old.get(name)!r} there and {new.get(name)!r} here" for name in names]
    more = f" and {len(told) - limit} more" if len(told) > limit else ""
    return "; ".join(told[:limit]) + more


def _read(source: str) -> dict[str, Any]:
    path = Path(source)
    is_path = source.endswith(".toml") or path.name != source
    if not is_path:
        shipped = shipped_configs()
        if source not in shipped:
            raise ConfigError(
                f"no config is called {source!r}; there are {', '.join(shipped)}, "
                "or give the path of a TOML file"
            )
        text = (resources.files("rejoinder.run") / "configs" / f"{source}.toml").read_text("utf-8")
    else:
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"{source}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{source}: not a TOML file: it is not UTF-8 text") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not a TOML file: {error}") from None


def _parse(overrides: Overrides) -> dict[str, Any]:
    """Overrides by dotted field name."""
    if isinstance(overrides, Mapping):
        return dict(overrides)
    parsed = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"override {text!r}: write it as field=value")
        parsed[name.strip()] = _toml_value(value.strip())
    return parsed


def _toml_value(text: str) -> Any:
    """A TOML value; a bare word is a string, so that nobody has to quote twice in a shell."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _override(fields: dict[str, Any], path: str, value: Any) -> None:
    name, dot, rest = path.partition(".")
    if not dot:
        fields[name] = value
        return
    inner = fields.get(name, {})
    if name == "rules" and isinstance(inner, str):
        inner = {BASE: inner}
    if name == "method" and isinstance(inner, str):
        inner = {"name": inner}
    if isinstance(inner, BaseModel):
        inner = inner.model_dump()
    if name not in _TABLES or not isinstance(inner, Mapping):
        raise ConfigError(f"override {path!r}: only {' and '.join(_TABLES)} have fields")
    fields[name] = {**inner, rest: value}


def _method_name(given: Any) -> str:
    """What method a config names, as far as it does."""
    if isinstance(given, Settings):
        return given.name
    return str(given.get("name") if isinstance(given, Mapping) else given)


def _method(given: Any) -> Settings:
    """The settings of a method from its name, a table, or themselves."""
    if isinstance(given, Settings):
        return given
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        raise ValueError(f"must be a table of settings or a name, not {given!r}")
    method = find_method(given.get("name", DEFAULT_METHOD))
    try:
        return method.settings.model_validate(dict(given))
    except ValidationError as error:
        message = _explain(error, method.settings.model_fields, "method.")
        raise PydanticCustomError(_EXPLAINED, "{message}", {"message": message}) from None


def _rules(game_name: str, given: Any) -> Rules:
    """The rules of a game from a name, a table, or themselves."""
    game = GAMES[game_name]
    if isinstance(given, game.rules_type):
        return given
    if isinstance(given, str):
        return _named_rules(game, given)
    if not isinstance(given, Mapping):
        raise ValueError(
            f"must be a table of rules or one of {', '.join(game.configurations)}, not {given!r}"
        )
    table = dict(given)
    base = _named_rules(game, table.pop(BASE, DEFAULT))
    try:
        return game.rules_type.model_validate({**base.model_dump(), **table})
    except ValidationError as error:
        message = _explain(error, game.rules_type.model_fields, "rules.")
        raise PydanticCustomError(_EXPLAINED, "{message}", {"message": message}) from None


def _named_rules(game: Game, name: Any) -> Rules:
    if name == DEFAULT:
        return next(iter(game.configurations.values()))
    if not isinstance(name, str) or name not in game.configurations:
        known = ", ".join(game.configurations)
        raise ValueError(f"{game.name} has no configuration {name!r}; it has {known}")
    return game.configurations[name]


_EXPLAINED = "explained"  # type of an error whose message already names the field


def _explain(error: ValidationError, fields: Iterable[str], prefix: str = "") -> str:
    """All that was wrong, on one line."""
    return "; ".join(_explain_one(dict(e), list(fields), prefix) for e in error.errors())


def _explain_one(error: dict[str, Any], fields: list[str], prefix: str) -> str:
    message = error["msg"]
    if error["type"] == _EXPLAINED:
        return str(message)
    where = prefix + ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        names = {field.rpartition(".")[2]: field for field in reversed(fields)}
        near = [names[n] for n in difflib.get_close_matches(str(error["loc"][-1]), names, n=3)]
        hint = f"near it: {', '.join(near)}" if near else f"there are {', '.join(fields) or 'none'}"
        return f"{where}: there is no such field; {hint}"
    if error["type"] == "value_error":
        # A check over several fields names the one it is about by itself.
        said = str(error["ctx"]["error"])
        return f"{where}: {said}" if error["loc"] else f"{prefix}{said}"
    return f"{where}: {message[:1].lower()}{message[1:]}, not {_short(error['input'])}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with those of tables under their dotted names."""
    flat = {name: value for name, value in fields.items() if name not in _TABLES}
    for table in _TABLES:
        flat |= {f"{table}.{name}": value for name, value in fields[table].items()}
    return flat
