"""What an agent makes of a position: its infoset, its policy there, the moves behind its actions.

All of it is a function of what the player to move sees, so it may be told to him; told to the
other player it would narrow down what he cannot see.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.games import queries
from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder.measure.agents import Agent
from rejoinder.measure.search import Searcher, SearchResult
from rejoinder_gateway.schemas import Advice, Decision, PolicyAction
from rejoinder_gateway.snapshots import Snapshot


@dataclass(frozen=True)
class SeatedAgent:
    """An agent and the snapshot it goes by; baselines have none."""

    agent: Agent
    snapshot: Snapshot | None

    @property
    def thinks(self) -> bool:
        """Whether it takes its time, so that others should not have to wait for it."""
        return isinstance(self.agent, Searcher)

    def advice(self, session: Session) -> Advice:
        """What it would do in the place of the player to move.

        Where it thinks ahead even the randomness is a function of what he sees.
        """
        if isinstance(self.agent, Searcher):
            return self._advice(session, self.agent.advise(session.states))
        return self._advice(session, None)

    def _advice(self, session: Session, thought: SearchResult | None) -> Advice:
        abstraction = self.agent.abstraction
        key = int(queries.infoset_key(session.states, abstraction.argument()))
        row = self.snapshot.row_at(session.states) if self.snapshot else None
        visits = None
        if self.snapshot:
            visits = 0 if row is None else self.snapshot.visits(row)
        return Advice(
            infoset=abstraction.description_at(session.states, key),
            identifier=abstraction.identifier(key),
            known=self.snapshot is None or row is not None,
            visits=visits,
            snapshot=self.snapshot.games if self.snapshot else None,
            search=thought.samples if thought else 0,
            actions=_tried(session, thought) if thought else self._by_policy(session),
        )

    def _by_policy(self, session: Session) -> list[PolicyAction]:
        chances = self.agent.probabilities(session.states)
        return [
            PolicyAction(
                name=action.name,
                probability=float(chances[action.number]),
                move=action.move_name,
                value=None,
            )
            for action in session.legal_abstract(self.agent.abstraction.name)
        ]

    def decide(self, session: Session, seed: int, number: int) -> tuple[int, Decision]:
        """The move that it makes as move `number` of the game with that seed, and why.

        The randomness is a function of (seed, number): a rebuilt game goes on exactly the same.
        """
        choices = rng.stream(seed, number, rng.CHOICES)
        if isinstance(self.agent, Searcher):
            thought = self.agent.think(session.states, choices)
            move, advice = thought.move, self._advice(session, thought)
        else:
            advice, move = self.advice(session), self.agent.choose(session.states, choices)
        return move, Decision(**dict(advice), move_number=number, move=session.game.moves[move])


def _tried(session: Session, thought: SearchResult) -> list[PolicyAction]:
    """Move by move, what it found."""
    return [
        PolicyAction(
            name=session.game.moves[move],
            probability=float(move == thought.move),
            move=session.game.moves[move],
            value=thought.values.get(move),
        )
        for move in thought.values or (thought.move,)
    ]
