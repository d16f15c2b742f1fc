"""Runs that start from a policy: the same contract, with that policy as part of the config."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime import Slow, Watch, hands, kuhn, outcome, tiny, train_with

from rejoinder.games.deal import paper
from rejoinder.run.checkpoints import RunError, digest, start_of
from rejoinder.run.config import ConfigError, RunConfig
from rejoinder.run.rundir import RunDir
from rejoinder.run.starts import Start, begin, read_start
from rejoinder.transport.server import EmbeddedServer
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner
from rejoinder_learner.verify import verify


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A run of 20 games of Kuhn poker."""
    run = RunDir.create(tmp_path_factory.mktemp("given") / "run", kuhn(games=20, seed=3))
    train(run)
    return read_start(run.path)


def started(path: Path, start: Start, **fields: Any) -> RunDir:
    return RunDir.create(path, begin(kuhn(**fields), start), start.rows)


def damage(run: RunDir) -> None:
    """Change the start in a way that its checksums do not show."""
    rows = read_start(run.path).rows.copy()
    rows["regret"][0] += 1.0
    other = begin(run.config, Start("", run.config, rows))
    forged = RunDir.create(run.path.with_name("forged"), other, rows)
    lose(run)
    shutil.copytree(forged.path / "checkpoints" / "00000000", run.path / "checkpoints" / "00000000")


def lose(run: RunDir) -> None:
    shutil.rmtree(run.path / "checkpoints" / "00000000")


def test_a_run_begins_with_what_it_was_given(tmp_path: Path, given: Start) -> None:
    run = started(tmp_path / "run", given)
    assert run.config.start == start_of(given.rows)
    there = RunDir.open(run.path).result()
    assert (there.games, there.rows.tobytes()) == (0, given.rows.tobytes())
    learner = Learner(run.config, there)
    assert learner.snapshot_at(0).rows[: len(given.rows)]["policy"].tobytes() == (
        np.ascontiguousarray(given.rows["policy"]).tobytes()
    )


def test_what_it_was_given_makes_another_run_of_it(tmp_path: Path, given: Start) -> None:
    plain, run = RunDir.create(tmp_path / "plain", kuhn()), started(tmp_path / "run", given)
    assert run.config.fingerprint != plain.config.fingerprint
    assert train(run).digest != train(plain).digest
    assert run.result().rows["updates"].sum() > plain.result().rows["updates"].sum()
    with pytest.raises(RunError, match="start is"):
        plain.continue_with(run.config)


@pytest.mark.parametrize(("batch", "lag"), [(1, 0), (5, 1), (7, 3)])
def test_workers_make_the_same_of_it(
    server: EmbeddedServer, tmp_path: Path, given: Start, batch: int, lag: int
) -> None:
    fields = {"batch": batch, "lag": lag, "eval_every": 15}
    alone, together = (started(tmp_path / n, given, **fields) for n in ("alone", "together"))
    expected = outcome(alone, train(alone))
    assert train_with(server, together, 3) == expected
    assert verify(together, sample=1, seed=0).problems == []


@pytest.mark.parametrize("stop", [0, 1, 13, 40])
def test_stopped_and_resumed_it_comes_out_the_same(tmp_path: Path, given: Start, stop: int) -> None:
    expected = train(started(tmp_path / "whole", given)).digest
    run = started(tmp_path / "run", given)
    heard: list[int] = []
    first = train(run, on_game=heard.append, should_stop=lambda: bool(heard) and heard[-1] >= stop)
    assert first.games == stop
    again = RunDir.open(run.path)
    again.continue_with(kuhn())  # which does not say what it starts from
    assert train(again).digest == expected


def test_after_a_crash_before_the_first_checkpoint(
    server: EmbeddedServer, tmp_path: Path, given: Start
) -> None:
    expected = train(started(tmp_path / "whole", given)).digest
    run = started(tmp_path / "run", given, checkpoint_every=0)

    class Crash(Exception):
        pass

    def crash() -> None:
        raise Crash

    # The metrics of a learner that dies here, and nothing else, are behind the start.
    watch = Watch(lambda status: status["games"] > 5, crash)
    with pytest.raises(Crash):
        train_with(server, run, hands(server, run, 2, Slow), on_status=watch)
    for later in run.checkpoint_games():
        if later:
            shutil.rmtree(run.path / "checkpoints" / f"{later:08d}")
    assert train_with(server, RunDir.open(run.path)).digest == expected


def test_the_start_is_never_thinned_out(tmp_path: Path, given: Start) -> None:
    run = started(tmp_path / "run", given, checkpoint_every=2, checkpoints_kept=3)
    train(run)
    assert run.checkpoint_games() == [0, 56, 58, 60]
    found = verify(run, sample=1, seed=0)
    assert (found.problems, found.recomputed) == ([], 60)
    assert any(run.config.start in note for note in found.notes)


@pytest.mark.parametrize(
    "harm", [damage, lambda run: shutil.rmtree(run.path / "checkpoints/00000000")]
)
def test_a_start_that_is_another_one_is_not_used(
    tmp_path: Path, given: Start, harm: Callable[[RunDir], None]
) -> None:
    run = started(tmp_path / "run", given)
    harm(run)
    with pytest.raises(RunError, match="the policy that the run starts from, is not whole"):
        train(RunDir.open(run.path))


@pytest.mark.parametrize(
    "harm", [damage, lambda run: shutil.rmtree(run.path / "checkpoints/00000000")]
)
def test_verify_finds_it_too(tmp_path: Path, given: Start, harm: Callable[[RunDir], None]) -> None:
    run = started(tmp_path / "run", given)
    train(run)
    harm(run)
    for sample in (0, 1):
        found = verify(RunDir.open(run.path), sample=sample, seed=0)
        assert [(p.part, p.game) for p in found.problems][:1] == [("checkpoint", 0)]


def test_a_missing_ledger_is_not_taken_for_a_new_start(tmp_path: Path, given: Start) -> None:
    run = started(tmp_path / "run", given)
    train(run)
    (run.path / "ledger.bin").unlink()
    with pytest.raises(RunError, match=r"ledger\.bin is missing"):
        train(RunDir.open(run.path))


def test_a_start_has_to_be_given(tmp_path: Path, given: Start) -> None:
    config = begin(kuhn(), given)
    for rows in (None, given.rows[:3]):
        with pytest.raises(RunError, match="start: the policy that the config names"):
            RunDir.create(tmp_path / "run", config, rows)
    with pytest.raises(ValueError, match="starts from is missing"):
        Learner(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (tiny(), "game: it is 'kuhn' in"),
        (kuhn(averaging="linear"), "method.averaging: it is 'buffer' in"),
        (kuhn(buffer_size=3), "method.buffer_size: it is 10 in"),
    ],
)
def test_what_does_not_fit_is_refused(config: RunConfig, told: str, given: Start) -> None:
    with pytest.raises(ConfigError) as error:
        begin(config, given)
    assert told in str(error.value)


def test_other_rules_are_told(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", tiny(games=8))
    train(run)
    heard: list[str] = []
    config = begin(tiny(**{"rules.draw": 2}), read_start(run.path), heard.append)
    assert config.rules != run.config.rules
    assert heard == [f"{run.path} has learned another game: rules.draw is 1 there and 2 here"]


def test_a_run_imported_from_the_papers_file_goes_on_like_the_run_it_came_from(
    tmp_path: Path, server: EmbeddedServer
) -> None:
    run = RunDir.create(tmp_path / "run", tiny(games=20))
    train(run)
    rows = run.result().rows
    file = tmp_path / "checkpoint.json"
    file.write_bytes(paper.write(run.config, rows))
    made = []
    for source in (file, run.path):
        start = read_start(source)
        assert start.rows.tobytes() == rows.tobytes()
        config = begin(tiny(), start)
        made.append(RunDir.create(tmp_path / f"from-{source.stem}", config, start.rows))
    expected = outcome(made[0], train(made[0]))
    assert train_with(server, made[1]) == expected
    assert expected.digest == digest(config.fingerprint, 40, made[0].result().rows)
