"""Games and their logs in a database: SQLite or PostgreSQL.

Invariants: a game is its row in `games` (seed, rules, opponent) and its moves in order; nothing
else is needed to rebuild it. A change goes through only if the game is where its author thinks it
is, and the primary key (game, number) makes it impossible to make a move twice, whoever tries. What
`do` returns has been committed.

All work is done by one thread, in the order in which it was asked for. What waits while a commit is
under way shares the next one, so the cost of a commit is spread over all games that move at once.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import (
    BigInteger,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    bindparam,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.types import JSON, DateTime, TypeDecorator

T = TypeVar("T")
Work = Callable[[Session], T]

_MIGRATIONS = Path(__file__).parent / "migrations"
_LARGEST_BATCH = 200  # pieces of work that share a commit
_PATIENCE = 5  # seconds that the database may let anybody wait
_POSTGRESQL = {
    "connect_timeout": _PATIENCE,
    "tcp_user_timeout": 1000 * _PATIENCE,
    "options": f"-c statement_timeout={_PATIENCE}s -c lock_timeout={_PATIENCE}s",
}


class StoreError(ValueError):
    """A database that cannot be used; the message is one line."""


class UtcTime(TypeDecorator[datetime]):
    """A moment; SQLite keeps no time zone, so it is put back when it is read."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, _: Any) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Base(DeclarativeBase):
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy's)
        datetime: UtcTime,
        dict[str, Any]: JSON(none_as_null=True),
    }


class GameRow(Base):
    """A game as it was created, and how it ended."""

    __tablename__ = "games"
    __table_args__ = (Index("ix_games_finished", "finished", "id"),)  # the order of results

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64))
    created: Mapped[datetime]
    updated: Mapped[datetime] = mapped_column(index=True)
    finished: Mapped[datetime | None]
    game: Mapped[str] = mapped_column(String(40))
    configuration: Mapped[str | None] = mapped_column(String(80))  # its name, if it has one
    rules: Mapped[dict[str, Any]]
    seed: Mapped[int] = mapped_column(BigInteger)  # of chance and of the agent's choices
    seat: Mapped[int]  # the player's; the agent has the other one
    argmax: Mapped[bool]
    search: Mapped[int] = mapped_column(server_default="0")  # samples a move; 0: by its policy
    open: Mapped[bool]
    opponent: Mapped[str] = mapped_column(String(120))  # the run's or the baseline's name
    opponent_kind: Mapped[str] = mapped_column(String(10))  # "run" or "baseline"
    snapshot: Mapped[int | None] = mapped_column(BigInteger)  # games of the checkpoint
    abstraction: Mapped[str] = mapped_column(String(40))
    kernel: Mapped[str] = mapped_column(String(40))  # the engine it was begun with
    fingerprint: Mapped[str | None] = mapped_column(String(64))  # of the opponent's run
    position: Mapped[str | None] = mapped_column(String(32))  # digest of the state it has reached
    player: Mapped[dict[str, Any]]  # what he says of himself
    moves: Mapped[int]  # made so far
    outcome: Mapped[str | None] = mapped_column(String(10))  # won, lost, draw, resigned
    winner: Mapped[int | None]
    utility: Mapped[float | None] = mapped_column(Float)  # what the player has won


class MoveRow(Base):
    """One move of a player or the agent; chance follows from the seed."""

    __tablename__ = "moves"

    game: Mapped[str] = mapped_column(ForeignKey("games.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)  # moves made before it
    actor: Mapped[int]
    move: Mapped[int]
    made: Mapped[datetime]
    decision: Mapped[dict[str, Any] | None]  # the agent's policy when it moved


_GAMES, _MOVES = cast(Table, GameRow.__table__), cast(Table, MoveRow.__table__)
# Made once: the ORM would build them anew for every move, which costs more than the database.
_CHANGE = _GAMES.update().where(
    _GAMES.c.id == bindparam("which"),
    _GAMES.c.moves == bindparam("before"),
    _GAMES.c.outcome.is_(None),
)
_LOG = _MOVES.insert()


class Conflict(Exception):
    """The game is not where whoever wanted to change it thought."""


def record(
    db: Session, game: str, before: int, changes: dict[str, Any], moves: list[dict[str, Any]]
) -> None:
    """Write down what has become of a game of `before` moves, and the moves that led there."""
    connection = db.connection()
    if connection.execute(_CHANGE, {"which": game, "before": before, **changes}).rowcount != 1:
        raise Conflict
    if moves:
        connection.execute(_LOG, [{"game": game, **move} for move in moves])


class Store:
    """A database whose schema is up to date, and the thread that uses it."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise StoreError("database: a URL like sqlite:///FILE is needed") from None
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise StoreError(f"database: {parsed.drivername} is unknown; use sqlite or postgresql")
        self.engine = _engine(parsed)
        self._work: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="database", daemon=True)
        migrate(self.engine)
        self._thread.start()

    async def do(self, work: Work[T]) -> T:
        """Do the work in a transaction, and return once it is committed.

        The work may be run a second time, in a new transaction, if something else failed in the
        first one: it must depend on the session alone.
        """
        done: Future[T] = Future()
        self._work.put((work, done))
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        """Finish what was asked for."""
        self._work.put(None)
        self._thread.join()
        self.engine.dispose()

    def _serve(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            # From here on nobody can call it off, so the result always has somewhere to go.
            wanted = [piece for piece in batch if piece[1].set_running_or_notify_cancel()]
            if len(wanted) > 1 and self._together(wanted):
                continue
            for work, done in wanted:
                self._alone(work, done)

    def _next_batch(self) -> list[tuple[Work[Any], Future[Any]]] | None:
        first = self._work.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < _LARGEST_BATCH:
            try:
                following = self._work.get_nowait()
            except queue.Empty:
                break
            if following is None:
                self._work.put(None)
                break
            batch.append(following)
        return batch

    def _together(self, batch: list[tuple[Work[Any], Future[Any]]]) -> bool:
        """All in one transaction; False, and nothing done, if any of it fails."""
        with Session(self.engine, expire_on_commit=False) as session:
            results = []
            try:
                for work, _ in batch:
                    results.append(work(session))
                    session.flush()
            except Exception:  # whose it was shows when each is done alone
                return False
            try:
                session.commit()
            except Exception as error:  # it may have gone through, so nothing is done again
                for _, done in batch:
                    done.set_exception(error)
                return True
        for (_, done), result in zip(batch, results, strict=True):
            done.set_result(result)
        return True

    def _alone(self, work: Work[Any], done: Future[Any]) -> None:
        try:
            with Session(self.engine, expire_on_commit=False) as session:
                result = work(session)
                session.commit()
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(result)


def check_database(url: str) -> None:
    """Bring a database up to date, or say in one line why it cannot be used."""
    try:
        Store(url).close()
    except CommandError as error:
        raise StoreError(
            f"database: it was made by another version of Rejoinder: {error}"
        ) from None
    except (SQLAlchemyError, OSError) as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        raise StoreError(f"database: it cannot be used: {reason}") from None


def migrate(engine: Engine) -> None:
    """Bring the schema up to date, or leave it as it is; one gateway at a time."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # SQLite has one writer anyway
            connection.execute(text("SELECT pg_advisory_xact_lock(7205759403792793)"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        limits = {name: value for name, value in _POSTGRESQL.items() if name not in url.query}
        return create_engine(url, connect_args=limits, pool_pre_ping=True, hide_parameters=True)
    if url.database and url.database != ":memory:":
        _make_file(Path(url.database))
    # Errors are logged, and what is stored of a game under way is nobody's to read there.
    engine = create_engine(
        url, connect_args={"check_same_thread": False, "timeout": _PATIENCE}, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        """Readers never wait for the writer, and a commit outlives the process and the power."""
        connection.isolation_level = None  # transactions begin below, and hold changes of schema
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        """As a writer: one who becomes it later may find that another was faster."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _make_file(path: Path) -> None:
    """For its owner alone; SQLite gives the files beside it the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def now() -> datetime:
    return datetime.now(UTC)
