"""Play: games rebuilt from their logs, moved one move at a time.

A move in order: the player's move and all the agent's replies are played on a copy, written to
the database in one transaction, and only then taken over and told. So whatever was told survives a
kill, and whatever was not told did not happen.

Invariant: a table's session is what its row and its moves say. The agent's choices are a function
of (seed, move number), so a rebuilt game goes on as the lost one would have.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from numpy.lib.recfunctions import repack_fields
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Database

from rejoinder.games import GAMES, find_game, queries
from rejoinder.games.base import Game, Rules
from rejoinder.games.session import IllegalMove, Session
from rejoinder.measure.search import searching
from rejoinder_gateway import schemas
from rejoinder_gateway.catalogue import configuration_of
from rejoinder_gateway.decisions import SeatedAgent
from rejoinder_gateway.library import Library, baseline
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.security import UnderWay, hashed, matches, new_secret
from rejoinder_gateway.store import Conflict, GameRow, MoveRow, Store, now, record
from rejoinder_gateway.telemetry import Telemetry
from rejoinder_gateway.visible import visible_events

_T = TypeVar("_T")
_IDLE = timedelta(days=1)  # a game untouched for so long does not count as under way
PENDING = 100  # thoughts that wait for the thread or are under way: with 10,000 samples, 2 s


@dataclass(frozen=True)
class Made:
    """A move that was made, as the log has it."""

    number: int  # moves made before it
    actor: int  # the seat
    move: int
    made: datetime
    decision: dict[str, Any] | None = None  # the agent's policy when it moved


class GameTable:
    """One game in memory. Whoever changes it holds `lock`."""

    def __init__(self, row: GameRow, moves: Iterable[Made] = ()) -> None:
        self.row = row
        self.moves: list[Made] = []
        self.told: list[schemas.Event] = []  # what happened, as the player saw it
        self.lock = asyncio.Lock()
        self.changed = asyncio.Condition()
        self.gone = False  # no longer what the log says: whoever holds it must open it anew
        self.mind: SeatedAgent | None = None  # None until the agent is needed
        self.asking = asyncio.Lock()  # held by who wants advice: the next one finds it made
        self.advised: tuple[Session, schemas.Advice] | None = None  # the latest, and for what
        session = self.begin()
        made = list(moves)
        for move in made:
            session.apply(move.move)
        if row.position not in (None, position(session)):
            raise IllegalMove("the moves lead elsewhere now")
        self.take_over(session, made)

    def take_over(self, session: Session, made: list[Made]) -> None:
        """Go on to a position that the moves have led to."""
        self.session = session
        self.moves.extend(made)
        self.told.extend(visible_events(session, self.row.seat, len(self.told)))

    def told_since(self, number: int) -> list[schemas.Event]:
        """What happened from the move of that number on."""
        before = [k for k, event in enumerate(self.told) if event.actor is not None]
        return self.told[before[number] :] if number < len(before) else []

    def begin(self) -> Session:
        """The game as it was before the first move."""
        if (game := GAMES.get(self.row.game)) is None:
            raise IllegalMove(f"there is no game {self.row.game} here")
        rules = game.rules_type.model_validate_json(json.dumps(self.row.rules), strict=True)
        return Session.start(game, rules, seed=self.row.seed)

    @property
    def over(self) -> bool:
        return self.row.outcome is not None

    @property
    def agents_turn(self) -> bool:
        return not self.over and self.session.to_move not in (None, self.row.seat)

    @property
    def decisions(self) -> list[schemas.Decision | None]:
        """By move number; None for the player's own moves."""
        return [
            schemas.Decision.model_validate(move.decision) if move.decision else None
            for move in self.moves
        ]

    def repeats(self, number: int, move: str | int) -> bool:
        """Whether this is the player's last move once more."""
        if not 0 <= number < len(self.moves) or self.row.outcome == "resigned":
            return False
        later = self.moves[number + 1 :]
        made = self.moves[number]
        same = move in (made.move, self.session.game.moves[made.move])
        return same and made.actor == self.row.seat and all(m.actor != made.actor for m in later)


class OpponentUnavailable(Problem):
    """The run that an agent comes from is gone, or cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__(503, "Opponent unavailable", f"the agent cannot move now: {why}")


class Tables:
    """All games; the only one who writes them."""

    def __init__(
        self,
        store: Store,
        library: Library,
        telemetry: Telemetry,
        under_way: UnderWay,
        *,
        cached: int,
        most: int,
        max_search: int,
    ) -> None:
        self._store, self._library, self._telemetry = store, library, telemetry
        self._under_way = under_way
        self._cached, self._most, self._max_search = cached, most, max_search
        # One thread: however many agents think, they take one core, and the loop goes on.
        self._thinking = ThreadPoolExecutor(1, "thinking")
        self._pending = 0
        self._recent: OrderedDict[str, GameTable] = OrderedDict()  # kept
        self._rebuilding: dict[str, asyncio.Task[GameTable]] = {}
        self._alive: WeakValueDictionary[str, GameTable] = (
            WeakValueDictionary()
        )  # in anybody's hands

    def close(self) -> None:
        """Let the thought under way come to its end, and no other begin."""
        self._thinking.shutdown(cancel_futures=True)

    async def create(self, wanted: schemas.NewGame, who: str) -> tuple[str, GameTable]:
        """A new game, up to the player's first turn, and its secret; `who` asks for it."""
        game = secrets.token_hex(8)
        self._under_way.begin(who, game)
        try:
            return await self._create(game, wanted)
        except BaseException:
            self._under_way.end(game)
            raise

    async def _create(self, id: str, wanted: schemas.NewGame) -> tuple[str, GameTable]:
        await self._check_room()
        self._check_search(wanted.search)
        mind, game, rules, about = await self._opponent(wanted)
        if game.players != 2:
            why = f"{game.name} has {game.players} players; here one person meets one agent"
            raise Problem(422, "Not playable here", why)
        secret, moment = new_secret(), now()
        first = {"you": 0, "agent": 1, "random": secrets.randbelow(2)}[wanted.first]
        row = GameRow(
            id=id,
            secret_hash=hashed(secret),
            created=moment,
            updated=moment,
            finished=None,
            game=game.name,
            rules=rules.model_dump(mode="json"),
            seed=secrets.randbits(63),
            seat=first,  # seat 0 begins, as in training
            argmax=wanted.argmax,
            search=wanted.search,
            open=wanted.open,
            kernel=queries.engine_version(game.dtype),
            player=wanted.player.model_dump(mode="json"),
            moves=0,
            outcome=None,
            winner=None,
            utility=None,
            position=None,
            **about,
        )
        table = GameTable(row)
        table.mind = mind
        await self._play(table, table.session.copy(), [], new=True)
        self._keep(table)
        self._telemetry.games.labels("created").inc()
        return secret, table

    async def open(self, game: str, secret: str | None) -> GameTable:
        """The game, if the secret is its own; else it is as good as unknown."""
        if not re.fullmatch("[0-9a-f]{16}", game):  # no game was ever called that
            raise unknown_game()
        table = self._alive.get(game)
        row = table.row if table else await self._store.do(lambda db: db.get(GameRow, game))
        if not matches(secret, row.secret_hash if row else None):
            raise unknown_game()
        return await self.open_for_ticket(game)

    async def open_for_ticket(self, game: str) -> GameTable:
        """The game, for somebody who has shown that he may see it."""
        table = await self._table(game)
        if table.agents_turn:
            async with self._held(table):
                if table.agents_turn:  # the agent was to move when the gateway went down
                    with contextlib.suppress(OpponentUnavailable):  # one can still look, or resign
                        await self._play(table, table.session.copy(), [])
        self._keep(table)
        return table

    async def act(self, table: GameTable, number: int, move: str | int) -> int:
        """Make the player's move and the agent's replies; returns the number of the move.

        The same move once more changes nothing.
        """
        async with self._held(table):
            if table.repeats(number, move):
                return number
            self._check_current(table, number)
            session = table.session.copy()
            try:
                session.apply(move)
            except IllegalMove:
                legal = [legal.name for legal in table.session.legal()]
                raise Problem(
                    422, "Illegal move", f"{move!r} is not legal now", legal=legal
                ) from None
            played = session.game.moves.index(move) if isinstance(move, str) else move
            await self._play(table, session, [Made(number, table.row.seat, played, now())])
            return number

    async def resign(self, table: GameTable) -> None:
        """Give up; once it is over this changes nothing."""
        async with self._held(table):
            if not table.over:
                ending = {"outcome": "resigned", "winner": (table.row.seat + 1) % 2}
                await self._commit(table, table.session, [], ending)

    @contextlib.asynccontextmanager
    async def _held(self, table: GameTable) -> AsyncIterator[None]:
        """Nobody else changes the game meanwhile."""
        async with table.lock:
            if table.gone:  # while this was waiting
                raise Problem(503, "Try again", "the last change of this game failed; read it")
            yield

    async def advice(self, table: GameTable) -> schemas.Advice:
        """What the agent would do in the player's place; a problem if it is not his turn.

        It is a function of the position, so it is kept until there is another.
        """
        _check_turn(table)
        async with table.asking:
            mind = await self.mind(table)
            _check_turn(table)  # somebody may have moved meanwhile
            session = table.session
            if table.advised is None or table.advised[0] is not session:
                table.advised = session, await self._of(mind, mind.advice, session)
            return table.advised[1]

    async def mind(self, table: GameTable) -> SeatedAgent:
        """The agent of a game, as it was when the game began; it thinks no longer than allowed now.

        Moves that it has made are in the log, so a lower limit changes no game that was told.
        """
        if table.mind is None:
            row = table.row
            if row.opponent_kind == "baseline":
                mind = SeatedAgent(baseline(GAMES[row.game], row.opponent), None)
            else:
                mind = await self._trained(row.opponent, row.snapshot, row.argmax, row.fingerprint)
            samples = min(row.search, self._max_search)
            table.mind = _thinking(mind, GAMES[row.game], samples)
        return table.mind

    async def _of(self, mind: SeatedAgent, ask: Callable[..., _T], *given: Any) -> _T:
        """What a mind answers: at once, or in the thread for those who take their time.

        Who has had one thought may have the next before anybody else comes in, so a reply of
        several moves that has begun is not refused.
        """
        if not mind.thinks:
            return ask(*given)
        if self._pending >= PENDING:
            detail = "too many agents are thinking ahead; try again in 1 s"
            raise Problem(503, "Too many thoughts", detail, {"Retry-After": "1"})
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thinking, ask, *given)
        finally:
            self._pending -= 1

    async def _opponent(
        self, wanted: schemas.NewGame
    ) -> tuple[SeatedAgent, Game, Rules, dict[str, Any]]:
        """Who plays, what, by which rules, and what is stored about that."""
        chosen = wanted.opponent
        if isinstance(chosen, schemas.BaselineOpponent):
            try:
                game, configuration = find_game(chosen.configuration)
            except ValueError as error:
                raise Problem(404, "Unknown configuration", str(error)) from None
            mind = SeatedAgent(baseline(game, chosen.baseline), None)
            rules = game.configurations[configuration]
            kind, name, snapshot, fingerprint = "baseline", chosen.baseline, None, None
        else:
            run = self._library.run(chosen.run)
            snapshot = (await self._library.snapshot(run, chosen.snapshot)).games
            fingerprint = run.directory.config.fingerprint
            mind = await self._trained(run.name, snapshot, wanted.argmax, fingerprint)
            game, rules = run.game, run.directory.config.rules
            kind, name = "run", run.name
        return (
            _thinking(mind, game, wanted.search),
            game,
            rules,
            {
                "opponent": name,
                "opponent_kind": kind,
                "snapshot": snapshot,
                "fingerprint": fingerprint,
                "abstraction": mind.agent.abstraction.name,
                "configuration": configuration_of(game, rules),
            },
        )

    async def _trained(
        self, name: str, snapshot: int | None, argmax: bool, fingerprint: str | None
    ) -> SeatedAgent:
        """By the run's fingerprint, which says what its agents are: names are used again."""
        try:
            run = self._library.run(name)
            if fingerprint not in (None, run.directory.config.fingerprint):
                raise OpponentUnavailable("the run of its name is another one now")
            return SeatedAgent(*await self._library.agent(run, snapshot, argmax=argmax))
        except OpponentUnavailable:
            raise
        except Problem as problem:
            raise OpponentUnavailable(problem.detail) from None

    async def _check_room(self) -> None:
        since = now() - _IDLE
        under_way = select(func.count()).where(GameRow.outcome.is_(None), GameRow.updated > since)
        if await self._store.do(lambda db: db.scalar(under_way) or 0) >= self._most:
            raise Problem(
                503, "Too many games", f"{self._most} games are under way; try again later"
            )

    def _check_search(self, samples: int) -> None:
        if samples > self._max_search:
            raise Problem(
                403,
                "Too many samples",
                f"search: {samples} samples a move were asked for; {self._max_search} are allowed",
                search_samples=self._max_search,
            )

    def _check_current(self, table: GameTable, number: int) -> None:
        made = len(table.moves)
        if table.over:
            raise Problem(409, "Game over", "the game is over", move_number=made)
        if number != made:
            raise Problem(
                409,
                "Stale move",
                f"move number {number} was sent, but {made} moves have been made",
                move_number=made,
            )
        if table.agents_turn:
            raise Problem(409, "Not your turn", "the agent is to move", move_number=made)

    async def _table(self, game: str) -> GameTable:
        """The one table of a game: who comes while it is being rebuilt waits for the same."""
        if table := self._alive.get(game):
            return table
        if game not in self._rebuilding:
            rebuilding = self._rebuilding[game] = asyncio.create_task(self._rebuild(game))
            rebuilding.add_done_callback(lambda _: self._rebuilding.pop(game))
        return await asyncio.shield(self._rebuilding[game])

    async def _rebuild(self, game: str) -> GameTable:
        def read(db: Database) -> tuple[GameRow | None, list[Made]]:
            columns = (MoveRow.number, MoveRow.actor, MoveRow.move, MoveRow.made, MoveRow.decision)
            log = select(*columns).where(MoveRow.game == game).order_by(MoveRow.number)
            return db.get(GameRow, game), [Made(*move) for move in db.execute(log)]

        row, moves = await self._store.do(read)
        if row is None:
            raise unknown_game()
        try:
            return self._keep(await asyncio.to_thread(GameTable, row, moves))
        except (IllegalMove, ValidationError):
            raise Problem(
                503,
                "Other rules",
                f"the game was begun with engine {row.kernel}, whose rules were others than "
                f"those of {queries.engine_version(GAMES[row.game].dtype)}, which is here",
            ) from None

    def _keep(self, table: GameTable) -> GameTable:
        self._alive[table.row.id] = table
        self._recent[table.row.id] = table
        self._recent.move_to_end(table.row.id)
        while len(self._recent) > self._cached:
            self._recent.popitem(last=False)
        self._telemetry.cached_games.set(len(self._recent))
        return table

    async def _play(
        self, table: GameTable, session: Session, made: list[Made], *, new: bool = False
    ) -> None:
        """Let the agent reply on `session`, a copy, and commit the moves."""
        row = table.row
        while (seat := session.to_move) not in (None, row.seat):
            number = len(table.moves) + len(made)
            mind = await self.mind(table)
            move, decision = await self._of(mind, mind.decide, session, row.seed, number)
            session.apply(move)
            made.append(Made(number, seat or 0, move, now(), decision.model_dump(mode="json")))
        await self._commit(table, session, made, _ending(row, session), new=new)

    async def _commit(
        self,
        table: GameTable,
        session: Session,
        made: list[Made],
        ending: dict[str, Any],
        *,
        new: bool = False,
    ) -> None:
        """Write first, then take over."""
        row, moment, before = table.row, now(), len(table.moves)
        changes: dict[str, Any] = {
            "moves": before + len(made),
            "updated": moment,
            "position": position(session),
        }
        if ending:
            changes |= ending | {"finished": moment}
        log = [vars(move) for move in made]

        def write(db: Database) -> None:
            if new:
                db.add(GameRow(**_columns(row)))
                db.flush()
            record(db, row.id, before, changes, log)

        try:
            await self._store.do(write)
        except (Conflict, IntegrityError):
            await self._forget(table)  # another gateway on this database has moved
            raise Problem(409, "Stale move", "the game has gone on elsewhere; read it") from None
        except BaseException:
            await self._forget(table)  # it may have been written; the log knows
            raise
        for name, value in changes.items():
            setattr(row, name, value)
        table.take_over(session, made)
        self._under_way.touch(row.id)
        self._count(table, made, bool(ending))
        await _notify(table)

    async def _forget(self, table: GameTable) -> None:
        """The next one who asks gets what the log says."""
        table.gone = True
        self._recent.pop(table.row.id, None)
        self._alive.pop(table.row.id, None)
        await _notify(table)

    def _count(self, table: GameTable, made: list[Made], ended: bool) -> None:
        for move in made:
            self._telemetry.moves.labels(
                "player" if move.actor == table.row.seat else "agent"
            ).inc()
        if ended:
            self._under_way.end(table.row.id)
            self._telemetry.games.labels(table.row.outcome).inc()


def _check_turn(table: GameTable) -> None:
    if table.over or table.session.to_move != table.row.seat:
        raise Problem(
            409, "Not your turn", "advice is for the player to move", move_number=len(table.moves)
        )


def unknown_game() -> Problem:
    """The same for a wrong secret: nobody learns which games there are."""
    return Problem(404, "Unknown game", "there is no such game, or this is not its secret")


def position(session: Session) -> str:
    """Tells states apart, so that a log is never played on by rules that lead elsewhere.

    A field that is younger than some logs is left out while it is 0, as it was before: those logs
    keep their positions. What is only remembered leads nowhere, and is always left out.
    """
    states, game = session.states, session.game
    names = list(states.dtype.names or ())
    told = [name for name in names if name not in game.remembered]
    kept = [name for name in told if name not in game.later or states[name].any()]
    if kept != names:
        states = repack_fields(states[kept], align=True)
    return hashlib.blake2b(states.tobytes(), digest_size=16).hexdigest()


def _thinking(mind: SeatedAgent, game: Game, samples: int) -> SeatedAgent:
    """The same agent, thinking ahead with so many samples a move; 0: as it is.

    Steadily: how long it takes must not tell the player whether it had a choice.
    """
    return SeatedAgent(searching(mind.agent, game, samples, steady=True), mind.snapshot)


async def _notify(table: GameTable) -> None:
    async with table.changed:
        table.changed.notify_all()


def _ending(row: GameRow, session: Session) -> dict[str, Any]:
    """What is stored about the end, if this is it."""
    if session.utilities is None:
        return {}
    winner = session.winner
    outcome = "draw" if winner is None else ("won" if winner == row.seat else "lost")
    return {"outcome": outcome, "winner": winner, "utility": session.utilities[row.seat]}


def _columns(row: GameRow) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in GameRow.__table__.columns}
