"""The charts of a report. One run: as in the paper's Figures 2 to 5. Several: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rejoinder.measure.agents import opponents
from rejoinder.measure.experiments import Experiment, experiment_of
from rejoinder.measure.forecast import COVERAGE, ForecastError, fan, mer_series
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
        has_responses = abstraction.responses != 0
        for a, action in enumerate(abstraction.actions):
            if action not in curves:
                continue
            words = action.replace("_", " ").lower()
            phase = _RESPONSES if abstraction.responses >> a & 1 else _NORMAL
            lines.append(
                Line(
                    words if alone else subject.name,
                    *curves[action],
                    panel=(phase if has_responses else "") if alone else words,
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
    *(mer, scores, updates, outlook, exploitability, target_policy, policy),
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
