"""The commands of the runtime, as processes: what a person at a terminal gets."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import refused, run, run_json
from tls_proxy import tls_front

from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir, is_run
from rejoinder.transport.bus import Bus
from rejoinder.transport.connection import connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder_cli.commands.train import latest_exploitability, latest_figures
from rejoinder_cli.supervise import ChildError, Household
from rejoinder_learner.sequential import train

REJOINDER = [sys.executable, "-m", "rejoinder_cli.main"]
_LITTLE = ["tiny", "--set", "eval_games=20", "--set", "checkpoint_every=50"]
SLOW = [*_LITTLE, "--set", "method.rollouts=200"]
TINY = [*_LITTLE, "--set", "method.rollouts=2"]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of 300 games, trained in one process."""
    return digest_of(TINY, tmp_path_factory.mktemp("sequential"))


@pytest.fixture(scope="module")
def expected_slow(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same of a run that lasts long enough to be disturbed."""
    return digest_of(SLOW, tmp_path_factory.mktemp("sequential"))


def digest_of(config: list[str], folder: Path) -> str:
    alone = ["--games", "300", "--mode", "sequential", "--run", str(folder / "run")]
    return str(run_json("train", *config, *alone)["digest"])


class Started:
    """A command under way."""

    def __init__(self, *arguments: str | Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*REJOINDER, *map(str, arguments)],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=180)
        return self.process.returncode, out, err


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    """Starts commands; what is still running at the end of the test is ended."""
    started: list[Started] = []

    def begin(*arguments: str | Path, **environment: str) -> Started:
        started.append(Started(*arguments, **environment))
        return started[-1]

    yield begin
    for command in started:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


def until(condition: Callable[[], Any], seconds: float = 180.0) -> Any:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return value


def said(path: Path, name: str) -> Any:
    """What the learner says of itself, once it does."""
    return RunDir.open(path).status().get(name) if is_run(path) else None


def games_of(path: Path) -> int:
    return said(path, "games") or 0


def children_of(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.parametrize("workers", [1, 3])
def test_training_with_workers_gives_the_digest_of_sequential_training(
    tmp_path: Path, expected: str, workers: int
) -> None:
    arguments = ["train", *TINY, "--games", "300", "--run", str(tmp_path / "run")]
    told = run_json(*arguments, "--workers", str(workers))
    assert (told["digest"], told["finished"], told["mode"]) == (expected, True, "ordered")
    assert RunDir.open(tmp_path / "run").metrics()[-1]["matches"].keys() == {
        "random",
        "risk-aware",
    }


def test_an_existing_server_is_used_and_left_as_it_was(
    tmp_path: Path, expected: str, own_server: EmbeddedServer
) -> None:
    client = connect(own_server.url + "?db=3")
    client.set("somebody's", "key")
    path = tmp_path / "run"
    arguments = ["--games", "300", "--run", str(path), "--workers", "2"]
    told = run_json("train", *TINY, *arguments, "--redis", own_server.url + "?db=3")
    assert told["digest"] == expected
    keys = {key.decode() for key in client.keys("*")} - {"somebody's"}
    name = RunDir.open(path).id
    assert keys
    assert all(name in key or key in ("rejoinder:runs", "rq:queues") for key in keys)
    assert client.dbsize() == len(keys) + 1
    assert connect(own_server.url).dbsize() == 0  # database 0
    cleaned = run_json("clean", path, "--redis", own_server.url + "?db=3")
    assert cleaned["run_id"] == name
    assert {key.decode() for key in client.keys("*")} <= {"somebody's"}


def test_learner_and_workers_as_single_processes(
    tmp_path: Path, expected_slow: str, own_server: EmbeddedServer, start: Callable[..., Started]
) -> None:
    path = tmp_path / "run"
    worker = start("worker", "--redis", own_server.url, "--name", "early")
    learner = start(
        "learner", *SLOW, "--games", "300", "--run", path, "--json", REJOINDER_REDIS=own_server.url
    )
    until(lambda: games_of(path) > 0)
    assert "early" in run_json("workers", path)["runs"][RunDir.open(path).id]
    assert run_json("status", path)["games"] > 0
    code, out, _ = learner.finish()
    assert code == 0
    assert json.loads(out.splitlines()[-1])["digest"] == expected_slow
    assert worker.process.poll() is None  # it waits for the next run
    worker.process.send_signal(signal.SIGTERM)
    code, _, err = worker.finish()
    assert code == 0
    assert "early stops" in err


def test_up_starts_everything_and_lets_workers_join(
    tmp_path: Path, expected: str, start: Callable[..., Started]
) -> None:
    path = tmp_path / "run"
    arguments = ["--games", "300", "--run", path, "--workers", "0", "--no-gateway", "--json"]
    everything = start("up", *TINY, *arguments)
    url = until(lambda: said(path, "redis"))
    until(lambda: run_json("status", path)["state"] == "waiting for workers")
    worker = start("worker", "--redis", url, "--run-id", RunDir.open(path).id)
    code, out, _ = everything.finish()
    told = json.loads(out.splitlines()[-1])
    assert (code, told["finished"], told["games"]) == (0, True, 300)
    assert run_json("digest", path)["digest"] == expected
    worker.process.kill()


def test_workers_that_joined_an_up_end_some_time_after_it(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    """Its server is gone for good; one of them was at work, the other waited for another run."""
    path = tmp_path / "run"
    everything = start(
        "up", *TINY, "--games", "100000", "--run", path, "--workers", "0", "--no-gateway"
    )
    url = until(lambda: said(path, "redis"))
    joining = ["worker", "--redis", url, "--give-up-after", "0.5", "--run-id"]
    workers = [start(*joining, RunDir.open(path).id), start(*joining, "another")]
    until(lambda: games_of(path) > 20)
    everything.process.kill()
    for worker in workers:
        code, _, err = worker.finish()
        assert code == 4
        assert (
            f"rejoinder: the server at {url} has been away for 0.5 seconds" in err.splitlines()[-1]
        )


@pytest.mark.slow
def test_up_serves_the_run_also_when_it_is_finished(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    path = tmp_path / "runs" / "mine"
    arguments = ["--games", "300", "--run", path, "--workers", "1", "--port", "0"]
    everything = start("up", *TINY, *arguments, PYTHONUNBUFFERED="1")
    output = everything.process.stdout
    assert output

    def line_with(text: str) -> str:
        while text not in (line := output.readline()):
            assert line, "it ended"
        return line

    address = line_with("the page and the API: ").split()[-1]
    until(lambda: run_of(address, "mine").get("state") == "finished")
    assert run_of(address, "mine")["games"] == 300
    line_with("finished; the page stays")
    everything.process.send_signal(signal.SIGINT)
    code, _, err = everything.finish()
    assert (code, err) == (0, "stopping; once more ends at once\n"), "no game is under way"


def run_of(address: str, name: str) -> dict[str, Any]:
    """A run as the gateway tells it; empty while it does not answer."""
    try:
        with urllib.request.urlopen(f"{address}/api/v1/runs/{name}", timeout=60) as answer:
            told: dict[str, Any] = json.load(answer)
            return told
    except OSError:
        return {}


@pytest.mark.slow
def test_demo_trains_once_and_serves_the_page(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    path = tmp_path / "runs" / "demo"
    for trained in (True, False):
        demo = start("demo", "--run", path, "--port", "0", PYTHONUNBUFFERED="1")
        assert demo.process.stdout
        lines: list[str] = []
        while not (lines and "the gateway is at" in lines[-1]):
            lines.append(demo.process.stdout.readline())
            assert lines[-1], "it ended"
        assert any("digest" in line for line in lines) == trained
        address = lines[-1].split()[4].rstrip(",")
        with urllib.request.urlopen(address, timeout=60) as page:
            assert b"<html" in page.read()
        assert run_of(address, "demo")["state"] == "finished"
        demo.process.send_signal(signal.SIGINT)
        assert demo.finish()[0] == 0


def test_ctrl_c_saves_and_tells_how_to_resume(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    path = tmp_path / "run"
    training = start("train", *TINY, "--games", "100000", "--workers", "2", "--run", path)
    until(lambda: games_of(path) > 20)
    children = children_of(training.process.pid)
    training.process.send_signal(signal.SIGINT)
    code, out, _ = training.finish()
    assert code == 130
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    stopped = run_json("digest", path)["games"]
    assert 20 < stopped < 100_000
    command = re.search(r"to go on: (rejoinder .*)", out)
    assert command
    more = ["--games", str(stopped + 30)]
    resumed = run_json(*command[1].split()[1:], *more, "--workers", "1")
    alone = run_json("train", *TINY, *more, "--run", tmp_path / "b", "--mode", "sequential")
    assert (resumed["digest"], resumed["games"]) == (alone["digest"], stopped + 30)
    assert run_json("status", path)["state"] == "finished"


def test_killed_children_are_started_again(
    tmp_path: Path, expected_slow: str, start: Callable[..., Started]
) -> None:
    path = tmp_path / "run"
    training = start("train", *SLOW, "--games", "300", "--workers", "2", "--run", path)
    until(lambda: games_of(path) > 20)
    for pid in children_of(training.process.pid):  # the server and both workers
        os.kill(pid, signal.SIGKILL)
    code, out, err = training.finish()
    assert code == 0, err
    assert expected_slow in out
    assert "the embedded server died" in err
    assert "worker-1 died (SIGKILL)" in err


def test_a_run_that_is_being_trained_is_left_alone(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    path = tmp_path / "run"
    training = start("train", *TINY, "--games", "100000", "--workers", "1", "--run", path)
    until(lambda: games_of(path) > 0)
    for arguments in (
        ["train", *TINY, "--overwrite"],
        ["train", *TINY, "--resume"],
        ["train", *TINY, "--resume", "--mode", "sequential"],
        ["up", *TINY],
    ):
        command = [*arguments, "--games", "100000", "--run", str(path)]
        assert "is being trained by another process" in refused(*command)
    assert training.process.poll() is None
    training.process.send_signal(signal.SIGINT)
    assert training.finish()[0] == 130
    assert run_json("verify", path, "--sample", "0.1")["verified"]


def test_a_run_whose_own_server_has_ended_has_nothing_to_clean(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_json("train", *TINY, "--games", "20", "--run", path, "--workers", "1")
    assert run_json("clean", path)["removed"] == 0
    assert run_json("workers", path)["runs"] == {}


def test_a_worker_looks_for_a_run_that_has_a_learner(
    tmp_path: Path, expected: str, own_server: EmbeddedServer, start: Callable[..., Started]
) -> None:
    config = load_config("tiny")
    for name, kernel in (("aaa-abandoned", config.kernel), ("bbb-other-version", "another")):
        Bus(connect(own_server.url), name).announce(
            {
                "fingerprint": config.fingerprint,
                "kernel": kernel,
                "config": config.model_dump(mode="json"),
                "finished": False,
            }
        )
    Bus(connect(own_server.url), "bbb-other-version").claim()
    worker = start("worker", "--redis", own_server.url)
    told = run_json(
        *("train", *TINY, "--games", "300", "--workers", "0", "--run", str(tmp_path / "zzz")),
        *("--redis", own_server.url),
    )
    assert told["digest"] == expected
    worker.process.send_signal(signal.SIGTERM)
    assert worker.finish()[0] == 0


def test_nothing_outlives_a_killed_trainer(tmp_path: Path, start: Callable[..., Started]) -> None:
    path = tmp_path / "run"
    training = start("train", *TINY, "--games", "100000", "--workers", "2", "--run", path)
    until(lambda: games_of(path) > 0)
    children = children_of(training.process.pid)
    assert len(children) == 3
    training.process.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


def test_a_server_that_stays_away_ends_the_run_with_everything_saved(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    path = tmp_path / "run"
    with EmbeddedServer(tmp_path / "server.log") as lost:
        arguments = ["--games", "100000", "--workers", "1", "--run", path, "--redis", lost.url]
        training = start("train", *TINY, *arguments, "--patience", "0.5")
        until(lambda: games_of(path) > 20)
        lost.kill()
        code, _, err = training.finish()
    assert code == 4
    last = err.splitlines()[-1]
    assert last.startswith("rejoinder: the Redis server cannot be used")
    assert "--resume" in last
    saved = run_json("digest", path)["games"]
    assert 20 < saved < 100_000
    more = ["--games", str(saved + 30)]
    alone = run_json("train", *TINY, *more, "--run", tmp_path / "b", "--mode", "sequential")
    resumed = run_json("train", *TINY, *more, "--run", path, "--resume")
    assert resumed["digest"] == alone["digest"]


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)


def test_a_full_disk_costs_no_games(tmp_path: Path, start: Callable[..., Started]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small disk can be made by root only: run the tests as root")
    try:
        path, filler = disk / "run", disk / "filler"
        training = start("train", *TINY, "--games", "100000", "--run", path, "--workers", "1")
        until(lambda: said(path, "checkpoint"))
        with pytest.raises(OSError, match="No space"):
            fill(filler)
        assert training.process.stderr
        reports = iter(training.process.stderr)
        report = next(line for line in reports if "no checkpoint" in line)
        saved = run_json("digest", path)["games"]
        assert f"No space left on device; the one at game {saved:,} holds" in report
        training.process.send_signal(signal.SIGINT)
        code, _, err = training.finish()
        assert code == 2
        assert "could not be written" in err.splitlines()[-1]
        filler.unlink()
        assert run_json("digest", path)["games"] == saved
        more = ["--games", str(saved + 30)]
        alone = run_json("train", *TINY, *more, "--run", tmp_path / "b", "--mode", "sequential")
        assert (
            run_json("train", *TINY, *more, "--run", path, "--resume")["digest"]
            == (alone["digest"])
        )
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_worker_of_another_version_is_refused(
    tmp_path: Path, server: EmbeddedServer, start: Callable[..., Started]
) -> None:
    config = load_config("tiny")
    bus = Bus(connect(server.url), "other-version-1")
    bus.announce(
        {
            "fingerprint": config.fingerprint,
            "kernel": "another",
            "config": config.model_dump(mode="json"),
            "finished": False,
        }
    )
    code, _, err = start("worker", "--redis", server.url, "--run-id", bus.run).finish()
    bus.clean()
    assert code == 3
    assert "kernels another" in err.splitlines()[-1]
    assert "install the same version" in err.splitlines()[-1]


SERVERS = {
    "not-a-url": "is not the URL of a Redis server",
    "http://127.0.0.1:1": "is not the URL of a Redis server",
    "redis://:secret@127.0.0.1:1/0": "no Redis server answers at redis://127.0.0.1:1/0",
    "redis://:secret@127.0.0.1:none/0": "is not the URL of a Redis server",
}


@pytest.mark.parametrize("url", SERVERS)
@pytest.mark.parametrize("command", ["train", "learner", "up"])
def test_a_server_that_cannot_be_used_costs_nothing(tmp_path: Path, url: str, command: str) -> None:
    path = tmp_path / "run"
    result = run(command, "tiny", "--run", path, "--redis", url)
    assert result.exit_code == (2 if "is not the URL" in SERVERS[url] else 4)
    (line,) = result.stderr.splitlines()
    assert SERVERS[url] in line
    assert "secret" not in line
    assert not path.exists()


def test_a_wrong_password_is_refused(tmp_path: Path, server: EmbeddedServer) -> None:
    client = connect(server.url)
    client.execute_command("ACL", "SETUSER", "ada", "on", ">sesame", "~*", "&*", "+@all")
    try:
        path = tmp_path / "run"
        host = server.url.removeprefix("unix://")
        wrong = run("train", "tiny", "--run", path, "--redis", f"unix://ada:open@{host}")
        assert wrong.exit_code == 4
        assert "refuses us" in wrong.stderr
        assert "open" not in wrong.stderr
        right = f"unix://ada:sesame@{host}"
        told = run_json("train", *TINY, "--games", "50", "--run", path, "--redis", right)
        assert told["games"] == 50
        assert "sesame" not in (path / "status.json").read_text("utf-8")
    finally:
        client.execute_command("ACL", "DELUSER", "ada")


def test_tls_with_a_password_and_only_if_trusted(
    tmp_path: Path, expected: str, own_server: EmbeddedServer
) -> None:
    connect(own_server.url).execute_command("CONFIG", "SET", "requirepass", "sesame")
    socket = Path(own_server.url.removeprefix("unix://"))
    with tls_front(socket, tmp_path) as (port, authority):
        url = f"rediss://:sesame@localhost:{port}/1"
        arguments = [
            "train",
            *TINY,
            "--games",
            "300",
            "--workers",
            "2",
            "--run",
            str(tmp_path / "run"),
        ]
        untrusted = run(*arguments, "--redis", url)
        assert untrusted.exit_code == 4
        assert "certificate verify failed" in untrusted.stderr
        told = run_json(*arguments, "--redis", f"{url}?ssl_ca_certs={authority}")
        assert told["digest"] == expected


def test_runs_of_another_config_or_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_json("train", *TINY, "--games", "40", "--run", path, "--workers", "1")
    other = refused("train", *TINY, "--seed", "9", "--run", path, "--resume")
    assert "seed is 1 there and 9 here" in other
    unordered = refused("train", *TINY, "--mode", "unordered", "--run", path, "--resume")
    assert "order is 'index' there and 'arrival' here" in unordered
    assert run_json("digest", path)["games"] == 40


def test_workers_that_all_refuse_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody else plays, or the run is over."""
    monkeypatch.setattr(Household, "add_workers", add_misguided_workers)
    monkeypatch.setattr("rejoinder_cli.supervise._ALONE", 0.5)
    arguments = ("--workers", "2", "--run", tmp_path / "run")
    ended = run("train", *TINY, *arguments)
    assert ended.exit_code == 5
    assert "no worker can go on; its last words: " in ended.stderr
    assert "no such option" in ended.stderr.lower()


def test_workers_that_refuse_do_not_end_a_run_that_others_play(tmp_path: Path) -> None:
    run_made, told = RunDir.create(tmp_path / "run", load_config("tiny")), list[str]()
    status = {"state": "training", "workers": {"another": {"games": 1}}}
    with Household(run_made, None, told.append) as household:
        add_misguided_workers(household, 1)
        until(lambda: household._workers[0].exit_code is not None)
        for state in (status, {"state": "finished", "workers": {}}):
            run_made.write_status(state)
            household._alone_since = time.monotonic() - 60
            household.tend()
            assert household._alone_since is None
        run_made.write_status({"state": "training", "workers": {}})
        household.tend()
        household._alone_since = time.monotonic() - 60
        with pytest.raises(ChildError, match="no worker can go on"):
            household.tend()
    assert len(told) == 1


def add_misguided_workers(household: Household, count: int) -> None:
    for n in range(count):
        household._workers.append(household.add(f"worker-{n}", "worker", "--no-such-option"))


def test_figures_of_a_stopped_training_name_the_point_they_were_measured_at(
    tmp_path: Path,
) -> None:
    config = load_config("kuhn", {"games": 10_000, "eval_every": 4_000, "eval_games": 10})
    directory = RunDir.create(tmp_path / "run", config)
    parts = iter(range(6))
    stopped = train(directory, should_stop=lambda: next(parts, None) is None)
    assert 4_000 < stopped.games < 8_000
    told = latest_exploitability(directory, stopped.games)
    assert told["exploitability_after"] == 4_000
    lines = latest_figures(directory, stopped.games)
    assert len(lines) == 2
    assert all(line.rstrip(")").endswith(", after 4,000 iterations") for line in lines)
    train(directory)
    assert latest_exploitability(directory, 10_000).keys() == {"exploitability"}
    assert not any("after" in line for line in latest_figures(directory, 10_000))


def test_a_run_without_its_checkpoints_is_trained_again(tmp_path: Path) -> None:
    alone = ("--games", "100", "--mode", "sequential", "--run", str(tmp_path / "r"))
    arguments = ("train", *TINY, *alone)
    before = run_json(*arguments)
    shutil.rmtree(tmp_path / "r" / "checkpoints")
    after = run_json(*arguments, "--resume")
    assert after["digest"] == before["digest"]
    assert run_json("verify", tmp_path / "r")["verified"]


def test_a_run_of_few_snapshots_gets_a_warning(tmp_path: Path) -> None:
    few = ("train", "leduc", "--mode", "sequential", "--run", tmp_path / "run")
    told = run(*few, "--iterations", "60000", "--set", "eval_every=0")
    assert told.exit_code == 0
    assert "snapshots: only 1 in 60,000 iterations, one after each 40,000" in told.stderr


@pytest.mark.slow
def test_kernels_of_a_method_with_requirements_are_compiled_beforehand() -> None:
    assert run_json("warm", "kuhn", "--no-gateway")["files"] > 0


def test_unordered_training_folds_every_game_once(tmp_path: Path) -> None:
    path = tmp_path / "run"
    told = run_json(
        "train", *TINY, "--games", "150", "--run", path, "--workers", "2", "--mode", "unordered"
    )
    assert (told["games"], told["finished"]) == (150, True)
    assert sorted(RunDir.open(path).ledger()["unit"].tolist()) == list(range(150))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "tiny", "--mode", "sequential", "--workers", "2"], "sequential training has"),
        (["learner", "tiny"], "--redis"),
        (["learner", "tiny", "--mode", "sequential", "--redis", "x"], "--mode"),
        (["up", "tiny", "--mode", "sequential"], "--mode"),
        (["worker"], "--redis"),
        (["workers"], "--redis"),
        (["clean"], "--run-id"),
        (["status", "nowhere"], "no run at nowhere"),
        (["train", "tiny", "--set", "order=arrival"], "--mode unordered"),
    ],
)
def test_wrong_input_is_named(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)
