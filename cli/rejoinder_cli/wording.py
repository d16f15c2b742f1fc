"""How infosets, and figures of response phases, are worded on the screen and in reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rejoinder.measure.analytics import ChoiceFigures, ResponseExploitability
    from rejoinder.measure.estimates import Estimate

CHOSEN = "chosen between these kinds of answers and no others"


def exploitability_line(found: ResponseExploitability) -> str:
    """What can be had by answers alone, in one line."""
    parts = (found.by_responses, found.by_main_play, found.whole)
    if found.method == "exact":
        answers, main, both = (f"{part.value:.6f}" for part in parts)
        how = "exact"
    else:
        answers, main, both = (_bound(part) for part in parts)
        how = (
            f"an attacker who thinks ahead, {found.samples:,} samples a move, "
            f"{found.games:,} games each"
        )
    return (
        f"exploitability by responses alone: {answers}, by main play alone: {main}, "
        f"by both: {both} ({how})"
    )


def _bound(found: Estimate) -> str:
    """An attacker who plays as the agent does wins nothing, so to be sure of less says nothing."""
    if (found.value if found.low is None else found.low) <= 0:
        return f"nothing was found ({signed(found)})"
    return f"at least {signed(found)}"


def chosen(choice: ChoiceFigures) -> str:
    return ", ".join(f"{name} {n / choice.times:.1%}" for name, n in choice.chosen.items())


def number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def plain(estimate: Estimate | None) -> str:
    return _with_interval(estimate, ".2f")


def signed(estimate: Estimate | None) -> str:
    return _with_interval(estimate, "+.3f")


def percent(estimate: Estimate | None) -> str:
    return _with_interval(estimate, ".1%")


def _with_interval(estimate: Estimate | None, form: str) -> str:
    if estimate is None:
        return "–"
    if estimate.low is None:
        return f"{estimate.value:{form}}"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def described(description: dict[str, Any]) -> str:
    """What the abstraction shows there, in a line; the actions are told by name elsewhere."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_words(value)}"
        for name, value in description.items()
        if name != "actions"
    )


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return f"({described(value)})"
    if isinstance(value, list | tuple):
        return " ".join(map(_words, value)) or "none"
    return str(value)
