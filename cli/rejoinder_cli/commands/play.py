"""`rejoinder play RUN`: a person against a trained agent, in the terminal."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument, SearchOption, open_run

if TYPE_CHECKING:
    from rejoinder.games.session import Session
    from rejoinder.measure.agents import Agent
    from rejoinder.measure.search import SearchResult

KEYS = "A number plays that move · p: what the agent would do · ?: rules · q: quit"


def play(
    run: RunArgument,
    second: Annotated[bool, typer.Option("--second", help="The agent begins.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the deal and the agent's choices.")
    ] = None,
    argmax: Annotated[
        bool, typer.Option("--argmax", help="The agent plays its likeliest action.")
    ] = False,
    search: SearchOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Play against a trained agent."""
    output = Output(as_json)
    opened = open_run(run, output)
    game = opened.run.config.load_game()
    if game.players != 2:
        raise ValueError(f"{game.name} has {game.players} players; here one person meets one agent")
    if sys.stderr.isatty():
        typer.echo("loading kernels (compiled once per machine)…", err=True)

    from rejoinder.games.session import Session
    from rejoinder.kernel import rng

    config = opened.run.config
    seed = secrets.randbelow(2**32) if seed is None else seed
    agent = opened.agent(argmax, search)
    choices = rng.stream(seed, 0, rng.CHOICES)
    session = Session.start(game, config.rules, seed=seed, first_player=0)
    _rehearse(session, agent, choices)
    _forget_keys()
    table = _Table(output, session, person=1 if second else 0)
    output.say(f"{session.game.title} against {run}, seed {seed}.")
    output.say(KEYS)
    while not session.over:
        if session.to_move == table.person:
            move = table.ask(agent)
            if move is None:
                break
        else:
            move = agent.choose(session.states, choices)
        table.apply(move)
    table.show_end()
    utility = session.utilities[table.person] if session.utilities else None
    winner = None
    if session.winner is not None:
        winner = "you" if session.winner == table.person else "agent"
    output.result({"finished": session.over, "utility": utility, "winner": winner, "seed": seed})


class _Table:
    """The person's side of the table: shows what he may see, and asks."""

    def __init__(self, output: Output, session: Session, person: int) -> None:
        from rejoinder_cli.view import terminal_view

        self.person = person
        self._output = output
        self._session = session
        self._view = terminal_view(session, person)
        self._told = 0  # events shown so far
        self._print_events(None)

    def ask(self, agent: Agent) -> int | None:
        """The move that the person chooses; None: he leaves."""
        view = self._session.view(self.person)
        self._output.console.print(self._view.screen(view))
        moves = self._session.legal()
        for number, move in enumerate(moves, 1):
            told = self._view.move(view, move.number)
            self._output.say(f"  {number}  {told}{_meaning(move.meanings, agent)}")
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
            elif answer == "?":
                self._output.say(f"{self._view.rules()}\n{KEYS}")
            elif answer.isdecimal() and 1 <= int(answer) <= len(moves):
                return moves[int(answer) - 1].number
            else:
                self._output.say(f"1 to {len(moves)} are moves. {KEYS}")

    def apply(self, move: int) -> None:
        """Play anybody's move and tell what happened."""
        before = self._session.view(self.person)
        self._session.apply(move)
        self._print_events(before)

    def show_end(self) -> None:
        session = self._session
        if not session.over or session.utilities is None:
            self._output.say("You left the table.")
            return
        won = session.utilities[self.person]
        verdict = "You win" if won > 0 else "The agent wins" if won < 0 else "A draw"
        self._output.say(f"\nThe game is over. {verdict} ({won:+g}).")
        own, agents = session.view(self.person), session.view(1 - self.person)
        self._output.console.print(self._view.end(own, agents))

    def _print_events(self, before: Any) -> None:
        events = self._session.seen_by(self.person)
        for line in self._view.events(before, events[self._told :]):
            self._output.say(f"  {line}")
        self._told = len(events)

    def _show_policy(self, agent: Agent) -> None:
        from rich.table import Table

        from rejoinder.measure.search import Searcher

        if isinstance(agent, Searcher):
            self._show_thought(agent.advise(self._session.states))
            return
        probabilities = agent.probabilities(self._session.states)
        table = Table("the agent would", "by", "probability")
        for action in self._session.legal_abstract(agent.abstraction.name):
            share = probabilities[action.number]
            table.add_row(action.name, action.move_name, f"{share:6.1%}")
        self._output.console.print(table)

    def _show_thought(self, thought: SearchResult) -> None:
        """What each move won on average, best first."""
        from rich.table import Table

        moves, values = self._session.game.moves, thought.values
        table = Table("the agent would", f"value, by {thought.samples:,} samples of all")
        others = sorted(values.keys() - {thought.move}, key=lambda move: -values[move])
        for move in (thought.move, *others):
            table.add_row(moves[move], f"{values[move]:+.3f}" if values else "the only move")
        self._output.console.print(table)


def _rehearse(session: Session, agent: Agent, choices: Any) -> None:
    """Play a copy to its end and ask all that a table asks: afterwards nothing is left to compile.

    Compiling takes seconds, in which an unanswered person would go on typing.
    """
    from rejoinder.measure.search import Searcher

    session, choices = session.copy(), choices.copy()
    if isinstance(agent, Searcher):
        agent = replace(agent, samples=1)  # the same code, without the wait
    while not session.over:
        session.legal()
        session.legal_abstract(agent.abstraction.name)
        agent.probabilities(session.states)
        session.apply(agent.choose(session.states, choices))
    _ = session.utilities, session.view(0)


def _forget_keys() -> None:
    """Drop what was typed in a terminal before there was anything to answer."""
    if sys.stdin.isatty():
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _meaning(meanings: dict[str, str], agent: Agent) -> str:
    meaning = meanings.get(agent.abstraction.name)
    return f"  ({meaning})" if meaning else ""
