"""The charts of a report. One run: as in the paper's Figures 2 to 5. Several: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rejoinder.evaluate.agents import opponents
from rejoinder.evaluate.match import MatchResult
from rejoinder.forecast import COVERAGE, ForecastError, fan, mer_series
from rejoinder.metrics import QUANTILES
from rejoinder_cli.report.chart import Chart, Line
from rejoinder_cli.report.subject import ALTERNATING, STARTS, Subject

_RESPONSES, _NORMAL = "in response", "in normal play"
_COMPARED_QUANTILES = ("median", "max")
_BOUND = (
    "A lower bound: what an opponent wins a game who was trained against the agent; shaded: its "
    "95 % interval."
)
_EXACT = "Exact: what a perfect opponent wins of the agent, a game on average."
_HIDDEN = (
    "The real game, and the game as the agent’s abstraction shows it: what lies between the two is "
    "what the abstraction hides from training."
)


def mer(subjects: Sequence[Subject]) -> Chart | None:
    lines = [
        Line(_name(subject, subjects), *_column(subject, "mer"), colour=k)
        for k, subject in enumerate(subjects)
    ]
    return _chart(
        Chart(
            "mer",
            "Maximum expected regret (MER)",
            "What the best single change of play would gain, averaged over infosets by how likely "
            "they are reached: it falls towards zero as the policy settles.",
            lines,
            axis="MER",
        )
    )


def outlook(subjects: Sequence[Subject]) -> Chart | None:
    """MER as it was measured and as the fitted curve goes on; of one run."""
    if len(subjects) > 1:
        return None
    series = mer_series(subjects[0].records)
    try:
        curves = fan(series)
    except ForecastError:
        return None
    games = np.linspace(series.games[len(series.games) // 3], 2 * series.games[-1], 40)
    low, middle, high = curves.band(games).clip(min=0.0).tolist()
    lines = [
        Line("", games.tolist(), middle, low, high, dashed=True, colour=1),
        Line("", series.games.tolist(), series.values.tolist()),
    ]
    return Chart(
        "outlook",
        "MER if training went on",
        f"The curve a + b·n^(−c) fitted to the evaluations; shaded: where {COVERAGE:.0%} of the "
        "refits to resampled evaluations are.",
        lines,
        axis="MER",
        solid="measured",
        dashed="fitted",
    )


def scores(subjects: Sequence[Subject]) -> Chart | None:
    """Win rates, or what is won a game on average where games are worth different amounts."""
    staked = any(subject.staked for subject in subjects)
    lines = []
    for k, subject in enumerate(subjects):
        for j, opponent in enumerate(opponents(subject.config.load_game())):
            alone = len(subjects) == 1
            look = {"panel": "" if alone else f"against {opponent}", "colour": j if alone else k}
            label = opponent if alone else subject.name
            lines += _score_lines(subject, opponent, staked, Line(label, (), (), **look))  # type: ignore[arg-type]
    measured = [score for subject in subjects for score in subject.scores]
    games = f"{measured[0].result.games:,}" if measured else "0"
    what = "mean utility a game" if staked else "win rate"
    return _chart(
        Chart(
            "win-rate" if not staked else "utility",
            f"{what.capitalize()} against the baselines",
            f"{games} test games at each checkpoint, shaded: 95 % intervals. With alternating "
            f"starts games come in pairs of one deal with the seats exchanged."
            f"{' Dots: evaluations during training.' if any(line.dots for line in lines) else ''}",
            lines,
            scale="number" if staked else "share",
            axis=what,
            solid="agent goes first",
            dashed="starts alternate",
            number="+.3f" if staked else ".1%",
            zoom=True,
        )
    )


def _score_lines(subject: Subject, opponent: str, staked: bool, look: Line) -> list[Line]:
    lines = []
    for starts in STARTS:
        found = [s for s in subject.scores if (s.opponent, s.starts) == (opponent, starts)]
        results = [_interval(score.result, staked) for score in found]
        if found:
            value, low, high = zip(*results, strict=True)
            games = [score.games for score in found]
            dashed = starts == ALTERNATING
            lines.append(
                replace(look, games=games, values=value, low=low, high=high, dashed=dashed)
            )
    rated = [r for r in subject.records if opponent in r.get("win_rates", {})]
    if len(rated) > len({score.games for score in subject.scores}):
        part = "mean_utility" if staked else "win_rate"
        values = [r["win_rates"][opponent][part] for r in rated]
        lines.append(replace(look, games=[r["games"] for r in rated], values=values, dots=True))
    return lines


def _interval(result: MatchResult, staked: bool) -> tuple[float, float, float]:
    if not staked:
        return result.win_rate, result.low, result.high
    mean, error = result.mean_utility, result.utility_error
    return mean, mean - error, mean + error


def updates(subjects: Sequence[Subject]) -> Chart | None:
    shown = list(reversed(QUANTILES)) if len(subjects) == 1 else list(_COMPARED_QUANTILES)
    lines = [
        Line(
            quantile if len(subjects) == 1 else subject.name,
            *_column(subject, "updates", quantile),
            panel="" if len(subjects) == 1 else quantile,
            colour=j if len(subjects) == 1 else k,
        )
        for j, quantile in enumerate(shown)
        for k, subject in enumerate(subjects)
    ]
    return _chart(
        Chart(
            "updates",
            "Updates per infoset",
            "How often infosets have been learned from, on a log scale: rare ones come last.",
            lines,
            scale="log",
            axis="updates",
            number=",.0f",
        )
    )


def policy(subjects: Sequence[Subject]) -> Chart | None:
    alone = len(subjects) == 1
    lines = []
    for k, subject in enumerate(subjects):
        abstraction = subject.config.load_abstraction()
        has_responses = abstraction.responses != 0
        known = {name for record in subject.records for name in record.get("policy", {})}
        for a, action in enumerate(abstraction.actions):
            if action not in known:
                continue
            words = action.replace("_", " ").lower()
            phase = _RESPONSES if abstraction.responses >> a & 1 else _NORMAL
            lines.append(
                Line(
                    words if alone else subject.name,
                    *_column(subject, "policy", action),
                    panel=(phase if has_responses else "") if alone else words,
                    colour=a if alone else k,
                )
            )
    lines.sort(key=lambda line: line.panel == _RESPONSES)
    return _chart(
        Chart(
            "policy",
            "Median probability of each action",
            "For each action the median, over the infosets where it is a choice, of the average "
            "policy’s probability.",
            lines,
            scale="share",
            axis="median probability" if alone else "",
            number=".1%",
        )
    )


def exploitability(subjects: Sequence[Subject]) -> Chart | None:
    lines = []
    for k, subject in enumerate(subjects):
        found = subject.exploited
        look = Line(_name(subject, subjects), [e.games for e in found], (), colour=k)
        values = [e.value for e in found]
        if any(e.error is not None for e in found):
            errors = [e.error or 0.0 for e in found]
            low = [v - error for v, error in zip(values, errors, strict=True)]
            high = [v + error for v, error in zip(values, errors, strict=True)]
            lines.append(replace(look, values=values, low=low, high=high))
            continue
        lines.append(replace(look, values=values))
        inside = [e.inside for e in found if e.inside is not None]
        if inside:
            lines.append(replace(look, values=inside, dashed=True))
    bound = any(e.error is not None for subject in subjects for e in subject.exploited)
    dashed = any(line.dashed for line in lines)
    caption = _BOUND if bound else f"{_EXACT} {_HIDDEN}" if dashed else _EXACT
    if all(len(line.values) < 2 for line in lines):
        return None
    return _chart(
        Chart(
            "exploitability",
            "Exploitability",
            caption,
            lines,
            axis="at least, a game" if bound else "utility a game",
            solid="in the real game" if dashed else "",
            dashed="as the abstraction shows it" if dashed else "",
        )
    )


CHARTS: list[Callable[[Sequence[Subject]], Chart | None]] = [
    *(mer, scores, updates, outlook, exploitability, policy),
]


IN_THE_PAPER = {"mer": 2, "win-rate": 3, "updates": 4, "policy": 5}  # the figure's number there


def charts(subjects: Sequence[Subject]) -> list[Chart]:
    """All that there is anything to show in."""
    drawn = (make(subjects) for make in CHARTS)
    return [chart for chart in drawn if chart is not None]


def as_in_the_paper(chart: Chart) -> Chart:
    """The chart with a word on which figure of the paper it repeats."""
    if chart.name not in IN_THE_PAPER:
        return chart
    return replace(chart, caption=f"The paper’s Figure {IN_THE_PAPER[chart.name]}. {chart.caption}")


def _chart(chart: Chart) -> Chart | None:
    lines = [line for line in chart.lines if len(line.values)]
    return replace(chart, lines=lines) if lines else None


def _name(subject: Subject, subjects: Sequence[Subject]) -> str:
    return subject.name if len(subjects) > 1 else ""


def _column(subject: Subject, part: str, key: str | None = None) -> tuple[list[int], list[float]]:
    """Games and values of a figure of the run's own evaluations."""
    known = [r for r in subject.records if part in r and (key is None or key in r[part])]
    values = [r[part] if key is None else r[part][key] for r in known]
    return [r["games"] for r in known], values
