"""`rejoinder analyse RUN`: what an agent does in response phases, and what they are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.commands.evaluate import find_opponent
from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import (
    ATTACK_GAMES,
    ATTACK_SAMPLES,
    AttackGamesOption,
    AttackSamplesOption,
    RunArgument,
    open_run,
)
from rejoinder_cli.wording import (
    CHOSEN,
    chosen,
    exploitability_line,
    number,
    percent,
    plain,
    signed,
)

if TYPE_CHECKING:
    from rejoinder.measure.analytics import Analysis, PhaseFigures


def analyse(
    run: RunArgument,
    opponent: Annotated[
        str | None,
        typer.Option(metavar="random|risk-aware|RUN", help="Who it plays (default: itself)."),
    ] = None,
    games: Annotated[int, typer.Option(min=2, help="Games to count in, in pairs.")] = 10_000,
    attack_samples: AttackSamplesOption = ATTACK_SAMPLES,
    attack_games: AttackGamesOption = ATTACK_GAMES,
    seed: Annotated[int, typer.Option(min=0, help="Of the deals and of the players' choices.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Count what is charged, paid and cancelled; what answers, and a Just Say No, are worth."""
    from rejoinder.measure import analytics

    output = Output(as_json)
    opened = open_run(run, output)
    config = opened.run.config
    game = config.load_game()
    analytics.check_has_responses(game)
    other = find_opponent(opponent, opened, False, output) if opponent else None
    attacked = attack_samples > 0 and not game.is_enumerable(config.rules)
    total = analytics.steps(games, attack_games if attacked else None, attack_samples)
    with output.progress("playing", 100, "%") as update:
        found = analytics.analyse(
            game,
            config.rules,
            opened.agent(argmax=False),
            opened.learned,
            opponent=other,
            games=games,
            seed=seed,
            attack_games=attack_games if attacked else None,
            samples=attack_samples,
            progress=lambda done: update(100 * done // total),
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
        _show_choices(output, charges)
    _show_roles(output, found)
    if found.refusal is not None:
        output.say(
            f"\na Just Say No in the first hand: {signed(found.refusal.right)} over a blank card, "
            f"{signed(found.refusal.card)} over a random card ({found.refusal.compared:,} hands)"
        )
    if found.exploitability is not None:
        output.say(exploitability_line(found.exploitability))


def _show_choices(output: Output, charges: PhaseFigures) -> None:
    """Where the order of answers does not matter, later ones have no reason to differ."""
    from rich.table import Table

    table = Table("answer", "times", CHOSEN, box=None)
    for choice in charges.choices:
        table.add_row("first" if choice.first else "later", f"{choice.times:,}", chosen(choice))
    output.console.print(table)


def _show_roles(output: Output, found: Analysis) -> None:
    from rich.table import Table

    table = Table("", *found.roles, box=None)
    roles = list(found.roles.values())
    lines: dict[str, list[Any]] = {
        "infosets (with a choice)": [f"{r.infosets:,} ({r.choices:,})" for r in roles],
        "updates": [f"{r.updates:,}" for r in roles],
        "share of reach": [f"{r.reach:.1%}" for r in roles],
        "part of MER": [number(r.mer_share) for r in roles],
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
