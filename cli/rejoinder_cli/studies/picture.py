"""The picture of a study of staleness: strength, regret and speed, over the same staleness.

The colour of a point is its lag, its shape its batch. Full points were measured or trained, hollow
ones below are predicted. Every point carries the name of its cell (`point_name`), which an SVG
keeps as its identifier.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rejoinder_cli.studies.throughput import BUSY

PNG, SVG = "staleness.png", "staleness.svg"
STRENGTH, REGRET, MEASURED, PREDICTED = "strength", "regret", "measured", "predicted"

_COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#475569", "#db2777", "#65a30d")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
_SPREAD = 1.045  # times further right for each lag, so that points at one place can be told apart
_FAINT = 0.45
_NOTE: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "color": "#374151"}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "staleness",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 9,
}

Result = Mapping[str, Any]
CellResult = Mapping[str, Any]


def save(result: Result, folder: Path) -> list[Path]:
    """Write the picture as PNG and SVG; returns where."""
    with matplotlib.rc_context(_SETTINGS):
        figure = draw(result)
        figure.savefig(folder / PNG, dpi=150)
        figure.savefig(folder / SVG, metadata={"Date": None})
    return [folder / PNG, folder / SVG]


def point_name(what: str, cell: CellResult, workers: int | None = None) -> str:
    name = f"{what}-{cell['batch']}-{cell['lag']}"
    return name if workers is None else f"{name}-{workers}"


def draw(result: Result) -> Figure:
    """The three panels and the legend."""
    figure = Figure(figsize=(9, 10), layout="constrained")
    strength, regret, speed = figure.subplots(3, sharex=True, height_ratios=(1, 1, 1.2))
    look = _Look(result)
    _draw_strength(strength, result, look)
    _draw_regret(regret, result, look)
    _draw_speed(speed, result, look)
    speed.set_xscale("log")
    speed.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    speed.xaxis.set_major_formatter(FuncFormatter(lambda games, _: f"{games:,.0f}"))
    speed.xaxis.set_minor_formatter(NullFormatter())
    many, one = ("games", "a game") if result["unit"] == 1 else ("units", "a unit")
    of = "" if result["unit"] == 1 else f"; a unit has {result['unit']:,} {result['counts']}"
    speed.set_xlabel(
        f"staleness, B·(L + 1): {many} that {one} may know nothing of, all under way at once{of}"
    )
    figure.legend(handles=look.legend(), loc="outside upper center", ncols=9)
    return figure


class _Look:
    """Colour, shape and place of a cell."""

    def __init__(self, result: Result) -> None:
        self._lags = sorted({cell["lag"] for cell in result["cells"]})
        self._batches = sorted({cell["batch"] for cell in result["cells"]})
        self._reference = result["reference"]

    def place(self, cell: CellResult) -> float:
        middle = (len(self._lags) - 1) / 2
        return float(cell["window"] * _SPREAD ** (self._lags.index(cell["lag"]) - middle))

    def colour(self, lag: int) -> str:
        return _COLOURS[self._lags.index(lag) % len(_COLOURS)]

    def shape(self, batch: int) -> str:
        return _SHAPES[self._batches.index(batch) % len(_SHAPES)]

    def of(self, cell: CellResult) -> dict[str, Any]:
        return {"color": self.colour(cell["lag"]), "marker": self.shape(cell["batch"])}

    def is_reference(self, cell: CellResult) -> bool:
        own = self._reference
        return own is not None and (cell["batch"], cell["lag"]) == (own["batch"], own["lag"])

    def by_lag(self, result: Result) -> list[tuple[str, list[CellResult]]]:
        """The cells of each lag with its colour."""
        return [
            (self.colour(lag), [cell for cell in result["cells"] if cell["lag"] == lag])
            for lag in self._lags
        ]

    def legend(self) -> list[Line2D]:
        plain: dict[str, Any] = {"linestyle": "none"}
        lags = [
            Line2D([], [], color=self.colour(lag), linewidth=3, label=f"L = {lag}")
            for lag in self._lags
        ]
        batches = [
            Line2D([], [], color="#374151", marker=self.shape(b), label=f"B = {b:,}", **plain)
            for b in self._batches
        ]
        return lags + batches


def _draw_strength(axes: Axes, result: Result, look: _Look) -> None:
    _draw_trained(axes, result, look, "strength", STRENGTH)
    form = ".1%" if result["strength_is"] == "win rate" else "+.2f"
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:{form}}"))
    axes.set_ylabel(f"{result['strength_is']} against {result['opponent']}")
    seeds = len(result["seeds"])
    interval = f"bars: 95 % interval over {seeds} seeds" if seeds > 1 else "one seed, no interval"
    _entitle(
        axes,
        f"What it costs in strength, after {result['games']:,} training {result['counts']}",
        f"{interval}; ring: the config's own B and L",
    )


def _draw_regret(axes: Axes, result: Result, look: _Look) -> None:
    _draw_trained(axes, result, look, "mer", REGRET)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("MER")
    _entitle(
        axes,
        f"What it costs in convergence, after the same {result['counts']}",
        "maximum expected regret: what the best single change of play would still gain",
    )


def _draw_trained(axes: Axes, result: Result, look: _Look, figure: str, what: str) -> None:
    """A figure of every cell, with its interval."""
    for colour, cells in look.by_lag(result):
        places, means = [look.place(c) for c in cells], [c[figure]["mean"] for c in cells]
        axes.plot(places, means, color=colour, alpha=_FAINT, linewidth=1)
    for cell in result["cells"]:
        place, found = look.place(cell), cell[figure]
        drawn = axes.errorbar(
            place, found["mean"], found["half_width"], capsize=2.5, linewidth=1, **look.of(cell)
        )
        drawn.lines[0].set_gid(point_name(what, cell))
        if look.is_reference(cell):
            _ring(axes, place, found["mean"])


def _draw_speed(axes: Axes, result: Result, look: _Look) -> None:
    for workers in result["workers"]:
        for colour, cells in look.by_lag(result):
            known = [cell for cell in cells if cell["speed"][str(workers)]["predicted"]]
            rates = [cell["speed"][str(workers)]["predicted"] for cell in known]
            places = [look.place(cell) for cell in known]
            axes.plot(places, rates, color=colour, alpha=_FAINT, linewidth=1, linestyle="--")
        for cell in result["cells"]:
            _draw_speed_of(axes, cell, workers, look)
        _name_workers(axes, result, workers, look)
    axes.set_yscale("log")
    axes.margins(y=0.12)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(f"training {result['counts']} a second")
    told = "full: measured on this machine; hollow: predicted"
    if (result["others"] or 0.0) > BUSY:
        told += f"; measured beside programs that used up to {result['others']:.1f} cores"
    _entitle(axes, "What it buys in speed", told)


def _draw_speed_of(axes: Axes, cell: CellResult, workers: int, look: _Look) -> None:
    speed = cell["speed"][str(workers)]
    if speed["predicted"]:
        (hollow,) = axes.plot(
            look.place(cell), speed["predicted"], markerfacecolor="white", **look.of(cell)
        )
        hollow.set_gid(point_name(PREDICTED, cell, workers))
    if speed["measured"]:
        (full,) = axes.plot(look.place(cell), speed["measured"], **look.of(cell))
        full.set_gid(point_name(MEASURED, cell, workers))
    if look.is_reference(cell) and (rate := speed["measured"] or speed["predicted"]):
        _ring(axes, look.place(cell), rate)


def _name_workers(axes: Axes, result: Result, workers: int, look: _Look) -> None:
    """Beside the stalest cell."""
    cell = max(result["cells"], key=lambda cell: cell["window"])
    speed = cell["speed"][str(workers)]
    if rate := speed["predicted"] or speed["measured"]:
        axes.annotate(
            f"{workers:,} workers" if workers > 1 else "1 worker",
            (look.place(cell), rate),
            textcoords="offset points",
            xytext=(0, 8),
            ha="right",
            va="bottom",
            fontsize=9,
        )


def _ring(axes: Axes, place: float, value: float) -> None:
    axes.plot(
        place, value, marker="o", markersize=15, color="#111827", fillstyle="none", linewidth=0
    )


def _entitle(axes: Axes, title: str, note: str) -> None:
    """A title, and below it how to read the panel."""
    axes.set_title(title, pad=20, fontweight="bold")
    axes.annotate(note, (0, 1), xycoords="axes fraction", xytext=(0, 6), **_NOTE)
