"""Charts as data: what is drawn is what the table below it says.

A chart is lines in one or more panels. In the page each panel is a picture, so that a narrow screen
puts panels below each other; the PNG has all of them in one.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from rejoinder_cli.report.markup import table
from rejoinder_cli.report.picture import SINGLE, Draw, to_png, to_svg

COLOURS = (  # each is readable on white and on black
    *("#3b82f6", "#d97706", "#059669", "#ef4444", "#8b5cf6", "#64748b"),
    *("#db2777", "#65a30d", "#0891b2", "#a16207", "#c026d3", "#0d9488"),
)
SCALES = Literal["number", "share", "log"]

_DASHES = (0, (4, 2.5))
_LOST = 10  # times as many games
_FEW = 3  # points, of which a line alone would hardly be seen
_SIZES = {1: SINGLE, 2: (5.8, 3.7)}  # of a panel, in inches, by the number of panels
_SMALL = (3.9, 2.5)  # where there are more
_LABEL_GAP = 0.068  # of the height of a panel, between two labels at the ends of lines


@dataclass(frozen=True)
class Line:
    """Figures over training games."""

    label: str
    games: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False
    dots: bool = False  # points without a line, in the background
    panel: str = ""
    colour: int = 0

    @property
    def ink(self) -> str:
        return COLOURS[self.colour % len(COLOURS)]


@dataclass(frozen=True)
class Chart:
    """`name` is the picture's file, `caption` a sentence on how to read it."""

    name: str
    title: str
    caption: str
    lines: Sequence[Line]
    scale: SCALES = "number"
    axis: str = ""
    solid: str = ""  # what solid and dashed lines are, where there are both
    dashed: str = ""
    number: str = ".4g"  # how figures are written in the table
    zoom: bool = False  # of shares, only those there are

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(line.panel for line in self.lines))

    def named(self) -> list[tuple[str, str]]:
        """Labels and colours, each once, in order."""
        return list(dict.fromkeys((line.label, line.ink) for line in self.lines if line.label))

    def of(self, panel: str) -> list[Line]:
        return [line for line in self.lines if line.panel == panel]


def as_html(chart: Chart) -> str:
    """The chart as a part of the page, with its figures in a table that can be opened."""
    panels, size = chart.panels, _size(chart)
    drawn = [_svg(chart, panel, size) for panel in panels]
    small = "" if len(panels) < _FEW else " small"
    wide = " class=wide" if len(panels) > 1 else ""
    title = html.escape(chart.title)
    return (
        f"<figure{wide} id='{chart.name}'><h3>{title}</h3>"
        f"<div class='panels{small}'>{''.join(drawn)}</div>{_key(chart)}"
        f"<figcaption>{html.escape(chart.caption)}</figcaption>"
        f"<details><summary>Data</summary>{_table(chart)}</details></figure>"
    )


def as_png(chart: Chart) -> bytes:
    """All panels on white."""
    draws = [_panel(chart, panel) for panel in chart.panels]

    def legend(figure: Figure) -> None:
        if len(draws) >= _FEW:
            _outside_legend(figure, chart)

    return to_png(draws, chart.name, chart.title, _size(chart), legend)


def _size(chart: Chart) -> tuple[float, float]:
    return _SIZES.get(len(chart.panels), _SMALL)


def _svg(chart: Chart, panel: str, size: tuple[float, float]) -> str:
    name = f"{chart.name}-{panel}" if panel else chart.name
    title = f"{chart.title}{': ' if panel else ''}{panel}"
    return to_svg(_panel(chart, panel), name, title, size)


def _panel(chart: Chart, panel: str) -> Draw:
    return lambda axes, ink: draw(axes, chart, panel, ink)


def draw(axes: Axes, chart: Chart, panel: str, ink: str) -> None:
    lines = chart.of(panel)
    if panel:
        axes.set_title(panel)
    for line in lines:
        _draw_line(axes, line)
    _scale(axes, chart)
    _count_games(axes, lines)
    if len(chart.panels) < _FEW:
        _label_ends(axes, [line for line in lines if not line.dashed and not line.dots])
    if chart.solid and chart.dashed:
        _explain_dashes(axes, chart, ink)


def _draw_line(axes: Axes, line: Line) -> None:
    if line.dots:
        axes.plot(line.games, line.values, ".", color=line.ink, alpha=0.4, markersize=4)
        return
    axes.plot(
        line.games,
        line.values,
        color=line.ink,
        linestyle=_DASHES if line.dashed else "-",
        marker="o" if len(line.games) <= _FEW else None,
        markersize=4,
    )
    if line.low is not None and line.high is not None:
        shade = 0.1 if line.dashed else 0.2
        axes.fill_between(line.games, line.low, line.high, color=line.ink, alpha=shade, linewidth=0)


def _count_games(axes: Axes, lines: Sequence[Line]) -> None:
    """By powers where a short run would be lost beside a long one."""
    axes.set_xlabel("training games")
    ends = [max(line.games) for line in lines if len(line.games)]
    least = min((min(line.games) for line in lines if len(line.games)), default=0)
    if least > 0 and max(ends) > _LOST * min(ends):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlim(left=0, right=None if any(ends) else 1)
    axes.xaxis.set_major_formatter(lambda games, _: f"{games:,.0f}")


def _scale(axes: Axes, chart: Chart) -> None:
    axes.set_ylabel(chart.axis)
    if chart.scale == "log":
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        every = (1.0,) if high > 100 * low else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(subs=every))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif chart.scale == "share":
        axes.set_ylim(_floor(chart) - 0.005 if chart.zoom else -0.02, 1.005 if chart.zoom else 1.02)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    elif all(value >= 0 for line in chart.lines for value in line.values):
        axes.set_ylim(bottom=0)


def _floor(chart: Chart) -> float:
    """The tenth below all that is shown."""
    least = min(min(line.values if line.low is None else line.low) for line in chart.lines)
    return math.floor(10 * least) / 10


def _label_ends(axes: Axes, lines: Sequence[Line]) -> None:
    """Each line's name where it ends, moved apart where they would overlap."""
    named = [line for line in lines if line.label and len(line.values)]
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [float(to_axes.transform((line.games[-1], line.values[-1]))[1]) for line in named]
    for place, k in zip(
        _apart(sorted(ends)), sorted(range(len(ends)), key=ends.__getitem__), strict=True
    ):
        line = named[k]
        axes.annotate(
            line.label,
            (line.games[-1], line.values[-1]),
            xytext=(1.02, place),
            textcoords="axes fraction",
            va="center",
            color=line.ink,
            fontsize=9,
            annotation_clip=False,
        )


def _apart(places: list[float]) -> list[float]:
    """Places in order, moved up as far as gaps need, and down again where they leave the top."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _LABEL_GAP) if moved else max(place, 0.0))
    limit = 1.0
    for k in reversed(range(len(moved))):
        moved[k] = min(moved[k], limit)
        limit = moved[k] - _LABEL_GAP
    return moved


def _explain_dashes(axes: Axes, chart: Chart, ink: str) -> None:
    def colour(dashed: bool) -> str:
        """That of the lines, if they have one in common."""
        colours = {line.ink for line in chart.lines if line.dashed is dashed and not line.dots}
        return colours.pop() if len(colours) == 1 else ink

    solid, dashes = colour(False), colour(True)
    axes.legend(
        handles=[
            Line2D([], [], color=solid, linewidth=1.4, label=chart.solid),
            Line2D([], [], color=dashes, linewidth=1.4, linestyle=_DASHES, label=chart.dashed),
        ],
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.17),
        ncols=2,
        fontsize=9,
        handlelength=2.4,
    )


def _outside_legend(figure: Figure, chart: Chart) -> None:
    handles = [Line2D([], [], color=colour, label=label) for label, colour in chart.named()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)


def _key(chart: Chart) -> str:
    """Which colour is what, where labels at the ends of lines would be too many."""
    if len(chart.panels) < _FEW:
        return ""
    swatches = "".join(
        f"<li><i style='background:{colour}'></i>{html.escape(label)}</li>"
        for label, colour in chart.named()
    )
    return f"<ul class=key>{swatches}</ul>"


def _table(chart: Chart) -> str:
    """A row for each number of games, a column for each line."""
    heads = [_column(chart, line) for line in chart.lines]
    cells = [dict(_cells(chart, line)) for line in chart.lines]
    games = sorted({n for column in cells for n in column})
    rows = [[f"{n:,.0f}", *(column.get(n, "–") for column in cells)] for n in games]
    return table(["games", *heads], rows, kind="data")


def _column(chart: Chart, line: Line) -> str:
    kind = chart.dashed if line.dashed else chart.solid if chart.dashed else ""
    parts = [line.panel, line.label, "during training" if line.dots else kind]
    return ", ".join(part for part in parts if part) or chart.axis or chart.title


def _cells(chart: Chart, line: Line) -> list[tuple[float, str]]:
    form = chart.number
    if line.low is None or line.high is None:
        return [(n, f"{v:{form}}") for n, v in zip(line.games, line.values, strict=True)]
    return [
        (n, f"{v:{form}} <small>{low:{form}} to {high:{form}}</small>")
        for n, v, low, high in zip(line.games, line.values, line.low, line.high, strict=True)
    ]
