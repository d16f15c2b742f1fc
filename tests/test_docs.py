"""The documentation does what it says: its Python runs, its commands and links exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer

from rejoinder_cli.main import app

ROOT = Path(__file__).parent.parent
PARTS = ("shared", "worker", "learner", "gateway", "cli", "bench", "deploy", "tests", "docs")
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page: Path) -> None:
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Every `rejoinder …` and `make …` in a console block, with every option that it uses."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for line in "".join(blocks(page, "console")).splitlines():
        for call in line.removeprefix("$ ").split("#")[0].split("&&"):
            words = shlex.split(call) if re.match(r"\s*(rejoinder|make)\b", call) else []
            if words[:1] == ["make"]:
                assert words[1] in targets, line
            elif words:
                assert words[1] in commands, line
                command = commands[words[1]]
                if hasattr(command, "commands"):  # a group
                    assert words[2] in command.commands, line
                    command = command.commands[words[2]]
                known = {name for p in command.params for name in p.opts}
                assert {w for w in words if w.startswith("--")} <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    folder = ROOT  # of the last whole path, which "…" stands for
    for path in re.findall(r"`((?:[a-z]+/|… )[\w/.-]+)`", text):
        if path.startswith("… "):
            assert (folder / path.removeprefix("… ")).exists(), path
        elif path.split("/")[0] in PARTS:
            assert (ROOT / path).exists(), path
            folder = (ROOT / path).parent


def test_make_lists_its_targets() -> None:
    told = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("setup", "train", "test", "check", "bench", "clean"):
        assert f"make {target} " in told
