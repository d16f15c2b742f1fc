"""Head to head: every two runs of the same game and rules, whatever abstraction each sees it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations

from rejoinder.measure.match import MatchResult, play_match, seated
from rejoinder_cli.output import Output
from rejoinder_cli.report.subject import Subject
from rejoinder_cli.report.work import Tell, Work
from rejoinder_cli.runs import OpenRun

SEED = 1


@dataclass(frozen=True)
class Meeting:
    """What one run did against another, by their places in the report."""

    of: int
    against: int  # in all other seats
    result: MatchResult


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
    """Every deal from every seat. Of two players one match tells of both."""
    meetings: list[Meeting] = []
    work = Work()

    def meet(i: int, j: int, tell: Tell) -> None:
        game, rules = subjects[i].game, subjects[i].config.rules
        agent, other = (subjects[k].opened.agent(argmax=False) for k in (i, j))
        results = play_match(
            *(game, game.template(rules), seated(game, agent, [other])),
            games=games,
            seed=SEED,
            progress=tell,
        )
        meetings.append(Meeting(i, j, results[0]))
        if game.players == 2:
            meetings.append(Meeting(j, i, results[1]))

    for i, j in permutations(range(len(subjects)), 2):
        told_by_other = subjects[i].game.players == 2 and i > j
        if subjects[i].config.rules == subjects[j].config.rules and not told_by_other:
            work.add(games, partial(meet, i, j))
    if work.pieces:
        work.run("head to head", output)
    return sorted(meetings, key=lambda meeting: (meeting.of, meeting.against))


def matrix(meetings: Sequence[Meeting], runs: int) -> list[list[MatchResult | None]]:
    """How the row's run did against the column's; None where they have not met."""
    cells: list[list[MatchResult | None]] = [[None] * runs for _ in range(runs)]
    for meeting in meetings:
        cells[meeting.of][meeting.against] = meeting.result
    return cells
