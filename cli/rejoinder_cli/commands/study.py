"""`rejoinder study NAME`: a grid of runs that answers what one should choose."""

from __future__ import annotations

import signal
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from rejoinder_cli.options import GamesOption, SetOption
from rejoinder_cli.output import JsonFlag, Output

app = typer.Typer(no_args_is_help=True, help="Train a grid of runs to see what to choose.")

_USUAL: dict[str, Any] = {
    "config": "paper",
    "batches": "1,5,20,100,500",
    "lags": "0,1,2,4",
    "seeds": 3,
    "workers": "2,64",
    "tests": 4_000,
    "evaluations": (8, 400),  # how often on the way, and the games of each against each baseline
}
_QUICK = _USUAL | {
    "config": "tiny",
    "units": 120,
    "batches": "2,20",
    "lags": "0,1",
    "seeds": 2,
    "workers": "1",
    "tests": 200,
    "evaluations": (3, 50),
}


@app.callback()
def study() -> None:
    """Train a grid of runs to see what to choose."""


@app.command()
def staleness(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG",
            help="A shipped config by name, or a TOML file.",
            show_default=_USUAL["config"],
        ),
    ] = None,
    games: GamesOption = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Runs of each cell.", show_default=str(_USUAL["seeds"])),
    ] = None,
    batches: Annotated[
        str | None, typer.Option(metavar="B,…", help="Of B.", show_default=_USUAL["batches"])
    ] = None,
    lags: Annotated[
        str | None, typer.Option(metavar="L,…", help="Of L.", show_default=_USUAL["lags"])
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="W,…",
            help="Whose speed to tell: measured where they fit on the cores here, and predicted.",
            show_default=_USUAL["workers"],
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the results are kept and gone on with.")
    ] = Path("runs/staleness"),
    timing: Annotated[
        bool, typer.Option(help="Measure speeds with real workers; else they are only predicted.")
    ] = True,
    retime: Annotated[
        bool, typer.Option("--retime", help="Measure all speeds and costs again.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A grid of some seconds, without predictions.")
    ] = False,
    settings: SetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """What B and L cost in strength and buy in speed: a table, a file and one picture."""
    picture = _picture()
    from rejoinder_cli.studies import staleness as study_of

    output = Output(as_json)
    usual = _QUICK if quick else _USUAL
    source = usual["config"] if config is None else config
    grid = study_of.make_grid(
        source,
        _changed(source, settings or [], games, usual.get("units")),
        batches=_numbers("--batches", usual["batches"] if batches is None else batches),
        lags=_numbers("--lags", usual["lags"] if lags is None else lags),
        seeds=usual["seeds"] if seeds is None else seeds,
        workers=_numbers("--workers", usual["workers"] if workers is None else workers),
        evaluations=usual["evaluations"],
        tests=usual["tests"],
        predict=not quick,
        measure=timing,
    )
    if games not in (None, grid.config.games):
        output.say(
            f"{games:,} {grid.config.counts} are rounded up to {grid.config.games:,}: "
            f"whole units of {grid.config.block:,}"
        )
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = study_of.run(grid, out, retime=retime, progress=output.progress, say=output.say)
    except KeyboardInterrupt:
        output.say(f"stopped; what is in {out} stays, and the same command goes on")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    drawn = picture.save(result, out)
    output.say(_table(result))
    _print_how(result, output)
    files = [str(path) for path in (out / study_of.RESULT, *drawn)]
    output.say(f"wrote {', '.join(files)}")
    output.result(result | {"files": files})


def _changed(source: str, settings: list[str], games: int | None, units: int | None) -> list[str]:
    """Overrides with the length: what is asked for, or so many units, which `--set` may change."""
    from rejoinder.run.config import load_config

    if games is not None:
        return [*settings, f"games={games}"]
    if units is None:
        return settings
    return [f"games={units * load_config(source, settings).block}", *settings]


def _picture() -> ModuleType:
    """Asked for first: who lacks it should not wait for minutes to hear so."""
    try:
        from rejoinder_cli.studies import picture
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the picture needs {error.name}: install it by pip install 'rejoinder[report]'"
        ) from None
    return picture


def _numbers(option: str, text: str) -> list[int]:
    """A list like 1,5,20."""
    try:
        return sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise ValueError(f"{option}: {text!r} is not a list of numbers such as 1,5,20") from None


def _table(result: dict[str, Any]) -> str:
    """A line for each cell, in Markdown."""
    names = ["B", "L", "B·(L+1)", result["strength_is"], "to own", "on the way", "MER"]
    for workers in result["workers"]:
        names += [f"{workers:,} w.", "predicted"]
    rows = [names, ["---"] * len(names)]
    rates = result["strength_is"] == "win rate"
    for cell in result["cells"]:
        speeds = [cell["speed"][str(workers)] for workers in result["workers"]]
        rows.append(
            [
                *(f"{cell[name]:,}" for name in ("batch", "lag", "window")),
                _strength(cell["strength"], rates),
                _strength(cell["difference"], rates, sign="+"),
                _strength(cell["on_the_way"], rates),
                _interval(cell["mer"], ".4f"),
                *(text for speed in speeds for text in _speed(speed)),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _strength(found: dict[str, float | None] | None, rates: bool, sign: str = "") -> str:
    """Win rates in points of a hundred, utility as it is."""
    if found is None:
        return "–"
    if not rates:
        return _interval(found, "+.3f")
    return _interval({name: value and 100 * value for name, value in found.items()}, f"{sign}.1f")


def _interval(found: dict[str, float | None], form: str) -> str:
    width = found["half_width"]
    mean = f"{found['mean']:{form}}"
    return mean if width is None else f"{mean} ± {width:{form.lstrip('+')}}"


def _speed(speed: dict[str, Any]) -> tuple[str, str]:
    measured, predicted = speed["measured"], speed["predicted"]
    return (
        "–" if measured is None else f"{measured:,.0f}",
        "–" if predicted is None else f"{predicted:,.0f} ({speed['bottleneck']})",
    )


def _print_how(result: dict[str, Any], output: Output) -> None:
    """What the figures are of, and what disturbed them."""
    from rejoinder_cli.studies.throughput import BUSY

    seeds, counts, unit = len(result["seeds"]), result["counts"], result["unit"]
    strength = result["strength_is"]
    share = "% of" if strength == "win rate" else "mean of"
    units = "" if unit == 1 else f"B: units of {unit:,} {counts}; "
    output.say(
        f"{units}{strength}: {share} {result['tests']:,} games against {result['opponent']} after "
        f"{result['games']:,} training {counts}; to own: against the same seeds with the config's "
        "own B and L; on the way: averaged over the training; "
        f"{f'±: 95 % interval over {seeds} seeds' if seeds > 1 else 'one seed, no interval'}; "
        f"W w.: {counts} a second of W workers, measured here; predicted: by the capacity model"
    )
    others = result["others"]
    if others is not None and others > BUSY:
        output.warn(
            f"other programs used up to {others:.1f} cores while speeds were measured; "
            "--retime measures them again"
        )
