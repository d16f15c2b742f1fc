"""A game as it is told to its player: by his own view, and by what he saw happen.

Invariant: everything here is made from `Session.view(seat)`, `Session.seen_by(seat)` and, on his
own turn, from his legal moves. The other seat's view is told by `replay` alone, after the end.
"""

from __future__ import annotations

from rejoinder_gateway.schemas import (
    GameState,
    LegalMove,
    Opponent,
    Replay,
    Step,
)
from rejoinder_gateway.tables import GameTable

_SHOWN = 50  # events in a game's state


def game_state(table: GameTable) -> GameState:
    session, row = table.session, table.row
    to_move = None if table.over else session.to_move
    your_turn = to_move == row.seat
    utilities = session.utilities
    return GameState(
        id=row.id,
        game=row.game,
        title=session.game.title,
        rules=row.rules,
        configuration=row.configuration,
        opponent=Opponent(
            name=row.opponent,
            kind="run" if row.opponent_kind == "run" else "baseline",
            run=row.opponent if row.opponent_kind == "run" else None,
            snapshot=row.snapshot,
        ),
        seat=row.seat,
        open=row.open,
        argmax=row.argmax,
        search=row.search,
        move_number=len(table.moves),
        to_move=to_move,
        your_turn=your_turn,
        over=table.over,
        winner=row.winner,
        outcome=row.outcome,  # type: ignore[arg-type] # pydantic looks
        utilities=list(utilities) if utilities is not None else None,
        view=session.view(row.seat).model_dump(mode="json"),
        legal=[
            LegalMove(number=move.number, name=move.name, meanings=move.meanings)
            for move in (session.legal() if your_turn else ())
        ],
        events=table.told[-_SHOWN:],
    )


def replay(table: GameTable) -> Replay:
    """A finished game step by step, with everything that was hidden."""
    decisions = {number: d for number, d in enumerate(table.decisions) if d is not None}
    session = table.begin()
    steps: list[Step] = []

    def tell(decision_of: int | None) -> None:
        views = [session.view(p).model_dump(mode="json") for p in range(session.game.players)]
        for event in session.history[len(steps) :]:
            decision = decisions.get(decision_of) if decision_of is not None else None
            steps.append(
                Step(
                    number=len(steps) + 1,
                    actor=event.actor,
                    name=event.name,
                    views=views,
                    decision=decision if event.actor is not None else None,
                )
            )

    tell(None)
    for move in table.moves:
        session.apply(move.move)
        tell(move.number)
    return Replay(steps=steps)
