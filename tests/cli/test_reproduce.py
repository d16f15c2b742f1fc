"""The paper's claims, how they are judged, and `rejoinder reproduce`."""

from __future__ import annotations

import functools
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import refused, run, run_json
from report_page import Page

from rejoinder.games.deal import experiment
from rejoinder.games.deal.experiment import CLAIMS, EXPERIMENT
from rejoinder.measure.experiments import Claim, Reading, experiment_of
from rejoinder.measure.match import MatchResult
from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder_cli.commands import reproduce
from rejoinder_cli.report import subject as subjects
from rejoinder_cli.report.figures import exploitability
from rejoinder_cli.report.results import facts
from rejoinder_cli.report.subject import ALTERNATING, FIRST, Exploited, Score, Subject

POLICY = {
    "START_NEW_PROPERTY_SET": 0.35,
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
    return MatchResult(
        games=1_000,
        mean_utility=2 * rate - 1,
        utility_error=0.01,
        unit="wins",
        counts_wins=True,
        wins=round(1_000 * rate),
        draws=0,
        win_rate=rate,
        low=rate - 0.01,
        high=rate + 0.01,
    )


def subject(
    *,
    rates: dict[str, float] | None = None,
    mer: Any = lambda games: 5 / games,
    updates: dict[str, float] | None = None,
    policy: dict[str, float] | None = None,
    over_choices: dict[str, float] | None = None,
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
        workers=lambda: {"first_unit": {"a": 0, "b": 1}},
    )
    opened: Any = SimpleNamespace(run=run, checkpoint=SimpleNamespace(games=1_000, rows=rows))
    records = [
        {
            "games": games,
            "mer": mer(games),
            "updates": updates or {"median": 50, "max": 2_000},
            "policy": over_choices or POLICY,
        }
        for games in range(50, 1_001, 50)
    ]
    scores = [
        Score(1_000, opponent, starts, match(rate))
        for opponent, rate in (rates or {"random": 0.99, "risk-aware": 0.75}).items()
        for starts in (FIRST, ALTERNATING)
    ]
    of = Subject(opened, "run", records, scores)
    of.experiment_policy = {500: dict.fromkeys(POLICY, 0.5), 1_000: policy or POLICY}
    return of


def verdict(of: Subject, words: str) -> str:
    (judged,) = (j for j in EXPERIMENT.judge(of) if words in j.claim.text)
    return judged.verdict


def test_what_the_paper_describes_is_reproduced() -> None:
    assert [j.verdict for j in EXPERIMENT.judge(subject())] == ["reproduced"] * len(CLAIMS)


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
        ("build property", {"policy": POLICY | {"ATTEMPT_COLLECT_RENT": 0.36}}),
    ],
)
def test_each_claim_can_fail_alone(words: str, changed: dict[str, Any]) -> None:
    of = subject(**changed)
    assert verdict(of, words) == "not reproduced"


def test_preferences_are_judged_by_the_papers_median_and_told_by_ours_too() -> None:
    forced = {"JUST_SAY_NO": 1.0, "GIVE_OPPONENT_CASH": 1.0, "GIVE_OPPONENT_PROPERTY": 1.0}
    judgements = EXPERIMENT.judge(subject(policy=POLICY | forced))
    (judged,) = (j for j in judgements if "in response" in j.claim.text)
    assert judged.reading is not None
    assert (judged.verdict, judged.reading.value, judged.direction) == ("not reproduced", 0.0, "")
    assert "over real choices it holds: just say no 90%" in judged.reading.text
    judgements = EXPERIMENT.judge(subject(over_choices=POLICY | forced))
    (judged,) = (j for j in judgements if "in response" in j.claim.text)
    assert judged.verdict == "reproduced"
    assert judged.reading is not None
    assert "over real choices it does not hold" in judged.reading.text


def test_runs_without_evaluations_are_judged_by_their_checkpoints() -> None:
    of = subject()
    of.records = []
    assert verdict(of, "in response") == "reproduced"


def test_a_bound_says_how_sure_it_is() -> None:
    of = subject()
    of.exploited = [Exploited(500, 0.3, error=0.061), Exploited(1_000, 0.01, error=0.049)]
    chart = exploitability([of])
    assert chart is not None
    assert "up to 0.06 to either side" in chart.caption
    assert [e.is_found for e in of.exploited] == [True, False]
    sure = {what: sure for _, what, sure in facts(of, [])}
    assert sure["exploitability"] == "nothing was found, ± 0.049"


def test_what_a_run_does_not_tell_is_not_measured() -> None:
    of = subject()
    of.records, of.scores, of.experiment_policy = [], [], {}
    told = {j.claim.text: j.verdict for j in EXPERIMENT.judge(of)}
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
    assert experiment_of(load_config("paper"))
    assert experiment_of(load_config("paper", {"seed": 7, "games": 10, "batch": 5, "lag": 0}))
    assert not experiment_of(load_config("paper", {"method.rollouts": 10}))
    assert not experiment_of(load_config("paper", {"abstraction": "progress"}))
    assert not experiment_of(load_config("paper", {"method.common_random_numbers": True}))
    assert not experiment_of(load_config("paper", {"start": "ab" * 32}))
    assert not experiment_of(load_config("kuhn-rollout"))


def test_a_run_that_is_there_is_not_lost(tmp_path: Path) -> None:
    run_json(
        "train", "kuhn-rollout", "--games", "2", "--mode", "sequential", "--run", tmp_path / "r"
    )
    assert "holds a run already" in refused("reproduce", "--quick", "--run", tmp_path / "r")
    told = refused("reproduce", "--run", tmp_path / "r", "--resume")
    assert "is a run of another config" in told
    assert "exclude each other" in refused("reproduce", "--resume", "--overwrite")


def test_what_it_says_to_type_goes_on_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def stopped_at_once() -> Iterator[Callable[[], bool]]:
        yield lambda: True

    few = functools.partial(subjects.Effort, analysed_games=20, attack_games=2)
    monkeypatch.setattr(subjects, "Effort", few)
    shorter = ("games=30", "eval_every=10", "checkpoint_every=10", "method.rollouts=2")
    monkeypatch.setattr(experiment, "EXPERIMENT", replace(EXPERIMENT, quick=shorter))
    path = tmp_path / "a run"
    given = ("--quick", "--seed", "7", "--workers", "1", "--run", path)
    with monkeypatch.context() as patched:
        patched.setattr(reproduce, "graceful_stop", stopped_at_once)
        result = run("reproduce", *given, "--json")
    assert result.exit_code == 130
    said = json.loads(result.stdout.splitlines()[-1])
    assert (said["finished"], said["mode"]) == (False, "ordered")
    (command,) = re.findall("stopped; to go on: (.*)", result.stderr)
    program, *words = shlex.split(command)
    assert program == "rejoinder"
    assert {"--quick", "--seed", "--workers", "--resume"} <= set(words)
    made = run_json(*words)
    assert (made["games"], made["finished"], made["quick"]) == (30, True, True)
    assert made["fingerprint"] == said["fingerprint"]
    assert RunDir.open(path).config.seed == 7


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
    once = dict.fromkeys(("mer", "utility", "win-rate", "updates", "outlook", "responses"), 1)
    assert page.drawings == once | {"policy": 2, "target-policy": 2}
    assert len(page.figures["win-rate"]) == 10
    heads, *rows = page.tables["The paper against ours"]
    assert heads == ["where", "claim", "the paper", "ours"]
    assert all(row[3].startswith(c["verdict"]) for row, c in zip(rows, judged, strict=True))
    for number in range(2, 6):
        assert f"The paper’s Figure {number}." in page.text
    again = run_json("reproduce", "--quick", "--run", tmp_path / "r", "--resume")
    assert again["digest"] == made["digest"]

    told = run_json("forecast", tmp_path / "r", "mer=0.01", "random=0.5")
    assert told["at"] == 200
    mer, rate = told["forecasts"]
    assert mer["games"] is None or mer["games"] > 200
    assert mer["backtest"]["known"] < 200
    assert rate["reached"] == 20
    status = run_json("status", tmp_path / "r", "--forecast", "mer=0.01")
    assert status["forecast"].startswith("MER 0.01 is ")
