"""How training under way looks: lines that stay in place on a terminal, else one now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rejoinder_cli.output import Output

_SECONDS = 5.0  # between two lines where nothing can stay in place

OVER = ("finished", "stopped", "gone")  # states in which nothing moves

Status = Mapping[str, Any]


@contextmanager
def live_status(
    output: Output, title: str, also: Callable[[Status], str] = lambda _: ""
) -> Iterator[Callable[[Status], None]]:
    """Shows whatever status it is told, and what else `also` has to say."""
    if not output.console.is_terminal:
        yield _LineNowAndThen(output, also).update
        return
    from rich.live import Live

    with Live(console=output.console, refresh_per_second=4, transient=False) as live:
        live.update(f"{title}: starting")
        yield lambda status: live.update(panel(title, status, also(status)))


class _LineNowAndThen:
    def __init__(self, output: Output, also: Callable[[Status], str]) -> None:
        self._output = output
        self._also = also
        self._told = 0.0

    def update(self, status: Status) -> None:
        now = time.monotonic()
        if now - self._told >= _SECONDS:
            self._told = now
            say = self._output.say_once if _idle(status) else self._output.say
            say("; ".join(filter(None, [line(status), self._also(status)])))


def line(status: Status) -> str:
    """One status on one line."""
    if _idle(status):
        return (
            f"{status['games']:,} of {status['target']:,} {_counts(status)}, {_workers(status, '')}"
        )
    return (
        f"{status['games']:,} of {status['target']:,} {_counts(status)}, {_rate(status)}, "
        f"{_left(status)}, {_figures(status)}, {_count(len(status['workers']), 'worker')}, "
        f"{status['state']}"
    )


def _idle(status: Status) -> bool:
    """Nobody plays, so nothing moves."""
    return not status["workers"] and status["state"] not in OVER


def panel(title: str, status: Status, also: str = "") -> RenderableType:
    """One status as a block of lines; `also` is one more."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    running = status["state"] not in OVER
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        Text(title, style="bold"),
        ProgressBar(total=status["target"], completed=status["games"], width=30),
        f"{status['games']:,}/{status['target']:,} {_counts(status)}",
        *([_rate(status), _left(status)] if running else []),
        Text(status["state"], style="green" if status["state"] == "finished" else "cyan"),
    )
    workers = ", ".join(f"{name} {w.get('games', 0):,}" for name, w in status["workers"].items())
    trouble = [f"{status[name]:,} {name}" for name in ("quarantined", "stale") if status.get(name)]
    trouble += [f"banned: {name}" for name in status.get("banned", ())]
    lines: list[RenderableType] = [
        _figures(status),
        also,
        _queue(status) if "queued" in status else "",  # sequential training has none
        _workers(status, workers) if running and "queued" in status else "",
        *([Text("; ".join(trouble), style="yellow")] if trouble else []),
    ]
    return Group(bar, *(line for line in lines if line))


def _queue(status: Status) -> str:
    return (
        f"snapshot {status['version']:,} · queue {_count(status['queued'], 'lease')} · "
        f"{status['outstanding']:,} {_counts(status)} under lease · "
        f"{status['leased_again']:,} leased again · checkpoint at {status['checkpoint']:,}"
    )


def _workers(status: Status, games: str) -> str:
    if games:
        return f"{_count(len(status['workers']), 'worker')}: {games}"
    return "no workers yet; the first time their kernels are compiled, which takes up to a minute"


def _counts(status: Status) -> str:
    """What the method counts; a status file may be damaged."""
    return str(status.get("counts", "games"))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _rate(status: Status) -> str:
    return f"{status['games_per_second']:,.0f} {_counts(status)}/s"


def _left(status: Status) -> str:
    left = status["seconds_left"]
    if status["games"] >= status["target"]:
        return "done"
    if left is None:
        return "time left unknown"
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d} left" if hours else f"{minutes}:{seconds:02d} left"


def _figures(status: Status) -> str:
    mer = "unknown" if status["mer"] is None else f"{status['mer']:.4f}"
    unit = status.get("utility_unit", "")
    played = [match_in_words(name, match, unit) for name, match in status["matches"].items()]
    won = f" · {', '.join(played)}" if played else ""
    exact = status.get("exploitability")
    exploited = "" if exact is None else f" · exploitability {exact:.3g}"
    return f"MER {mer}{exploited}{won} · {status['infosets']:,} infosets"


def match_in_words(opponent: str, match: Mapping[str, Any], unit: str) -> str:
    """What a match against an opponent gave, as metrics have it: utility first."""
    error = f" ± {match['utility_error']:.3f}" if "utility_error" in match else ""
    wins = f" ({match['win_rate']:.1%} won)" if "win_rate" in match else ""
    return f"against {opponent} {match['mean_utility']:+.3f}{error} {unit} a game{wins}"
