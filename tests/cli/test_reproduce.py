"""The paper's claims, how they are judged, and `rejoinder reproduce`."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import refused, run_json
from report_page import Page

from rejoinder.config import load_config
from rejoinder.evaluate.match import MatchResult
from rejoinder_cli.report.claims import CLAIMS, Claim, Reading, is_experiment, judge_all
from rejoinder_cli.report.subject import ALTERNATING, FIRST, Score, Subject

POLICY = {
    "START_NEW_PROPERTY_SET": 0.2,
    "ADD_TO_PROPERTY_SET": 0.4,
    "COMPLETE_PROPERTY_SET": 0.5,
    "CASH": 0.1,
    "ATTEMPT_COLLECT_RENT": 0.3,
    "PASS": 0.0,
    "JUST_SAY_NO": 0.9,
    "GIVE_OPPONENT_CASH": 0.6,
    "GIVE_OPPONENT_PROPERTY": 0.1,
}


def match(rate: float) -> MatchResult:
    won = round(1_000 * rate)
    return MatchResult(1_000, won, 0, rate, rate - 0.01, rate + 0.01, 2 * rate - 1, 0.01)


def subject(
    *,
    rates: dict[str, float] | None = None,
    mer: Any = lambda games: 5 / games,
    updates: dict[str, float] | None = None,
    policy: dict[str, float] | None = None,
    infosets: int = 100,
    seconds: float = 600.0,
) -> Subject:
    """A run that the paper describes, but for what is given."""
    config = load_config("paper")
    rows = np.zeros(infosets, [("key", "<u8")])
    rows["key"] = np.arange(infosets)
    began = "2026-01-01T00:00:00Z"
    run = SimpleNamespace(
        config=config,
        sessions=lambda: [{"time": began}],
        standing=lambda: {"state": "finished", "time": 1_767_225_600 + seconds},
        workers=lambda: {"first_game": {"a": 0, "b": 1}},
    )
    opened: Any = SimpleNamespace(run=run, checkpoint=SimpleNamespace(games=1_000, rows=rows))
    records = [
        {
            "games": games,
            "mer": mer(games),
            "updates": updates or {"median": 50, "max": 2_000},
            "policy": policy or POLICY,
        }
        for games in range(50, 1_001, 50)
    ]
    scores = [
        Score(1_000, opponent, starts, match(rate))
        for opponent, rate in (rates or {"random": 0.99, "risk-aware": 0.75}).items()
        for starts in (FIRST, ALTERNATING)
    ]
    return Subject(opened, "run", records, scores)


def verdict(of: Subject, words: str) -> str:
    (judged,) = (j for j in judge_all(of) if words in j.claim.text)
    return judged.verdict


def test_what_the_paper_describes_is_reproduced() -> None:
    assert [j.verdict for j in judge_all(subject())] == ["reproduced"] * len(CLAIMS)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("random baseline", {"rates": {"random": 0.9, "risk-aware": 0.75}}),
        ("risk-aware baseline", {"rates": {"random": 0.99, "risk-aware": 0.88}}),
        ("risk-aware baseline", {"rates": {"random": 0.99, "risk-aware": 0.6}}),
        ("declines", {"mer": lambda _: 0.1}),
        ("stable", {"mer": lambda games: 1 - games / 2_000}),
        ("median infoset", {"updates": {"median": 10, "max": 2_000}}),
        ("most common infoset", {"updates": {"median": 50, "max": 10_000}}),
        ("hundred infosets", {"infosets": 262}),
        ("19 minutes", {"seconds": 1_200.0}),
        ("in response", {"policy": POLICY | {"GIVE_OPPONENT_PROPERTY": 0.7}}),
        ("in normal play", {"policy": POLICY | {"CASH": 0.45}}),
        ("build property", {"policy": POLICY | {"CASH": 0.9, "ATTEMPT_COLLECT_RENT": 0.9}}),
    ],
)
def test_each_claim_can_fail_alone(words: str, changed: dict[str, Any]) -> None:
    of = subject(**changed)
    assert verdict(of, words) == "not reproduced"


def test_what_a_run_does_not_tell_is_not_measured() -> None:
    of = subject()
    of.records, of.scores = [], []
    told = {j.claim.text: j.verdict for j in judge_all(of)}
    measured = [text for text, said in told.items() if said != "not measured"]
    assert len(measured) == 2  # infosets and time
    assert verdict(of, "random baseline") == "not measured"


def test_bounds_are_inclusive_and_the_direction_is_told() -> None:
    def claim(value: float) -> Claim:
        return Claim("1", "text", "about 2", lambda _: Reading(value, "so"), 1.0, 3.0, "why")

    for value, expected, direction in (
        *((1.0, "reproduced", ""), (3.0, "reproduced", "")),
        *((0.9, "not reproduced", "ours is lower"), (3.1, "not reproduced", "ours is higher")),
        (math.nan, "not measured", ""),
    ):
        judged = claim(value).judge(subject())
        assert (judged.verdict, judged.direction) == (expected, direction)


def test_every_claim_says_where_it_is_from_and_why_its_bounds_are_such() -> None:
    assert len(CLAIMS) == 11
    for claim in CLAIMS:
        assert claim.where[0].isdigit()
        assert claim.least < claim.most
        assert len(claim.why) > 20
        assert claim.counts.startswith("counts ")


def test_what_is_the_papers_experiment() -> None:
    assert is_experiment(load_config("paper"))
    assert is_experiment(load_config("paper", {"seed": 7, "games": 10, "batch": 5, "lag": 0}))
    assert not is_experiment(load_config("paper", {"rollouts": 10}))
    assert not is_experiment(load_config("paper", {"abstraction": "progress"}))
    assert not is_experiment(load_config("paper", {"common_luck": True}))
    assert not is_experiment(load_config("paper", {"start": "ab" * 32}))
    assert not is_experiment(load_config("kuhn"))


def test_a_run_that_is_there_is_not_lost(tmp_path: Path) -> None:
    run_json("train", "kuhn", "--games", "2", "--mode", "sequential", "--run", tmp_path / "r")
    assert "holds a run already" in refused("reproduce", "--quick", "--run", tmp_path / "r")
    told = refused("reproduce", "--run", tmp_path / "r", "--resume")
    assert "is a run of another config" in told
    assert "exclude each other" in refused("reproduce", "--resume", "--overwrite")


@pytest.mark.slow
def test_reproduce_from_end_to_end(tmp_path: Path) -> None:
    made = run_json("reproduce", "--quick", "--run", tmp_path / "r")
    assert made["finished"]
    assert made["games"] == 200
    assert made["quick"]
    (judged,) = made["claims"].values()
    assert len(judged) == len(CLAIMS)
    said = {claim["claim"]: claim for claim in judged}
    random = said["wins nearly all games against the random baseline"]
    assert random["verdict"] == "reproduced"
    assert random["value"] > 0.95
    assert said["trains in 19 minutes on eight cores"]["value"] > 0
    page = Page(made["report"])
    assert "A quick look" in page.text
    once = dict.fromkeys(("mer", "win-rate", "updates", "outlook", "responses-r"), 1)
    assert page.drawings == once | {"policy": 2}
    assert len(page.figures["win-rate"]) == 10
    heads, *rows = page.tables["The paper against ours"]
    assert heads == ["where", "claim", "the paper", "ours"]
    assert all(row[3].startswith(c["verdict"]) for row, c in zip(rows, judged, strict=True))
    for number in range(2, 6):
        assert f"The paper’s Figure {number}." in page.text
    again = run_json("reproduce", "--quick", "--run", tmp_path / "r", "--resume")
    assert again["digest"] == made["digest"]

    told = run_json("forecast", tmp_path / "r", "--mer", "0.01", "--win-rate", "random=0.5")
    assert told["at"] == 200
    mer, rate = told["forecasts"]
    assert mer["games"] is None or mer["games"] > 200
    assert mer["backtest"]["known"] < 200
    assert rate["reached"] == 20
    status = run_json("status", tmp_path / "r", "--forecast", "mer=0.01")
    assert status["forecast"].startswith("MER 0.01 is ")
