"""The peer of the gateway: one FastAPI route that does nothing, under the same uvicorn settings."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI
from fastapi.responses import Response

PATH = "/bare"
_BODY = b'{"answer": 42}'

app = FastAPI()


@app.get(PATH)
@app.post(PATH)
async def bare() -> Response:
    """Bytes that are there already: nothing to look up, to check or to encode."""
    return Response(_BODY, media_type="application/json")


def serve() -> None:
    """Until it is ended; says its address first."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False
        )
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    serve()
