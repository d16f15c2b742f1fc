"""The report page: one HTML file with its figures inside, readable offline, light or dark.

Everything that comes from a run is escaped. Figures take the page's text colour, so they follow
its theme.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rejoinder.evaluate.agents import opponents
from rejoinder.evaluate.match import play_match
from rejoinder.metrics import QUANTILES
from rejoinder_cli.runs import OpenRun

_INK = "#010203"  # stands for the page's text colour until the figure is in the page
_COLOURS = (
    *("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#64748b"),
    *("#ec4899", "#84cc16", "#06b6d4", "#a16207", "#f472b6", "#1d4ed8"),
)
_GAMES = 4_000  # of the matches in the summary

_MER = (
    "What the best single change of play would gain, averaged over infosets by how likely they are "
    "reached: it falls towards zero as the policy settles."
)
_WIN_RATE = "Test games during training, starts alternating; few games a point, so wide bands."
_UPDATES = "How often infosets were learned from, on a log scale: rare ones are learned last."
_POLICY = "For each action the median, over the infosets where it is a choice, of its probability."

Records = list[dict[str, Any]]


def page(opened: OpenRun) -> str:
    """The whole page."""
    config = opened.run.config
    records = opened.run.metrics()
    sections = [
        _figure("Maximum expected regret", _MER, _draw_mer, records),
        _figure("Win rate, with 95 % intervals", _WIN_RATE, _draw_win_rates, records),
        _figure("Updates per infoset", _UPDATES, _draw_updates, records),
        _figure("Median policy by action", _POLICY, _draw_policy, records),
    ]
    if not records:
        sections = ["<p>This run has no evaluations yet.</p>"]
    facts = {
        "run": str(opened.run.path),
        "games": opened.checkpoint.games,
        "infosets": len(opened.checkpoint.rows),
        "digest": opened.digest,
        "fingerprint": config.fingerprint,
    }
    sessions = "".join(
        _table(f"Provenance, from game {session.get('from_game', 0)}", session)
        for session in opened.run.sessions()
    )
    title = f"{config.load_game().title}: {opened.checkpoint.games} games"
    return _PAGE.format(
        title=html.escape(title),
        style=_STYLE,
        summary=_summary(opened),
        facts=_table("Result", facts),
        figures="\n".join(sections),
        config=_table("Configuration", config.model_dump(mode="json")),
        provenance=sessions,
    )


def _summary(opened: OpenRun) -> str:
    """How well the agent plays: the match that `rejoinder eval` plays by default."""
    game = opened.run.config.load_game()
    template, agent = game.template(opened.run.config.rules), opened.agent(argmax=False)
    told = []
    for name, opponent in opponents(game).items():
        result = play_match(game, template, agent, opponent, games=_GAMES, seed=1)
        told.append(f"Against {name}: {result}.")
    return f"<p class=lead>{'<br>'.join(html.escape(line) for line in told)}</p>"


def _table(title: str, values: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope=row>{html.escape(str(name))}</th><td>{html.escape(_text(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<section><h2>{html.escape(title)}</h2><table>{rows}</table></section>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value)


def _figure(
    title: str, caption: str, draw: Callable[[Axes, Records], None], records: Records
) -> str:
    """One figure as inline SVG, with a sentence on how to read it."""
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": _INK,
        "axes.edgecolor": _INK,
        "axes.labelcolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": _INK,
        "grid.alpha": 0.12,
        "legend.frameon": False,
    }
    if not records:
        return ""
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_xlabel("training games")
        draw(axes, records)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    name = html.escape(title)
    return (
        f"<figure aria-label='{name}'><h2>{name}</h2>{_inline(written.getvalue(), title)}"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _inline(svg: str, title: str) -> str:
    """An SVG document as a part of the page: its own identifiers, the page's text colour."""
    prefix = re.sub(r"\W+", "-", title.lower())
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg.replace(_INK, "currentColor")


def _games(records: Records) -> list[int]:
    return [record["games"] for record in records]


def _draw_mer(axes: Axes, records: Records) -> None:
    axes.plot(_games(records), [r["mer"] for r in records], color=_COLOURS[0], marker=".")
    axes.set_ylabel("MER")


def _draw_win_rates(axes: Axes, records: Records) -> None:
    for name, colour in zip(records[-1]["win_rates"], _COLOURS, strict=False):
        rates = [record["win_rates"][name] for record in records]
        axes.plot(_games(records), [r["win_rate"] for r in rates], color=colour, label=name)
        low, high = [r["low"] for r in rates], [r["high"] for r in rates]
        axes.fill_between(_games(records), low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.legend(loc="lower right")


def _draw_updates(axes: Axes, records: Records) -> None:
    for quantile, colour in zip(reversed(QUANTILES), _COLOURS, strict=False):
        counts = [record["updates"][quantile] for record in records]
        axes.plot(_games(records), counts, color=colour, label=quantile)
    axes.set_yscale("log")
    axes.set_ylabel("updates")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_policy(axes: Axes, records: Records) -> None:
    names = sorted({name for record in records for name in record["policy"]})
    for k, name in enumerate(names):
        shares = [record["policy"].get(name, float("nan")) for record in records]
        label = name.replace("_", " ").lower()
        axes.plot(_games(records), shares, color=_COLOURS[k % len(_COLOURS)], label=label)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("median probability")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=3)


_STYLE = """
:root { color-scheme: light dark;
  --ink: #1b1f24; --paper: #fdfdfb; --faint: #6b7280; --rule: #e3e3de; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --paper: #16181b; --faint: #9aa1ab; --rule: #2d3137; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 4rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1rem; margin: 0 0 .6rem; }
.lead { margin: 0 0 2rem; color: var(--faint); }
.figures { display: grid; gap: 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; min-width: 0; }
figcaption { color: var(--faint); font-size: .8125rem; margin-top: .4rem; }
figure svg { width: 100%; height: auto; display: block; }
section { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;
  border-bottom: 1px solid var(--rule); }
th { font-weight: 500; color: var(--faint); width: 11rem; }
td { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{summary}
<div class="figures">
{figures}
</div>
{facts}
{config}
{provenance}
</body>
</html>
"""
