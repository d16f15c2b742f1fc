"""Charts of reports: the axis of games suits the runs that share it."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from rejoinder_cli.report.chart import COLOURS, Chart, Line, as_png, draw


def scale_of(*games: list[int]) -> tuple[str, list[str]]:
    """The axis of a chart of runs with these evaluations, and what stands below it."""
    lines = [Line(f"run {k}", some, [0.5] * len(some), colour=k) for k, some in enumerate(games)]
    chart = Chart("mer", "MER", "", lines, axis="MER")
    assert as_png(chart).startswith(b"\x89PNG")
    figure = Figure()
    axes = figure.add_subplot()
    draw(axes, chart, "", "black")
    figure.draw_without_rendering()
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    return axes.get_xscale(), [tick.label1.get_text() for tick in ticks]


def test_a_short_run_is_seen_beside_a_long_one() -> None:
    scale, ticks = scale_of([50, 500, 1_000], [20_000, 240_000])
    assert scale == "log"
    assert {"100", "1,000", "10,000", "100,000"} <= set(ticks)


@pytest.mark.parametrize("games", [([50, 1_000], [50, 900]), ([50, 1_000],), ([0, 10], [500])])
def test_runs_of_like_lengths_and_those_that_begin_at_nothing_are_counted_evenly(
    games: tuple[list[int], ...],
) -> None:
    scale, ticks = scale_of(*games)
    assert scale == "linear"
    assert ticks[0] == "0"


def test_a_run_without_games_of_its_own() -> None:
    assert scale_of([0]) == ("linear", ["0", "1"])


def test_what_dashes_mean_is_told_in_the_colour_of_the_lines_if_they_have_one() -> None:
    lines = [Line("", [1, 2], [1, 2], colour=3), Line("", [1, 2], [2, 1], dashed=True, colour=1)]

    def colours(*more: Line) -> list[str]:
        chart = Chart("c", "C", "", [*lines, *more], solid="measured", dashed="fitted")
        axes = Figure().add_subplot()
        draw(axes, chart, "", "black")
        legend = axes.get_legend()
        assert legend is not None
        return [str(handle.get_color()) for handle in legend.legend_handles]  # type: ignore[union-attr]

    assert colours() == [COLOURS[3], COLOURS[1]]
    assert colours(Line("", [1], [1], colour=2)) == ["black", COLOURS[1]]
