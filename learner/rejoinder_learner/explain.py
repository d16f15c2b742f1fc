"""Provenance of a policy: how one infoset came to be played as it is.

The ledger has a hash for every folded game, not its delta. But a delta is a pure function of the
config, a snapshot and the game, and checkpoints are kept, so the exact past is had by playing it
again: from the checkpoint before, game by game, each compared with the ledger. What is told of a
game is therefore what it did in this run, or nothing is told at all.

Of a method whose unit is a block of iterations only whole units can be played again: ranges are
widened to them (`whole_units`), and what is told of one is the sum over its iterations, or, where
the delta is a state, the state after them (`gives_states`). "Games" are then iterations.

Before its first update an infoset has no row; whoever meets it plays uniformly, so that is its
policy then. The changes by single units add up to the whole change.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction, hexadecimal_key
from rejoinder.games.queries import bits
from rejoinder.methods.base import Delta
from rejoinder.methods.policies import AVERAGE, LATEST
from rejoinder.run.checkpoints import DamagedError, RunError
from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import first_break
from rejoinder.run.rundir import RunDir
from rejoinder_learner.replay import Replay

_SHOWN = 5  # matches that a message names
_NAMED = 100_000  # infosets whose names are compared

Numbers = np.ndarray[Any, np.dtype[np.float64]]  # by legal action


class NotVerified(RunError):
    """What is written of a run and what its games give are not the same."""

    exit_code = 1


@dataclass(frozen=True)
class Infoset:
    """Which one, and what can be done there."""

    key: int
    legal: tuple[int, ...]  # numbers of its actions
    abstraction: Abstraction

    @property
    def identifier(self) -> str:
        return self.abstraction.identifier(self.key)

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.abstraction.actions[a] for a in self.legal)


@dataclass(frozen=True, eq=False)
class Standing:
    """An infoset after so many games."""

    games: int
    visits: int
    reach: float
    latest: Numbers
    average: Numbers
    regret: Numbers  # means, as policies are told elsewhere
    regret_sum: Numbers


@dataclass(frozen=True, eq=False)
class Decision:
    """One update: a decision of a training game at the infoset, or a unit's entry for it."""

    number: int  # of the game's decisions, or of the unit's entries, from 0
    reach: float
    regret: Numbers


@dataclass(frozen=True, eq=False)
class Mover:
    """What one unit (a game, or a block of iterations) did to the infoset."""

    game: int  # the unit's first
    folded: int  # games folded before it; by index it is the same number
    version: int  # of the snapshot it was played with
    decisions: list[Decision]
    before: Standing
    after: Standing

    @property
    def moved(self) -> float:
        """Total variation between the average policies before and after."""
        return total_variation(self.before.average, self.after.average)


@dataclass(frozen=True, eq=False)
class Followed:
    """An infoset through a range of folded games."""

    games: range  # whole units
    replayed: range  # the games that were played again for it, each unit as in the ledger
    before: Standing
    after: Standing
    movers: list[Mover]  # every unit that met it, in the order of folding

    @property
    def moved(self) -> float:
        """The length of the way that the average policy went."""
        return sum(mover.moved for mover in self.movers)

    def top(self, number: int) -> list[Mover]:
        """The units that moved it most."""
        return sorted(self.movers, key=lambda mover: -mover.moved)[:number]


def whole_units(config: RunConfig, games: range) -> range:
    """The smallest range of whole units around these games; of an empty one its end, rounded up."""
    end = config.in_units(games.stop) * config.block
    return range(games.start // config.block * config.block if games else end, end)


def gives_states(config: RunConfig) -> bool:
    """Whether the method's deltas are states, which replace the one before: they have its rows."""
    method, task = config.load_method(), config.task()
    return method.delta_dtype(task) == method.state_dtype(task)


def unit_in_words(config: RunConfig, first: int) -> str:
    """The unit that begins there: `game 3`, or `unit 3 (iterations 3,000 to 3,999)`."""
    if config.block == 1:
        return f"{config.counts.removesuffix('s')} {first:,}"
    last = first + config.block - 1
    return f"unit {first // config.block:,} ({config.counts} {first:,} to {last:,})"


def find_infoset(wanted: str, rows: Any, abstraction: Abstraction) -> Infoset:
    """By identifier, by key (hexadecimal), or by what only one of them begins with.

    Of a table too big to be named whole only the first names are looked at for the last of these.
    """
    text = wanted.strip()
    key = hexadecimal_key(text.lower().rjust(16, "0")) if text else None
    found = [key] if key is not None and (rows["key"] == np.uint64(key)).any() else []
    names: dict[int, tuple[str, str]] = {}
    if not found:
        keys = [int(key) for key in rows["key"][:_NAMED]]
        names = {key: (abstraction.identifier(key), f"{key:016x}") for key in keys}
        found = [key for key in keys if text in names[key]]
        found = found or [key for key in keys if text and _begins(names[key], text)]
    if len(found) != 1:
        raise ValueError(_which(wanted, names, found, len(rows)))
    legal = rows["legal"][rows["key"] == np.uint64(found[0])][0]
    return Infoset(found[0], tuple(bits(legal)), abstraction)


def _begins(names: tuple[str, str], text: str) -> bool:
    """An identifier may be given from its last part on: that is what tells it from others."""
    identifier, key = names
    return any(name.startswith(text) for name in (identifier, identifier.split("@")[-1], key))


def _which(wanted: str, names: dict[int, tuple[str, str]], found: list[int], met: int) -> str:
    if found:
        some = ", ".join(names[key][0] for key in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return f"INFOSET: {wanted!r} could be {some}{more}; give more of it"
    by_name = {name: pair[0] for pair in names.values() for name in (*pair, pair[0].split("@")[-1])}
    near = difflib.get_close_matches(wanted, by_name, n=_SHOWN, cutoff=0.5)
    close = ", ".join(dict.fromkeys(by_name[name] for name in near))
    hint = f"; near are {close}" if close else f"; it has met {met:,} others"
    listed = "without INFOSET those visited most are listed"
    return f"INFOSET: the run has met no infoset {wanted!r}{hint}; {listed}"


def history(
    run: RunDir, infoset: Infoset, report: Callable[[str], None] = lambda _: None
) -> list[Standing]:
    """How it stands in each checkpoint that is kept; `report` hears of damaged ones."""
    points = []
    for games in run.checkpoint_games():
        try:
            rows = run.checkpoint(games).rows
        except DamagedError as error:
            one = run.config.counts.removesuffix("s")
            report(f"the checkpoint at {one} {games:,} of {run.path} is left out: {error}")
        else:
            places = np.flatnonzero(rows["key"] == np.uint64(infoset.key))
            known = run.learned(rows[places[:1]])
            points.append(_standing(infoset, games, known[0] if len(known) else None))
    return points


def follow(
    run: RunDir,
    infoset: Infoset,
    games: range,
    on_game: Callable[[int], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> Followed:
    """Play games again, by their place in the ledger, and watch what they do to the infoset.

    They are the whole units around those that are asked for.
    It begins at the newest checkpoint before them; in unordered mode at the first game, since only
    then every snapshot that games were played with is at hand. `on_game` hears how far it is.
    """
    records, block = run.ledger(), run.config.block
    games = whole_units(run.config, games)
    wanted = range(games.start // block, games.stop // block)
    _check_ledger(run, records, wanted.stop)
    in_order = run.config.order == "index"
    checkpoint = run.supported_checkpoint(report, most=games.start if in_order else 0)
    replayed = range(checkpoint.games // block if checkpoint else 0, wanted.stop)
    replay = Replay(run.config, records, [replayed])
    replay.begin(checkpoint)
    seen = _Seen(infoset, replay)
    before, movers = seen.standing(), []
    on_game(replayed.start * block)
    for n in replayed:
        if n == wanted.start:
            before = seen.standing()
        played = replay.play(n)
        if played is None:
            raise NotVerified(
                f"the ledger of {run.path} asks for a snapshot that never was, at {n * block:,}"
            )
        if not replay.is_as_recorded(n, played):
            raise NotVerified(_differs(run, n * block, played.unit * block))
        decisions = _decisions(infoset, run.config.decisions(played.delta))
        was = seen.standing() if decisions else before
        replay.fold(played)
        if decisions and n >= wanted.start:
            now = seen.standing()
            game, folded = played.unit * block, n * block
            movers.append(Mover(game, folded, played.version, decisions, was, now))
        on_game((n + 1) * block)
    after = seen.standing()
    played_again = range(replayed.start * block, replayed.stop * block)
    return Followed(games, played_again, after if not games else before, after, movers)


def total_variation(a: Numbers, b: Numbers) -> float:
    return float(np.abs(a - b).sum()) / 2


def _check_ledger(run: RunDir, records: Any, units: int) -> None:
    if units > len(records):
        ends, asked = (n * run.config.block for n in (len(records), units))
        one = run.config.counts.removesuffix("s")
        raise NotVerified(f"the ledger of {run.path} ends at {one} {ends:,}, not {asked:,}")
    broken = first_break(records[:units], run.config.fingerprint)
    if broken is not None:
        raise NotVerified(
            f"the ledger of {run.path} is damaged: its record {broken:,} does not follow from the "
            "one before (`rejoinder verify` tells more)"
        )


def _differs(run: RunDir, n: int, game: int) -> str:
    others = {str(s.get("kernel")) for s in run.sessions()} - {run.config.kernel}
    why = f"; it was made by kernels {', '.join(sorted(others))}, not these" if others else ""
    place = "" if game == n else f", number {n:,} of those folded,"
    played = unit_in_words(run.config, game)
    return f"{run.path}: playing {played}{place} gives another delta than the ledger's{why}"


def _decisions(infoset: Infoset, delta: Delta) -> list[Decision]:
    """A unit's updates of the infoset."""
    legal = list(infoset.legal)
    return [
        Decision(int(k), float(delta["reach"][k]), delta["regret"][k, legal].copy())
        for k in np.flatnonzero(delta["key"] == np.uint64(infoset.key))
    ]


class _Seen:
    """An infoset in the learner's table; rows keep their place for ever."""

    def __init__(self, infoset: Infoset, replay: Replay) -> None:
        self._infoset, self._replay = infoset, replay
        self._row: int | None = None
        self._looked_at = 0  # rows that are not it

    def standing(self) -> Standing:
        learner = self._replay.learner
        if self._row is None:
            key = np.uint64(self._infoset.key)
            places = np.flatnonzero(learner.rows["key"][self._looked_at :] == key)
            self._row = self._looked_at + int(places[0]) if len(places) else None
            self._looked_at = len(learner.rows)
        known = None if self._row is None else learner.learned_at(slice(self._row, self._row + 1))
        return _standing(self._infoset, learner.games, None if known is None else known[0])


def _standing(infoset: Infoset, games: int, row: Any | None) -> Standing:
    legal: Sequence[int] = list(infoset.legal)
    if row is None:
        nothing, uniform = np.zeros(len(legal)), np.full(len(legal), 1 / len(legal))
        return Standing(games, 0, 0.0, uniform, uniform, nothing, nothing)
    count = np.where(row["count"] > 0, row["count"], 1.0)
    return Standing(
        games=games,
        visits=int(row["updates"]),
        reach=float(row["reach"]),
        latest=row["policy"][LATEST, legal],
        average=row["policy"][AVERAGE, legal],
        regret=(row["regret"] / count)[legal],
        regret_sum=row["regret"][legal],
    )
