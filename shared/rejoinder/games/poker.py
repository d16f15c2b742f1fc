"""What a player sees of a small poker game (Kuhn, Leduc)."""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games import queries
from rejoinder.games.base import States
from rejoinder.games.contract import CHANCE, OVER


class PokerView(BaseModel):
    """Everything that one player may know now."""

    model_config = ConfigDict(frozen=True)

    player: int
    card: str | None
    public_card: str | None
    first_player: int
    moves: list[str]  # so far, in order
    to_move: int | None
    over: bool
    opponent_card: str | None  # shown at the end
    chips_won: float | None  # at the end

    @classmethod
    def of(
        cls,
        states: States,
        player: int,
        *,
        card: str | None,
        opponent_card: str | None,
        public: str | None,
        moves: list[str],
    ) -> Self:
        mover = queries.current_player(states)
        over = mover == OVER
        won = np.zeros(2)
        if over:
            queries.utilities(states, won)
        return cls(
            player=player,
            card=card,
            public_card=public,
            first_player=int(states[0]["first"]),
            moves=moves,
            to_move=None if mover in (CHANCE, OVER) else mover,
            over=over,
            opponent_card=opponent_card if over else None,
            chips_won=float(won[player]) if over else None,
        )
