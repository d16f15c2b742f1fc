"""The gateway's settings: read once, typed, and refused with one line that names the field.

Every field can be set in the environment as REJOINDER_GATEWAY_<FIELD>; what is given on the
command line wins. Lists are separated by commas.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
    field_validator,
)

from rejoinder_gateway.schemas import MOST_SAMPLES

PREFIX = "REJOINDER_GATEWAY_"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_LISTS = ("hosts", "origins", "trusted_proxies")


class SettingsError(ValueError):
    """Settings that cannot be used; the message is one line that names the field."""


class Settings(BaseModel):
    """How one gateway behaves. The defaults are for a person at his own machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: Path = Path("runs")
    """The folder whose subfolders are the runs."""
    database: str | None = None
    """URL of the database; without one SQLite in `gateway.db` beside the runs."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """The address to listen at. Loopback, unless you mean to serve others."""
    port: int = Field(default=8642, ge=0, le=65_535)
    """0: any that is free."""
    admin_token: SecretStr | None = Field(default=None, min_length=16)
    """Whoever sends it may stop runs and export results; without one nobody may."""
    hosts: tuple[str, ...] = ()
    """Names under which the gateway may be called, besides `host` and loopback's; `*` for any."""
    origins: tuple[str, ...] = ()
    """Web origins other than its own whose pages may call the API."""
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    """Addresses or networks of proxies whose X-Forwarded-For is believed: limits go by it."""
    max_body: int = Field(default=64 * 1024, ge=1024)
    """Bytes in a request at most."""
    rate: float = Field(default=100.0, ge=0, allow_inf_nan=False)
    """Requests a second from one address, over time; 0: any number."""
    burst: int = Field(default=300, ge=1)
    """Requests at once from one address."""
    new_games: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    """New games a minute from one address; 0: any number."""
    max_games: int = Field(default=10_000, ge=1)
    """Games under way at most; those that nobody has touched for a day do not count."""
    max_games_each: int = Field(default=500, ge=1)
    """Of them, games that one address has begun."""
    max_streams: int = Field(default=200, ge=1)
    """Event streams and policy files under way at once."""
    max_streams_each: int = Field(default=20, ge=1)
    """Of them, those of one address."""
    max_search: int = Field(default=10_000, ge=0, le=MOST_SAMPLES)
    """Samples a move that an agent may think ahead with; 0: agents play by their policies alone."""
    cached_games: int = Field(default=1_000, ge=1)
    """Games kept in memory; the others are rebuilt from their logs when they are asked for."""
    cached_snapshots: int = Field(default=8, ge=1)
    """Checkpoints kept in memory."""

    @field_validator("origins")
    @classmethod
    def _no_wildcard(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not origin.startswith(("http://", "https://")) or "*" in origin:
                raise ValueError(f"{origin!r} is no origin like https://example.org")
        return origins

    @classmethod
    def read(cls, environment: Mapping[str, str], given: Mapping[str, Any] | None = None) -> Self:
        """From the environment, with what was given explicitly on top."""
        fields: dict[str, Any] = {}
        for name in cls.model_fields:
            text = environment.get(PREFIX + name.upper())
            if text is not None:
                fields[name] = _split(text) if name in _LISTS else text
        fields |= {name: value for name, value in (given or {}).items() if value is not None}
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(dict(e)) for e in error.errors())) from None

    @property
    def database_url(self) -> str:
        """As SQLAlchemy takes it."""
        if self.database is None:
            return f"sqlite:///{self.runs / 'gateway.db'}"
        for scheme in ("postgresql://", "postgres://"):
            if self.database.startswith(scheme):
                return "postgresql+psycopg://" + self.database.removeprefix(scheme)
        return self.database

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """As a Host header has them: in lower case, IPv6 addresses in brackets."""
        names = (name.lower() for name in (*LOOPBACK, self.host, *self.hosts))
        return frozenset(f"[{n}]" if ":" in n and not n.startswith("[") else n for n in names)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _explain(error: dict[str, Any]) -> str:
    """One line; what a secret was set to is not repeated."""
    name = str(error["loc"][0]) if error["loc"] else "settings"
    message = error["msg"][:1].lower() + error["msg"][1:]
    return f"{name} ({PREFIX}{name.upper()}): {message}"
