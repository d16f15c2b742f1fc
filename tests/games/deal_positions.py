"""Words for positions of Monopoly Deal that several tests share."""

from __future__ import annotations

from typing import cast

from rejoinder.games.deal import DealView
from rejoinder.games.session import Session

BROWN, GREEN, PINK = "property brown", "property green", "property pink"
NO = "just say no"


def see(session: Session, player: int) -> DealView:
    return cast(DealView, session.view(player))


def moves(session: Session) -> set[str]:
    return {move.name for move in session.legal()}


def intents(session: Session, abstraction: str = "intent") -> list[str]:
    return [action.name for action in session.legal_abstract(abstraction)]


def resolved(session: Session, intent: str) -> str:
    return {a.name: a.move_name for a in session.legal_abstract("intent")}[intent]


def play(session: Session, *names: str) -> Session:
    for name in names:
        session.apply(name)
    return session
