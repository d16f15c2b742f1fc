"""The page: plain files of this package, and Plotly's from its own.

`/` is the page, which finds its view by the hash; every other path is a file, or unknown. Files are
revalidated by their ETag each time, so a new version of the gateway shows at once.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rejoinder_gateway.problems import Problem

_WEB = Path(__file__).parent / "web"
_DAY = 24 * 3600


def install(app: FastAPI) -> None:
    """Serve the page and its files where no route is."""
    plotly = StaticFiles(directory=str(resources.files("plotly") / "package_data"))

    @app.api_route("/vendor/plotly.min.js", methods=["GET", "HEAD"], include_in_schema=False)
    async def _plotly(request: Request) -> Response:
        response = await plotly.get_response("plotly.min.js", request.scope)
        response.headers["Cache-Control"] = f"public, max-age={_DAY}"
        return response

    app.router.default = _Page(directory=_WEB, check_dir=False)


class _Page(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["path"].startswith("/api/"):
            raise Problem(404, "Unknown path", "the API has no such path; see /api/v1/openapi.json")
        try:
            page = scope["path"] == "/"
            response = await super().get_response("index.html" if page else path, scope)
        except (OSError, ValueError):  # no file can have such a name
            raise Problem(404, "Unknown path", "there is no such page") from None
        response.headers["Cache-Control"] = "no-cache"
        return response
