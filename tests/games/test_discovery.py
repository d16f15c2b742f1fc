"""Games are found by themselves; a package that is no game is one error that says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from documented import documented_code, documented_game

from rejoinder.games import GAMES, discover
from rejoinder.games.kuhn import GAME as KUHN
from rejoinder.methods.exact.tree import build_tree, why_not_enumerable

# The command, with a folder of further games.
WITH_MORE_GAMES = """
import sys
from importlib.machinery import PathFinder

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path)
        if name == "rejoinder.games":
            spec.submodule_search_locations.append(folder)
        return spec

folder = sys.argv.pop(1)
sys.meta_path.insert(0, Finder)
from rejoinder_cli.main import main
main()
"""
AGAIN = "from dataclasses import replace\nfrom rejoinder.games.{0} import GAME as FOUND\n"


def found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parent: str, **packages: str
) -> list[str]:
    """The names of the games of some packages, given by their code."""
    for name, code in packages.items():
        package = tmp_path / parent / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return list(discover([str(tmp_path / parent)], parent))


def test_the_documented_example_is_a_game_that_can_be_solved() -> None:
    game = documented_game()
    for rules in game.configurations.values():
        tree = build_tree(game, rules)
        assert (len(tree.form.infosets), tree.sequences, tree.nodes) == (2, 6, 7)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", r"the package games_\w+\.odd has no GAME"),
        ("GAME = 'odd'", r"the package games_\w+\.odd has no GAME"),
        (
            documented_code().replace("    observed=observed,\n", "").replace("start=", "begin="),
            r"games_\w+\.odd makes no game: .*: missing observed, start; unknown begin",
        ),
        (
            documented_code().replace("    check=check,\n", ""),
            r"games_\w+\.odd makes no game: .*missing 1 .*'check'",
        ),
        (
            documented_code().replace("@rule\ndef observed", "def observed"),
            r"games_\w+\.odd makes no game: observed is not compiled: it needs @rule",
        ),
        (
            documented_code().replace("def apply(state, move)", "def apply(state, action)"),
            r"games_\w+\.odd makes no game: apply must take \(state, move\)",
        ),
    ],
    ids=["nothing", "text", "functions", "field", "plain", "arguments"],
)
def test_a_package_that_makes_no_game_is_refused(
    code: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    parent = f"games_{request.node.callspec.id}"
    with pytest.raises(ValueError, match=said):
        found(tmp_path, monkeypatch, parent, odd=code.replace('"prize"', '"premium"'))


@pytest.mark.parametrize(
    ("other", "name", "refusal"),
    [
        ("leduc", "kuhn", "packages one and two in games_leduc are both called 'kuhn'"),
        ("kuhn", "mine", "packages one and two in games_kuhn have states of one dtype"),
    ],
    ids=["name", "state"],
)
def test_two_packages_that_claim_one_name_or_state_are_refused(
    other: str, name: str, refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kuhn = AGAIN.format("kuhn") + "GAME = FOUND"
    second = AGAIN.format(other) + f"GAME = replace(FOUND, name={name!r})"
    with pytest.raises(ValueError, match=refusal):
        found(tmp_path, monkeypatch, f"games_{other}", one=kuhn, two=second)


def test_games_are_known_by_their_own_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = AGAIN.format("leduc") + "GAME = replace(FOUND, name='other')"
    assert found(tmp_path, monkeypatch, "games_other", package=code) == ["other"]
    assert "other" not in GAMES


def test_a_command_prints_the_refusal_as_one_line(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", WITH_MORE_GAMES, str(tmp_path), "games"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "rejoinder: the package rejoinder.games.odd has no GAME, which every package there needs\n"
    )


def test_rules_of_unknown_size_get_another_message_than_rules_that_are_too_large() -> None:
    dice = GAMES["liars-dice"]
    known = dice.configurations["small"].model_dump()
    assert why_not_enumerable(dice, dice.rules_type(**known)) is None
    why = why_not_enumerable(dice, dice.rules_type(**known | {"faces": 4}))
    assert why is not None
    assert why.startswith("it is not known whether liars-dice with these rules is too large")
    assert why.endswith("known to be small enough, such as small, standard, two-each")
    assert why_not_enumerable(KUHN, next(iter(KUHN.configurations.values()))) is None
