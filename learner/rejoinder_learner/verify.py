"""Verification: is a run what it claims to be?

verify
  read        the ledger: is its chain unbroken, is every game there, with the snapshot it must have
              the checkpoints: is each whole, and does the ledger lead to it
  choose      checkpoints cut the run into segments; some of them, at random, and part of one more
  recompute   play and fold the chosen games again: the deltas must be those of the ledger, and the
              state at the end of a segment that of its checkpoint, byte by byte

Reading shows that nothing was changed afterwards by accident or without care. Only recomputing
shows that the games were played at all: a forger can make a ledger of anything, but not one that
the games agree with.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rejoinder.run.checkpoints import Checkpoint, DamagedError, RunError
from rejoinder.run.ledger import first_break, head_after
from rejoinder.run.rundir import RunDir
from rejoinder_learner.replay import Replay


class Problem(NamedTuple):
    """Something that is not as it must be."""

    part: str  # of the run: "ledger", "checkpoint" or "recomputation"
    game: int  # where: the number of games folded before
    what: str


@dataclass
class Verification:
    """What is known of a run so far."""

    run: RunDir
    records: Any  # the ledger
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a person should know beside them
    checkpoints: int = 0  # that are kept, good or bad
    starts: list[int] = field(default_factory=lambda: [0])  # units after which the state is known
    playable: int = 0  # units of the ledger that can be played again
    recomputed: int = 0  # units
    compared: int = 0  # checkpoints that were reached by recomputing
    not_checkable: int = 0  # units whose snapshot could not be had (unordered mode only)

    @property
    def holds(self) -> bool:
        return not self.problems

    def object(self, part: str, unit: int, what: str) -> None:
        self.problems.append(Problem(part, self.games(unit), what))

    def games(self, units: int) -> int:
        """So many units in games, which is what people count."""
        return units * self.run.config.block


def verify(
    run: RunDir, *, sample: float, seed: int, on_game: Callable[[int], None] = lambda _: None
) -> Verification:
    """All of it in one go."""
    found = read(run)
    recompute(found, choose(found, sample, seed), on_game)
    return found


def read(run: RunDir) -> Verification:
    """Check what is written, without playing a game."""
    checkpoints = run.checkpoint_games()  # first: a trainer at work extends the ledger before them
    records = run.ledger()
    found = Verification(run, records, playable=len(records))
    if not checkpoints and not len(records):
        raise RunError(f"{run.path} has neither games nor checkpoints yet: nothing to verify")
    _check_ledger(found)
    kernels = {str(session["kernel"]) for session in run.sessions() if "kernel" in session}
    for games in checkpoints:
        if checkpoint := _check_checkpoint(found, games):
            kernels.add(checkpoint.kernel)
    _check_ends(found, checkpoints)
    _check_start(found, checkpoints)
    if others := sorted(kernels - {run.config.kernel}):
        found.notes.append(
            f"the run was made, at least in part, by kernels {', '.join(others)}; these are "
            f"{run.config.kernel}, so a difference in recomputed games may be due to that"
        )
    return found


def choose(found: Verification, sample: float, seed: int) -> list[range]:
    """A share of all games, as segments in random order and the beginning of one more."""
    bounds = [start for start in found.starts if start < found.playable] + [found.playable]
    segments = [range(a, b) for a, b in itertools.pairwise(bounds)]
    random.Random(seed).shuffle(segments)
    left, chosen = math.ceil(sample * found.playable), []
    for segment in segments:
        if left > 0:
            chosen.append(segment[:left])
            left -= len(chosen[-1])
    return sorted(chosen, key=lambda games: games.start)


def recompute(
    found: Verification, chosen: Sequence[range], on_game: Callable[[int], None] = lambda _: None
) -> None:
    """Play and fold the chosen games again, and compare."""
    replay = Replay(found.run.config, found.records, chosen)
    done = 0
    on_game(done)
    for games in chosen:
        try:
            _recompute_segment(found, replay, games, done, on_game)
        except ValueError as error:
            ends = {found.games(n) for n in {games.start, games.stop} & {*found.starts[1:]}}
            if ends <= {*found.run.checkpoint_games()}:
                found.object("checkpoint", games.start, f"cannot be continued: {error}")
            else:
                first, end = found.games(games.start), found.games(games.stop)
                found.notes.append(
                    f"games {first:,} to {end - 1:,} were not checked to the end: "
                    "a trainer at work has removed a checkpoint that is needed for that"
                )
        done += len(games)
        on_game(done)


def _check_ledger(found: Verification) -> None:
    """The chain, and that every record is one that the contract allows."""
    config, records = found.run.config, found.records
    broken = first_break(records, config.fingerprint)
    if broken is not None:
        found.object("ledger", broken, "its record does not follow from the one before")
    n, unit, version = np.arange(len(records)), records["unit"], records["version"]
    if config.order == "index":
        wrong_game = unit != n
        wrong_version = version != np.maximum(0, n // config.batch - config.lag)
        asked = "the contract asks for"
    else:
        twice = np.ones(len(records), bool)
        twice[np.unique(unit, return_index=True)[1]] = False
        last = max(config.units, len(records))
        end = np.minimum((n // config.batch + config.lag + 1) * config.batch, last)
        wrong_game, wrong_version = twice | (unit >= end), version > n // config.batch
        asked = "there were only versions up to"
    if wrong_game.any():
        first = int(wrong_game.argmax())
        again = ", which was folded before" if unit[first] in unit[:first] else ""
        game, number = found.games(int(unit[first])), found.games(first)
        what = f"the ledger has game {game} as number {number} of the games folded{again}"
        found.object("ledger", first, what)
    if wrong_version.any():
        first = int(wrong_version.argmax())
        newest = config.version_for(first) if config.order == "index" else first // config.batch
        what = f"it was played with snapshot version {version[first]}; {asked} {newest}"
        found.object("ledger", first, what)
    if config.order == "arrival" and (wrong := wrong_game | wrong_version).any():
        found.playable = int(wrong.argmax())  # what such a record asks for cannot be played


def _check_checkpoint(found: Verification, games: int) -> Checkpoint | None:
    """One checkpoint by itself, and whether the ledger leads to it."""
    run, records, fingerprint = found.run, found.records, found.run.config.fingerprint
    try:
        checkpoint = run.checkpoint(games)
    except DamagedError as error:
        if games in run.checkpoint_games():  # not removed by a trainer in the meantime
            found.checkpoints += 1
            what = f"is damaged: {error}"
            found.problems.append(Problem("checkpoint", games, what))
        return None
    found.checkpoints += 1
    block = run.config.block
    units = games // block
    if units > len(records):
        return checkpoint  # that the ledger is too short is said once, for all of them
    heads = {units: checkpoint.head}
    heads |= {v * run.config.batch: part.head for v, part in checkpoint.snapshots.items()}
    heads |= {n // block: part.head for n, part in checkpoint.evaluations.items()}
    if wrong := [n for n in heads if heads[n] != head_after(records, n, fingerprint)]:
        of = "" if wrong[0] == units else f" (policies after {found.games(wrong[0])} games)"
        found.object("checkpoint", units, f"belongs to another history than the ledger's{of}")
    elif units:
        found.starts.append(units)
    return checkpoint


def _check_ends(found: Verification, checkpoints: list[int]) -> None:
    """Ledger and checkpoints must end together, but for what a crash explains."""
    units, newest = len(found.records), max(checkpoints, default=0)
    games = found.games(units)
    if games < newest:
        found.object("ledger", units, f"it ends here, before the checkpoint at game {newest}")
    elif games == newest or games in found.run.checkpoint_games():
        return  # in the second case a trainer at work has just written it
    elif units >= found.run.config.units:
        what = "is missing, though the ledger says that the run is finished (--resume makes it)"
        found.object("checkpoint", units, what)
    else:
        found.notes.append(
            f"the ledger goes on for {games - newest:,} games after the newest checkpoint; "
            "--resume plays them again"
        )


def _check_start(found: Verification, checkpoints: list[int]) -> None:
    """What a run starts from must be there; where that came from its games cannot tell."""
    start = found.run.config.start
    if start and 0 not in checkpoints:
        found.object("checkpoint", 0, "is missing: the policy that the run starts from")
    elif start:
        found.notes.append(
            f"the run starts from a policy that it was given, {start}; "
            "what is checked is what its games made of that"
        )


def _recompute_segment(
    found: Verification, replay: Replay, games: range, done: int, on_game: Callable[[int], None]
) -> None:
    """Replay games from a checkpoint on, until one of them is wrong."""
    known = games.start or found.run.config.start
    replay.begin(found.run.checkpoint(found.games(games.start)) if known else None)
    complete = True  # no game was left out, so the learner's state is known
    for n in games:
        played = replay.play(n)
        if played is None:
            found.not_checkable += 1
            complete = False
        else:
            found.recomputed += 1
            if not replay.is_as_recorded(n, played):
                what = (
                    f"playing game {found.games(played.unit)} gives another delta than the ledger's"
                )
                found.object("recomputation", n, what)
                replay.forget_snapshots()
                return
            if complete:
                replay.fold(played)
        on_game(done + n + 1 - games.start)
    if complete and games.stop in found.starts:
        made, kept = replay.learner.checkpoint(), found.run.checkpoint(found.games(games.stop))
        if not _compare(found, made, kept):
            replay.forget_snapshots()


def _compare(found: Verification, made: Checkpoint, kept: Checkpoint) -> bool:
    """The state that the games have led to, and the one that was kept."""
    found.compared += 1
    parts = {"the table": (made.rows, kept.rows)}
    for version, snapshot in made.snapshots.items():
        parts[f"snapshot {version}"] = (snapshot.rows, kept.snapshots[version].rows)
    differing = [name for name, (a, b) in parts.items() if a.tobytes() != b.tobytes()]
    for name in differing:
        what = (
            f"{name} of the checkpoint is not what the games since the checkpoint before "
            f"lead to: {_difference(*parts[name])}"
        )
        found.problems.append(Problem("recomputation", made.games, what))
    return not differing


def _difference(ours: Any, theirs: Any) -> str:
    if len(ours) != len(theirs):
        return f"it has {len(theirs)} rows, not {len(ours)}"
    row = next(i for i in range(len(ours)) if ours[i].tobytes() != theirs[i].tobytes())
    return f"row {row} is the first that differs"
