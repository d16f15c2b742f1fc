"""The report's section on response phases: tables, and one figure of what charges lead to.

The figures are those of `rejoinder analyse` with fewer games, a function of the checkpoint alone.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from matplotlib.axes import Axes

from rejoinder.measure.analytics import Analysis, PhaseFigures
from rejoinder.measure.response_stats import OUTCOMES
from rejoinder_cli.report.markup import section, table
from rejoinder_cli.report.picture import to_png, to_svg
from rejoinder_cli.report.subject import Subject
from rejoinder_cli.wording import (
    CHOSEN,
    chosen,
    exploitability_line,
    number,
    percent,
    plain,
    signed,
)

_COLOURS = ("#8b5cf6", "#ec4899", "#10b981", "#f59e0b", "#ef4444", "#64748b")  # by outcome
_CAPTION = "By the amount that is charged; above the bars is the number of phases."


def response_section(
    subject: Subject, bars: Bars | None, title: str = "Response phases"
) -> str | None:
    """The section as HTML; None for a game that has no response phases."""
    found = subject.analysis
    if found is None:
        return None
    charges = found.charges["either"]
    drawn = bars.as_html() if bars else ""
    parts = [
        f"<p>{found.games:,} games of the agent against itself, {plain(charges.per_game)} charges "
        "a game; in brackets are 95 % intervals.</p>",
        f"<div class=figures><div>{drawn}{_means(charges)}</div>{_outcomes(charges)}</div>",
        _choices(charges),
        _roles(found),
        _worth(found),
    ]
    return section(title, "".join(parts))


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


def _choices(charges: PhaseFigures) -> str:
    rows = [
        ("first" if choice.first else "later", f"{choice.times:,}", html.escape(chosen(choice)))
        for choice in charges.choices
    ]
    return table(("answer", "times", CHOSEN), rows)


def _roles(found: Analysis) -> str:
    first, second = found.roles["initiator"], found.roles["responder"]
    rows = [
        ("infosets (with a choice)", *(f"{r.infosets:,} ({r.choices:,})" for r in (first, second))),
        ("share of reach", f"{first.reach:.1%}", f"{second.reach:.1%}"),
        ("part of MER", number(first.mer_share), number(second.mer_share)),
        ("regret, by reach", number(first.regret_by_reach), number(second.regret_by_reach)),
        ("regret, by updates", number(first.regret_by_updates), number(second.regret_by_updates)),
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
        if found.exploitability.method != "exact":
            told.append("rejoinder analyse looks with more samples and games, and may find more.")
    return "".join(f"<p>{html.escape(text)}</p>" for text in told)


@dataclass(frozen=True)
class Bars:
    """How response phases end, by what is charged; `name` is the picture's file."""

    name: str
    title: str
    charges: PhaseFigures

    def as_html(self) -> str:
        """The figure as a part of the page, with its data in a table that can be opened."""
        drawn = to_svg(self._draw, self.name, self.title)
        return (
            f"<figure id='{self.name}'><h3>{html.escape(self.title)}</h3>"
            f"{drawn}<figcaption>{html.escape(_CAPTION)}</figcaption>"
            f"<details><summary>Data</summary>{self._table()}</details></figure>"
        )

    def as_png(self) -> bytes:
        return to_png([self._draw], self.name, self.title)

    def _draw(self, axes: Axes, ink: str) -> None:
        amounts = [f"{part.charged}" for part in self.charges.amounts]
        below = [0.0] * len(amounts)
        for name, colour in zip(OUTCOMES, _COLOURS, strict=True):
            shares = [part.outcomes[name] / part.count for part in self.charges.amounts]
            axes.bar(amounts, shares, bottom=below, color=colour, label=name, width=0.8)
            below = [low + share for low, share in zip(below, shares, strict=True)]
        for place, part in enumerate(self.charges.amounts):
            above = (place, 1.01, f"{part.count:,}")
            axes.text(*above, ha="center", va="bottom", fontsize=8, color=ink)
        axes.set_xlabel("charged")
        axes.set_ylim(0, 1.06)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.grid(visible=False, axis="x")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9, reverse=True)

    def _table(self) -> str:
        rows = [
            [f"{part.charged}", f"{part.count:,}", *(f"{part.outcomes[o]:,}" for o in OUTCOMES)]
            for part in self.charges.amounts
        ]
        return table(["charged", "phases", *OUTCOMES], rows, kind="data")


def response_bars(subject: Subject, place: int | None) -> Bars | None:
    """The figure of a run, which has a place in the report where there are several."""
    if subject.analysis is None or not subject.analysis.charges["either"].phases:
        return None
    name, title = "responses", "How response phases end"
    if place is not None:
        # The place because two names may differ in what a file's name should not have.
        readable = re.sub(r"\W+", "-", subject.name).strip("-")
        name, title = f"{name}-{place + 1}-{readable}", f"{title}: {subject.name}"
    return Bars(name, title, subject.analysis.charges["either"])
