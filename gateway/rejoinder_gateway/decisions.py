"""What an agent makes of a position: its infoset, its policy there, the moves behind its actions.

All of it is a function of what the player to move sees, so it may be told to him; told to the
other player it would narrow down what he cannot see.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder import rng
from rejoinder.evaluate.agents import Agent
from rejoinder.games import queries
from rejoinder.games.session import Session
from rejoinder_gateway.schemas import Advice, Decision, PolicyAction
from rejoinder_gateway.snapshots import Snapshot


@dataclass(frozen=True)
class Mind:
    """An agent and the snapshot it goes by; baselines have none."""

    agent: Agent
    snapshot: Snapshot | None

    def advice(self, session: Session) -> Advice:
        """What it would do in the place of the player to move."""
        abstraction = self.agent.abstraction
        key = int(queries.infoset_key(session.states, abstraction.number))
        row = self.snapshot.row_at(session.states) if self.snapshot else None
        visits = None
        if self.snapshot:
            visits = 0 if row is None else self.snapshot.visits(row)
        chances = self.agent.probabilities(session.states)
        return Advice(
            infoset=abstraction.describe(key),
            identifier=abstraction.identifier(key),
            known=self.snapshot is None or row is not None,
            visits=visits,
            snapshot=self.snapshot.games if self.snapshot else None,
            actions=[
                PolicyAction(
                    name=action.name,
                    probability=float(chances[action.number]),
                    move=action.move_name,
                )
                for action in session.legal_abstract(abstraction.name)
            ],
        )

    def decide(self, session: Session, seed: int, number: int) -> tuple[int, Decision]:
        """The move that it makes as move `number` of the game with that seed, and why.

        The randomness is a function of (seed, number): a rebuilt game goes on exactly the same.
        """
        choices = rng.stream(seed, number, rng.CHOICES)
        move = self.agent.choose(session.states, choices)
        decision = Decision(
            **dict(self.advice(session)), move_number=number, move=session.game.moves[move]
        )
        return move, decision
