"""The sections of a report page, in order. A section is a function that makes HTML, or None.

To add one on a single run, write a function of the report and a `Subject` and put it into
`RUN_SECTIONS`; it appears once for each run. What it needs is measured by `subject.measure`, so
that sections only put it into words. `chart.as_html` draws charts, `markup` has the rest.
Everything that comes from a run is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder.measure.agents import opponents
from rejoinder.measure.experiments import Judgement, experiment_of
from rejoinder.measure.forecast import (
    COVERAGE,
    FEWEST,
    ForecastError,
    Series,
    backtest,
    fan,
    regret_series,
    utility_series,
    win_rate_series,
)
from rejoinder.measure.match import MatchResult
from rejoinder_cli.report import chart
from rejoinder_cli.report.compare import Meeting, matrix
from rejoinder_cli.report.figures import as_in_the_paper, charts
from rejoinder_cli.report.markup import section, table, text, tile
from rejoinder_cli.report.responses import Bars, response_bars, response_section
from rejoinder_cli.report.results import comparison, facts
from rejoinder_cli.report.subject import Subject

_FURTHER = (2, 5)  # times the games so far, for the outlook


@dataclass
class Report:
    """What a page is made from."""

    subjects: list[Subject]
    meetings: list[Meeting] = field(default_factory=list)
    quick: bool = False  # a first look, with few games

    def __post_init__(self) -> None:
        self.charts = charts(self.subjects)
        found = {subject.name: experiment_of(subject.config) for subject in self.subjects}
        self.judgements: dict[str, list[Judgement]] = {
            subject.name: experiment.judge(subject)
            for subject in self.subjects
            if (experiment := found[subject.name]) is not None
        }
        # Runs that are compared are of one game, so of one experiment at most.
        self.experiment = next((e for e in found.values() if e is not None), None)
        if self.experiment is not None:
            self.charts = [as_in_the_paper(chart, self.experiment) for chart in self.charts]
        self.bars: dict[str, Bars] = {}
        for place, subject in enumerate(self.subjects):
            if bars := response_bars(subject, None if self.alone else place):
                self.bars[subject.name] = bars

    def pictures(self) -> Iterator[tuple[str, bytes]]:
        """Every figure as a file: its name and its PNG."""
        for drawn in self.charts:
            yield drawn.name, chart.as_png(drawn)
        for bars in self.bars.values():
            yield bars.name, bars.as_png()

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
        target = subject.config.target
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
    judged = report.judgements.get(report.alone.name, [])
    tiles = [tile(*fact) for fact in facts(report.alone, judged)]
    return f"<div class=tiles>{''.join(tiles)}</div>"


def claims(report: Report) -> str | None:
    """The paper against ours."""
    experiment = report.experiment
    if experiment is None:
        return None
    names = list(report.judgements)
    several = len(report.subjects) > 1
    heads = ["where", "claim", "the paper", *(names if several else ["ours"])]
    rows = []
    for judged in zip(*report.judgements.values(), strict=True):
        claim = judged[0].claim
        cells = [html.escape(text) for text in (claim.where, claim.text, claim.paper)]
        cells[1] += f"<small>{html.escape(f'{claim.counts}: {claim.why}')}</small>"
        rows.append([*cells, *(_verdict(judgement) for judgement in judged)])
    counts = [
        f"{sum(j.verdict == 'reproduced' for j in judged)} of {len(judged)}"
        for judged in report.judgements.values()
    ]
    told = ", ".join(
        f"{name}: {count}" if several else count for name, count in zip(names, counts, strict=True)
    )
    short = [s.name for s in report.subjects if s.name in names and s.games < experiment.games]
    lead = f"{told} claims of {experiment.source}, are reproduced."
    if short:
        lead += (
            f" The paper trains for {experiment.games:,} games and {', '.join(short)} for fewer, "
            "so those verdicts are not final."
        )
    return section(
        "The paper against ours", f"<p>{html.escape(lead)}</p>{table(heads, rows, kind='claims')}"
    )


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
    if not report.meetings:
        return None
    names = [subject.name for subject in report.subjects]
    result = report.meetings[0].result
    lead = (
        f"The mean utility ({result.unit} a game) of the row’s agent against the column’s: "
        f"{result.games:,} games, every deal once from each seat. Each agent sees the game by its "
        "own abstraction. Runs under different rules do not meet."
    )
    rows = [
        [html.escape(name), *(_meeting(result) for result in row)]
        for name, row in zip(names, matrix(report.meetings, len(names)), strict=True)
    ]
    return section("Head to head", f"<p>{lead}</p>{table(['', *names], rows)}")


def _meeting(result: MatchResult | None) -> str:
    if result is None:
        return "–"
    utility = f"{result.mean_utility:+.3f} ± {result.utility_error:.3f}"
    return f"{utility}<small>{result.win_rate:.1%} won</small>" if result.counts_wins else utility


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
        f"A curve a + b·n^(−c) fitted to the run’s evaluations, with {COVERAGE:.0%} intervals of "
        "what an evaluation would show. The backtest is the same forecast, made from the first "
        f"third of the run ({FEWEST} evaluations at least) for its end. rejoinder forecast tells "
        "when a target is reached."
    )
    return section("If training went on", f"<p>{html.escape(lead)}</p>{table(heads, rows)}")


def _series(subject: Subject) -> list[Series]:
    found = [regret_series(subject.records)]
    matches = win_rate_series if subject.game.counts_wins else utility_series
    for opponent in opponents(subject.game):
        try:
            found.append(matches(subject.records, opponent))
        except ForecastError:
            continue
    return found


def _outlook(subject: Subject, series: Series, several: bool) -> list[str]:
    curves, tested = fan(series), backtest(series)
    form = ".4f" if series.sign > 0 else ".1%" if series.most == 1 else "+.3f"
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
    made = [make(report, subject) or "" for subject in report.subjects for make in RUN_SECTIONS]
    return "".join(made) or None


def response_phases(report: Report, subject: Subject) -> str | None:
    title = "Response phases" if report.alone else f"Response phases: {subject.name}"
    return response_section(subject, report.bars.get(subject.name), title)


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
            start = f"{of}from game {text(session.get('from_game', 0))}"
            made.append(f"<h3>{html.escape(start)}</h3>{table([], rows, kind='plain')}")
    return section("Provenance", "".join(made)) if made else None


SECTIONS: list[Callable[[Report], str | None]] = [
    *(notice, summary, claims, figures, head_to_head, outlook, run_sections, results),
    *(configuration, provenance),
]
RUN_SECTIONS: list[Callable[[Report, Subject], str | None]] = [response_phases]


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    rules = {f"rules.{name}": value for name, value in fields["rules"].items()}
    return {name: value for name, value in fields.items() if name != "rules"} | rules
