"""`solve`, `exploit` and `bench` from outside."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from command import refused, run, run_json
from fastapi.testclient import TestClient
from gateway_play import API, BASE, Player, settings

from rejoinder_cli.commands.exploit import sure
from rejoinder_gateway.app import create_app


def test_solve_finds_the_value_of_kuhn() -> None:
    found = run_json("solve", "kuhn", "--algorithm", "cfr+", "--iterations", "10000")
    assert found["value"] == pytest.approx(-1 / 18, abs=1e-4)
    assert found["nash_conv"] < 2e-3
    assert found["exploitability"] == pytest.approx(found["nash_conv"] / 2)
    assert found["seconds"] > 0
    assert found["infosets"] == 12


def test_solve_tells_what_an_abstraction_costs() -> None:
    arguments = ("solve", "deal-micro", "--algorithm", "dcfr", "--iterations", "200")
    intent = run_json(*arguments, "--abstraction", "intent")
    progress = run_json(*arguments, "--abstraction", "progress")
    assert intent["real_exploitability"] > intent["exploitability"] > 0.01
    assert progress["infosets"] > intent["infosets"]
    said = run(*arguments, "--abstraction", "intent")
    assert "in the real game" in said.stdout


def test_another_game_is_trained_solved_played_and_exported(tmp_path: Path) -> None:
    """By its package and a config alone."""
    trained, solved = tmp_path / "trained", tmp_path / "solved"
    small = ("--set", "rules=small", "--set", "method.iterations=400", "--set", "eval_games=100")
    told = run_json(
        "train", "liars-dice", *small, "--iterations", "400000", "--workers", "2", "--run", trained
    )
    assert told["finished"]
    exact = run_json("solve", "liars-dice-small", "--algorithm", "cfr+", "--run", solved)
    assert exact["exploitability"] < 0.01
    assert exact["exploitability"] < told["exploitability"] < 0.1
    for path in (trained, solved):
        assert run_json("digest", path)["games"] > 0
        ended = run("play", path, "--seed", "3", stdin="1\n" * 50)
        assert "The game is over." in ended.stdout
        file = tmp_path / f"{path.name}.csv"
        exported = run_json("export", path, "--out", file)
        assert exported["format"] == "csv"
        assert len(file.read_text().splitlines()) > exported["infosets"] == 96


def test_what_is_solved_can_be_measured_played_and_exported_like_any_run(tmp_path: Path) -> None:
    path = tmp_path / "leduc"
    how = ("solve", "leduc", "--algorithm", "dcfr", "--run", path)
    assert run_json(*how, "--iterations", "300")["iterations"] == 300
    assert "holds a run already" in refused(*how)
    solved = run_json(*how, "--iterations", "1000", "--resume", "--show")
    assert solved["value"] == pytest.approx(-0.0856064, abs=1e-4)
    assert solved["exploitability"] < 0.001
    assert len(solved["strategy"]) == solved["infosets"] == 936
    for infoset in solved["strategy"]:
        assert sum(infoset["policy"].values()) == pytest.approx(1.0)
    assert run_json("digest", path)["digest"] == solved["digest"]
    assert run_json("verify", path)["verified"] is True
    exact = run_json("exploit", path)
    assert exact["exploitability"] == pytest.approx(solved["exploitability"])
    assert run_json("status", path)["exploitability"] == pytest.approx(solved["exploitability"])
    with TestClient(
        create_app(settings(tmp_path, f"sqlite:///{tmp_path / 'gateway.db'}")), base_url=BASE
    ) as client:
        served = client.get(f"{API}/runs/leduc").json()
        assert served["exploitability"] == pytest.approx(solved["exploitability"])
        player = Player.start(client, {"run": "leduc"})
        player.play_on(random.Random(1))
        assert player.game["over"]
    beaten = run_json("eval", path, "--opponent", "random", "--games", "4000")
    assert beaten["mean_utility"] > 2 * beaten["utility_error"]
    assert run("play", path, stdin="quit\n").exit_code == 0
    run_json("export", path, "--format", "csv", "--out", tmp_path / "policy.csv")
    assert len((tmp_path / "policy.csv").read_text().splitlines()) > 936
    page = Path(run_json("report", path)["report"]).read_text("utf-8")
    assert f"{solved['exploitability']:.3g} (exact)" in page
    without = run_json("solve", "leduc", "--algorithm", "dcfr", "--iterations", "1000")
    assert (without["value"], without.get("run")) == (solved["value"], None)


def test_show_prints_the_strategy_in_words() -> None:
    shown = run("solve", "kuhn", "--iterations", "2000", "--show").stdout
    assert "player 1, card K, moves bet" in shown
    assert "pass 0.0000  bet 1.0000" in shown


def test_sampling_depends_on_the_seed_alone() -> None:
    arguments = ("solve", "kuhn", "--algorithm", "es-mccfr", "--iterations", "2000")
    first, again, other = (run_json(*arguments, "--seed", s) for s in ("3", "3", "4"))
    assert first["nash_conv"] == again["nash_conv"]
    assert first["nash_conv"] != other["nash_conv"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("chess",), "no game is called 'chess'; there are deal-medium"),
        (("leduc", "--algorithm", "magic"), "no 'magic'; there are cfr, cfr+"),
        (("deal-medium",), "too large to enumerate"),
        (("kuhn", "--abstraction", "intent"), "kuhn has no 'intent'"),
    ],
)
def test_solve_refuses(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused("solve", *arguments)


def test_exploit_is_exact_where_the_game_can_be_enumerated(tmp_path: Path) -> None:
    run_json("train", "micro", "--games", "400", "--run", tmp_path / "micro")
    found = run_json("exploit", tmp_path / "micro")
    assert found["method"] == "exact"
    assert found["exploitability"] >= found["abstract_exploitability"] > 0
    loss = found["exploitability"] - found["abstract_exploitability"]
    assert found["abstraction_loss"] == pytest.approx(loss)
    # Uniform play is worth far less: the run has learned something.
    untrained = run_json("train", "micro", "--games", "1", "--run", tmp_path / "one")
    assert untrained["games"] == 1
    assert run_json("exploit", tmp_path / "one")["exploitability"] > 2 * found["exploitability"]


def test_exploit_counts_the_moves_of_an_agent_that_thinks(tmp_path: Path) -> None:
    run_json(
        "train",
        "kuhn-rollout",
        "--games",
        "400",
        "--mode",
        "sequential",
        "--run",
        tmp_path / "kuhn",
    )
    policy = run_json("exploit", tmp_path / "kuhn")
    found = run_json("exploit", tmp_path / "kuhn", "--search", "500", "--thoughts", "40")
    assert (policy["search"], found["search"], found["thoughts"]) == (0, 500, 40)
    assert found["method"] == "counted"
    other = run_json(
        "exploit", tmp_path / "kuhn", "--search", "20", "--thoughts", "5", "--seed", "2"
    )
    same = run_json("exploit", tmp_path / "kuhn", "--search", "20", "--thoughts", "5")
    assert other["exploitability"] != same["exploitability"]
    # Who thinks bluffs too little or too much: in poker a policy that mixes is harder to read.
    assert found["exploitability"] > policy["exploitability"] + 0.02


@pytest.mark.slow
def test_exploit_is_a_bound_elsewhere(tmp_path: Path) -> None:
    run_json("train", "tiny", "--games", "1", "--run", tmp_path / "tiny")
    how = (
        "--training-games",
        "1000",
        "--games",
        "2000",
        "--attack-samples",
        "50",
        "--attack-games",
        "400",
    )
    found = run_json("exploit", tmp_path / "tiny", *how)
    assert found["method"] == "lower bound"
    thinks, trained = found["attacks"]
    assert (thinks["attacker"], thinks["samples"], thinks["games"]) == ("thinks ahead", 50, 400)
    assert (trained["attacker"], trained["games"]) == ("is trained", 2000)
    # One game teaches next to nothing, so there is much to exploit, beyond doubt.
    for attack in found["attacks"]:
        assert 0.05 < attack["low"] < attack["exploitability"] < attack["high"]
        assert attack["win_rate"] > 0.5
    best = max(found["attacks"], key=lambda attack: attack["low"])
    assert found["exploitability"] == best["exploitability"]
    thinker = run_json("exploit", tmp_path / "tiny", *how, "--search", "50")
    assert thinker["search"] == 50
    assert thinker["exploitability"] < found["exploitability"] - 0.05
    pair = ("--attack-samples", "5", "--attack-games", "2", "--training-games", "0")
    assert run_json("exploit", tmp_path / "tiny", *pair)["low"] is None  # no spread in one pair
    said = refused("exploit", tmp_path / "tiny", "--attack-samples", "0", "--training-games", "0")
    assert "nobody attacks" in said


def test_an_attack_counts_for_what_it_shows_beyond_doubt() -> None:
    doubtful: dict[str, Any] = {"exploitability": 0.030, "low": -0.010}
    certain: dict[str, Any] = {"exploitability": 0.025, "low": 0.016}
    single: dict[str, Any] = {"exploitability": 0.020, "low": None}
    assert sorted((certain, single, doubtful), key=sure) == [doubtful, certain, single]


def test_exploit_can_begin_as_another_run(tmp_path: Path) -> None:
    one = ("--games", "1", "--mode", "sequential")
    run_json("train", "tiny", *one, "--run", tmp_path / "tiny")
    run_json("train", "tiny", *one, "--set", "abstraction=race", "--run", tmp_path / "race")
    run_json("train", "kuhn-rollout", *one, "--run", tmp_path / "kuhn")
    few = ("--training-games", "20", "--games", "200", "--attack-samples", "0")
    found = run_json("exploit", tmp_path / "tiny", "--begin-as", tmp_path / "race", *few)
    (attack,) = found["attacks"]
    assert (attack["abstraction"], attack["begin_as"]) == ("race", str(tmp_path / "race"))
    itself = run_json("exploit", tmp_path / "tiny", *few)
    (attack,) = itself["attacks"]
    assert (attack["abstraction"], attack["begin_as"]) == ("progress", str(tmp_path / "tiny"))
    said = refused("exploit", tmp_path / "tiny", "--begin-as", tmp_path / "kuhn")
    assert "--begin-as" in said
    assert "plays kuhn, not deal" in said


def test_bench_refuses_an_unknown_name() -> None:
    assert "no benchmark is called 'nothing'; there are" in refused("bench", "nothing")
