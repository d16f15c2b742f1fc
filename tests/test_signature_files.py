"""Compiled kernels on disk, with several processes that save and wait at the same time."""

from __future__ import annotations

import ctypes
import itertools
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import numba
import pytest

from rejoinder.games import queries
from rejoinder.kernel.signature_files import CompileLock, SignatureFiles, keep

PROCESSES = multiprocessing.get_context("spawn")
SAVED = 50  # signatures, by each of two processes
PATIENCE = 60.0  # seconds until a test gives up


def files_in(folder: Path, stamp: str = "stamp") -> SignatureFiles:
    return SignatureFiles(
        folder, "kernel", lambda _: stamp, CompileLock(folder / "turns", PATIENCE)
    )


def start(work: Callable[..., None], *arguments: Any) -> BaseProcess:
    process = PROCESSES.Process(target=work, args=arguments)
    process.start()
    return process


def end(*processes: BaseProcess) -> None:
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0


def save_together(folder: Path, who: int, together: Barrier) -> None:
    files = files_in(folder)
    for n in range(SAVED):
        together.wait(PATIENCE)
        files.save((who, n), f"the code of {who}, {n}" + 100_000 * " ")


def test_signatures_that_several_processes_save_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    """With numba's own files about a third of them are lost, and some lead to another's code."""
    together = PROCESSES.Barrier(2)
    end(*[start(save_together, tmp_path, who, together) for who in (0, 1)])
    files = files_in(tmp_path)
    for who, n in itertools.product((0, 1), range(SAVED)):
        assert files.load((who, n)).strip() == f"the code of {who}, {n}"
    assert files.load((2, 0)) is None
    assert files_in(tmp_path, "a later source").load((0, 0)) is None


def compile_once(folder: Path, together: Barrier) -> None:
    files = files_in(folder)
    for n in range(SAVED):
        together.wait(PATIENCE)
        if (code := files.load(n)) is None:
            with (folder / "compiled").open("a") as log:
                log.write(f"{n}\n")
            files.save(n, f"the code of {n}")
        else:
            assert code == f"the code of {n}"
        files.end_turns()


def test_what_several_processes_need_at_once_one_compiles(tmp_path: Path) -> None:
    together = PROCESSES.Barrier(3)
    end(*[start(compile_once, tmp_path, together) for _ in range(3)])
    compiled = (tmp_path / "compiled").read_text().split()
    assert compiled == [str(n) for n in range(SAVED)]


def take_a_turn(folder: Path, begun: Event, over: Event | None) -> None:
    assert CompileLock(folder / "turns").take("key")
    begun.set()
    if over is None:
        os._exit(0)
    assert over.wait(PATIENCE)


def test_a_process_that_dies_while_it_compiles_is_not_waited_for(tmp_path: Path) -> None:
    begun = PROCESSES.Event()
    dying = start(take_a_turn, tmp_path, begun, None)
    assert begun.wait(PATIENCE)
    assert CompileLock(tmp_path / "turns", PATIENCE).take("key")
    end(dying)


def test_one_that_hangs_is_waited_for_a_while(tmp_path: Path) -> None:
    begun, over = PROCESSES.Event(), PROCESSES.Event()
    hanging = start(take_a_turn, tmp_path, begun, over)
    assert begun.wait(PATIENCE)
    impatient = CompileLock(tmp_path / "turns", patience=0.1)
    assert not impatient.take("key")
    impatient.end("key")  # which it never had
    assert not impatient.take("key")
    assert impatient.take("another key")
    over.set()
    end(hanging)


def test_without_a_file_for_turns_everybody_compiles(tmp_path: Path) -> None:
    files = SignatureFiles(
        tmp_path, "kernel", lambda _: "stamp", CompileLock(tmp_path / "no such folder/turns")
    )
    assert files.load("key") is None
    files.save("key", "code")
    assert files.load("key") == "code"


def test_what_cannot_be_kept_can_be_used(tmp_path: Path) -> None:
    files = files_in(tmp_path / "no such folder")
    with pytest.warns(UserWarning, match="a kernel is not kept: .*No such file"):
        files.save("key", "code")


@pytest.mark.parametrize("byte", [0, 40, -1])
def test_a_damaged_file_is_replaced(tmp_path: Path, byte: int) -> None:
    files = files_in(tmp_path)
    files.save("key", "code")
    (file,) = tmp_path.glob("*.nbc")
    content = bytearray(file.read_bytes())
    content[byte] ^= 1
    for damaged in (b"", content[:10], content[:50], content):
        file.write_bytes(damaged)
        assert files.load("key") is None
    files.save("key", "code")
    assert files.load("key") == "code"


class Counted(CompileLock):
    """Knows whose turn it is."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.had: list[str] = []
        self.open: set[str] = set()

    def take(self, what: str) -> bool:
        self.had.append(Path(what).name.split(".")[-4])
        self.open.add(what)
        return super().take(what)

    def end(self, what: str) -> None:
        self.open.remove(what)
        super().end(what)


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return Counted(tmp_path / "turns")


def kept(function: Any, turns: CompileLock) -> Any:
    made = numba.njit(cache=True)(function)
    keep(made, turns, lambda _: "version")
    return made


def test_turns_end_when_kernels_are_compiled(turns: Counted) -> None:
    def kernels() -> Any:
        """New ones, as another process has them."""

        def inner(x: int) -> int:
            return x + 1

        one = kept(inner, turns)

        def outer(x: int) -> int:
            return 2 * int(one(x))

        return kept(outer, turns), one

    outer, _ = kernels()
    assert outer(3) == 8
    assert turns.had == ["outer", "inner"]
    assert not turns.open
    _, inner = kernels()
    assert inner(3) == 4
    assert sum(inner.stats.cache_hits.values()) == 1
    assert len(turns.had) == 2


ABSOLUTE = ctypes.CDLL(None).labs
ABSOLUTE.argtypes, ABSOLUTE.restype = [ctypes.c_long], ctypes.c_long


def foreign(x: int) -> Any:
    """Has an address in it, which is another one in the next process."""
    return ABSOLUTE(x)


def test_turns_end_when_a_kernel_cannot_be_compiled_or_kept(turns: Counted) -> None:
    def wrong(x: Any) -> Any:
        return x.nothing_of_that_name

    with pytest.raises(numba.TypingError):
        kept(wrong, turns)(1)
    with pytest.warns(numba.NumbaWarning, match="Cannot cache"):
        assert kept(foreign, turns)(-3) == 3
    assert len(turns.had) == 2
    assert not turns.open


def test_the_kernels_of_the_games_are_kept_so() -> None:
    kernels = [made for made in vars(queries).values() if hasattr(made, "_cache")]
    assert len(kernels) > 5
    assert all(isinstance(made._cache._cache_file, SignatureFiles) for made in kernels)
