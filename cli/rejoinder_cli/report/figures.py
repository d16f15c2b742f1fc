"""The charts of a report. One run: as in the paper's Figures 2 to 5. Several: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rejoinder.games.responses import response_actions
from rejoinder.measure.agents import opponents
from rejoinder.measure.experiments import Experiment, experiment_of
from rejoinder.measure.forecast import COVERAGE, ForecastError, fan, regret_series
from rejoinder.measure.match import MatchResult
from rejoinder.measure.metrics import QUANTILES
from rejoinder_cli.report.chart import Chart, Line
from rejoinder_cli.report.subject import ALTERNATING, STARTS, Subject

_RESPONSES, _NORMAL = "in response", "in normal play"
_COMPARED_QUANTILES = ("median", "max")
_BOUND = (
    "A lower bound: what an opponent wins a game who knows the agent’s policy and thinks ahead "
    "before each move; shaded: its 95 % interval, up to {:.2f} to either side, so smaller "
    "differences between points may be chance."
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
    series = regret_series(subjects[0].records)
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


@dataclass(frozen=True)
class _Score:
    """A figure of matches: what the run's own evaluations call it, and its value, low and high."""

    name: str
    interval: Callable[[MatchResult], tuple[float, float, float]]


_UTILITY = _Score(
    "mean_utility",
    lambda result: (
        result.mean_utility,
        result.mean_utility - result.utility_error,
        result.mean_utility + result.utility_error,
    ),
)
_WIN_RATE = _Score("win_rate", lambda result: (result.win_rate, result.low, result.high))


def utilities(subjects: Sequence[Subject]) -> Chart | None:
    """What is won a game on average."""
    axis = f"{subjects[0].game.utility_unit} a game"
    shown = {"scale": "number", "axis": axis, "number": "+.3f"}
    return _score_chart(subjects, _UTILITY, "utility", "Mean utility", shown)


def win_rates(subjects: Sequence[Subject]) -> Chart | None:
    """How many games are won, where that means something."""
    if not subjects[0].game.counts_wins:
        return None
    shown = {"scale": "share", "axis": "win rate", "number": ".1%"}
    return _score_chart(subjects, _WIN_RATE, "win-rate", "Win rate", shown)


def _score_chart(
    subjects: Sequence[Subject], score: _Score, name: str, title: str, shown: Mapping[str, str]
) -> Chart | None:
    lines = []
    for k, subject in enumerate(subjects):
        for j, opponent in enumerate(opponents(subject.game)):
            alone = len(subjects) == 1
            look = {"panel": "" if alone else f"against {opponent}", "colour": j if alone else k}
            label = opponent if alone else subject.name
            lines += _score_lines(subject, opponent, score, Line(label, (), (), **look))  # type: ignore[arg-type]
    measured = [score for subject in subjects for score in subject.scores]
    games = f"{measured[0].result.games:,}" if measured else "0"
    return _chart(
        Chart(
            name,
            f"{title} against the baselines",
            f"{games} test games at each checkpoint, shaded: 95 % intervals. With alternating "
            f"starts every deal is played once from each seat."
            f"{' Dots: evaluations during training.' if any(line.dots for line in lines) else ''}",
            lines,
            solid="agent goes first",
            dashed="starts alternate",
            zoom=True,
            **shown,  # type: ignore[arg-type]
        )
    )


def _score_lines(subject: Subject, opponent: str, score: _Score, look: Line) -> list[Line]:
    lines = []
    for starts in STARTS:
        found = [s for s in subject.scores if (s.opponent, s.starts) == (opponent, starts)]
        if found:
            value, low, high = zip(*(score.interval(s.result) for s in found), strict=True)
            games = [s.games for s in found]
            dashed = starts == ALTERNATING
            lines.append(
                replace(look, games=games, values=value, low=low, high=high, dashed=dashed)
            )
    played = [r for r in subject.records if opponent in r.get("matches", {})]
    if len(played) > len({s.games for s in subject.scores}):
        values = [r["matches"][opponent][score.name] for r in played]
        lines.append(replace(look, games=[r["games"] for r in played], values=values, dots=True))
    return lines


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


def target_policy(subjects: Sequence[Subject]) -> Chart | None:
    """As the experiment has it that the runs repeat."""
    found = (experiment_of(subject.config) for subject in subjects)
    figure = next((experiment.policy for experiment in found if experiment), None)
    if figure is None:
        return None
    medians = [_by_action(subject.experiment_policy) for subject in subjects]
    return _policy_chart("target-policy", figure.title, figure.caption, subjects, medians)


def policy(subjects: Sequence[Subject]) -> Chart | None:
    return _policy_chart(
        "policy",
        "Median probability of each action where there is a choice",
        "For each action the median of the average policy’s probability over the infosets of both "
        "seats where it is one of several, whether or not it is ever taken there.",
        subjects,
        [_by_action(_recorded_policy(s)) for s in subjects],
    )


_Curves = dict[str, tuple[list[int], list[float]]]  # games and medians by action


def _recorded_policy(subject: Subject) -> dict[int, dict[str, float]]:
    return {r["games"]: r["policy"] for r in subject.records if "policy" in r}


def _by_action(medians: Mapping[int, Mapping[str, float]]) -> _Curves:
    curves: _Curves = {}
    for games in sorted(medians):
        for action, median in medians[games].items():
            known = curves.setdefault(action, ([], []))
            known[0].append(games)
            known[1].append(median)
    return curves


def _policy_chart(
    name: str, title: str, caption: str, subjects: Sequence[Subject], medians: Sequence[_Curves]
) -> Chart | None:
    alone = len(subjects) == 1
    lines = []
    for k, (subject, curves) in enumerate(zip(subjects, medians, strict=True)):
        abstraction = subject.config.load_abstraction()
        responses = response_actions(subject.config.load_game(), abstraction)
        for a, action in enumerate(abstraction.actions):
            if action not in curves:
                continue
            words = action.replace("_", " ").lower()
            phase = _RESPONSES if responses >> a & 1 else _NORMAL
            lines.append(
                Line(
                    words if alone else subject.name,
                    *curves[action],
                    panel=(phase if responses else "") if alone else words,
                    colour=a if alone else k,
                )
            )
    lines.sort(key=lambda line: line.panel == _RESPONSES)
    axis = "median probability" if alone else ""
    return _chart(Chart(name, title, caption, lines, scale="share", axis=axis, number=".1%"))


def exploitability(subjects: Sequence[Subject]) -> Chart | None:
    lines = []
    for k, subject in enumerate(subjects):
        found = subject.exploited
        look = Line(_name(subject, subjects), [e.games for e in found], (), colour=k)
        values = [e.value for e in found]
        if any(e.error is not None for e in found):
            low = [e.value - (e.error or 0.0) for e in found]
            high = [e.value + (e.error or 0.0) for e in found]
            lines.append(replace(look, values=values, low=low, high=high))
            continue
        lines.append(replace(look, values=values))
        inside = [e.inside for e in found if e.inside is not None]
        if inside:
            lines.append(replace(look, values=inside, dashed=True))
    errors = [e.error for subject in subjects for e in subject.exploited if e.error is not None]
    bound = bool(errors)
    dashed = any(line.dashed for line in lines)
    caption = _BOUND.format(max(errors)) if bound else f"{_EXACT} {_HIDDEN}" if dashed else _EXACT
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
    *(mer, utilities, win_rates, updates, outlook, exploitability, target_policy, policy),
]


def charts(subjects: Sequence[Subject]) -> list[Chart]:
    """All that there is anything to show in."""
    drawn = (make(subjects) for make in CHARTS)
    return [chart for chart in drawn if chart is not None]


def as_in_the_paper(chart: Chart, experiment: Experiment) -> Chart:
    """The chart with a word on which figure of the paper it repeats."""
    if chart.name not in experiment.figures:
        return chart
    number = experiment.figures[chart.name]
    return replace(chart, caption=f"The paper’s Figure {number}. {chart.caption}")


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
