"""What became of a run, in figures: the large ones at the top, and all of them in a table."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rejoinder.measure.agents import opponents
from rejoinder.measure.experiments import Judgement
from rejoinder.measure.match import MatchResult
from rejoinder_cli.report.markup import table
from rejoinder_cli.report.subject import ALTERNATING, FIRST, Subject

_MANY_DRAWS = 0.05


def comparison(subjects: Sequence[Subject]) -> str:
    """What became of each run, a column for each."""
    columns = [_result(subject) for subject in subjects]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [
        [html.escape(name), *(html.escape(column.get(name, "–")) for column in columns)]
        for name in names
    ]
    heads = ["", *(subject.name for subject in subjects)] if len(subjects) > 1 else []
    return table(heads, rows, kind="plain")


def _result(subject: Subject) -> dict[str, str]:
    opened = subject.opened
    told = {
        "run": str(opened.run.path),
        "games": f"{subject.games:,}",
        "abstraction": subject.config.abstraction,
        "infosets": f"{len(opened.checkpoint.rows):,}",
    }
    if subject.seconds is not None:
        told["time"] = f"{subject.seconds:.0f} s, start-up included"
    if mers := [record["mer"] for record in subject.records if "mer" in record]:
        told["MER"] = f"{mers[-1]:.4f}"
    for opponent in opponents(subject.config.load_game()):
        for starts, words in ((ALTERNATING, "starts alternate"), (FIRST, "agent first")):
            result = subject.final(opponent, starts)
            if result is None:
                continue
            if subject.staked:
                score = f"{result.mean_utility:+.3f} ± {result.utility_error:.3f} a game"
            else:
                sure = f"{result.low:.2%} to {result.high:.2%}"
                score = f"{result.win_rate:.2%} ({sure}){_drawn(result)}"
            told[f"against {opponent}, {words}"] = f"{score}, {result.games:,} games"
    if subject.exploited:
        last = subject.exploited[-1]
        if last.error is not None:
            found = f"{last.value:.4f} ± {last.error:.4f}"
            told["exploitability"] = (
                f"at least {found}" if last.is_found else f"nothing was found ({found})"
            ) + f", {last.how}"
        else:
            told["exploitability"] = f"{last.value:.4f} (exact)"
        if last.inside is not None:
            told["exploitability as the abstraction shows it"] = f"{last.inside:.4f} (exact)"
    return told | {"digest": opened.digest, "fingerprint": subject.config.fingerprint}


def facts(subject: Subject, judged: Sequence[Judgement]) -> list[tuple[str, str, str]]:
    """Number, what it is, and how sure it is."""
    found = []
    for opponent in opponents(subject.config.load_game()):
        result = subject.final(opponent, ALTERNATING)
        if result is None:
            continue
        if subject.staked:
            number, sure = f"{result.mean_utility:+.2f}", f"a game, ± {result.utility_error:.2f}"
        else:
            number = f"{result.win_rate:.1%}"
            sure = f"{result.low:.1%} to {result.high:.1%}{_drawn(result)}"
        found.append((number, f"against {opponent}", sure))
    if mers := [record["mer"] for record in subject.records if "mer" in record]:
        found.append((f"{mers[-1]:.4f}", "MER", f"{mers[0]:.4f} at first"))
    if subject.exploited:
        last = subject.exploited[-1]
        sure = "exact" if last.error is None else f"at least, ± {last.error:.3f}"
        if not last.is_found:
            sure = f"nothing was found, ± {last.error:.3f}"
        found.append((f"{last.value:.3f}", "exploitability", sure))
    found.append(
        (f"{len(subject.opened.checkpoint.rows):,}", "infosets", subject.config.abstraction)
    )
    time = "" if subject.seconds is None else f"in {subject.seconds:.0f} s"
    found.append((f"{subject.games:,}", "training games", time))
    if judged:
        held = sum(j.verdict == "reproduced" for j in judged)
        found.append((f"{held} of {len(judged)}", "claims reproduced", "see below"))
    return found


def _drawn(result: MatchResult) -> str:
    """Where draws are so many that the win rate alone would mislead."""
    share = result.draws / result.games
    return f", {share:.0%} drawn" if share > _MANY_DRAWS else ""
