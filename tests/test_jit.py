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
from rejoinder.games import GAMES
from rejoinder.kernel import jit
from rejoinder.kernel.identity import identity
from rejoinder.kernel.jit import copy_record, kernel, lowest_bit, popcount, rule
from rejoinder.methods import METHODS
from rejoinder.run.config import make_config

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


def test_kernels_are_cached_in_our_own_place() -> None:
    assert Path(vars(numba.config)["CACHE_DIR"]) == jit.CACHE_DIR


def test_every_game_and_method_has_an_identity_of_its_own() -> None:
    made = {
        make_config({"game": name, "rules": min(game.enumerable), "method": method}).kernel
        for name, game in GAMES.items()
        for method in METHODS
    }
    assert len(made) == len(GAMES) * len(METHODS)


def test_what_a_game_begins_with_is_part_of_the_identity() -> None:
    tiny, medium = (make_config({"game": "deal", "rules": r}).kernel for r in ("tiny", "medium"))
    assert tiny != medium


CALLED = """
import sys
from numba.core.dispatcher import Dispatcher
from rejoinder.kernel.identity import sources
from rejoinder.run.config import make_config

config = make_config({"game": "kuhn", "method": sys.argv[1]})
task, method = config.task(), config.load_method()
actor, model, snapshot = method.actor(task), method.model(task, None), method.snapshot(task)
for unit in range(2):
    delta = actor.play(unit, snapshot)
    model.fold(unit, [len(delta)], delta)
    snapshot.apply(model.changes())
    snapshot.complete()
method.model(task, method.as_start(task, model.rows)).fold(0, [len(delta)], delta)
modules = [module for name, module in sys.modules.items() if name.startswith("rejoinder.")]
found = {id(value): value for module in modules for value in vars(module).values()}
kernels = [k for k in found.values() if isinstance(k, Dispatcher) and k.targetoptions.get("nogil")]
names = {f"{k.__module__}.{k.__qualname__}" for k in kernels if k.overloads}
print(len(names), *(names - set(sources(method.code))))
"""


@pytest.mark.parametrize("method", METHODS)
def test_every_kernel_that_a_method_calls_is_part_of_its_identity(method: str) -> None:
    done = subprocess.run([sys.executable, "-c", CALLED, method], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    called, *missing = done.stdout.split()
    assert (int(called) >= 3, missing) == (True, [])


NAMES = ["a"]


@rule
def reads_a_list() -> Any:
    return NAMES


def test_what_cannot_be_hashed_has_no_identity() -> None:
    with pytest.raises(TypeError, match="NAMES: compiled code names a list"):
        identity([reads_a_list])


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be edited."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, tmp_path / "rejoinder", ignore=ignored))


LEARNED = ("deal", "kuhn", "kuhn external", "kuhn full")  # a game, and a method if not the default

IDENTITIES = f"""
from rejoinder.run.config import make_config
for game, *method in map(str.split, {LEARNED}):
    print(make_config({{"game": game, "method": (*method, "rollout")[0]}}).kernel)
"""

# The entry point is in games/queries.py, the rule that is edited in games/kuhn/__init__.py.
SHOWDOWN = """
import numpy as np
from rejoinder.games import GAMES, queries
states = GAMES["kuhn"].template(None)
queries.start(states, states.copy(), 0)
for move in (2, 0, 1, 1):  # king against jack, bet, bet
    queries.apply(states, move)
won = np.zeros(2)
queries.utilities(states, won)
hits = sum(queries.utilities.stats.cache_hits.values())
print(won[0], won[1], hits)
"""


def run(code: str, package: Path, **environment: str) -> list[str]:
    """What a program prints that uses this copy of the package."""
    places = {
        "PYTHONPATH": str(package.parent),
        "REJOINDER_CACHE_DIR": str(package.parent / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | places | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def edit(package: Path, source: str, old: str, new: str) -> None:
    text = (package / source).read_text()
    assert text.count(old) >= 1
    (package / source).write_text(text.replace(old, new))


ALL = set(LEARNED)
KUHN = ALL - {"deal"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "old", "new", "changed"),
    [
        ("games/kuhn/__init__.py", "stake = 2.0", "stake = 5.0", KUHN),
        ("kernel/rng.py", "0x94D049BB133111EB", "0x94D049BB133111ED", ALL),
        ("kernel/masks.py", "builder.sub(mask", "builder.add(mask", ALL),
        ("kernel/masks.py", "record[name] = mask[0]", "record[name] = mask[1]", ALL),
        ("methods/tabular/regret.py", "max(weight, 0.0)", "max(0.0, weight)", {"deal", "kuhn"}),
        (
            "games/deal/cards.py",
            "np.array([2, 3, 3], np.int8)",
            "np.array([2, 3, 2], np.int8)",
            {"deal"},
        ),
        # Code that is not compiled, and what a game begins with.
        ("methods/tabular/weighting.py", "math.sqrt(t)", "math.sqrt(t + 1)", {"kuhn external"}),
        ("methods/exact/tree.py", "np.add.at(utilities", "np.add.at(-utilities", {"kuhn full"}),
        ("methods/exact/full.py", 'rows["weight"].max', 'rows["weight"].min', {"kuhn full"}),
        ("games/deal/rules.py", "= rules.just_say_no", "= rules.just_say_no + 1", {"deal"}),
        ("games/kuhn/__init__.py", "_: MAX_DECISIONS", "_: MAX_DECISIONS + 1", KUHN),
        (
            "methods/tabular/rollout_method.py",
            'self.averaging == "buffer" else 1',
            'self.averaging == "buffer" else 2',
            {"deal", "kuhn"},
        ),
    ],
)
def test_what_results_depend_on_changes_the_identity(
    package: Path, source: str, old: str, new: str, changed: set[str]
) -> None:
    before = run(IDENTITIES, package)
    edit(package, source, old, new)
    after = run(IDENTITIES, package)
    differ = {name for name, x, y in zip(LEARNED, before, after, strict=True) if x != y}
    assert differ == changed


@pytest.mark.slow
def test_what_is_not_compiled_changes_nothing(package: Path) -> None:
    before, cold = run(IDENTITIES, package), run(SHOWDOWN, package)
    assert cold == ["2.0", "-2.0", "0"]
    edits = {
        "games/leduc/__init__.py": "\nUNUSED = 1\n",
        "games/deal/view.py": "\n# a comment\n",
        "games/kuhn/__init__.py": "\n# a comment\n\n\ndef unused() -> None:\n    pass\n",
        "methods/tabular/regret.py": "\n# a comment\n",
        "measure/match.py": "\n# a comment\n",
    }
    for source, text in edits.items():
        with (package / source).open("a") as file:
            file.write(text)
    for source in ("games/queries.py", "games/kuhn/__init__.py", "methods/tabular/rollout.py"):
        edit(package, source, "from __future__", "# A line more.\nfrom __future__")
    edit(
        package, "methods/tabular/rollout.py", '"""Play training game', '"""Play the training game'
    )
    edit(package, "games/deal/cards.py", "([2, 3, 3], np.int8)", "([2, 3, 1 + 2], np.int8)")
    assert run(IDENTITIES, package) == before
    assert run(SHOWDOWN, package) == ["2.0", "-2.0", "1"]  # from the cache


@pytest.mark.slow
def test_an_edited_rule_of_another_module_is_never_served_stale(package: Path) -> None:
    cold = run(SHOWDOWN, package)
    assert cold == ["2.0", "-2.0", "0"]
    assert run(SHOWDOWN, package) == ["2.0", "-2.0", "1"]
    edit(package, "games/kuhn/__init__.py", "stake = 2.0", "stake = 5.0")
    assert run(SHOWDOWN, package) == ["5.0", "-5.0", "0"]
    edit(package, "games/kuhn/__init__.py", "stake = 5.0", "stake = 2.0")
    assert run(SHOWDOWN, package) == ["2.0", "-2.0", "1"]


def test_modules_can_be_loaded_without_compilation() -> None:
    """As numba's NUMBA_DISABLE_JIT has it, to look for an error with a debugger."""
    code = "from rejoinder.games.queries import utilities; print(utilities.__module__)"
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True
    )
    assert done.stdout == "rejoinder.games.queries\n"


@pytest.mark.slow
def test_without_a_place_for_the_cache_nothing_is_cached_elsewhere(package: Path) -> None:
    """numba would fall back on a place that does not know our versions."""
    nowhere = package.parent / "a file"
    nowhere.touch()
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "REJOINDER_CACHE_DIR": str(nowhere),
    }
    done = subprocess.run(
        [sys.executable, "-c", SHOWDOWN], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["2.0", "-2.0", "0"]
    assert "cannot be written" in done.stderr
    assert not list(package.rglob("*.nb?"))
