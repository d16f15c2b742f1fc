"""The proxies of docs/operations.md, started with its very lines before a server that tells what it
is asked: streams come as they are made, the client's address is passed on, /metrics is not.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from composition import ROOT
from gateway_play import free_port
from runtime import eventually

from rejoinder.transport.server import end_with_parent

PAGE = (ROOT / "docs/operations.md").read_text("utf-8")
NAME = "play.example.org"

NGINX = """\
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""
CADDY = "{{\n    admin off\n    auto_https disable_redirects\n    local_certs\n}}\n{server}"


class Upstream(BaseHTTPRequestHandler):
    """In the gateway's place."""

    protocol_version = "HTTP/1.1"
    go_on = threading.Event()  # what the second event of a stream waits for

    def do_GET(self) -> None:
        if self.path != "/events":
            return self._answer(json.dumps(dict(self.headers.items())).encode())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"data: 1\n\n")
        self.go_on.wait(60)
        self.wfile.write(b"data: 2\n\n")
        self.close_connection = True
        return None

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def upstream() -> Iterator[int]:
    Upstream.go_on.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def proxy(name: str, folder: Path) -> Iterator[int]:
    """The program with the page's lines; ports and files are the test's own."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} here; `apt install {name}`")
    block = re.search(rf"```{name}\n(.*?)```", PAGE, re.DOTALL)
    assert block
    port = free_port()
    with upstream() as behind:
        lines = block[1].replace("127.0.0.1:8642", f"127.0.0.1:{behind}")
        if name == "nginx":
            _certify(folder)
            lines = lines.replace("listen 443", f"listen 127.0.0.1:{port}")
            lines = lines.replace("/etc/ssl/play", str(folder))
            text = NGINX.format(folder=folder, server=lines)
            command = [program, "-p", str(folder), "-c", str(folder / "config")]
        else:
            lines = lines.replace(NAME, f"https://{NAME}:{port}")
            text = CADDY.format(server=lines)
            command = [program, "run", "--adapter", "caddyfile", "--config", f"{folder}/config"]
        (folder / "config").write_text(text, "utf-8")
        with (folder / "log").open("wb") as log:
            started = subprocess.Popen(
                command,
                env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )
        try:
            assert eventually(lambda: _listens(port), 60), (folder / "log").read_text()
            yield port
        finally:
            Upstream.go_on.set()
            started.terminate()
            started.wait(60)


def _certify(folder: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    made += ["-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/fullchain.pem"]
    subprocess.run(made, check=True, capture_output=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def asked(port: int, path: str) -> Iterator[http.client.HTTPResponse]:
    """Over TLS, by the public name, as somebody who makes up where he comes from."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), 20) as plain,
        trusting.wrap_socket(plain, server_hostname=NAME) as secured,
    ):
        request = f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
        secured.sendall(request.encode())
        answer = http.client.HTTPResponse(secured)
        answer.begin()
        yield answer


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_it_passes_on_what_it_must_and_nothing_else(name: str, tmp_path: Path) -> None:
    with proxy(name, tmp_path) as port:
        with asked(port, "/api/v1/runs") as answer:
            told = {key.lower(): value for key, value in json.loads(answer.read()).items()}
        assert told["host"].partition(":")[0] == NAME
        assert told["x-forwarded-for"].split(", ")[-1] == "127.0.0.1"
        for path in ("/metrics", "//metrics", "/%6detrics", "/x/../metrics"):
            with asked(port, path) as answer:
                assert answer.status == 404, path
        with asked(port, "/events") as stream:
            assert stream.readline() == b"data: 1\n", "before the second one is made"
            Upstream.go_on.set()
            assert b"data: 2\n" in stream.read()
