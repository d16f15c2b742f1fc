"""compose.yaml as docker reads it, and its services as plain processes.

A container is a process with a command, an environment and a folder. So is what is started here:
the command, the environment and the health check are those of the file, word by word. Only what
the container's network would do is done by hand: `redis:6379` and `postgres:5432` become addresses
of servers of the test, and a port that a container has for itself becomes a free one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
import yaml
from gateway_play import free_port

from rejoinder.transport.server import _executable, end_with_parent

ROOT = Path(__file__).parents[2]
OWN = ("learner", "worker", "gateway")
SECRETS = {
    "REDIS_PASSWORD": "bus-5c0ffee5",
    "POSTGRES_PASSWORD": "games-5c0ffee5",
    "GRAFANA_PASSWORD": "charts-5c0ffee5",
    "GATEWAY_ADMIN_TOKEN": "admin-5c0ffee5-5c0ffee5",
}

_PORTS = ("REJOINDER_METRICS_PORT", "REJOINDER_GATEWAY_PORT")
_EVERYWHERE = "0.0.0.0"
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?:(?P<how>:-|:\?)(?P<rest>.*))?\})", re.DOTALL)


class Missing(ValueError):
    """A variable that must be set and is not."""


def raw(*changes: str) -> dict[str, Any]:
    """The file as it is, and merged with some of deploy/compose."""
    read: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    for name in changes:
        changed = (ROOT / f"deploy/compose/{name}.yaml").read_text("utf-8")
        read = _merge(read, yaml.safe_load(changed))
    return read


def load(environment: Mapping[str, str], *changes: str) -> dict[str, Any]:
    """The same with the variables put in."""
    filled: dict[str, Any] = _fill(raw(*changes), environment)
    return filled


def _merge(base: Any, change: Any, key: str = "") -> Any:
    """As compose does: maps are merged, volumes and networks added, everything else replaced."""
    if isinstance(base, dict) and isinstance(change, dict):
        both = {name: _merge(base[name], change[name], name) for name in base if name in change}
        return base | change | both
    if key in ("volumes", "networks"):
        return [*base, *change]
    return change


def _fill(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, environment) for item in value]
    return interpolate(value, environment) if isinstance(value, str) else value


def interpolate(text: str, environment: Mapping[str, str]) -> str:
    """`${NAME}`, `${NAME:-otherwise}`, `${NAME:?complaint}`, which may be nested, and `$$`."""
    done, at = "", 0
    while (start := text.find("$", at)) >= 0:
        end = _end(text, start)
        found = _VARIABLE.fullmatch(text[start:end])
        assert found, f"{text!r}: what is the $ for?"
        done += text[at:start] + (_value(found, environment) if found["name"] else "$")
        at = end
    return done + text[at:]


def _end(text: str, start: int) -> int:
    """Where the variable that begins at `start` ends."""
    if text[start + 1 : start + 2] != "{":
        return start + 2
    depth = 0
    for i, sign in enumerate(text[start:], start):
        depth += (sign == "{") - (sign == "}")
        if sign == "}" and depth == 0:
            return i + 1
    raise AssertionError(f"{text!r}: a brace is not closed")


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if value := environment.get(found["name"], ""):
        return value
    if found["how"] == ":?":
        raise Missing(f"{found['name']}: {found['rest']}")
    return interpolate(found["rest"] or "", environment)


def words(command: str | list[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else command


class Container:
    """One replica of a service, as a process."""

    def __init__(
        self, name: str, service: dict[str, Any], folder: Path, addresses: Mapping[str, str]
    ) -> None:
        self.name = name
        self.command = words(service["command"])
        self.environment = {k: str(v) for k, v in service.get("environment", {}).items()}
        for key, value in self.environment.items():
            for there, here in addresses.items():
                value = value.replace(f"@{there}/", f"@{here}/")
            self.environment[key] = "127.0.0.1" if value == _EVERYWHERE else value
        self.port = free_port()
        for key in _PORTS:
            if key in self.environment:
                self.environment[key] = str(self.port)
        self._check = service["healthcheck"]
        self._grace = service.get("stop_grace_period", "10s")
        self._folder = folder
        self._log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self._folder,
                env=_image() | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )

    def is_healthy(self) -> bool:
        """What its own health check says."""
        kind, *command = self._check["test"]
        assert kind == "CMD", "own services are asked without a shell"
        checked = subprocess.run(
            command,
            cwd=self._folder,
            env=_image() | self.environment,
            capture_output=True,
            timeout=60,  # the machine may be busier than the container's
        )
        return checked.returncode == 0

    def wait_until_healthy(self, seconds: float = 180.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.is_healthy():
            assert self.process is not None
            ended = self.process.poll()
            assert ended is None, f"{self.name} has ended with {ended}:\n{self.said()}"
            assert time.monotonic() < deadline, f"{self.name} is not healthy:\n{self.said()}"
            time.sleep(0.2)

    def said(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def get_json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def metric(self, name: str) -> float:
        """The sum over all series of that name."""
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics"), re.MULTILINE)
        return sum(map(float, values))

    def stop(self) -> int:
        """As `docker compose stop` does; returns the exit code."""
        assert self.process is not None
        seconds = {"s": 1, "m": 60}[self._grace[-1]] * int(self._grace[:-1])
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _image() -> dict[str, str]:
    """What is set in every container: the commands of the project, and where the kernels are."""
    kept = ("HOME", "LANG", "XDG_CACHE_HOME", "REJOINDER_CACHE_DIR", "NUMBA_CPU_NAME")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))
    return {"PATH": path} | {name: os.environ[name] for name in kept if name in os.environ}


class Composition:
    """The project's own services, on a bus and a database that are there."""

    def __init__(self, folder: Path, variables: Mapping[str, str], addresses: Mapping[str, str]):
        self._services = load(SECRETS | dict(variables))["services"]
        self._folder, self._addresses = folder, addresses
        self.containers: list[Container] = []
        (folder / "runs").mkdir()  # the volume

    def up(self, service: str, scale: int = 1) -> list[Container]:
        """`docker compose up --scale`: start what is missing."""
        present = [c for c in self.containers if c.name.rpartition("-")[0] == service]
        for i in range(len(present), scale):
            name = f"{service}-{i + 1}"
            made = Container(name, self._services[service], self._folder, self._addresses)
            made.start()
            present.append(made)
            self.containers.append(made)
        return present

    def down(self) -> None:
        for container in self.containers:
            container.kill()


@contextmanager
def composed(
    folder: Path, variables: Mapping[str, str], addresses: Mapping[str, str]
) -> Iterator[Composition]:
    made = Composition(folder, variables, addresses)
    try:
        yield made
    finally:
        made.down()


@contextmanager
def bus(folder: Path, certificates: Path | None = None) -> Iterator[int]:
    """The service `redis` by its own command, with the server that is here; its port.

    With certificates it speaks TLS, for which another server than the embedded one is needed.
    """
    command, environment = bus_script("start.sh"), {"REDIS_PASSWORD": SECRETS["REDIS_PASSWORD"]}
    how: dict[str, Any] = {}
    if certificates:
        environment["REDIS_CERTIFICATES"] = str(certificates)
        how = {"ssl": True, "ssl_ca_certs": str(certificates / "ca.crt")}
    binaries = folder / "bin"
    binaries.mkdir()
    server_here = program("server") if certificates else _executable()
    (binaries / "valkey-server").symlink_to(str(server_here))
    port = free_port()
    option = "--tls-port" if certificates else "--port"
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, option, str(port), "--bind", "127.0.0.1"],
            cwd=folder,
            env=environment | {"PATH": os.pathsep.join((str(binaries), os.defpath))},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_parent,
        )
    try:
        client = bus_client(port, **how)
        deadline = time.monotonic() + 60
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline, (folder / "redis.log").read_text()
                time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()


def bus_script(name: str) -> list[str]:
    """What the service `redis` calls: to start, or to be asked whether it is healthy."""
    service = load(SECRETS)["services"]["redis"]
    asked: list[str] = service["healthcheck"]["test"]
    shell, script = words(service["command"]) if name == "start.sh" else asked[1:]
    assert script == f"/etc/redis/{name}"
    return [shell, script.replace("/etc/redis", str(ROOT / "deploy/redis"))]


def program(name: str) -> str | None:
    """The server or the client of Valkey or Redis that this machine has, with TLS."""
    return shutil.which(f"valkey-{name}") or shutil.which(f"redis-{name}")


def bus_client(port: int, **how: Any) -> redis.Redis:
    who = {"username": "rejoinder", "password": SECRETS["REDIS_PASSWORD"]} | how
    return redis.Redis(port=port, **who)
