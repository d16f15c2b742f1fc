"""`rejoinder verify` from outside: its verdict in words, in JSON and as an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import refused, run, run_json


@pytest.fixture
def kuhn(tmp_path: Path) -> Path:
    path = tmp_path / "kuhn"
    run_json(
        *("train", "kuhn-rollout", "--mode", "sequential", "--games", "100", "--run", path),
        *("--set", "checkpoint_every=25"),
    )
    return path


def test_an_honest_run_is_verified(kuhn: Path) -> None:
    whole = run_json("verify", kuhn, "--sample", "1", "--seed", "7")
    assert whole["verified"]
    assert whole["problems"] == []
    assert (whole["games"], whole["recomputed"], whole["segments"]) == (100, 100, 4)
    assert (whole["checkpoints"], whole["compared"], whole["seed"]) == (4, 4, 7)
    part = run_json("verify", kuhn)
    assert (part["recomputed"], part["segments"], part["sample"]) == (5, 1, 0.05)
    assert run_json("verify", kuhn)["seed"] != part["seed"]
    again = run("verify", kuhn, "--seed", str(part["seed"]))
    assert again.exit_code == 0
    assert "5 games in 1 segment, the same deltas" in again.stdout
    assert f"--seed {part['seed']}" in again.stdout
    assert "is what it claims" in again.stdout


def test_a_forged_run_is_not(kuhn: Path) -> None:
    ledger = kuhn / "ledger.bin"
    content = bytearray(ledger.read_bytes())
    content[80 * 60 + 20] ^= 1
    ledger.write_bytes(content)
    result = run("verify", kuhn, "--sample", "1")
    assert result.exit_code == 1
    assert "wrong: ledger, game 60: its record does not follow" in result.stdout
    assert "wrong: recomputation, game 60: playing game 60 gives another delta" in result.stdout
    assert "is NOT what it claims, first at game 60" in result.stdout
    answer = json.loads(run("verify", kuhn, "--json").stdout.splitlines()[-1])
    assert not answer["verified"]
    assert answer["problems"][0]["part"] == "ledger"
    assert answer["problems"][0]["game"] == 60


def test_what_cannot_be_verified_is_refused(tmp_path: Path, kuhn: Path) -> None:
    assert "no run at" in refused("verify", tmp_path / "none")
    assert "--sample" in refused("verify", kuhn, "--sample", "1.5")
    for folder in ("checkpoints", "ledger.bin"):
        (kuhn / folder).rename(tmp_path / folder)
    assert "nothing to verify" in refused("verify", kuhn)
