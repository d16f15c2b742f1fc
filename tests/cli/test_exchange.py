"""`rejoinder export` and `import`, and training that starts from what they made."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import refused, run, run_json

from rejoinder.run.config import make_config
from rejoinder.run.rundir import RunDir
from rejoinder_cli.options import plan

SMALL = ("--set", "method.rollouts=1", "--set", "eval_every=0", "--mode", "sequential")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run at the paper's rules."""
    path = tmp_path_factory.mktemp("trained") / "run"
    run_json("train", "paper", "--games", "10", "--run", path, *SMALL)
    return path


def rows(path: Path) -> bytes:
    return RunDir.open(path).result().rows.tobytes()


def test_a_checkpoint_goes_out_and_comes_in_again(trained: Path, tmp_path: Path) -> None:
    first, second, again = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "again"
    told = run_json("export", trained, "--out", first)
    assert told["format"] == "paper"
    assert (told["games"], told["digest"]) == (10, run_json("digest", trained)["digest"])
    made = run_json("import", first, "--run", again, "--seed", "7", "--games", "12")
    assert made["infosets"] == told["infosets"] > 50
    assert rows(again) == rows(trained)
    config = RunDir.open(again).config
    assert (config.seed, config.games) == (7, 12)
    assert config.method.model_dump()["rollouts"] == 1
    run_json("export", again, "--format", "paper", "--out", second)
    assert first.read_bytes() == second.read_bytes()


def test_an_imported_run_is_trained_on(trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    run_json("export", trained, "--out", file)
    run_json("import", file, "--run", tmp_path / "one", "--set", "eval_every=0")
    one = run_json("train", tmp_path / "one", "--resume", "--games", "6", "--mode", "sequential")
    paper = ("train", "paper", "--from", file, "--games", "6", *SMALL)
    two = run_json(*paper, "--run", tmp_path / "two")
    more = ("train", "paper", "--games", "6", *SMALL)
    three = run_json(*more, "--from", trained, "--run", tmp_path / "three")
    assert one["digest"] == two["digest"] == three["digest"]
    assert (one["games"], one["fingerprint"]) == (6, two["fingerprint"])
    plain = run_json(*more, "--run", tmp_path / "plain")
    assert plain["fingerprint"] != one["fingerprint"]
    assert run_json("verify", tmp_path / "two", "--sample", "1")["verified"]
    on = ("train", "paper", "--games", "8", *SMALL, "--resume")
    longer = run_json(*on, "--run", tmp_path / "two")
    assert (longer["games"], longer["fingerprint"]) == (8, two["fingerprint"])
    assert "start is" in refused(*paper, "--run", tmp_path / "plain", "--resume")
    assert "by --from" in refused("train", tmp_path / "one", "--run", tmp_path / "four")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda text: text[:-300], "damaged JSON: "),
        (lambda text: text.replace("0.0,\n", "", 1), "it has 21 actions, not 22"),
        (lambda text: text.replace('"epsilon": 0.1', '"epsilon": 3'), "epsilon: "),
        (lambda _: "", "damaged JSON: "),
    ],
)
def test_a_file_that_is_wrong_leaves_nothing_behind(
    trained: Path, tmp_path: Path, spoil: Any, told: str
) -> None:
    file = tmp_path / "file.json"
    run_json("export", trained, "--out", file)
    file.write_text(spoil(file.read_text("utf-8")), "utf-8")
    said = refused("import", file, "--run", tmp_path / "run")
    assert f"{file}: " in said
    assert told in said
    assert f"{file}: " in refused("train", "paper", "--from", file, "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_is_one_line(trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    run_json("export", trained, "--out", file)
    assert "is there already" in refused("export", trained, "--out", file)
    run_json("export", trained, "--out", file, "--overwrite")
    assert "no run at" in refused("export", tmp_path / "none", "--out", file)
    assert "has no checkpoint at game 3; there are 10" in refused(
        "export", trained, "--out", tmp_path / "x", "--snapshot", "3"
    )
    assert "No such file" in refused("import", tmp_path / "none.json", "--run", tmp_path / "run")
    assert "is a run" in refused("import", trained, "--run", tmp_path / "run")
    assert "holds a run already" in refused("import", file, "--run", trained)
    assert "buffer_size: it is 10 in" in refused(
        "import", file, "--run", tmp_path / "run", "--set", "method.buffer_size=3"
    )
    run_json("train", "micro", "--games", "3", *SMALL, "--run", tmp_path / "micro")
    assert "rules.property_copies: (3, 0, 1) cannot be said in the paper's format" in refused(
        "export", tmp_path / "micro", "--out", tmp_path / "x"
    )
    assert not (tmp_path / "x").exists()
    nowhere = tmp_path / "no folder/file.json"
    assert f"{nowhere}: No such file" in refused("export", trained, "--out", nowhere)
    table = tmp_path / "policy.csv"
    run_json("export", trained, "--out", table, "--format", "csv")
    assert f"{table}: this is not JSON" in refused("import", table, "--run", tmp_path / "run")
    assert "it is a file (`rejoinder import` makes" in refused("eval", file)
    run_json("import", file, "--run", tmp_path / "run")
    infoset = run_json("explain", tmp_path / "run")["infosets"][0]["identifier"]
    assert "no games of its own yet" in run("explain", tmp_path / "run", infoset).stdout


def test_policies_for_analysis(trained: Path, tmp_path: Path) -> None:
    files = {form: tmp_path / f"policy.{form}" for form in ("json", "csv", "parquet")}
    for form, file in files.items():
        assert run_json("export", trained, "--format", form, "--out", file)["format"] == form
    table = RunDir.open(trained).result().rows
    whole = json.loads(files["json"].read_text("utf-8"))
    assert (whole["games"], len(whole["infosets"])) == (10, len(table))
    flat = pq.read_table(files["parquet"]).to_pylist()
    lines = list(csv.DictReader(files["csv"].read_text("utf-8").splitlines()))
    expected = [
        (infoset["identifier"], action["name"], action["average"])
        for infoset in whole["infosets"]
        for action in infoset["actions"]
    ]
    assert [(r["identifier"], r["action"], r["average"]) for r in flat] == expected
    assert [(r["identifier"], r["action"], float(r["average"])) for r in lines] == expected
    assert [i["visits"] for i in whole["infosets"]] == table["updates"].tolist()


def test_the_suffix_of_the_file_decides_the_format(trained: Path, tmp_path: Path) -> None:
    """`.json` may be the game's own checkpoint, and is; other names say nothing."""
    usual = {"csv": "csv", "CSV": "csv", "parquet": "parquet", "json": "paper", "txt": "paper"}
    for suffix, form in usual.items():
        file = tmp_path / f"{suffix}-file.{suffix}"
        assert run_json("export", trained, "--out", file)["format"] == form
    assert (tmp_path / "csv-file.csv").read_bytes() == (tmp_path / "CSV-file.CSV").read_bytes()
    for name, form in (("a.csv", "json"), ("a.parquet", "paper"), ("a.json", "csv")):
        told = refused("export", trained, "--format", form, "--out", tmp_path / name)
        assert f"--format: {form} does not go with the name {name}; call the file a." in told
        assert not (tmp_path / name).exists()
    assert "there is no 'xml'" in refused(
        "export", trained, "--format", "xml", "--out", tmp_path / "a.csv"
    )


def test_iterations_are_called_so(tmp_path: Path) -> None:
    """In what is exported and explained, which is of whole units."""
    path, name = tmp_path / "run", "0000000000000000"
    made = ("train", "kuhn", "--iterations", "6000", "--mode", "sequential", "--run", path)
    run_json(*made, "--set", "eval_every=0", "--set", "checkpoint_every=3000")
    told = run("export", path, "--out", tmp_path / "policy.json").stdout
    assert "12 infosets after 6,000 iterations, as json" in told
    assert "no checkpoint at iteration 5; there are 3000, 6000" in refused(
        "export", path, "--out", tmp_path / "x", "--snapshot", "5"
    )
    told = run("explain", path, name, "--at", "3500").stdout
    assert "--at: 3,500 iterations are rounded up to 4,000: whole units of 1,000" in told
    assert "after exactly 4,000 iterations (1,000 iterations played again from 3,000 on, " in told
    told = run("explain", path, name, "--games", "4500:4600").stdout
    assert "--games: 4500:4600 is widened to 4000:5000: whole units of 1,000 iterations" in told
    assert "iterations 4,000 to 4,999: 1 of 1 unit of 1,000 met it" in told
    assert "unit 4 (iterations 4,000 to 4,999), with snapshot 4: " in told
    assert "  regrets of the state after the unit: pass " in told
    assert "game" not in told.replace("--games", "")
    assert "-0.0000" not in told
    found = run_json("explain", path, name, "--iterations", "4500:4600")
    assert (found["games"], found["unit"], found["counts"]) == ([4_000, 5_000], 1_000, "iterations")
    assert found["regrets_of"] == "state"
    assert "not within the 6,000 iterations" in refused("explain", path, name, "--games", "0:6001")


def test_parquet_without_pyarrow(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refused("export", trained, "--format", "parquet", "--out", tmp_path / "policy.parquet")
    assert "pip install 'rejoinder[gateway]'" in said
    assert list(tmp_path.iterdir()) == []


def test_a_shipped_config_is_meant_before_a_run_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    RunDir.create(Path("tiny"), make_config({"game": "kuhn"}))
    shipped, there = (
        plan(source, "sequential", None, None, None, None, None) for source in ("tiny", "./tiny")
    )
    assert (shipped.config.game, shipped.path) == ("deal", Path("runs/tiny"))
    assert (there.config.game, there.path) == ("kuhn", Path("tiny"))


def test_the_words_for_people(trained: Path, tmp_path: Path) -> None:
    file, made = tmp_path / "file.json", tmp_path / "made"
    assert f"wrote {file}: " in run("export", trained, "--out", file).stdout
    assert f"rejoinder train {made} --resume" in run("import", file, "--run", made).stdout
