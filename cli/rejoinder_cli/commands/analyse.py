"""`rejoinder analyse RUN`: what an agent does in response phases, and what they are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.commands.evaluate import find_opponent
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument, open_run

if TYPE_CHECKING:
    from rejoinder.evaluate.analytics import Analysis, ResponseExploitability
    from rejoinder.evaluate.estimates import Estimate


def analyse(
    run: RunArgument,
    opponent: Annotated[
        str | None,
        typer.Option(metavar="random|risk-aware|RUN", help="Who it plays (default: itself)."),
    ] = None,
    games: Annotated[int, typer.Option(min=2, help="Games to count in, in pairs.")] = 10_000,
    training_games: Annotated[
        int, typer.Option(min=1, help="Games to train the restricted best response.")
    ] = 1_500,
    seed: Annotated[int, typer.Option(min=0, help="Of the deals and of the players' choices.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Count what is charged, paid and cancelled; what answers, and a Just Say No, are worth."""
    from rejoinder.evaluate import analytics

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    game = config.load_game()
    analytics.check_has_responses(game)
    other = find_opponent(opponent, opened, False, output) if opponent else None
    total = analytics.steps(games, None if game.is_enumerable(config.rules) else training_games)
    with output.progress("playing", total) as update:
        found = analytics.analyse(
            game,
            config.rules,
            opened.agent(argmax=False),
            opened.checkpoint.rows,
            opponent=other,
            games=games,
            seed=seed,
            training_games=training_games,
            progress=update,
        )
    show(output, found)
    output.result({"run": str(run), "digest": opened.digest, **found.model_dump(mode="json")})


def show(output: Output, found: Analysis) -> None:
    """The figures as tables; brackets have 95 % intervals."""
    from rich.table import Table

    output.say(f"{found.games:,} games against {found.opponent} (seed {found.seed})")
    for who, charges in found.charges.items():
        table = Table("outcome", "phases", "share", "charger wins", box=None)
        for part in charges.outcomes:
            table.add_row(
                part.outcome, f"{part.count:,}", percent(part.share), signed(part.utility)
            )
        table.add_row("all", f"{charges.phases:,}", "", signed(charges.utility))
        by = "" if who == "either" else f" by the {who}"
        output.say(f"\nresponse phases started{by}: {plain(charges.per_game)} a game")
        output.console.print(table)
        output.say(
            f"charged {plain(charges.charged)}, paid {plain(charges.paid_in_cash)} in cash and "
            f"{plain(charges.paid_in_property)} in property, {plain(charges.overpaid)} too much, "
            f"in {plain(charges.cards)} decisions"
        )
    _show_roles(output, found)
    if found.refusal is not None:
        output.say(
            f"\na Just Say No in the first hand: {signed(found.refusal.right)} over a blank card, "
            f"{signed(found.refusal.card)} over a random card ({found.refusal.compared:,} hands)"
        )
    if found.exploitability is not None:
        output.say(exploitability_line(found.exploitability))


def _show_roles(output: Output, found: Analysis) -> None:
    from rich.table import Table

    table = Table("", *found.roles, box=None)
    roles = list(found.roles.values())
    lines: dict[str, list[Any]] = {
        "infosets (with a choice)": [f"{r.infosets:,} ({r.choices:,})" for r in roles],
        "updates": [f"{r.updates:,}" for r in roles],
        "share of reach": [f"{r.reach:.1%}" for r in roles],
        "regret, by reach": [number(r.regret_by_reach) for r in roles],
        "regret, by updates": [number(r.regret_by_updates) for r in roles],
        "positive regret, by reach": [number(r.positive_regret_by_reach) for r in roles],
        "positive regret, by updates": [number(r.positive_regret_by_updates) for r in roles],
        "entropy in bits, by reach": [number(r.entropy_by_reach) for r in roles],
        "entropy in bits, by updates": [number(r.entropy_by_updates) for r in roles],
        "evenness, by reach": [number(r.evenness_by_reach) for r in roles],
        "evenness, by updates": [number(r.evenness_by_updates) for r in roles],
        "decisions a game": [plain(r.decisions) for r in roles],
        "value to who decides": [signed(r.value) for r in roles],
    }
    for name, cells in lines.items():
        table.add_row(name, *cells)
    output.say("\nby role: the initiator in main play, the responder in response phases")
    output.console.print(table)


def exploitability_line(found: ResponseExploitability) -> str:
    """What can be had by answers alone, in one line."""
    if found.method == "exact":
        return (
            f"exploitability by responses alone: {found.by_responses.value:.6f}, by main play "
            f"alone: {number(found.by_main_play, 6)}, by both: {number(found.whole, 6)} (exact)"
        )
    return (
        f"exploitability by responses alone: at least {signed(found.by_responses)} (a responder "
        f"with the {found.abstraction} abstraction, trained for {found.training_games:,} games)"
    )


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
