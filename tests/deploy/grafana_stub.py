"""A stand-in for Grafana 13: the calls that a push may make, and everything about them checked.

Whatever Grafana would refuse is refused the same way: a wrong token, a path it does not know (data
sources by numeric ids among them), a body with a field missing, an update of an older version.
What no client of ours should ever send is kept in `faults`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

TOKEN = "glsa_0123456789abcdefghijABCDEFGHIJ_01234567"


class Call(NamedTuple):
    method: str
    path: str
    body: Any


class Canned(NamedTuple):
    """An answer that comes whatever was asked."""

    status: int
    body: bytes
    headers: dict[str, str] = {}  # noqa: RUF012

    @classmethod
    def json(cls, status: int, value: Any) -> Canned:
        return cls(status, json.dumps(value).encode(), {"content-type": "application/json"})


Answer = tuple[int, Any]


@dataclass
class Stub:
    """What the server has, what it was asked, and where it is to fail."""

    prefix: str = ""  # of the path, when it is served below one
    data_sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)  # titles by uid
    dashboards: dict[str, dict[str, Any]] = field(default_factory=dict)
    reaches_prometheus: bool = True
    canned: dict[tuple[str, str], Canned] = field(default_factory=dict)  # by method and path
    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def made(self) -> list[tuple[str, str]]:
        return [(call.method, call.path) for call in self.calls]

    def bodies(self, method: str, path: str) -> list[Any]:
        return [call.body for call in self.calls if (call.method, call.path) == (method, path)]

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path == "/api/datasources" and method == "POST":
            return self._create_data_source(body)
        if found := re.fullmatch(r"/api/datasources/uid/([\w-]+)(/health)?", path):
            uid, health = found.groups()
            if uid not in self.data_sources:
                return 404, {"message": "Data source not found", "traceID": ""}
            if health and method == "GET":
                return self._health()
            if method == "GET":
                return 200, self.data_sources[uid]
            if method == "PUT":
                return self._update_data_source(uid, body)
        if path == "/api/folders" and method == "GET":
            listed = [{"id": 1, "uid": uid, "title": t} for uid, t in self.folders.items()]
            return 200, listed
        if path == "/api/folders" and method == "POST":
            return self._create_folder(body)
        if path == "/api/dashboards/db" and method == "POST":
            return self._save_dashboard(body)
        return 404, {"message": "Not found", "traceID": ""}

    def _create_data_source(self, body: Any) -> Answer:
        if not {"name", "type", "access"} <= set(body):
            return 400, {"message": "bad request data"}
        if any(body["name"] == there["name"] for there in self.data_sources.values()):
            return 409, {"message": "data source with the same name already exists"}
        made = {"id": 7, "orgId": 1, "version": 1, "readOnly": False, "isDefault": False} | body
        self.data_sources[body["uid"]] = made
        return 200, {"id": 7, "message": "Datasource added", "name": body["name"]}

    def _update_data_source(self, uid: str, body: Any) -> Answer:
        there = self.data_sources[uid]
        if there["readOnly"]:
            return 403, {"message": "Cannot update read-only data source"}
        if not {"name", "type", "access", "uid"} <= set(body):
            return 400, {"message": "bad request data"}
        if body.get("version", there["version"]) != there["version"]:
            return 409, {"message": "Datasource has already been updated by someone else"}
        fixed = {name: there[name] for name in ("id", "orgId", "readOnly")}
        self.data_sources[uid] = body | fixed | {"version": there["version"] + 1}
        return 200, {"id": 7, "message": "Datasource updated", "name": body["name"]}

    def _health(self) -> Answer:
        if self.reaches_prometheus:
            return 200, {"status": "OK", "message": "Successfully queried the Prometheus API."}
        return 400, {"status": "ERROR", "message": "dial tcp 127.0.0.1:9090: connection refused"}

    def _create_folder(self, body: Any) -> Answer:
        if body["title"] in self.folders.values():
            return 409, {"message": "a folder with the same name already exists"}
        uid = f"folder{len(self.folders)}"
        self.folders[uid] = body["title"]
        return 200, {"id": 1, "uid": uid, "title": body["title"]}

    def _save_dashboard(self, body: Any) -> Answer:
        dashboard = body["dashboard"]
        uid = dashboard["uid"]
        if body["folderUid"] not in self.folders:
            return 400, {"message": "folder not found"}
        if uid in self.dashboards and not body.get("overwrite"):
            message = "The dashboard has been changed by someone else"
            return 412, {"message": message, "status": "version-mismatch"}
        version = self.dashboards.get(uid, {}).get("version", 0) + 1
        self.dashboards[uid] = dashboard | {"version": version, "folder": body["folderUid"]}
        url = f"{self.prefix}/d/{uid}/slug"
        return 200, {"id": 1, "uid": uid, "url": url, "status": "success", "version": version}

    def check_headers(self, handler: BaseHTTPRequestHandler, has_body: bool) -> None:
        wanted = {"accept": "application/json"}
        if has_body:
            wanted["content-type"] = "application/json"
        for name, value in wanted.items():
            if handler.headers.get(name) != value:
                self.faults.append(f"{handler.path}: {name}: {handler.headers.get(name)}")


@contextmanager
def grafana(prefix: str = "") -> Iterator[Stub]:
    """A stub that listens."""
    stub = Stub(prefix)

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(sent) if sent else None
            if body is None and self.command != "GET":
                stub.faults.append(f"{self.command} {self.path} without a body")
            stub.check_headers(self, body is not None)
            if not self.path.startswith(f"{prefix}/api/"):
                self._reply(Canned(404, b"<html>nothing here</html>"))
                return
            path = self.path.removeprefix(prefix)
            stub.calls.append(Call(self.command, path, body))
            if canned := stub.canned.get((self.command, path)):
                self._reply(canned)
            elif self.headers.get("authorization") != f"Bearer {TOKEN}":
                self._reply(Canned.json(401, {"message": "Invalid API key"}))
            else:
                self._reply(Canned.json(*stub.answer(self.command, path, body)))

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _do  # noqa: N815

        def _reply(self, answer: Canned) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stub.url = f"http://127.0.0.1:{server.server_port}{prefix}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield stub
        finally:
            server.shutdown()
