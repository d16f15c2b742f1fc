"""What is drawn on axes as a part of the page, or as a PNG file.

In the page a picture is an inline SVG in the page's own text colour, so it follows the theme.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Draw = Callable[[Axes, str], None]  # told the colour of text and lines that have none of their own

SINGLE = (5.8, 3.5)  # inches: the size of a picture that stands alone, the same for all
_PAGE_INK = "#010203"  # stands for the page's text colour until the picture is in the page
_INK = "#1b1f24"
_DOTS_A_INCH = 160


def to_svg(draw: Draw, name: str, title: str, size: tuple[float, float] = SINGLE) -> str:
    """As a part of the page: identifiers of its own, no background."""
    with matplotlib.rc_context(_style(_PAGE_INK, name)):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot(), _PAGE_INK)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return _inline(written.getvalue(), name, title)


def to_png(
    draws: Sequence[Draw],
    name: str,
    title: str,
    size: tuple[float, float] = SINGLE,
    also: Callable[[Figure], None] = lambda _: None,
) -> bytes:
    """All in one picture on white, each of that size; `also` draws what they have in common."""
    width, height = size
    columns = min(len(draws), 2 if len(draws) < 5 else 3)
    rows = -(-len(draws) // columns)
    with matplotlib.rc_context(_style(_INK, name)):
        figure = Figure(figsize=(width * columns, height * rows + 0.5), layout="constrained")
        figure.suptitle(title, fontsize=12, fontweight="bold")
        for k, draw in enumerate(draws):
            draw(figure.add_subplot(rows, columns, k + 1), _INK)
        also(figure)
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=_DOTS_A_INCH, metadata={"Software": None})
    return written.getvalue()


def _inline(svg: str, name: str, title: str) -> str:
    prefix = re.sub(r"\W+", "-", name.lower())
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace("<svg ", f"<svg role='img' aria-label='{html.escape(title)}' ", 1)
    return svg.replace(_PAGE_INK, "currentColor")


def _style(ink: str, salt: str) -> dict[Any, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": ink,
        "axes.edgecolor": ink,
        "axes.labelcolor": ink,
        "axes.linewidth": 0.6,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "xtick.color": ink,
        "ytick.color": ink,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": ink,
        "grid.alpha": 0.1,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "lines.linewidth": 1.7,
        "lines.solid_capstyle": "round",
    }
