"""`rejoinder explain RUN [INFOSET]`: how an infoset came to be played as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OpenRun, RunArgument, open_run
from rejoinder_cli.wording import described

if TYPE_CHECKING:
    from rejoinder.run.config import RunConfig
    from rejoinder_learner.explain import Followed, Infoset, Mover, Numbers, Standing

_USUAL = 1_000  # games that are played again if nobody says which; iterations: in whole units
_LISTED = 12  # infosets, where none is named
_BLOCK = 2**16  # infosets that are read at once


def explain(
    run: RunArgument,
    infoset: Annotated[
        str | None,
        typer.Argument(
            metavar="[INFOSET]",
            help="Its identifier or key, or what only one begins with; none: list those visited "
            "most.",
            show_default=False,
        ),
    ] = None,
    games: Annotated[
        str | None,
        typer.Option(
            "--games",
            "--iterations",
            metavar="LOW:HIGH",
            help="The folded games, or iterations, to look at: whole units, by default the last "
            "1,000.",
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Tell the policy after exactly so many games, or iterations: rounded up to whole "
            "units.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Games, or units, to tell of.")] = 5,
    as_json: JsonFlag = False,
) -> None:
    """Tell the history of an infoset, and the games, or units, that moved its policy most."""
    from rejoinder_learner.explain import find_infoset, follow, history

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    counts, abstraction = config.counts, config.load_abstraction()
    if infoset is None:
        _list(opened, output)
        return
    chosen = find_infoset(infoset, opened.checkpoint.rows, abstraction)
    last = opened.checkpoint.games
    wanted = _in_units(config, _range(games, last, counts), games, output)
    if at is not None and at > last:
        raise ValueError(f"--at: {run} has {last:,} {counts}, not {at:,}")
    points = history(opened.run, chosen, output.warn)
    told: dict[str, Any] = {
        "run": str(run),
        "identifier": chosen.identifier,
        "key": f"{chosen.key:016x}",
        "description": abstraction.description(chosen.key),
        "actions": list(chosen.actions),
        "counts": counts,
        "unit": config.block,
        "regrets_of": _regrets_of(config),
        "history": [_plain(chosen, point) for point in points],
    }
    output.say(f"{chosen.identifier} (key {chosen.key:016x})")
    output.say(described(told["description"]))
    _show_history(output, chosen, points, counts)
    if at is not None:
        at = _rounded_up(config, at, output)
        with output.progress("playing again", at, counts) as update:
            then = follow(opened.run, chosen, range(at, at), update, output.warn)
        told["at"] = _plain(chosen, then.after) | _replayed(then)
        output.say(f"after exactly {at:,} {counts} ({_checked(config, then)}):")
        _show_history(output, chosen, [then.after], counts)
    if at is None or games is not None:
        with output.progress("playing again", wanted.stop, counts) as update:
            followed = follow(opened.run, chosen, wanted, update, output.warn)
        told |= {
            "games": [wanted.start, wanted.stop],
            **_replayed(followed),
            "before": _plain(chosen, followed.before),
            "after": _plain(chosen, followed.after),
            "met": len(followed.movers),
            "moved": followed.moved,
            "movers": [_plain_mover(chosen, mover) for mover in followed.top(top)],
        }
        _show_movers(output, chosen, followed, config, top)
    output.result(told)


def _list(opened: OpenRun, output: Output) -> None:
    """What there is to explain: the infosets visited most."""
    from rejoinder_learner.explain import find_infoset

    abstraction, most = opened.run.config.load_abstraction(), _most_visited(opened)
    infosets = len(opened.checkpoint.rows)
    output.say(f"{len(most)} of {infosets:,} infosets, those visited most; name one of them:")
    listed = []
    for row in most:
        infoset = find_infoset(f"{int(row['key']):016x}", most, abstraction)
        description, visits = abstraction.description(infoset.key), int(row["updates"])
        output.say(f"{infoset.identifier}  {visits:,} visits")
        output.say(f"  {described(description)}: {', '.join(infoset.actions)}")
        listed.append(
            {
                "identifier": infoset.identifier,
                "key": f"{infoset.key:016x}",
                "visits": visits,
                "description": description,
                "actions": list(infoset.actions),
            }
        )
    output.result({"run": str(opened.run.path), "infosets": listed})


def _most_visited(opened: OpenRun) -> Any:
    """As readers take them; of a big table only some are in memory at once."""
    import numpy as np

    rows = opened.checkpoint.rows
    most = opened.run.learned(rows[:0])
    for first in range(0, len(rows), _BLOCK):
        some = np.concatenate([most, opened.run.learned(rows[first : first + _BLOCK])])
        most = some[(-some["updates"].astype(np.int64)).argsort(kind="stable")[:_LISTED]]
    return most


def _range(games: str | None, last: int, counts: str) -> range:
    """The games that were asked for, by their place in the ledger."""
    if games is None:
        return range(max(0, last - _USUAL), last)
    parts = re.fullmatch(r"(\d*):(\d*)", games)
    if parts is None:
        raise ValueError(f"--games: {games!r} is not LOW:HIGH, like 0:500")
    low, high = int(parts[1] or 0), int(parts[2] or last)
    if low >= high:
        raise ValueError(
            f"--games: {games} has no {counts} in it; write it as LOW:HIGH, like 0:500"
        )
    if high > last:
        raise ValueError(f"--games: {games} is not within the {last:,} {counts} of this run")
    return range(low, high)


def _in_units(config: RunConfig, wanted: range, asked: str | None, output: Output) -> range:
    """The whole units around what was asked for, which is said if it is more than that."""
    from rejoinder_learner.explain import whole_units

    found = whole_units(config, wanted)
    if asked is not None and found != wanted:
        output.say(
            f"--games: {asked} is widened to {found.start}:{found.stop}: "
            f"whole units of {config.block:,} {config.counts}"
        )
    return found


def _rounded_up(config: RunConfig, at: int, output: Output) -> int:
    """The end of the unit, which is said if it is another number."""
    whole = config.in_units(at) * config.block
    if whole != at:
        output.say(
            f"--at: {at:,} {config.counts} are rounded up to {whole:,}: "
            f"whole units of {config.block:,}"
        )
    return whole


def _regrets_of(config: RunConfig) -> str:
    """What the regrets of a mover are of: one decision, a unit's sum, or the state after it."""
    from rejoinder_learner.explain import gives_states

    if gives_states(config):
        return "state"
    return "decision" if config.block == 1 else "unit"


def _checked(config: RunConfig, followed: Followed) -> str:
    count = len(followed.replayed)
    if not count:
        return "from its checkpoint"
    each = "each" if config.block == 1 else "each unit"
    return (
        f"{count:,} {config.counts} played again from {followed.replayed.start:,} on, "
        f"{each} as in the ledger"
    )


def _replayed(followed: Followed) -> dict[str, Any]:
    return {"replayed": [followed.replayed.start, followed.replayed.stop], "verified": True}


def _by_action(infoset: Infoset, numbers: Numbers) -> dict[str, float]:
    return dict(zip(infoset.actions, numbers.tolist(), strict=True))


def _plain(infoset: Infoset, point: Standing) -> dict[str, Any]:
    return {
        "games": point.games,
        "visits": point.visits,
        "reach": point.reach,
        "latest": _by_action(infoset, point.latest),
        "average": _by_action(infoset, point.average),
        "regret": _by_action(infoset, point.regret),
    }


def _plain_mover(infoset: Infoset, mover: Mover) -> dict[str, Any]:
    return {
        "game": mover.game,
        "folded": mover.folded,
        "snapshot": mover.version,
        "moved": mover.moved,
        "change": _by_action(infoset, mover.after.average - mover.before.average),
        "regret_change": _by_action(infoset, mover.after.regret_sum - mover.before.regret_sum),
        "decisions": [
            {
                "number": decision.number,
                "reach": decision.reach,
                "regret": _by_action(infoset, decision.regret),
            }
            for decision in mover.decisions
        ],
        "before": _plain(infoset, mover.before),
        "after": _plain(infoset, mover.after),
    }


def _show_history(output: Output, infoset: Infoset, points: list[Standing], counts: str) -> None:
    """Of each checkpoint a line an action."""
    from rich.table import Table

    table = Table(counts, "visits", "action", "average", "latest", "mean regret", box=None)
    for point in points:
        when = (f"{point.games:,}", f"{point.visits:,}")
        numbers = zip(point.average, point.latest, point.regret, strict=True)
        for action, (average, latest, regret) in zip(infoset.actions, numbers, strict=True):
            table.add_row(*when, action, f"{average:.3f}", f"{latest:.3f}", _signed(regret, 4))
            when = ("", "")
    output.console.print(table)


def _show_movers(
    output: Output, infoset: Infoset, followed: Followed, config: RunConfig, top: int
) -> None:
    from rejoinder_learner.explain import unit_in_words

    games, counts, block = followed.games, config.counts, config.block
    if not games:
        output.say(f"this run has no {counts} of its own yet, so none has moved it")
        return
    units = len(games) // block
    them = "them" if block == 1 else f"{units:,} {'unit' if units == 1 else 'units'} of {block:,}"
    output.say(
        f"{counts} {games.start:,} to {games.stop - 1:,}: {len(followed.movers):,} of {them} met "
        f"it and moved its average policy by {followed.moved:.3g} in all "
        f"({_checked(config, followed)})"
    )
    regrets_of = _regrets_of(config)
    for mover in followed.top(top):
        unit = unit_in_words(config, mover.game)
        output.say(f"{unit}, with snapshot {mover.version:,}: {mover.moved:.3g}")
        output.say(f"  before {_numbers(infoset, mover.before.average)}")
        output.say(f"  after  {_numbers(infoset, mover.after.average)}")
        for decision in mover.decisions:
            what = {
                "decision": f"decision {decision.number}: regrets",
                "unit": f"regrets, the sum over the unit's {block:,} {counts}:",
                "state": "regrets of the state after the unit:",
            }[regrets_of]
            regrets = ", ".join(
                f"{name} {_signed(regret, 3)}"
                for name, regret in _by_action(infoset, decision.regret).items()
            )
            output.say(f"  {what} {regrets}")


def _numbers(infoset: Infoset, numbers: Numbers) -> str:
    return ", ".join(
        f"{name} {number:.3f}" for name, number in _by_action(infoset, numbers).items()
    )


def _signed(number: float, digits: int) -> str:
    """With its sign, unless it is zero when rounded."""
    text = f"{number:+.{digits}f}"
    return text if float(text) else text[1:]
