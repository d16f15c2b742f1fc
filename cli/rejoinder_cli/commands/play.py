"""`rejoinder play RUN`: a person against a trained agent, in the terminal."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument, open_run

if TYPE_CHECKING:
    from rejoinder.evaluate.agents import Agent
    from rejoinder.games.session import Session

HELP = "a number plays that move · p: what the agent would do in your place · ?: help · q: quit"


def play(
    run: RunArgument,
    second: Annotated[bool, typer.Option("--second", help="The agent begins.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the deal and the agent's choices.")
    ] = None,
    argmax: Annotated[
        bool, typer.Option("--argmax", help="The agent plays its likeliest action.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Play against a trained agent."""
    from rejoinder import rng
    from rejoinder.games.session import Session

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    seed = secrets.randbelow(2**32) if seed is None else seed
    agent = opened.agent(argmax)
    choices = rng.stream(seed, 0, rng.CHOICES)
    session = Session.start(config.load_game(), config.rules, seed=seed, first_player=0)
    table = _Table(output, session, person=1 if second else 0)
    output.say(f"{session.game.title} against {run}, seed {seed}. {HELP}")
    while not session.over:
        if session.to_move == table.person:
            move = table.ask(agent)
            if move is None:
                break
            session.apply(move)
        else:
            session.apply(agent.choose(session.states, choices))
    table.show_end()
    won = session.utilities[table.person] if session.utilities else None
    output.result({"finished": session.over, "won": won, "seed": seed})


class _Table:
    """The person's side of the table: shows what he may see, and asks."""

    def __init__(self, output: Output, session: Session, person: int) -> None:
        self.person = person
        self._output = output
        self._session = session
        self._told = 0  # events shown so far

    def ask(self, agent: Agent) -> int | None:
        """The move that the person chooses; None: he leaves."""
        self._tell_events()
        self._show(self.person)
        moves = self._session.legal()
        for number, move in enumerate(moves, 1):
            self._output.say(f"  {number}  {move.name}{_meaning(move.meanings, agent)}")
        while True:
            self._output.console.print("> ", end="")
            try:
                answer = input().strip()
            except EOFError:
                answer = "q"
            if answer == "q":
                return None
            if answer == "p":
                self._show_policy(agent)
            elif answer.isdecimal() and 1 <= int(answer) <= len(moves):
                return moves[int(answer) - 1].number
            else:
                self._output.say(f"1 to {len(moves)} are moves. {HELP}")

    def show_end(self) -> None:
        self._tell_events()
        session = self._session
        if not session.over or session.utilities is None:
            self._output.say("You left the table.")
            return
        won = session.utilities[self.person]
        verdict = "You win" if won > 0 else "The agent wins" if won < 0 else "A draw"
        self._output.say(f"\nThe game is over. {verdict} ({won:+g}). What the agent saw:")
        self._show(1 - self.person)

    def _tell_events(self) -> None:
        events = self._session.seen_by(self.person)
        for event in events[self._told :]:
            who = {None: "drawn", self.person: "you"}.get(event.actor, "agent")
            if event.number >= 0:
                self._output.say(f"  {who}: {event.name}")
        self._told = len(events)

    def _show(self, seat: int) -> None:
        from rejoinder_cli.view import panels

        self._output.console.print(panels(self._session.view(seat)))

    def _show_policy(self, agent: Agent) -> None:
        from rich.table import Table

        probabilities = agent.probabilities(self._session.states)
        table = Table("the agent would", "by", "probability")
        for action in self._session.legal_abstract(agent.abstraction.name):
            share = probabilities[action.number]
            table.add_row(action.name, action.move_name, f"{share:6.1%}")
        self._output.console.print(table)


def _meaning(meanings: dict[str, str], agent: Agent) -> str:
    meaning = meanings.get(agent.abstraction.name)
    return f"  ({meaning})" if meaning else ""
