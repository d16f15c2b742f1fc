"""`rejoinder grafana push`: the dashboards into a Grafana that is there already."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from rejoinder_cli.output import JsonFlag, Output

TOKEN_VARIABLE = "REJOINDER_GRAFANA_TOKEN"


def grafana(
    action: Annotated[Literal["push"], typer.Argument(help="The only one.")],  # noqa: ARG001
    url: Annotated[str, typer.Option(metavar="URL", help="Of Grafana: http://127.0.0.1:3000.")],
    token: Annotated[
        str,
        typer.Option(
            envvar=TOKEN_VARIABLE,
            help="Of a service account with the role Admin; better set in the environment.",
            show_default=False,
        ),
    ] = "",
    prometheus_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Grafana itself reaches Prometheus; by default where it did before, "
            "or http://127.0.0.1:9090.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[str, typer.Option(help="Title of the folder.")] = "Rejoinder",
    as_json: JsonFlag = False,
) -> None:
    """Bring the data source and the dashboards into a Grafana of yours, or up to date there."""
    from rejoinder_cli import deployed

    try:
        from rejoinder_cli.grafana import Grafana, checked_url
    except ImportError as error:
        raise ValueError(f"{error}: install the extra: pip install 'rejoinder[grafana]'") from None
    if not token.strip():
        raise ValueError(f"--token: a token is needed; {TOKEN_VARIABLE} is the place for it")
    if not folder.strip():
        raise ValueError("--folder: a title is needed")
    output = Output(as_json)
    prometheus = None if prometheus_url is None else checked_url("--prometheus-url", prometheus_url)
    files = sorted(deployed.path(deployed.DASHBOARDS).glob("*.json"))
    dashboards = [json.loads(file.read_text("utf-8")) for file in files]
    done = Grafana(url, token).push(dashboards, prometheus, folder.strip())
    words = {"left": "is provisioned by file and was left as it is"}
    how = words.get(done.data_source, f"was {done.data_source}")
    output.say(f"the data source {how}: {done.prometheus}")
    for address in done.dashboards.values():
        output.say(address)
    output.result(
        {
            "data_source": done.data_source,
            "prometheus": done.prometheus,
            "folder": done.folder,
            "dashboards": done.dashboards,
            "reached": not done.unreached,
        }
    )
    if done.unreached:
        output.warn(
            f"everything is there, but Grafana does not reach Prometheus at {done.prometheus}: "
            f"{done.unreached}; --prometheus-url is its address as Grafana's machine sees it"
        )
        raise typer.Exit(1)
