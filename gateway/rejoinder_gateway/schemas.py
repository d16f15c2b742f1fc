"""What the API takes and gives: the models behind its OpenAPI document.

The examples in it are in `examples`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)

from rejoinder.measure.analytics import Analysis
from rejoinder.measure.forecast import COVERAGE
from rejoinder.measure.infosets import Infoset


def whole(value: Any) -> Any:
    """JSON does not tell 3.0 from 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Figure = int | float  # a count stays whole
Name = Annotated[StrictStr, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f/\\]+$")]
LARGEST = 2**53 - 1  # whole numbers that every JSON reader takes
MOST_SAMPLES = 1_000_000  # a move, whatever the settings say
# The limits come before the validator: after it they would not be in the OpenAPI document.
Count = Annotated[StrictInt, Field(ge=0, le=LARGEST), BeforeValidator(whole)]
MoveNumber = Annotated[StrictInt, Field(ge=0, le=1000), BeforeValidator(whole)]
Samples = Annotated[StrictInt, Field(ge=0, le=MOST_SAMPLES), BeforeValidator(whole)]


class _Given(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


# Runs


class RunSummary(BaseModel):
    """How a run stands."""

    name: str
    game: str
    configuration_rules: dict[str, Any]
    abstraction: str
    fingerprint: str
    state: Literal["new", "starting", "waiting", "running", "finished", "stopped", "gone"] = Field(
        description="`waiting`: for workers; `gone`: the trainer has ended without a word."
    )
    alive: bool = Field(description="Starting, waiting or running.")
    games: int
    target: int
    games_per_second: float | None
    seconds_left: float | None
    version: int | None
    mer: float | None
    exploitability: float | None = Field(
        description="Exact, by the last evaluation; none where the game is too large."
    )
    matches: dict[str, Any] = Field(
        description="Of the last evaluation, by opponent: `mean_utility` with its 95 % half-width "
        "`utility_error`, and `games`; where the game counts wins, `win_rate` with its 95 % "
        "interval from `low` to `high`, and `draw_rate`."
    )
    utility_unit: str = Field(description="What utility counts: `wins`, `chips`, `points`.")
    infosets: int | None
    workers: list[dict[str, Figure]]
    snapshots: list[int]
    checkpointed: float | None = Field(
        description="When the newest checkpoint was written, in seconds since 1970."
    )


class RunList(BaseModel):
    runs: list[RunSummary]


class RunDetail(RunSummary):
    config: dict[str, Any]
    has_responses: bool = Field(description="Whether its game has response phases.")
    digest: str | None = Field(description="Of the newest checkpoint that is whole.")
    provenance: list[dict[str, Any]]


class History(BaseModel):
    records: list[dict[str, Any]]


class Backtest(BaseModel):
    """What would have been said early in the run, and what then was."""

    known: float = Field(description="Games that it knew.")
    games: float = Field(description="Games of the newest evaluation.")
    said: list[float] = Field(description="Low, median and high of the figure after those games.")
    was: float
    held: bool = Field(description="Whether it was between low and high.")
    when_said: list[float | None] | None = Field(
        description="Low, median and high of the games to a target that was reached later."
    )
    when_was: float | None
    when_held: bool | None


class Forecast(BaseModel):
    """When a run reaches a target. Games that are never enough are null."""

    at: int = Field(description="Games that the run has now.")
    what: str = Field(description="`mer`, `exploitability` or an opponent.")
    target: float
    reached: float | None = Field(description="Games after which it was there; null: not yet.")
    games: float | None = Field(description="Games after which it is expected.")
    low: float | None = Field(description=f"Their interval of {COVERAGE:.0%}.")
    high: float | None
    chance: float | None = Field(description="Share of the refits that ever get there.")
    level: list[float] | None = Field(description="Low, median and high of where the curve ends.")
    seconds: float | None = Field(description="From now; null: never, or nobody knows how fast.")
    seconds_low: float | None = Field(description=f"Their interval of {COVERAGE:.0%}.")
    seconds_high: float | None
    backtest: Backtest | None


class ResponseAnalysis(Analysis):
    """What the agent of a snapshot does in response phases, in games against itself."""

    snapshot: int
    digest: str


class Accepted(BaseModel):
    status: str


# Policies


class SnapshotName(BaseModel):
    games: int
    digest: str | None
    newest: bool


class SnapshotList(BaseModel):
    snapshots: list[SnapshotName]


class InfosetPage(BaseModel):
    total: int
    offset: int
    limit: int
    infosets: list[Infoset]


class PolicyFile(BaseModel):
    """A whole policy as JSON."""

    games: int
    digest: str
    infosets: list[Infoset]


class Lookup(_Given):
    """A state as the game's record has it: every field, by name."""

    state: dict[str, Any]


class Found(BaseModel):
    to_move: int
    known: bool
    infoset: Infoset = Field(description="If it is not known: no visits, and uniform policies.")


# Play


class RunOpponent(_Given):
    run: Name
    snapshot: Count | None = Field(
        None, description="Games of the checkpoint; the newest without it."
    )


class BaselineOpponent(_Given):
    baseline: Name
    configuration: Name = Field(description="A game and its configuration, like deal-medium.")


class Player(_Given):
    name: StrictStr | None = Field(None, max_length=40, pattern=r"^[^\x00-\x1f]*$")


class NewGame(_Given):
    opponent: RunOpponent | BaselineOpponent
    first: Literal["you", "agent", "random"] = "you"
    argmax: StrictBool = Field(False, description="The agent plays its likeliest action.")
    search: Samples = Field(
        0,
        description="Samples with which the agent thinks ahead before each of its moves, up to "
        "`search_samples` of the limits; 0: it plays by its policy.",
    )
    open: StrictBool = Field(
        False, description="An analysis game: the agent's decisions are shown while it lasts."
    )
    player: Player = Player(name=None)


class Move(_Given):
    move_number: Count = Field(description="Moves that have been made, by both, as the game said.")
    move: MoveNumber | Annotated[StrictStr, Field(max_length=80)]


class LegalMove(BaseModel):
    number: int
    name: str
    meanings: dict[str, str] = Field(description="By abstraction: what the move counts as.")


class Event(BaseModel):
    number: int = Field(description="From 1 on, in order.")
    actor: int | None = Field(description="A seat; null: chance.")
    name: str = Field(description="Of the move or the outcome, or `hidden`.")
    text: str


class Opponent(BaseModel):
    name: str
    kind: Literal["run", "baseline"]
    run: str | None
    snapshot: int | None


class GameState(BaseModel):
    """A game as its player sees it. Nothing in it depends on what he cannot see."""

    id: str
    game: str
    title: str
    rules: dict[str, Any]
    configuration: str | None
    opponent: Opponent
    seat: int
    open: bool
    argmax: bool
    search: int = Field(description="Samples a move; 0: the agent plays by its policy.")
    move_number: int
    to_move: int | None
    your_turn: bool
    over: bool
    winner: int | None
    outcome: Literal["won", "lost", "draw", "resigned"] | None
    utilities: list[float] | None
    view: dict[str, Any]
    legal: list[LegalMove]
    events: list[Event]


class Created(BaseModel):
    secret: str = Field(description="Send it as `Authorization: Bearer …`; it is told only once.")
    game: GameState


class Moved(BaseModel):
    game: GameState
    events: list[Event] = Field(description="From the move on, the agent's replies among them.")


class PolicyAction(BaseModel):
    name: str
    probability: float
    move: str = Field(description="The concrete move that the action stands for.")
    value: float | None = Field(
        None, description="What the player wins by it on average, where the agent thought ahead."
    )


class Advice(BaseModel):
    """What an agent would do at an infoset."""

    infoset: dict[str, Any]
    identifier: str
    known: bool = Field(description="Whether its policy has met the infoset.")
    visits: int | None = Field(description="Updates in training; null for baselines.")
    snapshot: int | None
    search: int = Field(
        0, description="Samples thought ahead with, then the actions are moves; 0: the policy."
    )
    actions: list[PolicyAction]


class Decision(Advice):
    move_number: int
    move: str


class Decisions(BaseModel):
    decisions: list[Decision]


class Events(BaseModel):
    events: list[Event]


class Ticket(BaseModel):
    ticket: str
    seconds: int


class Step(BaseModel):
    number: int
    actor: int | None
    name: str
    views: list[dict[str, Any]] = Field(description="By seat, after the step.")
    decision: Decision | None


class Replay(BaseModel):
    steps: list[Step]


class Result(BaseModel):
    id: str
    game: str
    configuration: str | None
    opponent: str
    opponent_kind: str
    snapshot: int | None
    argmax: bool
    search: int
    open: bool
    seat: int
    player_name: str | None
    outcome: str
    winner: int | None
    utility: float | None
    moves: int
    created: str
    finished: str


class Results(BaseModel):
    results: list[Result]


# Service


class Status(BaseModel):
    status: str


class Readiness(BaseModel):
    status: str
    checks: dict[str, str]


class About(BaseModel):
    name: str
    version: str
    links: dict[str, str] = Field(description="Paths on this server.")
    games: list[str]
    limits: dict[str, Figure]


class Configuration(BaseModel):
    name: str
    full_name: str
    rules: dict[str, Any]


class AbstractionInfo(BaseModel):
    name: str
    actions: list[str]


class CatalogueEntry(BaseModel):
    name: str
    title: str
    configurations: list[Configuration]
    abstractions: list[AbstractionInfo]
    players: int
    baselines: list[str]
    moves: list[str]
