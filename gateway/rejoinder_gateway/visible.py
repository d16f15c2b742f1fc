"""What a player saw happen, from `Session.seen_by(seat)` alone."""

from __future__ import annotations

from rejoinder.games.contract import HIDDEN
from rejoinder.games.session import Event as Seen
from rejoinder.games.session import Session
from rejoinder_gateway.schemas import Event


def visible_events(session: Session, seat: int, after: int) -> list[Event]:
    """What happened after event number `after`, as the player at `seat` saw it."""
    mine = session.seen_by(seat, after)
    others = [session.seen_by(p, after) for p in range(session.game.players) if p != seat]
    return [
        Event(
            number=after + k + 1,
            actor=event.actor,
            name=event.name,
            text=_text(event, seat, shown=all(seen[k].number != HIDDEN for seen in others)),
        )
        for k, event in enumerate(mine)
    ]


def _text(event: Seen, seat: int, *, shown: bool) -> str:
    """In plain words. Whether everybody sees an outcome is a rule of the game, and no secret."""
    if event.actor is not None:
        return f"{'You' if event.actor == seat else 'The agent'}: {event.name}"
    if event.number == HIDDEN:
        return "The agent draws a card"
    return f"Turned up: {event.name}" if shown else f"You draw {event.name}"
