"""The policy of a state that comes from outside.

The state is one that the game can have, or it is refused with the field that is wrong: compiled
code does not look again.
"""

from __future__ import annotations

import json
from typing import Any

from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder_gateway.library import Run
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import Found
from rejoinder_gateway.snapshots import Snapshot


def look_up(run: Run, snapshot: Snapshot, state: dict[str, Any]) -> Found:
    """What the run's policy does in a state."""
    session = _session(run, state)
    if session.to_move is None:
        raise _wrong("state: the game is over, so nobody is to move")
    known = snapshot.row_at(session.states) is not None
    infoset = snapshot.infoset_at(session.states)
    return Found(to_move=session.to_move, known=known, infoset=infoset)


def _session(run: Run, state: dict[str, Any]) -> Session:
    config = run.directory.config
    saved = {
        "game": config.game,
        "rules": config.rules.model_dump(mode="json"),
        "state": state,
        "chance": dict.fromkeys(rng.STREAM.names or (), "0"),
        "upcoming": [],
        "history": [],
    }
    try:
        session = Session.from_json(json.dumps(saved))
    except (ValueError, RecursionError) as error:
        raise _wrong(" ".join(str(error).split())[:300]) from None
    if problem := session.game.check(session.states, session.rules):
        raise _wrong(f"state.{problem}")
    return session


def _wrong(detail: str) -> Problem:
    field = detail.partition(":")[0]
    return Problem(422, "Impossible state", detail, field=field)
