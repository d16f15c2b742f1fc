"""The `rejoinder` command from outside: what it prints, what it leaves, how it refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import refused, run, run_json


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "tiny"
    run_json("train", "tiny", "--games", "200", "--run", path)
    return path


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "kuhn"
    run_json("train", "kuhn-rollout", "--games", "200", "--run", path)
    return path


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, rejoinder_cli.main\n"
        "print([m for m in ('numpy', 'numba', 'pydantic', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_names_every_command() -> None:
    told = run("--help").stdout
    names = "games solve train eval exploit play digest report bench"
    for command in names.split():
        assert command in told
        assert run(command, "--help").exit_code == 0


def test_games_lists_games_and_configs() -> None:
    listed = run_json("games")
    assert listed["games"].keys() >= {"deal", "kuhn", "leduc"}
    assert "intent" in listed["games"]["deal"]["abstractions"]
    assert "paper" in listed["configs"]
    assert "Kuhn poker" in run("games").stdout


def test_the_same_command_gives_the_same_digest_and_another_seed_another(tmp_path: Path) -> None:
    runs = {
        name: run_json("train", "paper", "--games", "20", "--seed", seed, "--run", tmp_path / name)
        for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    }
    assert runs["a"]["digest"] == runs["b"]["digest"] != runs["c"]["digest"]
    assert runs["a"]["fingerprint"] == runs["b"]["fingerprint"] != runs["c"]["fingerprint"]
    assert runs["a"]["games"] == 20
    assert runs["a"]["run"] == str(tmp_path / "a")
    assert runs["a"]["games_per_second"] == pytest.approx(20 / runs["a"]["seconds"])
    assert run_json("digest", tmp_path / "a") == {"digest": runs["a"]["digest"], "games": 20}


def test_resume_makes_a_run_longer(tmp_path: Path) -> None:
    whole = run_json("train", "kuhn-rollout", "--games", "60", "--run", tmp_path / "whole")
    run_json("train", "kuhn-rollout", "--games", "25", "--run", tmp_path / "part")
    resumed = run_json(
        "train", "kuhn-rollout", "--games", "60", "--run", tmp_path / "part", "--resume"
    )
    assert resumed["digest"] == whole["digest"]


def test_the_default_directory_is_named_after_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('game = "kuhn"\ngames = 5\n')
    assert run_json("train", "mine.toml")["run"] == str(Path("runs/mine"))
    assert (tmp_path / "runs/mine/config.json").exists()


def test_an_existing_run_is_not_lost_by_accident(kuhn: Path, tmp_path: Path) -> None:
    before = run_json("digest", kuhn)
    told = refused("train", "kuhn-rollout", "--run", kuhn)
    assert "--resume" in told
    assert "--overwrite" in told
    assert "seed is 1 there and 9 here" in refused(
        "train", "kuhn-rollout", "--seed", "9", "--run", kuhn, "--resume"
    )
    assert "exclude" in refused("train", "kuhn-rollout", "--run", kuhn, "--resume", "--overwrite")
    assert "200 games already" in refused(
        "train", "kuhn-rollout", "--games", "9", "--run", kuhn, "--resume"
    )
    assert run_json("digest", kuhn) == before


def test_overwrite_deletes_runs_only(tmp_path: Path) -> None:
    first = run_json("train", "kuhn-rollout", "--games", "9", "--run", tmp_path / "run")
    again = ("train", "kuhn-rollout", "--games", "5", "--run", tmp_path / "run", "--overwrite")
    assert run_json(*again)["digest"] != first["digest"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.txt").write_text("years of work")
    told = refused("train", "kuhn-rollout", "--run", tmp_path / "other", "--overwrite")
    assert "not empty and not a run" in told
    assert (tmp_path / "other/thesis.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("train", "papr"), "no config is called 'papr'"),
        (("train", "none.toml"), "none.toml: cannot be read: No such file"),
        (("train", "paper", "--set", "rolouts=3"), "near it: method.rollouts"),
        (
            ("train", "paper", "--set", "method.epsilon=high"),
            "epsilon: input should be a valid number",
        ),
        (("train", "paper", "--set", "rules.sets_needed=9"), "rules.sets_needed"),
        (("train", "paper", "--games", "0"), "games: input should be greater"),
        (("train", "paper", "--seed", "-1"), "seed: input should be greater"),
        (("train", "paper", "--resume", "--run", "none"), "no run at none"),
        (("digest", "none"), "no run at none"),
        (("eval", "none"), "no run at none"),
        (("play", "none"), "no run at none"),
        (("report", "none"), "no run at none"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("trian",),
        ("train",),
        ("train", "paper", "--mode", "x"),
        ("eval", "r", "--gmes"),
        ("eval", "r", "--games", "0"),
        ("solve", "kuhn", "--iterations", "many"),
    ],
)
def test_usage_errors_are_one_line_too(arguments: tuple[str, ...]) -> None:
    assert len(refused(*arguments)) > 20


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert "Permission denied" in refused("train", "kuhn-rollout", "--run", tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)


def test_a_run_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file" in refused("train", "kuhn-rollout", "--run", tmp_path / "file")


def test_a_damaged_checkpoint_is_warned_of_and_the_one_before_used(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_json(
        "train", "kuhn-rollout", "--games", "20", "--run", path, "--set", "checkpoint_every=10"
    )
    (path / "checkpoints/00000020/table.bin").write_bytes(b"damaged")
    result = run("digest", path, "--json")
    assert json.loads(result.stdout)["games"] == 10
    assert "00000020 is damaged" in result.stderr
    for folder in (path / "checkpoints").iterdir():
        (folder / "manifest.json").write_text("{}")
    result = run("digest", path)
    assert result.exit_code == 2
    assert "no usable checkpoint" in result.stderr.splitlines()[-1]


def test_eval_against_baselines(tiny: Path) -> None:
    result = run_json("eval", tiny, "--opponent", "random", "--games", "400")
    ((name, theirs),) = [(o["name"], o["mean_utility"]) for o in result["opponents"]]
    assert (name, theirs, result["unit"]) == ("random", -result["mean_utility"], "wins")
    assert result["games"] == 400
    assert 0.5 < result["low"] <= result["win_rate"] <= result["high"] <= 1
    again = run_json("eval", tiny, "--opponent", "random", "--games", "400")
    assert again == result
    assert (
        run_json("eval", tiny, "--games", "400", "--starts", "opponent", "--argmax")["games"] == 400
    )
    assert "won (95 % interval" in run("eval", tiny, "--games", "10").stdout


def test_eval_against_another_run(tiny: Path, kuhn: Path, tmp_path: Path) -> None:
    mirror = run_json("eval", tiny, "--opponent", tiny, "--games", "2000")
    assert mirror["low"] <= 0.5 <= mirror["high"] + mirror["draw_rate"]
    assert "plays kuhn, not deal" in refused("eval", tiny, "--opponent", kuhn)
    assert "neither a run nor one of random" in refused("eval", tiny, "--opponent", "ranodm")
    other = tmp_path / "other"
    run_json("train", "tiny", "--games", "5", "--run", other, "--set", "rules.hand_size=4")
    result = run("eval", tiny, "--opponent", other, "--games", "10")
    assert result.exit_code == 0
    assert "other rules" in result.stderr


def test_eval_of_agents_that_think_ahead(kuhn: Path) -> None:
    """A policy of Kuhn poker against itself: whoever looks ahead wins more."""
    options = ("eval", kuhn, "--opponent", kuhn, "--games", "2000")
    thinking = run_json(*options, "--search", "30")
    assert thinking["search"] == 30
    assert thinking["opponent_search"] == 0
    assert thinking["mean_utility"] > 0.05
    assert run_json(*options, "--search", "30") == thinking
    other = run_json(*options, "--opponent-search", "30")
    assert other["opponent_search"] == 30
    assert other["mean_utility"] < -0.05
    assert run_json(*options)["search"] == 0
    told = run("eval", kuhn, "--games", "10", "--search", "1000").stdout
    assert "(search, 1,000 samples a move) against random: " in told
    assert "--search" in refused("eval", kuhn, "--search", "-1")
    for option in ("--search", "--opponent-search"):  # hours, without a word
        assert option in refused("eval", kuhn, option, "1000000000")


def test_play_against_an_agent_that_thinks_ahead(kuhn: Path) -> None:
    """Asked what it would do, it tells the value of each move."""
    result = run("play", kuhn, "--seed", "3", "--search", "50", stdin="p\n1\n1\n")
    assert result.exit_code == 0, result.output
    before, over, _ = result.stdout.partition("The game is over.")
    assert over
    assert "value, by 50 samples of all" in before
    assert len(re.findall(r"(pass|bet) +│ [+-]\d\.\d{3}", before)) == 2


def test_play_to_the_end_hides_the_agents_card_until_then(kuhn: Path) -> None:
    result = run("play", kuhn, "--seed", "3", stdin="?\np\n9\n1\n1\n")
    assert result.exit_code == 0, result.output
    before, over, after = result.stdout.partition("The game is over.")
    assert over
    assert "opponent card" not in before
    assert "opponent card" in after
    assert "the agent would" in before
    assert "1 to 2 are moves" in before


def test_play_can_be_left_and_repeated(tiny: Path) -> None:
    for leave in ("q\n", ""):
        result = run("play", tiny, "--seed", "3", stdin=leave)
        assert result.exit_code == 0
        assert "You left the table." in result.stdout
    moves = "1\n" * 400
    first = run("play", tiny, "--seed", "3", "--second", "--json", stdin=moves)
    again = run("play", tiny, "--seed", "3", "--second", "--json", stdin=moves)
    assert first.stdout == again.stdout
    ended = json.loads(first.stdout.splitlines()[-1])
    assert ended["finished"]
    assert ended["utility"] in (-1.0, 0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_checkpoints_and_prints_the_command_that_resumes(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [
        sys.executable,
        "-m",
        "rejoinder_cli.main",
        "train",
        "kuhn-rollout",
        "--games",
        "400000",
    ]
    command += ["--set", "eval_every=0", "--run", "my run"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("my run/checkpoints/[0-9]*")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    stopped = run_json("digest", tmp_path / "my run")
    assert 0 < stopped["games"] < 400_000
    line = next(line for line in stdout.splitlines() if "to go on: " in line)
    words = shlex.split(line.partition("to go on: ")[2])
    assert words[:3] == ["rejoinder", "train", "kuhn-rollout"]
    assert "--resume" in words
    words[words.index("games=400000")] = f"games={stopped['games'] + 10}"
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        resumed = run_json(*words[1:])
    finally:
        os.chdir(here)
    whole = run_json(
        "train", "kuhn-rollout", "--games", str(resumed["games"]), "--run", tmp_path / "whole",
        "--set", "eval_every=0",
    )  # fmt: skip
    assert resumed["digest"] == whole["digest"]


def test_what_the_method_counts_is_what_is_said(tmp_path: Path) -> None:
    """Iterations in whole blocks, also where the length comes from the config."""
    path = tmp_path / "run"
    length = ("--set", "games=25", "--set", "method.iterations=10", "--set", "eval_every=0")
    trained = run("train", "kuhn", "--mode", "sequential", "--run", path, *length)
    assert trained.stderr == "25 iterations are rounded up to 30: whole blocks of 10\n"
    assert "30 iterations in " in trained.stdout
    assert run("digest", path).stdout.endswith("after 30 iterations\n")
    assert "30/30 iterations" in run("status", path).stdout
    assert "ledger: 30 iterations, chained" in run("verify", path, "--sample", "0").stdout
    (path / "status.json").unlink()
    assert run("status", path).stdout == "run: 30 of 30 iterations, finished\n"
    again = run("train", "kuhn", "--mode", "sequential", "--run", path, *length, "--resume")
    assert again.exit_code == 0, again.output
