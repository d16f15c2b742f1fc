"""`rejoinder gateway`: runs, policies and play over HTTP, and a page for people."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder_cli.options import MetricsTargetsOption
from rejoinder_cli.output import JsonFlag, Output

if TYPE_CHECKING:
    import socket

    from rejoinder_gateway.settings import Settings

_LAST_WORDS = 1  # seconds that open streams get when the gateway ends
_TURN = 0.0005  # seconds that one thread may keep the others waiting; a move takes three turns


def gateway(
    runs: Annotated[
        Path | None, typer.Option(help="The folder of the runs.", show_default="runs")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="sqlite:///FILE or postgresql://…; SQLite beside the runs by default.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen at.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="0: any free.", show_default="8642")
    ] = None,
    admin_token: Annotated[
        str | None,
        typer.Option(
            envvar="REJOINDER_GATEWAY_ADMIN_TOKEN",
            help="Lets its holder stop runs and export results; better set in the environment.",
            show_default=False,
        ),
    ] = None,
    metrics_targets: MetricsTargetsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Serve the runs' status and policies, and play against them, over HTTP."""
    with gateway_extra():
        from rejoinder_gateway.settings import Settings
    given: dict[str, Any] = {
        "runs": runs,
        "database": database,
        "host": host,
        "port": port,
        "admin_token": admin_token,
    }
    serve_gateway(Settings.read(os.environ, given), Output(as_json), metrics_targets)


@contextlib.contextmanager
def gateway_extra() -> Iterator[None]:
    """Around imports of what only the extra installs."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{error}: install the extra: pip install 'rejoinder[gateway]'") from None


def serve_gateway(settings: Settings, output: Output, targets: Path | None = None) -> None:
    """Serve until Ctrl-C."""
    with _listen(settings) as listening:
        _serve(settings, listening, output, targets)


def _listen(settings: Settings) -> socket.socket:
    """Bound before the app starts: a port that is taken is told at once, and 0 becomes a number."""
    import socket

    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        of_the_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        hint = "; --port takes another one, 0 any that is free" if of_the_port else ""
        raise ValueError(f"{settings.host}:{settings.port}: {error.strerror}{hint}") from None


def _serve(
    settings: Settings, listening: socket.socket, output: Output, targets: Path | None
) -> None:
    with gateway_extra():
        import uvicorn

        from rejoinder.telemetry import GATEWAY_JOB, address, announced
        from rejoinder_gateway.app import create_app
        from rejoinder_gateway.store import check_database
    runs = str(settings.runs) if settings.runs.is_dir() else f"{settings.runs}, a new folder"
    settings.runs.mkdir(parents=True, exist_ok=True)
    check_database(settings.database_url)
    sys.setswitchinterval(_TURN)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    port = listening.getsockname()[1]
    home = f"http://{host}:{port}"
    target = announced(targets, GATEWAY_JOB, f"gateway-{port}", address(settings.host, port))

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                target.__enter__()
                output.say(f"the gateway is at {home}, with the runs in {runs}")
                output.result({"address": home, "runs": str(settings.runs)})

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            target.__exit__(None, None, None)  # here: a signal may end the process right after
            await super().shutdown(sockets)

    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the guard reads them, and believes trusted proxies alone
        timeout_graceful_shutdown=_LAST_WORDS,
    )
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how one ends it
        Server(config).run(sockets=[listening])
