"""The run config: what a run is, read once, typed, and refused with one clear line when wrong.

Invariant: the learner's state after n games is a function of the fields of `Learning` and of n,
and of nothing else. The *fingerprint*, the SHA-256 of those fields as canonical JSON, therefore
names a run: it stays the same when the run is made longer or reports at other moments, and it
changes when anything changes that the learner could notice.

A config comes from a TOML file, or by name from the shipped ones, with overrides on top.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

if TYPE_CHECKING:
    from rejoinder.games.base import Abstraction, Game, Rules
else:
    Rules = Any  # the games bring numba, so they are loaded when a config is made, not before

DEFAULT = "default"  # for rules and abstraction: the game's own first choice
MAX_GAMES = 10**12  # in one run
BASE = "base"  # in a table of rules: the named configuration that it changes

LATER: dict[str, Any] = {"later": True}
"""`json_schema_extra` of a field that is younger than the runs there are: at its default, which
stands for how things were before, the fingerprint leaves it out, so those runs keep their name."""

Overrides = Mapping[str, Any] | Sequence[str]


class ConfigError(ValueError):
    """A config that cannot be used; the message is one line that names the field."""


class Learning(BaseModel):
    """What the learner's state after n games depends on: exactly these fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    game: str = "deal"
    """Which game: deal, kuhn or leduc."""
    rules: Rules = Field(DEFAULT, validate_default=True)
    """The name of one of the game's configurations, or a table of the game's own rules; `base`
    in the table names the configuration that the other entries change."""
    abstraction: str = Field(DEFAULT, validate_default=True)
    """How infosets are told apart and actions grouped; the game's first abstraction by default."""
    seed: int = Field(1, ge=0, lt=2**63)
    """All randomness of game g comes from (seed, g)."""
    rollouts: int = Field(20, ge=1, le=1_000_000)
    """N: full-game rollouts for each available action of each decision."""
    epsilon: float = Field(0.1, ge=0, le=1, allow_inf_nan=False)
    """Share of training moves that are uniformly random."""
    common_luck: bool = Field(False, json_schema_extra=LATER)
    """Whether a decision's actions are tried with the same luck, which cancels in their regrets."""
    decay: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    """Factor on the old regrets at each update (1.0 in the paper's text, 0.99 in its program)."""
    averaging: Literal["buffer", "uniform", "linear"] = "buffer"
    """How past policies make the average one: the last `buffer_size`, all alike, or by age."""
    buffer_size: int = Field(10, ge=1, le=1_000)
    """Past policies kept for each infoset with averaging = "buffer"."""
    order: Literal["index", "arrival"] = "index"
    """How deltas are folded: strictly by game index, so that the result is a function of these
    fields alone; or as they arrive, which depends on who was faster (unordered mode)."""
    batch: int = Field(20, ge=1, le=1_000_000)
    """B: games between two snapshots."""
    lag: int = Field(1, ge=0, le=1_000)
    """L: how many snapshots behind the newest one a game is played; see `version_for`."""
    start: str = Field("", pattern="^([0-9a-f]{64})?$", json_schema_extra=LATER)
    """SHA-256 of the rows that the learner starts with, which are the checkpoint at game 0; empty:
    it starts from nothing."""

    @field_validator("game")
    @classmethod
    def _known_game(cls, name: str) -> str:
        from rejoinder.games import GAMES

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
        from rejoinder.games import GAMES

        if "game" not in info.data:
            return name
        game = GAMES[info.data["game"]]
        if name == DEFAULT:
            return game.default_abstraction.name
        known = [abstraction.name for abstraction in game.abstractions]
        if name not in known:
            raise ValueError(f"{game.name} has no {name!r}; it has {', '.join(known)}")
        return name

    @field_serializer("rules")
    def _plain_rules(self, rules: Rules) -> dict[str, Any]:
        return rules.model_dump(mode="json")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of the learning fields."""
        named = self.learning_fields()
        named = _without_later_defaults(type(self), named)
        named["rules"] = _without_later_defaults(type(self.rules), named["rules"])
        return hashlib.sha256(canonical_json(named).encode()).hexdigest()

    def learning_fields(self) -> dict[str, Any]:
        """What the fingerprint covers, as plain data."""
        return self.model_dump(mode="json", include=set(Learning.model_fields))

    def version_for(self, game: int) -> int:
        """The snapshot version that a game is played with. Version v is taken after v·B games."""
        return max(0, game // self.batch - self.lag)

    def playable_before(self, games: int) -> int:
        """Once so many games are folded, those before this one can be played."""
        return (games // self.batch + self.lag + 1) * self.batch

    @property
    def kept_policies(self) -> int:
        """Past policies in a row of the learner's table; other averages need only sums."""
        return self.buffer_size if self.averaging == "buffer" else 1

    def load_game(self) -> Game:
        from rejoinder.games import GAMES

        return GAMES[self.game]

    def load_abstraction(self) -> Abstraction:
        return self.load_game().abstraction(self.abstraction)


class RunConfig(Learning):
    """A run: what is learned, how far, and what is reported on the way.

    The fields of this class, unlike those of `Learning`, never change the learner's state after n
    games, so a run may be continued with other values of them.
    """

    games: int = Field(1_000, ge=1, le=MAX_GAMES)
    """Training games."""
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


def canonical_json(value: Any) -> str:
    """The one way in which a value is written where its hash matters: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _without_later_defaults(model: type[BaseModel], dumped: dict[str, Any]) -> dict[str, Any]:
    later = {n: f for n, f in model.model_fields.items() if f.json_schema_extra == LATER}
    return {n: v for n, v in dumped.items() if n not in later or v != later[n].default}


def load_config(name_or_path: str | Path, overrides: Overrides = ()) -> RunConfig:
    """A shipped config by name, or a TOML file, with `field=value` overrides."""
    return make_config(_read(str(name_or_path)), overrides, source=str(name_or_path))


def make_config(
    fields: Mapping[str, Any], overrides: Overrides = (), source: str = "config"
) -> RunConfig:
    """A config from plain data; `source` is what messages call it."""
    merged = dict(fields)
    for path, value in _parse(overrides).items():
        _override(merged, path, value)
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error, RunConfig.model_fields)}") from None


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
    inner = fields.get(name, DEFAULT)
    if name == "rules" and isinstance(inner, str):
        inner = {BASE: inner}
    if name != "rules" or not isinstance(inner, Mapping):
        raise ConfigError(f"override {path!r}: only rules has fields of its own")
    fields[name] = {**inner, rest: value}


def _rules(game_name: str, given: Any) -> Rules:
    """The rules of a game from a name, a table, or themselves."""
    from rejoinder.games import GAMES

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
        near = difflib.get_close_matches(str(error["loc"][-1]), fields, n=3)
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
    """Fields with those of the rules under their dotted names."""
    flat = {name: value for name, value in fields.items() if name != "rules"}
    return flat | {f"rules.{name}": value for name, value in fields["rules"].items()}
