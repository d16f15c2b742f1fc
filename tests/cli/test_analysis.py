"""`rejoinder analyse` and `rejoinder explain` from outside, and the report's section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command import refused, run, run_json

from rejoinder.measure.analytics import ResponseExploitability
from rejoinder.measure.estimates import Estimate
from rejoinder_cli.output import Output
from rejoinder_cli.report import responses
from rejoinder_cli.report.subject import Effort, measure
from rejoinder_cli.runs import open_run
from rejoinder_cli.wording import exploitability_line

FEW = ("--games", "50", "--attack-samples", "10", "--attack-games", "20")


@pytest.fixture(scope="module")
def deal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / "deal", "paper", games=20)


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / "kuhn", "kuhn-rollout")


def trained(path: Path, config: str, games: int = 100) -> Path:
    settings = ("checkpoint_every=50", "method.rollouts=2", "eval_every=0", f"games={games}")
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
    assert "chosen between these kinds of answers and no others" in shown.stdout
    assert "exploitability by responses alone: " in shown.stdout
    assert run_json("analyse", deal, *FEW) == told
    assert run_json("analyse", deal, *FEW, "--seed", "4") != told


def test_where_the_game_can_be_enumerated_it_is_exact(tmp_path: Path) -> None:
    micro = trained(tmp_path / "micro", "micro", games=20)
    told = run_json("analyse", micro, "--games", "20")["exploitability"]
    assert told["method"] == "exact"
    assert told["whole"]["value"] == pytest.approx(run_json("exploit", micro)["exploitability"])
    assert -1e-12 <= told["by_responses"]["value"] <= told["whole"]["value"]


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


def test_without_a_name_the_infosets_visited_most_are_listed(deal: Path) -> None:
    listed = run_json("explain", deal)["infosets"]
    assert [line["visits"] for line in listed] == sorted(
        (line["visits"] for line in listed), reverse=True
    )
    told = run("explain", deal).stdout
    for line in listed:
        assert f"{line['identifier']}  {line['visits']:,} visits" in told
        assert set(line["description"]) >= {"player", "streak_index"}
    chosen = listed[0]
    found = run_json("explain", deal, chosen["identifier"], "--at", "0")
    assert (found["key"], found["actions"]) == (chosen["key"], chosen["actions"])
    assert "streak index" in run("explain", deal, chosen["key"], "--at", "0").stdout


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
    assert "9:3 has no games in it" in refused("explain", kuhn, name, "--games", "9:3")
    assert "not within the 100 games" in refused("explain", kuhn, name, "--games", "0:101")
    assert "--at" in refused("explain", kuhn, name, "--at", "101")
    assert "no run at" in refused("explain", tmp_path / "none", name)


def test_a_changed_ledger_ends_it_with_another_code(kuhn: Path, tmp_path: Path) -> None:
    copy = trained(tmp_path / "kuhn", "kuhn-rollout")
    content = bytearray((copy / "ledger.bin").read_bytes())
    content[80 * 60 + 20] ^= 1
    (copy / "ledger.bin").write_bytes(content)
    result = run("explain", copy, infoset(kuhn))
    assert result.exit_code == 1
    assert "is damaged: its record 60" in result.stderr


def section(path: Path) -> str | None:
    few = Effort(test_games=2, analysed_games=50, attack_games=4)
    (subject,) = measure([open_run(path, Output(False))], few, Output(False))
    return responses.response_section(subject, responses.response_bars(subject, None))


def test_the_reports_section_stands_alone_and_stays_the_same(deal: Path, kuhn: Path) -> None:
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


def test_what_may_be_nothing_is_not_told_as_a_bound() -> None:
    def told(low: float | None, value: float, high: float | None) -> str:
        part = Estimate(value=value, low=low, high=high)
        parts = {"by_responses": part, "by_main_play": part, "whole": part}
        return exploitability_line(
            ResponseExploitability(method="lower bound", samples=100, games=600, **parts)
        )

    nothing = "by responses alone: nothing was found (-0.007 [-0.020, +0.006])"
    assert nothing in told(-0.02, -0.007, 0.006)
    assert "at least" not in told(0.0, 0.01, 0.02)
    assert "nothing was found (-1.000)" in told(None, -1.0, None)
    assert "by both: at least +0.050 [+0.040, +0.060]" in told(0.04, 0.05, 0.06)


def test_json_has_no_numbers_that_json_does_not_know(deal: Path) -> None:
    def no_constant(name: str) -> Any:
        raise AssertionError(name)

    words = ("--games", "2", "--attack-samples", "0", "--json")
    answer = run("analyse", deal, *words).stdout.splitlines()[-1]
    json.loads(answer, parse_constant=no_constant)
