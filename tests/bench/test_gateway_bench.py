"""The benchmark of the gateway: it gives usable numbers, and sees it when a bar is missed."""

from __future__ import annotations

import math
import os
import shutil

import pytest

from rejoinder_bench import gateway, run_bench

_SMALL = {
    "_TRAINED": 20,
    "_ROUNDS": 1,
    "_SECONDS": 1.0,
    "_PLAYERS": 5,
    "_PLAY": 2.0,
    "_MOVES": 50,
    "_REQUESTS": 500,
    "_MOVES_AMONG_THEM": 50,
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system cannot pin a process")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two cores are needed")
@pytest.mark.skipif(shutil.which("wrk") is None, reason="no wrk here; `apt install wrk`")
def test_the_gateway_is_put_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _SMALL.items():
        monkeypatch.setattr(gateway, name, value)
    monkeypatch.setattr(gateway, "_MOST_MS", 0.0)  # nobody is that fast
    heard: list[str] = []
    result = run_bench("gateway", heard.append)
    assert not result.ok
    assert "move_p99_ms is below 0: NO" in heard
    assert set(result.ratios) == {"policy_over_bare", "busy_moves_over_bare", "memory_growth"}
    assert {"policies_per_second", "move_p99_ms", "mebibytes_after"} <= set(result.figures)
    assert all(
        math.isfinite(n) and n > 0 for n in (*result.ratios.values(), *result.figures.values())
    )


def test_without_wrk_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ValueError, match="wrk is needed"):
        run_bench("gateway", print)


def test_percentiles() -> None:
    times = [float(n) for n in range(200, 0, -1)]
    assert gateway._percentile(times, 50) == 101.0
    assert gateway._percentile(times, 99) == 199.0
    assert gateway._percentile([3.0], 99) == 3.0
