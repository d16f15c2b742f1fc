"""Head to head: every two runs of the same game and rules, whatever abstraction each sees it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from rejoinder.measure.match import MatchResult, play_match
from rejoinder_cli.output import Output
from rejoinder_cli.report.subject import Subject
from rejoinder_cli.report.work import Tell, Work
from rejoinder_cli.runs import OpenRun

SEED = 1


@dataclass(frozen=True)
class Meeting:
    """A match of two runs, by their places in the report; from the first one's side."""

    first: int
    second: int
    result: MatchResult


@dataclass(frozen=True)
class Sides:
    """A meeting from the side of one of the two."""

    won: float  # share of the games
    utility: float  # mean
    error: float  # its 95 % half-width


def check_comparable(opened: Sequence[OpenRun]) -> None:
    """Refuse runs that no figure could have in common."""
    for one, other in combinations((o.run for o in opened), 2):
        if other.config.game != one.config.game:
            raise ValueError(
                f"a comparison needs runs of one game; {one.path} plays {one.config.game} and "
                f"{other.path} plays {other.config.game}"
            )
        if other.path.resolve() == one.path.resolve():
            raise ValueError(f"{one.path} is named twice")


def head_to_head(subjects: Sequence[Subject], games: int, output: Output) -> list[Meeting]:
    """Mirrored deals, alternating starts."""
    meetings: list[Meeting] = []
    work = Work()

    def meet(i: int, j: int, tell: Tell) -> None:
        config = subjects[i].config
        game = config.load_game()
        agents = (subjects[k].opened.agent(argmax=False) for k in (i, j))
        template = game.template(config.rules)
        result = play_match(game, template, *agents, games=games, seed=SEED, progress=tell)
        meetings.append(Meeting(i, j, result))

    for i, j in combinations(range(len(subjects)), 2):
        if subjects[i].config.rules == subjects[j].config.rules:
            work.add(games, partial(meet, i, j))
    if work.pieces:
        work.run("head to head", output)
    return sorted(meetings, key=lambda meeting: (meeting.first, meeting.second))


def matrix(meetings: Sequence[Meeting], runs: int) -> list[list[Sides | None]]:
    """How the row's run did against the column's; None where they have not met."""
    cells: list[list[Sides | None]] = [[None] * runs for _ in range(runs)]
    for meeting in meetings:
        result, i, j = meeting.result, meeting.first, meeting.second
        lost = result.games - result.wins - result.draws
        mean, error = result.mean_utility, result.utility_error
        cells[i][j] = Sides(result.win_rate, mean, error)
        cells[j][i] = Sides(lost / result.games, -mean, error)
    return cells
