"""The report's section on response phases: tables, and one figure of what charges lead to.

The figures are those of `rejoinder analyse` with fewer games, a function of the checkpoint alone.
"""

from __future__ import annotations

import html
import io

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rejoinder.evaluate.analytics import Analysis, PhaseFigures, analyse
from rejoinder.evaluate.phases import OUTCOMES
from rejoinder_cli.commands.analyse import (
    exploitability_line,
    number,
    percent,
    plain,
    signed,
)
from rejoinder_cli.report.chart import INK, inline, style
from rejoinder_cli.report.markup import section, table
from rejoinder_cli.runs import OpenRun

_GAMES, _TRAINING_GAMES, _SEED = 4_000, 300, 1
_COLOURS = ("#8b5cf6", "#ec4899", "#10b981", "#f59e0b", "#ef4444", "#64748b")  # by outcome
_CAPTION = "How response phases end, by the rent that is charged; above the bars their number."


def response_section(opened: OpenRun) -> str | None:
    """The section as HTML; None for a game that has no response phases."""
    config = opened.run.config
    game = config.load_game()
    if game.responses is None:
        return None
    found = analyse(
        game,
        config.rules,
        opened.agent(argmax=False),
        opened.checkpoint.rows,
        games=_GAMES,
        seed=_SEED,
        training_games=_TRAINING_GAMES,
    )
    charges = found.charges["either"]
    parts = [
        f"<p>{found.games:,} games of the agent against itself, {plain(charges.per_game)} charges "
        "a game; in brackets are 95 % intervals.</p>",
        _figure(f"responses-{opened.run.path.name}", charges) if charges.phases else "",
        _outcomes(charges),
        _means(charges),
        _roles(found),
        _worth(found),
    ]
    return section("Response phases", "".join(parts))


def _outcomes(charges: PhaseFigures) -> str:
    rows = [
        (part.outcome, f"{part.count:,}", percent(part.share), signed(part.utility))
        for part in charges.outcomes
    ]
    rows.append(("all", f"{charges.phases:,}", "", signed(charges.utility)))
    return table(("how it ended", "phases", "share", "what the charger wins"), rows)


def _means(charges: PhaseFigures) -> str:
    rows = [
        ("charged", plain(charges.charged)),
        ("paid in cash", plain(charges.paid_in_cash)),
        ("paid in property", plain(charges.paid_in_property)),
        ("paid too much", plain(charges.overpaid)),
        ("decisions of the responder", plain(charges.cards)),
    ]
    return table(("mean of a phase", ""), rows)


def _roles(found: Analysis) -> str:
    first, second = found.roles["initiator"], found.roles["responder"]
    rows = [
        ("infosets (with a choice)", *(f"{r.infosets:,} ({r.choices:,})" for r in (first, second))),
        ("share of reach", f"{first.reach:.1%}", f"{second.reach:.1%}"),
        ("regret, by reach", number(first.regret_by_reach), number(second.regret_by_reach)),
        ("entropy in bits, by reach", *(number(r.entropy_by_reach) for r in (first, second))),
        ("entropy over the most possible", *(number(r.evenness_by_reach) for r in (first, second))),
        ("decisions a game", plain(first.decisions), plain(second.decisions)),
        ("value to who decides", signed(first.value), signed(second.value)),
    ]
    return table(("by role", "initiator (main play)", "responder"), rows)


def _worth(found: Analysis) -> str:
    told = []
    if found.refusal is not None:
        told.append(
            f"A Just Say No in the first hand is worth {signed(found.refusal.right)} over a blank "
            f"card, and {signed(found.refusal.card)} over a random card of the hand."
        )
    if found.exploitability is not None:
        line = exploitability_line(found.exploitability)
        told.append(f"{line[0].upper()}{line[1:]}.")
    return "".join(f"<p>{html.escape(text)}</p>" for text in told)


def _figure(name: str, charges: PhaseFigures) -> str:
    """Inline SVG in the page's text colour."""
    with matplotlib.rc_context(style(INK, name)):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        _draw(figure.add_subplot(), charges)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    svg = inline(written.getvalue(), name, "How response phases end")
    caption = f"<figcaption>{html.escape(_CAPTION)}</figcaption>"
    return f"<figure id='{html.escape(name)}'>{svg}{caption}</figure>"


def _draw(axes: Axes, charges: PhaseFigures) -> None:
    amounts = [f"{part.charged}" for part in charges.amounts]
    below = [0.0] * len(amounts)
    for name, colour in zip(OUTCOMES, _COLOURS, strict=True):
        shares = [part.outcomes[name] / part.count for part in charges.amounts]
        axes.bar(amounts, shares, bottom=below, color=colour, label=name, width=0.8)
        below = [low + share for low, share in zip(below, shares, strict=True)]
    for place, part in enumerate(charges.amounts):
        axes.text(place, 1.01, f"{part.count:,}", ha="center", va="bottom", fontsize=8)
    axes.set_xlabel("charged")
    axes.set_ylim(0, 1.06)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
