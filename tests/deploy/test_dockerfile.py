"""deploy/Dockerfile: linted, pinned, not root, and everything that it copies or starts exists."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from composition import OWN, ROOT, SECRETS, load
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DOCKERFILE = ROOT / "deploy/Dockerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

Stage = list[tuple[str, str]]  # instructions with their arguments


def stages() -> dict[str, Stage]:
    """The instructions by stage, each beginning with what the stage is made from."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    found: dict[str, Stage] = {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            assert stage, f"{line}: a stage without a name"
            found[stage] = [(name, base)]
        elif name:
            found[stage].append((name, rest.strip()))
    return found


def whole(stage: str) -> Stage:
    """With everything that comes from the stages below."""
    own = stages()[stage]
    base = own[0][1]
    return [*(whole(base) if base in stages() else own[:1]), *own[1:]]


def variables(stage: str) -> dict[str, str]:
    said = " ".join(rest for name, rest in whole(stage) if name == "ENV")
    return dict(re.findall(r"(\w+)=(\S+)", said))


def test_hadolint_is_content() -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)
    if linter is None:
        pytest.skip("no hadolint for this machine")
    told = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout


def test_there_is_a_target_for_each_process() -> None:
    scripts = PROJECT["scripts"]
    for name in OWN:
        command = [json.loads(rest) for kind, rest in stages()[name] if kind == "CMD"]
        assert command[0][:2] == ["rejoinder", name]
        assert command[0][0] in scripts
        assert load(SECRETS)["services"][name]["build"] == {
            "context": ".",
            "dockerfile": "deploy/Dockerfile",
            "target": name,
        }


def test_the_base_is_one_exact_version() -> None:
    bases = {rest for stage in stages().values() for kind, rest in stage if kind == "FROM"}
    (outer,) = bases - set(stages())
    found = re.fullmatch(r"python:(\d+\.\d+)\.\d+-slim-[a-z]+", outer)
    assert found
    assert tuple(map(int, found[1].split("."))) >= (3, 11), PROJECT["requires-python"]


def test_nobody_is_root() -> None:
    for name in OWN:
        (*_, user) = (rest for kind, rest in whole(name) if kind == "USER")
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
        made = " ".join(rest for kind, rest in whole(name) if kind == "RUN")
        assert f"--uid {user.partition(':')[0]}" in made
        after = whole(name)[whole(name).index(("USER", user)) :]
        assert not [rest for kind, rest in after if kind == "RUN"], "images are only put together"


def test_what_is_copied_is_there_and_let_through() -> None:
    rules = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_through = [rule[1:] for rule in rules if rule.startswith("!")]
    for stage in stages().values():
        for kind, rest in stage:
            assert kind != "ADD"
            if kind == "COPY" and "--from" not in rest:
                for source in rest.split()[:-1]:
                    assert (ROOT / source).exists(), source
                    assert any(
                        rule == source or rule.startswith(f"{source}/") for rule in let_through
                    )
    for rule in let_through:
        assert (ROOT / rule).exists(), rule
    assert not any(fnmatch.fnmatch(".env", rule) for rule in let_through)


def test_final_images_carry_no_sources_and_no_tools() -> None:
    for name in OWN:
        copied = [rest for kind, rest in whole(name) if kind == "COPY"]
        assert all("--from=" in rest for rest in copied)
        assert not any("pip" in rest for kind, rest in whole(name) if kind == "RUN")


def test_kernels_are_found_where_they_were_compiled() -> None:
    for name in OWN:
        cache = variables(name)["REJOINDER_CACHE_DIR"]
        (copied,) = (rest for kind, rest in stages()[name] if kind == "COPY" and cache in rest)
        origin = re.search(r"--from=(\w+)", copied)
        assert origin
        assert "--chown=10001:10001" in copied  # numba uses what it can write
        compiled = variables(origin[1])
        for variable in ("REJOINDER_CACHE_DIR", "NUMBA_CPU_NAME"):
            assert variables(name)[variable] == compiled[variable]
        (*_, last) = (rest for kind, rest in whole(origin[1]) if kind == "RUN")
        assert last.endswith("rejoinder warm")
        assert last.index("touch --date") < last.index("rejoinder warm")
    assert variables("worker")["NUMBA_CPU_NAME"] == "generic"


def test_volumes_are_where_the_processes_look() -> None:
    for name in ("learner", "gateway"):
        (*_, folder) = (rest for kind, rest in whole(name) if kind == "WORKDIR")
        (volume,) = load(SECRETS)["services"][name]["volumes"]
        assert volume.split(":")[1] == f"{folder}/runs"


def test_every_dependency_is_pinned() -> None:
    lines = (ROOT / "deploy/constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["gateway"]]
    for text in wanted:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"sys_platform": "linux"}):
            continue
        pinned = pins.get(canonicalize_name(requirement.name))
        assert pinned, f"{requirement.name} is not in deploy/constraints.txt"
        assert requirement.specifier.contains(pinned), f"{text}: {pinned} is pinned"


@pytest.mark.slow
@pytest.mark.timeout(900)  # on a new machine all kernels are compiled first
def test_kernels_compiled_beforehand_are_all_that_a_run_needs(tmp_path: Path) -> None:
    """As in the image: generic kernels, then a run with workers that compiles nothing more."""
    image = {"NUMBA_CPU_NAME": "generic", "REJOINDER_CACHE_DIR": str(tmp_path / "cache")}
    rejoinder = [sys.executable, "-m", "rejoinder_cli.main"]

    def call(*words: str, **environment: str) -> dict[str, str]:
        done = subprocess.run(
            [*rejoinder, *words, "--json"],
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        result: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return result

    def kernels() -> set[str]:
        return {path.name for path in (tmp_path / "cache").rglob("*.nb?")}

    call("warm", "kuhn-rollout", "--no-gateway", **image)
    there = kernels()
    assert there
    little = ("--games", "60", "--set", "eval_every=20", "--set", "eval_games=4")
    told = call("train", "kuhn-rollout", "--workers", "2", "--run", "composed", *little, **image)
    assert kernels() == there
    native = call("train", "kuhn-rollout", "--mode", "sequential", "--run", "native", *little)
    assert told["digest"] == native["digest"], "a portable kernel gives the same result"
