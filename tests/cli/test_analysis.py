"""`rejoinder analyse` and `rejoinder explain` from outside, and the report's section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command import refused, run, run_json

from rejoinder_cli.output import Output
from rejoinder_cli.report import responses
from rejoinder_cli.runs import open_run

FEW = ("--games", "50", "--training-games", "5")


@pytest.fixture(scope="module")
def deal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / "deal", "paper", games=20)


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / "kuhn", "kuhn")


def trained(path: Path, config: str, games: int = 100) -> Path:
    settings = ("checkpoint_every=50", "rollouts=2", "eval_every=0", f"games={games}")
    words = [word for setting in settings for word in ("--set", setting)]
    run_json("train", config, "--mode", "sequential", "--run", path, *words)
    return path


def test_an_analysis_is_told_in_tables_and_in_json(deal: Path) -> None:
    told = run_json("analyse", deal, *FEW)
    assert (told["games"], told["opponent"], told["seed"]) == (50, "itself", 1)
    assert told["exploitability"]["method"] == "lower bound"
    assert told["digest"] == run_json("digest", deal)["digest"]
    shown = run("analyse", deal, *FEW)
    assert shown.exit_code == 0
    for words in ("cancelled at once", "yielded", "initiator", "a Just Say No in the first hand"):
        assert words in shown.stdout
    assert f"{told['charges']['either']['phases']:,}" in shown.stdout
    assert "exploitability by responses alone: at least" in shown.stdout
    assert run_json("analyse", deal, *FEW) == told
    assert run_json("analyse", deal, *FEW, "--seed", "4") != told


def test_where_the_game_can_be_enumerated_it_is_exact(tmp_path: Path) -> None:
    micro = trained(tmp_path / "micro", "micro", games=20)
    told = run_json("analyse", micro, "--games", "20")["exploitability"]
    assert told["method"] == "exact"
    assert told["whole"] == pytest.approx(run_json("exploit", micro)["exploitability"])
    assert -1e-12 <= told["by_responses"]["value"] <= told["whole"]


def test_against_a_baseline_both_sides_are_told(deal: Path) -> None:
    told = run_json("analyse", deal, *FEW, "--opponent", "risk-aware")
    assert told["opponent"] == "risk-aware"
    assert set(told["charges"]) == {"agent", "opponent"}


def test_what_cannot_be_analysed_is_refused(deal: Path, kuhn: Path, tmp_path: Path) -> None:
    assert "kuhn: this game has no response phases" in refused("analyse", kuhn)
    assert "no run at" in refused("analyse", tmp_path / "none")
    assert "--opponent" in refused("analyse", deal, "--opponent", "nobody")
    assert "--games" in refused("analyse", deal, "--games", "1")


def infoset(kuhn: Path) -> str:
    identifier: str = run_json("explain", kuhn, "0000000000000001", "--games", "0:1")["identifier"]
    return identifier


def test_an_explanation_has_history_and_movers(kuhn: Path) -> None:
    told = run_json("explain", kuhn, infoset(kuhn), "--top", "2")
    assert [point["games"] for point in told["history"]] == [50, 100]
    assert (told["games"], told["replayed"], told["verified"]) == ([0, 100], [0, 100], True)
    assert told["after"] == told["history"][-1]
    assert len(told["movers"]) == 2
    assert told["movers"][0]["moved"] >= told["movers"][1]["moved"] > 0
    assert set(told["movers"][0]["decisions"][0]["regret"]) == set(told["actions"])
    shown = run("explain", kuhn, infoset(kuhn), "--top", "1")
    assert f"game {told['movers'][0]['game']}, with snapshot" in shown.stdout
    assert "each as in the ledger" in shown.stdout


def test_a_policy_at_an_earlier_game_and_a_part_of_the_games(kuhn: Path) -> None:
    name = infoset(kuhn)
    half = run_json("explain", kuhn, name, "--at", "50")
    assert half["at"]["average"] == half["history"][0]["average"]
    assert half["at"]["replayed"] == [50, 50]
    assert "movers" not in half
    both = run_json("explain", kuhn, name, "--at", "73", "--games", "73:80")
    assert both["at"]["replayed"] == [*both["replayed"][:1], 73]
    assert both["at"]["average"] == both["before"]["average"]
    assert "after exactly 73 games" in run("explain", kuhn, name, "--at", "73").stdout


def test_what_cannot_be_explained_is_refused(kuhn: Path, tmp_path: Path) -> None:
    name = infoset(kuhn)
    assert "no infoset 'zzz'" in refused("explain", kuhn, "zzz")
    assert "near are" in refused("explain", kuhn, "000000000000000f")
    for wrong in ("5", "a:b", "9:3", "0:101", "60:60"):
        assert "--games" in refused("explain", kuhn, name, "--games", wrong)
    assert "--at" in refused("explain", kuhn, name, "--at", "101")
    assert "no run at" in refused("explain", tmp_path / "none", name)


def test_a_changed_ledger_ends_it_with_another_code(kuhn: Path, tmp_path: Path) -> None:
    copy = trained(tmp_path / "kuhn", "kuhn")
    content = bytearray((copy / "ledger.bin").read_bytes())
    content[80 * 60 + 20] ^= 1
    (copy / "ledger.bin").write_bytes(content)
    result = run("explain", copy, infoset(kuhn))
    assert result.exit_code == 1
    assert "is damaged: its record 60" in result.stderr


def section(path: Path) -> str | None:
    return responses.response_section(open_run(path, Output(False)))


def test_the_reports_section_stands_alone_and_stays_the_same(
    deal: Path, kuhn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "_GAMES", 50)
    monkeypatch.setattr(responses, "_TRAINING_GAMES", 5)
    assert section(kuhn) is None
    made = section(deal)
    assert made is not None
    assert made.startswith("<section><h2>Response phases</h2>")
    assert made.endswith("</section>")
    svg = made[made.index("<svg") : made.index("</svg>") + 6]
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "currentColor" in svg
    assert "http" not in made.replace("http://www.w3.org", "")
    for words in ("cancelled at once", "responder", "A Just Say No", "Exploitability by responses"):
        assert words in made
    assert section(deal) == made


def test_json_has_no_numbers_that_json_does_not_know(deal: Path) -> None:
    def no_constant(name: str) -> Any:
        raise AssertionError(name)

    words = ("--games", "2", "--training-games", "1", "--json")
    answer = run("analyse", deal, *words).stdout.splitlines()[-1]
    json.loads(answer, parse_constant=no_constant)
