"""The sections of a report page, in order. A section is a function that makes HTML, or None.

To add one on a single run, write a function from an `OpenRun` to HTML or None and put it into
`RUN_SECTIONS`; it appears once for each run. `chart.as_html` draws its charts and `table` its tables.
Everything that comes from a run is escaped.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rejoinder.evaluate.agents import opponents
from rejoinder.forecast import (
    COVERAGE,
    ForecastError,
    Series,
    backtest,
    fan,
    mer_series,
    win_rate_series,
)
from rejoinder_cli.report import chart
from rejoinder_cli.report.claims import Judgement, is_experiment, judge_all
from rejoinder_cli.report.compare import Meeting
from rejoinder_cli.report.figures import charts
from rejoinder_cli.report.subject import ALTERNATING, FIRST, Subject
from rejoinder_cli.runs import OpenRun

_FURTHER = (2, 5)  # times the games so far, for the outlook


@dataclass
class Report:
    """What a page is made from."""

    subjects: list[Subject]
    meetings: list[Meeting] = field(default_factory=list)
    quick: bool = False  # a first look, with few games

    def __post_init__(self) -> None:
        self.charts = charts(self.subjects)
        self.judgements: dict[str, list[Judgement]] = {
            subject.name: judge_all(subject)
            for subject in self.subjects
            if is_experiment(subject.config)
        }

    @property
    def alone(self) -> Subject | None:
        """The run, if there is only one."""
        return self.subjects[0] if len(self.subjects) == 1 else None


def notice(report: Report) -> str | None:
    """What a reader must know before anything else."""
    told = []
    if report.quick:
        told.append(
            "A quick look: a fifth of the experiment’s games and few test games. Run "
            "rejoinder reproduce without --quick for the experiment itself."
        )
    for subject in report.subjects:
        target = subject.config.games
        if subject.games < target:
            told.append(
                f"{subject.name} is not finished: this is what it was after {subject.games:,} of "
                f"{target:,} games."
            )
        if not subject.records:
            told.append(f"{subject.name} has no evaluations yet.")
    return "".join(f"<p class=notice>{html.escape(text)}</p>" for text in told) or None


def summary(report: Report) -> str | None:
    """The figures that matter most, large; a table where there are several runs."""
    if report.alone is None:
        return section("Runs", comparison(report.subjects))
    tiles = [_tile(*fact) for fact in _facts(report.alone, report.judgements)]
    return f"<div class=tiles>{''.join(tiles)}</div>"


def claims(report: Report) -> str | None:
    """The paper against ours."""
    if not report.judgements:
        return None
    names = list(report.judgements)
    several = len(report.subjects) > 1
    heads = ["where", "claim", "the paper", *(names if several else ["ours"])]
    rows = []
    for judged in zip(*report.judgements.values(), strict=True):
        claim = judged[0].claim
        cells = [html.escape(text) for text in (claim.where, claim.text, claim.paper)]
        cells[1] += (
            f"<small>{html.escape(f'counts if {_bounds(claim.least, claim.most)}: {claim.why}')}</small>"
        )
        rows.append([*cells, *(_verdict(judgement) for judgement in judged)])
    counts = [
        f"{sum(j.verdict == 'reproduced' for j in judged)} of {len(judged)}"
        for judged in report.judgements.values()
    ]
    told = ", ".join(
        f"{name}: {count}" if several else count for name, count in zip(names, counts, strict=True)
    )
    short = [s for s in report.subjects if s.name in report.judgements and s.games < 1_000]
    lead = f"{told} claims of W. Wolf, Monopoly Deal (2025), section 7, are reproduced."
    if short:
        lead += (
            " The paper trains for 1,000 games; this run is shorter, so its verdicts are not final."
        )
    return section(
        "The paper against ours", f"<p>{html.escape(lead)}</p>{table(heads, rows, kind='claims')}"
    )


def _bounds(least: float, most: float) -> str:
    if math.isinf(most):
        return "above zero"
    return f"from {least:g} to {most:g}"


def _verdict(judgement: Judgement) -> str:
    word = judgement.verdict
    kind = {"reproduced": "yes", "not reproduced": "no"}.get(word, "unknown")
    direction = f": {judgement.direction}" if judgement.direction else ""
    said = html.escape(judgement.reading.text) if judgement.reading else ""
    return f"<b class='verdict {kind}'>{word}{direction}</b><small>{said}</small>"


def figures(report: Report) -> str | None:
    drawn = "".join(chart.as_html(made) for made in report.charts)
    return section("Figures", f"<div class=figures>{drawn}</div>") if drawn else None


def head_to_head(report: Report) -> str | None:
    """How the row's agent does against the column's."""
    if not report.meetings:
        return None
    subjects = report.subjects
    staked = any(subject.staked for subject in subjects)
    by_pair = {(m.first, m.second): m.result for m in report.meetings}
    rows = []
    for i, row in enumerate(subjects):
        cells = []
        for j in range(len(subjects)):
            result, turned = by_pair.get((min(i, j), max(i, j))), i > j
            if result is None:
                cells.append("–")
                continue
            sign = -1 if turned else 1
            if staked:
                mean = sign * result.mean_utility
                cells.append(f"{mean:+.3f}<small>± {result.utility_error:.3f}</small>")
            else:
                # A draw counts for both: what is left of the other's win rate.
                lost = 1 - result.win_rate - result.draws / result.games
                rate = lost if turned else result.win_rate
                cells.append(
                    f"{rate:.1%}<small>{_edge(sign * result.mean_utility, result.utility_error)}</small>"
                )
        rows.append([html.escape(row.name), *cells])
    games = report.meetings[0].result.games
    what = "mean utility" if staked else "win rate"
    lead = (
        f"The {what} of the row’s agent against the column’s: {games:,} games, in pairs of one deal "
        "with the seats exchanged. Each agent sees the game by its own abstraction. Runs under "
        "different rules do not meet."
    )
    heads = ["", *(subject.name for subject in subjects)]
    return section("Head to head", f"<p>{lead}</p>{table(heads, rows)}")


def _edge(mean: float, error: float) -> str:
    """Who is ahead, if anybody surely is; by the mean utility, whose interval is known."""
    return f"utility {mean:+.3f} ± {error:.3f}"


def outlook(report: Report) -> str | None:
    """What more games would bring, by the fitted curve, and what such forecasts were worth."""
    rows = []
    for subject in report.subjects:
        for series in _series(subject):
            try:
                rows.append(_outlook(subject, series, several=report.alone is None))
            except ForecastError:
                continue
    if not rows:
        return None
    heads = ["figure", "now", *(f"{k} × the games" for k in _FURTHER), "levels off at"]
    heads += ["backtest: said early for the end", "was"]
    lead = (
        f"A curve a + b·n^(−c) fitted to the run’s evaluations, with {COVERAGE:.0%} intervals of what an "
        "evaluation would show. The backtest is the same forecast made from the first third of the run "
        "(eight evaluations at least) for its end. rejoinder forecast tells when a target is reached."
    )
    return section("If training went on", f"<p>{html.escape(lead)}</p>{table(heads, rows)}")


def _series(subject: Subject) -> list[Series]:
    found = [mer_series(subject.records)]
    if not subject.staked:
        for opponent in opponents(subject.config.load_game()):
            try:
                found.append(win_rate_series(subject.records, opponent))
            except ForecastError:
                continue
    return found


def _outlook(subject: Subject, series: Series, several: bool) -> list[str]:
    curves, tested = fan(series), backtest(series)
    form = ".4f" if series.sign > 0 else ".1%"
    level = curves.reaches(float(series.values[-1])).level
    cells = [
        f"{subject.name}: {series.name}" if several else series.name,
        f"{series.values[-1]:{form}}",
        *(_range(*_said(curves.at(k * float(series.games[-1]))), form) for k in _FURTHER),
        _range(level[1], level[0], level[2], form),
    ]
    if tested is None:
        return [*(html.escape(cell) for cell in cells), "–", "–"]
    word = "inside" if tested.outlook_held else "outside"
    said = f"{_range(*_said(tested.outlook), form)}, from {tested.known:,.0f} games"
    return [html.escape(cell) for cell in (*cells, said, f"{tested.actual:{form}}, {word}")]


def _said(at: Any) -> tuple[float, float, float]:
    return at.value, at.low, at.high


def _range(value: float, low: float, high: float, form: str) -> str:
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def run_sections(report: Report) -> str | None:
    made = []
    for subject in report.subjects:
        for make in RUN_SECTIONS:
            part = make(subject.opened)
            if part and report.alone is None:
                part = f"<div class=of-run><p class=eyebrow>{html.escape(subject.name)}</p>{part}</div>"
            made.append(part or "")
    return "".join(made) or None


def results(report: Report) -> str | None:
    return section("Result", comparison(report.subjects)) if report.alone else None


def configuration(report: Report) -> str | None:
    """Every field; those that differ between runs are marked."""
    flat = [_flat(subject.config.model_dump(mode="json")) for subject in report.subjects]
    rows, marked = [], []
    for name in dict.fromkeys(name for fields in flat for name in fields):
        values = [text(fields.get(name)) for fields in flat]
        rows.append([html.escape(name), *(html.escape(value) for value in values)])
        marked.append(len(set(values)) > 1)
    heads = ["", *(s.name for s in report.subjects)] if report.alone is None else []
    return section("Configuration", table(heads, rows, kind="plain", marked=marked))


def provenance(report: Report) -> str | None:
    made = []
    for subject in report.subjects:
        of = "" if report.alone else f"{subject.name}, "
        for session in subject.opened.run.sessions():
            rows = [[html.escape(str(k)), html.escape(text(v))] for k, v in session.items()]
            made.append(
                f"<h3>{html.escape(of)}from game {html.escape(text(session.get('from_game', 0)))}</h3>"
                f"{table([], rows, kind='plain')}"
            )
    return section("Provenance", "".join(made)) if made else None


SECTIONS: list[Callable[[Report], str | None]] = [
    *(notice, summary, claims, figures, head_to_head, outlook, run_sections, results),
    *(configuration, provenance),
]
RUN_SECTIONS: list[Callable[[OpenRun], str | None]] = []


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
            told[f"against {opponent}, {words}"] = (
                f"{result.mean_utility:+.3f} ± {result.utility_error:.3f} a game"
                if subject.staked
                else f"{result.win_rate:.2%} ({result.low:.2%} to {result.high:.2%})"
            ) + f", {result.games:,} games"
    if subject.exploited:
        last = subject.exploited[-1]
        if last.error is not None:
            told["exploitability"] = f"at least {last.value:.4f} ± {last.error:.4f}"
        else:
            told["exploitability"] = f"{last.value:.4f} (exact)"
        if last.inside is not None:
            told["exploitability as the abstraction shows it"] = f"{last.inside:.4f} (exact)"
    return told | {"digest": opened.digest, "fingerprint": subject.config.fingerprint}


def _facts(
    subject: Subject, judgements: Mapping[str, list[Judgement]]
) -> list[tuple[str, str, str]]:
    """Number, what it is, and how sure it is."""
    facts = []
    for opponent in opponents(subject.config.load_game()):
        result = subject.final(opponent, ALTERNATING)
        if result is None:
            continue
        if subject.staked:
            number, sure = f"{result.mean_utility:+.2f}", f"a game, ± {result.utility_error:.2f}"
        else:
            number, sure = f"{result.win_rate:.1%}", f"{result.low:.1%} to {result.high:.1%}"
        facts.append((number, f"against {opponent}", sure))
    if mers := [record["mer"] for record in subject.records if "mer" in record]:
        facts.append((f"{mers[-1]:.4f}", "MER", f"{mers[0]:.4f} at first"))
    if subject.exploited:
        last = subject.exploited[-1]
        least = "at least, " if last.error is not None else ""
        sure = f"± {last.error:.3f}" if last.error is not None else "exact"
        facts.append((f"{last.value:.3f}", "exploitability", least + sure))
    facts.append(
        (f"{len(subject.opened.checkpoint.rows):,}", "infosets", subject.config.abstraction)
    )
    time = "" if subject.seconds is None else f"in {subject.seconds:.0f} s"
    facts.append((f"{subject.games:,}", "training games", time))
    if judged := judgements.get(subject.name):
        held = sum(j.verdict == "reproduced" for j in judged)
        facts.append((f"{held} of {len(judged)}", "claims reproduced", "see below"))
    return facts


def _tile(number: str, what: str, sure: str) -> str:
    return (
        f"<div><strong>{html.escape(number)}</strong><span>{html.escape(what)}</span>"
        f"<small>{html.escape(sure)}</small></div>"
    )


def section(title: str, body: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{body}</section>"


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    kind: str = "grid",
    marked: Sequence[bool] = (),
) -> str:
    """A table of cells that are HTML already; its heads are text. The first column names the row."""
    head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in heads)
    body = ""
    for k, (name, *cells) in enumerate(rows):
        mark = " class=differs" if k < len(marked) and marked[k] else ""
        body += f"<tr{mark}><th scope=row>{name}</th>"
        body += "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<div class=scroll><table class={kind}>{top}<tbody>{body}</tbody></table></div>"


def text(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value)


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    rules = {f"rules.{name}": value for name, value in fields["rules"].items()}
    return {name: value for name, value in fields.items() if name != "rules"} | rules
