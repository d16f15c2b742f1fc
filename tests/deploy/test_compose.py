"""compose.yaml: what it promises, and that its services do train, answer and scale."""

from __future__ import annotations

import importlib.resources
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import psycopg
import pytest
import redis
import trustme
import yaml
from composition import (
    OWN,
    ROOT,
    SECRETS,
    Container,
    Missing,
    bus,
    bus_client,
    bus_script,
    composed,
    interpolate,
    load,
    program,
    raw,
)
from gateway_play import ADMIN, postgresql
from monitoring import needs_prometheus, promtool
from runtime import eventually

from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.connection import BusError, connect
from rejoinder_learner.sequential import train

RUN = "composed"
WINDOW = 5.0  # seconds over which games are counted
CORES = len(os.sched_getaffinity(0))
CHANGES = {  # of deploy/compose, and what they need in .env
    "redis-tls": {"REDIS_CERTIFICATES": "/certificates"},
    "redis-published": {"REDIS_ADDRESS": "10.0.0.5"},
    "redis-elsewhere": {"REDIS_URL": "rediss://rejoinder:secret@redis.example.org:6379/0"},
}
SETTINGS = {"games": "1000000", "checkpoint_every": "200", "eval_every": "0", "batch": "60"}

# The file


def schema() -> dict[str, Any]:
    """The compose specification's, as check-jsonschema carries it."""
    kept = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor"
    text = (kept / "compose-spec.json").read_text("utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def test_it_is_valid() -> None:
    validator = jsonschema.validators.validator_for(schema())(schema())
    validator.validate(raw())
    validator.validate(load(SECRETS))
    assert set(CHANGES) == {path.stem for path in (ROOT / "deploy/compose").iterdir()}
    for name, variables in CHANGES.items():
        file = ROOT / f"deploy/compose/{name}.yaml"
        validator.validate(yaml.safe_load(file.read_text("utf-8")))
        validator.validate(load(SECRETS | variables, name))
    wrong = load(SECRETS)
    wrong["services"]["worker"]["memory"] = "1g"
    with pytest.raises(jsonschema.ValidationError, match="memory"):
        validator.validate(wrong)


def test_every_part_is_there_and_kept_alive_and_in_bounds() -> None:
    services = load(SECRETS)["services"]
    assert set(services) == {*OWN, "redis", "postgres", "prometheus", "grafana"}
    for name, service in services.items():
        assert service["healthcheck"]["test"], name
        assert service["restart"] == "unless-stopped", name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert "privileged" not in service, name
        assert service["logging"]["options"]["max-size"], name
    for name in OWN:
        assert services[name]["cap_drop"] == ["ALL"]


def test_what_scales_has_no_name_and_no_port_of_its_own() -> None:
    worker = load(SECRETS)["services"]["worker"]
    assert not {"container_name", "ports", "volumes", "hostname"} & worker.keys()


def test_nothing_is_published_beyond_loopback() -> None:
    published = {}
    for name, service in load(SECRETS)["services"].items():
        assert service.get("network_mode") is None
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), (name, port)
            published[name] = port
    assert set(published) == {"gateway", "prometheus", "grafana"}
    closed = {name for name, how in raw()["networks"].items() if (how or {}).get("internal")}
    assert closed == {"bus", "database", "metrics"}
    assert set(load(SECRETS)["services"]["redis"]["networks"]) <= closed
    assert set(load(SECRETS)["services"]["postgres"]["networks"]) <= closed


def test_secrets_are_asked_for_and_not_in_the_file() -> None:
    for name in SECRETS:
        with pytest.raises(Missing, match=f"{name}: set it in .env, see deploy/env.example"):
            load({key: value for key, value in SECRETS.items() if key != name})
    secret = re.compile(r"PASSWORD|TOKEN|SECRET|DATABASE|REJOINDER_REDIS")
    for name, service in raw()["services"].items():
        for key, value in service.get("environment", {}).items():
            if secret.search(key):
                assert re.search(r"\$\{\w+:\?", value), f"{name}: {key}"


@pytest.mark.parametrize("change", [None, *CHANGES])
def test_the_bus_can_be_reached(change: str | None) -> None:
    """It is on a network with those who need it; or it is elsewhere, and they have a way out."""
    made = load(SECRETS | CHANGES.get(change or "", {}), *([change] if change else []))
    services = {n: s for n, s in made["services"].items() if not s.get("profiles")}
    for name in ("learner", "worker"):
        service = services[name]
        server = urllib.parse.urlsplit(service["environment"]["REJOINDER_REDIS"]).hostname
        if server in services:
            assert set(service["networks"]) & set(services[server]["networks"])
        else:
            ways = (made["networks"][network] for network in service["networks"])
            assert any(not (way or {}).get("internal") for way in ways), name
        for wanted, how in service["depends_on"].items():
            assert wanted in services or how["required"] is False
    assert ("redis" in services) == (change != "redis-elsewhere")


def test_the_bus_is_published_at_the_given_address_with_tls() -> None:
    changes = ("redis-tls", "redis-published")
    given = {key: value for name in changes for key, value in CHANGES[name].items()}
    made = load(SECRETS | given, *changes)
    redis = made["services"]["redis"]
    assert redis["ports"] == ["10.0.0.5:6379:6379"]
    assert "REDIS_CERTIFICATES" in redis["environment"]
    assert any(not (made["networks"][name] or {}).get("internal") for name in redis["networks"])
    with pytest.raises(Missing, match="REDIS_ADDRESS"):
        load(SECRETS | CHANGES["redis-tls"], *changes)


def test_everybody_has_the_certificates_he_needs() -> None:
    services = load(SECRETS | CHANGES["redis-tls"], "redis-tls")["services"]
    mounted = {
        name: {v.split(":")[1]: v.split(":")[0] for v in services[name].get("volumes", ())}
        for name in ("redis", "learner", "worker")
    }
    folder = services["redis"]["environment"]["REDIS_CERTIFICATES"]
    assert mounted["redis"][folder] == "/certificates"
    for name in ("learner", "worker"):
        url = urllib.parse.urlsplit(services[name]["environment"]["REJOINDER_REDIS"])
        assert url.scheme == "rediss"
        (authority,) = urllib.parse.parse_qs(url.query)["ssl_ca_certs"]
        assert mounted[name][authority] == "/certificates/ca.crt"
        assert "/certificates" not in mounted[name].values(), "the key is the server's"


def test_the_example_has_every_variable_and_no_secret() -> None:
    example = (ROOT / "deploy/env.example").read_text("utf-8")
    told = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", example, re.MULTILINE))
    files = [ROOT / "compose.yaml", *(ROOT / "deploy/compose").iterdir()]
    used = {v for f in files for v in re.findall(r"\$\{(\w+)", f.read_text("utf-8"))}
    assert set(told) == used | {"COMPOSE_FILE"}
    for name in CHANGES:
        assert re.search(rf"\n#COMPOSE_FILE=compose.yaml:\S*deploy/compose/{name}.yaml\n", example)
    assert all(told[name] == "" for name in SECRETS)
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    assert ".env" in ignored
    assert (ROOT / ".dockerignore").read_text("utf-8").splitlines()[1] == "*"


def test_volumes_are_named_or_in_the_repository() -> None:
    composed = load(SECRETS)
    used = set()
    for service in composed["services"].values():
        for volume in service.get("volumes", []):
            source, _, *mode = volume.split(":")
            if source.startswith("."):
                assert (ROOT / source).exists(), source
                assert mode == ["ro"]
            else:
                used.add(source)
    assert used == set(composed["volumes"]) == {"runs", "postgres", "prometheus", "grafana"}


def test_the_gateway_only_reads_the_runs() -> None:
    services = load(SECRETS)["services"]
    (written,), (read,) = services["learner"]["volumes"], services["gateway"]["volumes"]
    assert read == f"{written}:ro"


def test_images_are_pinned() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, service in load(SECRETS)["services"].items():
        tag = service["image"].rpartition(":")[2]
        assert re.match(r"v?\d+\.\d+", tag), name
        if name in OWN:
            assert service["build"] | {"target": name} == service["build"]
            assert tag == version


def test_prometheus_finds_everybody() -> None:
    services = load(SECRETS)["services"]
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
    port = services["learner"]["environment"]["REJOINDER_METRICS_PORT"]
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert set(jobs) == {f"rejoinder-{name}" for name in OWN}
    assert jobs["rejoinder-learner"]["static_configs"] == [{"targets": [f"learner:{port}"]}]
    (by_name,) = jobs["rejoinder-worker"]["dns_sd_configs"]
    assert (by_name["names"], by_name["type"], str(by_name["port"])) == (["worker"], "A", port)
    gateway = services["gateway"]["environment"]
    (at,) = jobs["rejoinder-gateway"]["static_configs"][0]["targets"]
    assert at == f"gateway:{gateway['REJOINDER_GATEWAY_PORT']}"
    assert "gateway" in gateway["REJOINDER_GATEWAY_HOSTS"].split(",")
    for name in (*OWN, "grafana"):
        assert set(services[name]["networks"]) & set(services["prometheus"]["networks"])


@needs_prometheus
def test_prometheus_takes_its_config() -> None:
    promtool("check", "config", ROOT / "deploy/prometheus/prometheus.yml")


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    services = load(SECRETS)["services"]
    provisioning = ROOT / "deploy/grafana/provisioning"
    (source,) = _read(provisioning / "datasources")["datasources"]
    port = services["prometheus"]["ports"][0].rpartition(":")[2]
    assert source["url"] == f"http://prometheus:{port}"
    (provider,) = _read(provisioning / "dashboards")["providers"]
    mounts = [volume.split(":")[:2] for volume in services["grafana"]["volumes"]]
    mounted = {target: source for source, target in mounts}
    assert mounted[provider["options"]["path"]] == "./deploy/grafana/dashboards"
    assert mounted["/etc/grafana/provisioning"] == "./deploy/grafana/provisioning"


def _read(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*.yml")
    read: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return read


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a $$HOME b", "a $HOME b"),
        ("${A}-${B:-none}", "1-none"),
        ("${B:-x${A:?never}y}", "x1y"),
        ("${A:-${B:?not asked}}", "1"),
        ("no { braces }", "no { braces }"),
    ],
)
def test_variables(text: str, result: str) -> None:
    assert interpolate(text, {"A": "1", "B": ""}) == result


# The bus


def test_the_bus_has_one_user_who_can_do_little_harm(tmp_path: Path) -> None:
    with bus(tmp_path) as port:
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()
        with pytest.raises(redis.AuthenticationError):
            bus_client(port, password="guessed").ping()
        client: Any = bus_client(port)
        assert client.set("rejoinder:x", "1")
        assert client.info("server")
        for forbidden in (
            ["SET", "others:x", "1"],
            ["FLUSHALL"],
            ["CONFIG", "GET", "*"],
            ["CONFIG", "SET", "dir", "/"],
            ["EVAL", "return 1", "0"],
            ["SHUTDOWN"],
            ["KEYS", "*"],
            ["ACL", "LIST"],
            ["REPLICAOF", "host", "1"],
            ["PUBLISH", "others", "x"],
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*forbidden)
        seen = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        assert SECRETS["REDIS_PASSWORD"] not in seen


@pytest.mark.parametrize("tls", [False, True])
def test_server_and_health_check_agree_on_tls(tmp_path: Path, tls: bool) -> None:
    """What the scripts tell the programs, of which these are stand-ins."""
    for name in ("server", "cli"):
        stand_in = tmp_path / f"valkey-{name}"
        stand_in.write_text(f'#!/bin/sh\necho PONG "$@" | tee {tmp_path}/{name}\n', "utf-8")
        stand_in.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.defpath}", "REDIS_PASSWORD": SECRETS["REDIS_PASSWORD"]}
    environment |= {"REDIS_CERTIFICATES": "/certificates"} if tls else {}
    for script in ("start.sh", "ping.sh"):
        subprocess.run(bus_script(script), env=environment, check=True, stdout=subprocess.DEVNULL)
    server, client = ((tmp_path / name).read_text("utf-8") for name in ("server", "cli"))
    assert SECRETS["REDIS_PASSWORD"] not in server + client
    assert ("--tls --cacert /certificates/ca.crt" in client) == tls
    assert ("--port 0 --tls-port 6379" in server) == tls
    assert server.count("/certificates/") == 3 * tls


@pytest.mark.skipif(
    not (program("server") and program("cli")),
    reason="no server with TLS here; `apt install redis-server` (or valkey)",
)
def test_the_bus_speaks_tls_and_is_healthy(tmp_path: Path) -> None:
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(certificates / "ca.crt")
    own = authority.issue_cert("redis", "localhost", "127.0.0.1")
    own.private_key_pem.write_to_path(certificates / "tls.key")
    own.cert_chain_pems[0].write_to_path(certificates / "tls.crt")
    service = load(SECRETS | CHANGES["redis-tls"], "redis-tls")["services"]["learner"]
    url = service["environment"]["REJOINDER_REDIS"]
    with bus(tmp_path, certificates) as port:
        here = url.replace("@redis:6379", f"@127.0.0.1:{port}")
        there = "/etc/redis-tls/ca.crt"
        assert connect(here.replace(there, f"{certificates}/ca.crt")).ping()
        with pytest.raises(BusError):  # it is not an authority that everybody trusts
            connect(here.partition("?")[0])
        (tmp_path / "bin/valkey-cli").symlink_to(str(program("cli")))
        environment = {
            "PATH": f"{tmp_path}/bin:{os.defpath}",
            "REDIS_PASSWORD": SECRETS["REDIS_PASSWORD"],
            "REDIS_CERTIFICATES": str(certificates),
        }
        ask = [*bus_script("ping.sh"), "-p", str(port)]
        assert subprocess.run(ask, env=environment).returncode == 0
        for wrong in ("REDIS_CERTIFICATES", "REDIS_PASSWORD"):
            changed = environment | {wrong: ""}
            assert subprocess.run(ask, env=changed, capture_output=True).returncode != 0, wrong


# The stack


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The servers that are not the project's own: a bus as the file starts it, and PostgreSQL."""
    with bus(tmp_path_factory.mktemp("bus")) as port, postgresql() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE rejoinder")
        at = url.rpartition("@")[2].partition("/")[0]
        yield {"redis:6379": f"127.0.0.1:{port}", "postgres:5432": at}


@pytest.mark.slow
@pytest.mark.timeout(900)  # on a new machine all kernels are compiled first
def test_the_stack_trains_answers_and_scales(
    tmp_path: Path, addresses: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = " ".join(f"--set {name}={value}" for name, value in SETTINGS.items())
    variables = {"RUN_CONFIG": "paper", "RUN_NAME": RUN, "RUN_OPTIONS": options}
    with composed(tmp_path, variables, addresses) as stack:
        (learner,), (gateway,) = stack.up("learner"), stack.up("gateway")
        stack.up("worker")
        for container in stack.containers:
            container.wait_until_healthy()

        # It trains, and the gateway says so.
        assert eventually(lambda: standing(gateway).get("games", 0) > 100, 120), learner.said()
        assert eventually(lambda: stands(gateway, "running", 1)), standing(gateway)
        alone = speed(stack.containers, learner, gateway)

        # docker compose up --scale worker=3
        workers = stack.up("worker", scale=3)
        for worker in workers:
            worker.wait_until_healthy()
        assert eventually(lambda: stands(gateway, "running", 3), 120), standing(gateway)
        before = [played(worker) for worker in workers]
        assert eventually(
            lambda: all(played(w) > n for w, n in zip(workers, before, strict=True)), 120
        ), "each plays"
        together = speed(stack.containers, learner, gateway)
        with capsys.disabled():  # what others do here decides how fast, so nothing is asked of it
            print(f"\n{verdict(alone, together)}\n{memory(stack.containers)}")

        # A learner that dies is started again, as its restart policy has it, and goes on.
        learner.kill()
        learner.start()
        learner.wait_until_healthy()
        seen = standing(gateway)["games"]
        assert eventually(lambda: standing(gateway)["games"] > seen + 60, 120), learner.said()

        # The gateway plays against what is being trained, and its games are in PostgreSQL.
        assert eventually(lambda: standing(gateway)["snapshots"], 60)
        play(gateway)

        # A backup while it trains.
        with suppress(shutil.Error):  # some files vanish meanwhile
            shutil.copytree(tmp_path / "runs" / RUN, tmp_path / "backup")
        assert restored_games(gateway) == 1

        # Stopping loses nothing; what was learned is what one process would have learned.
        assert [worker.stop() for worker in workers] == [0, 0, 0]
        assert learner.stop() == 130, learner.said()
        assert "Traceback" not in "".join(container.said() for container in stack.containers)
        run = RunDir.open(tmp_path / "runs" / RUN)
        games = max(run.checkpoint_games())
        assert games > 200
        assert eventually(lambda: standing(gateway)["state"] == "stopped")
        digest = gateway.get_json(f"/api/v1/runs/{RUN}")["digest"]
        assert gateway.stop() in (0, -signal.SIGTERM)  # it closes, then lets the signal act
    config = load_config("paper", [f"{n}={v}" for n, v in (SETTINGS | {"games": games}).items()])
    assert train(RunDir.create(tmp_path / "alone", config)).digest == digest
    backup = RunDir.open_or_create(tmp_path / "backup", config)
    assert train(backup).digest == digest, "it goes on as the run did"


def standing(gateway: Container) -> dict[str, Any]:
    runs = gateway.get_json("/api/v1/runs")["runs"]
    return runs[0] if runs else {}


def stands(gateway: Container, state: str, workers: int) -> bool:
    now = standing(gateway)
    return (now["state"], now["alive"], len(now["workers"])) == (state, True, workers)


def played(worker: Container) -> float:
    return worker.metric("rejoinder_worker_games_total")


def speed(containers: list[Container], learner: Container, gateway: Container) -> dict[str, float]:
    """Games a second, by the gateway; meanwhile the shares of this machine's cores that the stack
    and that others have used, and the depth of the queue, by which workers are scaled."""
    games, used, began = standing(gateway)["games"], core_seconds(containers), time.monotonic()
    busy = busy_seconds()
    depths = []
    while (seconds := time.monotonic() - began) < WINDOW:
        depths.append(learner.metric("rejoinder_learner_queue_depth"))
        time.sleep(0.25)
    cores = (core_seconds(containers) - used) / seconds / CORES
    return {
        "games": (standing(gateway)["games"] - games) / seconds,
        "cores": cores,
        "others": (busy_seconds() - busy) / seconds / CORES - cores,
        "queue": sum(depths) / len(depths),
    }


def busy_seconds() -> float:
    """That the cores of this machine have worked, for whomever."""
    user, nice, system = Path("/proc/stat").read_text("ascii").split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def core_seconds(containers: list[Container]) -> float:
    """Of these processes; what else runs here does not count."""
    return sum(container.metric("process_cpu_seconds_total") for container in containers)


def verdict(alone: dict[str, float], together: dict[str, float]) -> str:
    """What scaling has brought, or what it was limited by."""
    ratio = together["games"] / (alone["games"] or math.nan)
    limit = f"; the {CORES} cores are the limit" if is_limit(together) else ""
    told = "{games:.1f} games/s, {queue:.1f} leases waiting, {cores:.0%} of the cores in use"
    told += ", {others:.0%} by others"
    return (
        f"1 worker: {told.format(**alone)}\n"
        f"3 workers: {told.format(**together)}: {ratio:.2f} times as fast{limit}"
    )


def is_limit(together: dict[str, float]) -> bool:
    """Whether there was hardly a core left for more workers."""
    return together["cores"] + together["others"] > 0.85


def memory(containers: list[Container]) -> str:
    used = {c.name: c.metric("process_resident_memory_bytes") / 2**20 for c in containers}
    return "memory: " + ", ".join(f"{name} {size:.0f} MiB" for name, size in used.items())


def play(gateway: Container) -> None:
    import httpx2

    with httpx2.Client(base_url=f"http://127.0.0.1:{gateway.port}", timeout=60) as client:
        answer = client.post("/api/v1/games", json={"opponent": {"run": RUN}})
        assert answer.status_code == 201, answer.text
        game, headers = (
            answer.json()["game"],
            {"Authorization": f"Bearer {answer.json()['secret']}"},
        )
        move = {"move_number": game["move_number"], "move": game["legal"][0]["name"]}
        path = f"/api/v1/games/{game['id']}/moves"
        assert client.post(path, json=move, headers=headers).status_code == 200
        results = "/api/v1/results?format=json"
        token = {"Authorization": f"Bearer {SECRETS['GATEWAY_ADMIN_TOKEN']}"}
        assert client.get(results, headers=token).status_code == 200
        wrong = {"Authorization": f"Bearer {ADMIN}"}
        assert client.get(results, headers=wrong).status_code in (401, 403)


def tool(name: str) -> Path:
    """A program of PostgreSQL's, of the newest version that is here."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    places += [Path(found) for found in (shutil.which(name),) if found]
    return places[0]


def restored_games(gateway: Container) -> int:
    """How many games are in a backup of the database, once it is restored into another one."""
    url = gateway.environment["REJOINDER_GATEWAY_DATABASE"]
    server = url.rpartition("/")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored")
    dump: list[str | Path] = [tool("pg_dump"), "--format", "custom", "--dbname", url]
    backup = subprocess.run(dump, capture_output=True, check=True).stdout
    restore: list[str | Path] = [tool("pg_restore"), "--clean", "--if-exists", "--dbname"]
    subprocess.run([*restore, f"{server}/restored"], input=backup, check=True)
    with psycopg.connect(f"{server}/restored") as connection:
        (found,) = connection.execute("SELECT count(*) FROM games").fetchone() or (0,)
    return int(found)
