"""Reports: what they show is what was measured, for one run or several, of any game."""

from __future__ import annotations

import functools
import json
import re
import struct
from pathlib import Path

import pytest
from command import refused, run, run_json
from report_page import Page

from rejoinder.measure import analytics, match
from rejoinder_cli.report import sections, subject
from rejoinder_cli.report.sections import Report
from rejoinder_cli.report.subject import Subject

FEW = ("--test-games", "100")
NO_EVALUATIONS = ("--set", "eval_every=0")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one game, one of another game, one of other rules."""
    folder = tmp_path_factory.mktemp("runs")
    alike = ("--games", "100", "--set", "checkpoint_every=25", "--set", "eval_every=10")
    quick = (*alike, "--mode", "sequential", "--set", "method.rollouts=4", "--set", "eval_games=20")
    run_json("train", "tiny", *quick, "--run", folder / "intent")
    finer = ("--set", "abstraction=progress")
    run_json("train", "tiny", *quick, *finer, "--run", folder / "progress")
    run_json("train", "kuhn-rollout", *quick, "--run", folder / "kuhn")
    other = ("--set", "rules.hand_size=4")
    run_json("train", "tiny", *quick, *other, "--run", folder / "small hands")
    return folder


def metrics(path: Path) -> list[dict[str, object]]:
    from rejoinder.run.rundir import RunDir

    return RunDir.open(path).metrics()


def picture_size(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def test_the_report_stands_alone(runs: Path) -> None:
    written = run_json("report", runs / "intent", *FEW)
    page = Page(written["report"])
    assert page.fetched == []
    assert "<script" not in page.text
    assert "@import" not in page.text
    assert len(set(page.identifiers)) == len(page.identifiers)
    for used in re.findall(r"url\(#([^)]*)\)", page.text):
        assert used in page.identifiers
    assert run_json("digest", runs / "intent")["digest"] in page.text
    assert "prefers-color-scheme: dark" in page.text
    assert "The paper against ours" not in page.titles  # its claims are about another experiment


def test_every_figure_comes_with_its_data_and_as_a_picture(runs: Path) -> None:
    written = run_json("report", runs / "intent", *FEW)
    page = Page(written["report"])
    once = ("mer", "utility", "win-rate", "updates", "outlook", "policy")
    assert page.drawings == dict.fromkeys(once, 1)
    pictures = [Path(name) for name in written["figures"]]
    assert {path.stem for path in pictures} == set(page.drawings)
    for path in pictures:
        width, height = picture_size(path)
        assert width > 800
        assert height > 500
    records = metrics(runs / "intent")
    assert [row["MER"] for row in page.figures["mer"]] == [f"{r['mer']:.4g}" for r in records]
    updates = page.figures["updates"][-1]
    assert updates["max"] == f"{records[-1]['updates']['max']:,.0f}"  # type: ignore[index]
    policy = page.figures["policy"][-1]
    assert policy["in normal play, cash"] == f"{records[-1]['policy']['CASH']:.1%}"  # type: ignore[index]
    rates = {row["games"]: row for row in page.figures["win-rate"]}
    assert {"25", "50", "75", "100"} <= rates.keys()
    for opponent in ("random", "risk-aware"):
        for starts, option in (("agent goes first", "agent"), ("starts alternate", "alternate")):
            shown = rates["100"][f"{opponent}, {starts}"]
            assert re.fullmatch(r"[\d.]+% [\d.]+% to [\d.]+%", shown), (option, shown)


def test_the_same_run_gives_the_same_report(runs: Path) -> None:
    first = Path(run_json("report", runs / "kuhn", *FEW)["report"]).read_bytes()
    assert Path(run_json("report", runs / "kuhn", *FEW)["report"]).read_bytes() == first


def test_where_wins_do_not_count_utility_is_shown_and_exploitability_is_exact(runs: Path) -> None:
    page = Page(run_json("report", runs / "kuhn", *FEW)["report"])
    assert page.drawings == dict.fromkeys(
        ("mer", "utility", "updates", "outlook", "exploitability", "policy"), 1
    )
    exact = run_json("exploit", runs / "kuhn")["exploitability"]
    rows = page.figures["exploitability"]
    assert [row["games"] for row in rows] == ["25", "50", "75", "100"]
    assert rows[-1]["utility a game"] == f"{exact:.4g}"
    told = dict(row for row in page.tables["Result"] if len(row) == 2)
    assert told["exploitability"] == f"{exact:.4f} (exact)"
    assert told["against random, starts alternate"].endswith("a game, 100 games")


def test_several_runs_are_compared(runs: Path) -> None:
    written = run_json("report", runs / "intent", runs / "progress", runs / "small hands", *FEW)
    assert written["report"] == str(runs / "comparison" / "report.html")
    assert len(written["digests"]) == 3
    page = Page(written["report"])
    names = ["intent", "progress", "small hands"]
    assert page.tables["Runs"][0] == ["", *names]
    assert list(page.figures["mer"][0])[1:] == names
    assert page.drawings["win-rate"] == 2  # a panel for each opponent
    assert "against random, intent, agent goes first" in page.figures["win-rate"][-1]
    assert page.drawings["policy"] > 3  # a panel for each action
    fields = {row[0]: row[1:] for row in page.tables["Configuration"]}
    assert fields["abstraction"] == ["intent", "progress", "intent"]
    assert "<tr class=differs><th scope=row>abstraction" in page.text
    assert "<tr class=differs><th scope=row>game<" not in page.text
    heads, *rows = page.tables["Head to head"]
    assert heads == ["", *names]
    cells = {
        (row[0], name): cell for row in rows for name, cell in zip(names, row[1:], strict=True)
    }
    assert cells["intent", "intent"] == "–"
    assert cells["intent", "small hands"] == "–"  # they play by other rules
    utilities = [
        float(cells[pair].split()[0]) for pair in (("intent", "progress"), ("progress", "intent"))
    ]
    assert utilities[0] == -utilities[1]
    assert {f"Response phases: {name}" for name in names} <= set(page.titles)


def test_runs_of_equal_names_have_figures_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = functools.partial(subject.Effort, analysed_games=20, attack_games=2, attack_samples=2)
    monkeypatch.setattr(subject, "Effort", few)
    quick = ("--mode", "sequential", "--games", "2", "--set", "method.rollouts=1", *NO_EVALUATIONS)
    for name in ("a", "b"):
        run_json("train", "paper", *quick, "--run", tmp_path / name / "run")
    monkeypatch.chdir(tmp_path / "a/run")
    written = run_json("report", ".", tmp_path / "b/run", "--out", tmp_path / "both", *FEW)
    page = Page(written["report"])
    assert len(set(page.identifiers)) == len(page.identifiers)
    heads = [row[0] for rows in page.tables.values() for row in rows] + [
        head for rows in page.tables.values() for head in rows[0]
    ]
    assert {"a/run", "b/run"} <= set(heads)
    own = [name for name in page.drawings if name.startswith("responses-")]
    assert len(own) == 2
    assert {Path(name).stem for name in written["figures"]} == set(page.drawings)
    assert picture_size(tmp_path / f"both/figures/{own[0]}.png")
    alone = Page(run_json("report", ".", *FEW)["report"])
    assert "responses" in alone.drawings
    assert picture_size(tmp_path / "a/run/figures/responses.png")


def test_the_folder_can_be_chosen(runs: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "there/figures/somebody-elses.png"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    written = run_json("report", runs / "kuhn", "--out", tmp_path / "there", *FEW)
    assert foreign.exists()
    assert written["report"] == str(tmp_path / "there/report.html")
    assert picture_size(tmp_path / "there/figures/mer.png")


def test_bad_input(runs: Path, tmp_path: Path) -> None:
    assert "no run at" in refused("report", tmp_path / "none")
    assert "no run at" in refused("report", runs / "kuhn", tmp_path / "none")
    told = refused("report", runs / "intent", runs / "kuhn")
    assert "a comparison needs runs of one game" in told
    assert "plays deal" in told
    assert "is named twice" in refused("report", runs / "kuhn", runs / "kuhn")
    twice = (runs / "progress", runs / "progress" / ".." / "progress")
    assert "is named twice" in refused("report", runs / "intent", *twice)
    assert len(refused("report", runs / "kuhn", "--test-games", "1")) > 20


def test_a_run_that_is_not_finished_says_so(runs: Path, tmp_path: Path) -> None:
    from rejoinder.run.rundir import RunDir

    path = tmp_path / "run"
    run_json("train", "kuhn-rollout", "--games", "20", "--mode", "sequential", "--run", path)
    unfinished = RunDir.open(path)
    unfinished.continue_with(unfinished.config.model_copy(update={"games": 1_000}))
    page = Page(run_json("report", path, *FEW)["report"])
    assert "run is not finished: this is what it was after 20 of 1,000 games." in page.text
    empty = RunDir.create(tmp_path / "empty", unfinished.config)
    assert "no usable checkpoint" in refused("report", empty.path)


def test_damaged_checkpoints_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run"
    every = ("--set", "checkpoint_every=5")
    run_json(
        "train", "kuhn-rollout", "--games", "20", "--mode", "sequential", "--run", path, *every
    )
    (path / "checkpoints/00000010/table.bin").write_bytes(b"damaged")
    result = run("report", path, *FEW)
    assert result.exit_code == 0
    assert "the checkpoint at game 10" in result.stderr
    games = [row["games"] for row in Page(path / "report.html").figures["utility"]]
    assert games == ["5", "15", "20"]


def test_what_a_run_says_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "<img src=x onerror=alert(1)>"
    run_json("train", "kuhn-rollout", "--games", "5", "--mode", "sequential", "--run", path)
    provenance = path / "provenance.json"
    provenance.write_text(json.dumps({"sessions": [{"cpu": "<script>alert(1)</script>"}]}))
    text = Path(run_json("report", path, *FEW)["report"]).read_text("utf-8")
    assert "<img" not in text
    assert "<script" not in text


def test_a_run_without_evaluations(tmp_path: Path) -> None:
    alone = ("--mode", "sequential", *NO_EVALUATIONS)
    run_json("train", "kuhn-rollout", "--games", "5", "--run", tmp_path / "r", *alone)
    page = Page(run_json("report", tmp_path / "r", *FEW)["report"])
    assert "no evaluations yet" in page.text
    assert set(page.drawings) == {"utility"}


def test_other_sections_can_be_added(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hello(_: Report, of: Subject) -> str | None:
        return f"<section><h2>Hello</h2>{of.games} games</section>"

    monkeypatch.setattr(sections, "RUN_SECTIONS", [hello, lambda *_: None])
    page = Page(run_json("report", runs / "kuhn", *FEW)["report"])
    assert page.titles.count("Hello") == 1
    several = Page(run_json("report", runs / "intent", runs / "progress", *FEW)["report"])
    assert several.titles.count("Hello") == 2


def test_a_new_run_takes_the_old_ones_report_away(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train = ("train", "kuhn-rollout", "--games", "5", "--mode", "sequential", "--run", path)
    run_json(*train, "--report")
    assert picture_size(path / "figures/mer.png")
    run_json(*train, "--overwrite")
    assert not (path / "report.html").exists()
    assert not (path / "figures").exists()


def test_sections_play_no_games(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever takes its time is measured before anything is drawn, where progress is shown."""
    measured = []
    draw = sections.Report.__post_init__

    def forbid(*_: object, **__: object) -> None:
        raise AssertionError("a game while drawing")

    def stop_games(report: Report) -> None:
        measured.append(report.subjects[0].analysis)
        for module in (analytics, match):
            for name in ("play_match", "watch", "thinking_bound", "_play_games"):
                monkeypatch.setattr(module, name, forbid, raising=False)
        draw(report)

    monkeypatch.setattr(sections.Report, "__post_init__", stop_games)
    assert "Response phases" in Page(run_json("report", runs / "intent", *FEW)["report"]).titles
    assert measured[0] is not None


@pytest.mark.slow
def test_on_micro_the_loss_by_the_abstraction_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "micro"
    how = ("--games", "60", "--mode", "sequential", "--set", "checkpoint_every=20")
    run_json("train", "micro", *how, "--set", "method.rollouts=4", "--run", path)
    page = Page(run_json("report", path, *FEW)["report"])
    exact = run_json("exploit", path)
    rows = page.figures["exploitability"]
    assert [row["games"] for row in rows] == ["20", "40", "60"]
    assert rows[-1]["in the real game"] == f"{exact['exploitability']:.4g}"
    assert rows[-1]["as the abstraction shows it"] == f"{exact['abstract_exploitability']:.4g}"
    result = dict(page.tables["Result"])  # a third of the games are drawn
    assert re.search(r"\d\d% drawn, ", result["against risk-aware, starts alternate"])


@pytest.mark.slow
def test_leduc(tmp_path: Path) -> None:
    how = ("--games", "40", "--mode", "sequential", "--set", "checkpoint_every=20")
    run_json(
        "train", "leduc-rollout", *how, "--set", "method.rollouts=4", "--run", tmp_path / "leduc"
    )
    page = Page(run_json("report", tmp_path / "leduc", *FEW)["report"])
    assert {"utility", "exploitability"} <= page.drawings.keys()
    assert len(page.figures["exploitability"]) == 2


@pytest.mark.slow
def test_a_bound_where_the_game_is_too_large(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = functools.partial(subject.Effort, attack_samples=5, attack_games=20)
    monkeypatch.setattr(subject, "Effort", quick)
    page = Page(run_json("report", runs / "intent", "--exploitability", *FEW)["report"])
    rows = page.figures["exploitability"]
    assert [row["games"] for row in rows] == ["25", "50", "75", "100"]
    assert re.fullmatch(r"\S+ \S+ to \S+", rows[-1]["at least, a game"])
