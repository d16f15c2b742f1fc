"""Machine instructions, and the promise that a cache never serves another rule's code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoinder
from rejoinder.kernel import jit
from rejoinder.kernel.jit import KERNEL_VERSION, copy_record, kernel, lowest_bit, popcount

RECORD = np.dtype([("a", "<i8"), ("b", "i1", (3,))], align=True)
OTHER = np.dtype([("a", "<i8"), ("b", "i1", (4,))], align=True)
PACKAGE = Path(rejoinder.__file__).parent


@kernel
def count_bits(mask: Any) -> Any:
    return popcount(mask)


@kernel
def find_lowest(mask: Any) -> Any:
    return lowest_bit(mask)


@kernel
def copy(targets: Any, sources: Any) -> None:
    copy_record(targets[0], sources[0])


@given(st.integers(0, 2**64 - 1))
def test_popcount(mask: int) -> None:
    assert count_bits(np.uint64(mask)) == mask.bit_count()


@given(st.integers(1, 2**64 - 1))
def test_lowest_bit(mask: int) -> None:
    assert find_lowest(np.uint64(mask)) == (mask & -mask).bit_length() - 1


def test_ends_of_a_mask() -> None:
    assert [count_bits(np.uint64(m)) for m in (0, 1, 2**63, 2**64 - 1)] == [0, 1, 1, 64]
    assert [find_lowest(np.uint64(m)) for m in (1, 2**63, 2**64 - 1)] == [0, 63, 0]


def test_copied_records_are_equal_and_independent() -> None:
    source = np.array([(5, (1, 2, 3))], RECORD)
    target = np.array([(0, (9, 9, 9)), (8, (7, 7, 7))], RECORD)
    copy(target, source)
    assert target.tolist()[0][0] == 5
    assert target["b"].tolist() == [[1, 2, 3], [7, 7, 7]]
    source["b"] = 0
    assert target[0]["b"].tolist() == [1, 2, 3]


def test_records_of_different_dtypes_are_not_copied() -> None:
    with pytest.raises(numba.TypingError, match="copy_record needs two records of one dtype"):
        copy(np.zeros(1, RECORD), np.zeros(1, OTHER))


def test_a_kernel_cache_is_named_after_its_version() -> None:
    assert jit.CACHE_DIR.name == KERNEL_VERSION
    assert Path(vars(numba.config)["CACHE_DIR"]) == jit.CACHE_DIR


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be edited."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "rejoinder", ignore=ignored))


def version_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(jit, "_PACKAGE", package)
    return jit._hash_sources()


@pytest.mark.parametrize(
    "source",
    [
        "jit.py",
        "rng.py",
        "games/contract.py",
        "games/deal/response.py",
        "cfr/regret.py",
        "evaluate/agents.py",
    ],
)
def test_every_kernel_source_is_part_of_the_version(
    source: str, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert version_of(package, monkeypatch) == KERNEL_VERSION
    with (package / source).open("a") as file:
        file.write("\n")
    assert version_of(package, monkeypatch) != KERNEL_VERSION


def test_a_renamed_or_new_kernel_source_changes_the_version(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "games" / "empty.py").touch()
    added = version_of(package, monkeypatch)
    (package / "games" / "empty.py").rename(package / "games" / "void.py")
    renamed = version_of(package, monkeypatch)
    assert len({KERNEL_VERSION, added, renamed}) == 3


def test_other_sources_do_not_change_the_version(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in ("checkpoints.py", "config.py", "rundir.py", "solve.py"):
        with (package / source).open("a") as file:
            file.write("# no kernel lives here\n")
    assert version_of(package, monkeypatch) == KERNEL_VERSION


def test_every_module_with_a_kernel_is_part_of_the_version() -> None:
    hashed = {path for pattern in jit._KERNEL_SOURCES for path in PACKAGE.glob(pattern)}
    decorators = ("@kernel", "@rule", "@hot", "@intrinsic")
    for path in PACKAGE.rglob("*.py"):
        if any(line in decorators for line in path.read_text().splitlines()):
            assert path in hashed


# The entry point is in games/queries.py, the rule that is edited in games/kuhn.py.
SHOWDOWN = """
import numpy as np
from rejoinder.games import GAMES, queries
from rejoinder.kernel.jit import KERNEL_VERSION
states = GAMES["kuhn"].template(None)
queries.start(states, states.copy(), 0)
for move in (2, 0, 1, 1):  # king against jack, bet, bet
    queries.apply(states, move)
won = np.zeros(2)
queries.utilities(states, won)
hits = sum(queries.utilities.stats.cache_hits.values())
print(KERNEL_VERSION, won[0], won[1], hits)
"""


def play_showdown(package: Path) -> tuple[str, float, float, int]:
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "REJOINDER_CACHE_DIR": str(package.parent / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SHOWDOWN], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    version, won, lost, hits = done.stdout.split()
    return version, float(won), float(lost), int(hits)


def test_modules_can_be_loaded_without_compilation() -> None:
    """As numba's NUMBA_DISABLE_JIT has it, to look for an error with a debugger."""
    code = "from rejoinder.games.queries import utilities; print(utilities.__module__)"
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True
    )
    assert done.stdout == "rejoinder.games.queries\n"


@pytest.mark.slow
def test_an_edited_rule_of_another_module_is_never_served_stale(package: Path) -> None:
    cold = play_showdown(package)
    assert cold == (KERNEL_VERSION, 2.0, -2.0, 0)
    warm = play_showdown(package)
    assert warm == (KERNEL_VERSION, 2.0, -2.0, 1)  # the kernel did come from the cache

    rules = package / "games" / "kuhn.py"
    before = rules.read_text()
    rules.write_text(before.replace("stake = 2.0", "stake = 5.0"))
    edited = play_showdown(package)
    assert edited[0] != KERNEL_VERSION
    assert edited[1:] == (5.0, -5.0, 0)

    rules.write_text(before)
    assert play_showdown(package) == warm


@pytest.mark.slow
def test_without_a_place_for_the_cache_nothing_is_cached_elsewhere(package: Path) -> None:
    """numba would fall back on a place that does not know our version."""
    nowhere = package.parent / "a file"
    nowhere.touch()
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "REJOINDER_CACHE_DIR": str(nowhere),
    }
    done = subprocess.run(
        [sys.executable, "-c", SHOWDOWN], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split()[1:] == ["2.0", "-2.0", "0"]
    assert "cannot be written" in done.stderr
    assert not list(package.rglob("*.nb?"))
