"""`rejoinder explain RUN [INFOSET]`: how an infoset came to be played as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import OpenRun, RunArgument, open_run
from rejoinder_cli.wording import described

if TYPE_CHECKING:
    from rejoinder_learner.explain import Followed, Infoset, Mover, Numbers, Standing

_USUAL = 1_000  # games that are played again if nobody says which
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
            metavar="LOW:HIGH", help="The folded games to look at (default: the last 1,000)."
        ),
    ] = None,
    at: Annotated[
        int | None, typer.Option(min=0, help="Tell the policy after exactly so many games.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Games to tell of.")] = 5,
    as_json: JsonFlag = False,
) -> None:
    """Tell the history of an infoset, and the games that moved its policy most."""
    from rejoinder_learner.explain import find_infoset, follow, history

    output = Output(as_json)
    opened = open_run(run, output)
    abstraction = opened.run.config.load_abstraction()
    if infoset is None:
        _list(opened, output)
        return
    chosen = find_infoset(infoset, opened.checkpoint.rows, abstraction)
    last = opened.checkpoint.games
    wanted = _range(games, last)
    if at is not None and at > last:
        raise ValueError(f"--at: {run} has {last:,} games, not {at:,}")
    points = history(opened.run, chosen, output.warn)
    told: dict[str, Any] = {
        "run": str(run),
        "identifier": chosen.identifier,
        "key": f"{chosen.key:016x}",
        "description": abstraction.description(chosen.key),
        "actions": list(chosen.actions),
        "history": [_plain(chosen, point) for point in points],
    }
    output.say(f"{chosen.identifier} (key {chosen.key:016x})")
    output.say(described(told["description"]))
    _show_history(output, chosen, points)
    if at is not None:
        with output.progress("playing again", at) as update:
            then = follow(opened.run, chosen, range(at, at), update, output.warn)
        told["at"] = _plain(chosen, then.after) | _replayed(then)
        output.say(f"after exactly {at:,} games ({_checked(then)}):")
        _show_history(output, chosen, [then.after])
    if at is None or games is not None:
        with output.progress("playing again", wanted.stop) as update:
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
        _show_movers(output, chosen, followed, top)
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


def _range(games: str | None, last: int) -> range:
    """The games that were asked for, by their place in the ledger."""
    if games is None:
        return range(max(0, last - _USUAL), last)
    parts = re.fullmatch(r"(\d*):(\d*)", games)
    if parts is None:
        raise ValueError(f"--games: {games!r} is not LOW:HIGH, like 0:500")
    low, high = int(parts[1] or 0), int(parts[2] or last)
    if low >= high:
        raise ValueError(f"--games: {games} has no games in it; write it as LOW:HIGH, like 0:500")
    if high > last:
        raise ValueError(f"--games: {games} is not within the {last:,} games of this run")
    return range(low, high)


def _checked(followed: Followed) -> str:
    count = len(followed.replayed)
    if not count:
        return "from its checkpoint"
    return (
        f"{count:,} games played again from {followed.replayed.start:,} on, each as in the ledger"
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


def _show_history(output: Output, infoset: Infoset, points: list[Standing]) -> None:
    """Of each checkpoint a line an action."""
    from rich.table import Table

    table = Table("games", "visits", "action", "average", "latest", "mean regret", box=None)
    for point in points:
        when = (f"{point.games:,}", f"{point.visits:,}")
        numbers = zip(point.average, point.latest, point.regret, strict=True)
        for action, (average, latest, regret) in zip(infoset.actions, numbers, strict=True):
            table.add_row(*when, action, f"{average:.3f}", f"{latest:.3f}", f"{regret:+.4f}")
            when = ("", "")
    output.console.print(table)


def _show_movers(output: Output, infoset: Infoset, followed: Followed, top: int) -> None:
    games = followed.games
    if not games:
        output.say("this run has no games of its own yet, so none has moved it")
        return
    output.say(
        f"games {games.start:,} to {games.stop - 1:,}: {len(followed.movers):,} of them met it and "
        f"moved its average policy by {followed.moved:.3g} in all ({_checked(followed)})"
    )
    for mover in followed.top(top):
        output.say(f"game {mover.game:,}, with snapshot {mover.version:,}: {mover.moved:.3g}")
        output.say(f"  before {_numbers(infoset, mover.before.average)}")
        output.say(f"  after  {_numbers(infoset, mover.after.average)}")
        for decision in mover.decisions:
            regrets = _numbers(infoset, decision.regret, "+.3f")
            output.say(f"  decision {decision.number}: regrets {regrets}")


def _numbers(infoset: Infoset, numbers: Numbers, form: str = ".3f") -> str:
    return ", ".join(
        f"{name} {number:{form}}" for name, number in _by_action(infoset, numbers).items()
    )
