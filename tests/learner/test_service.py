"""Training with workers over a real server: whatever happens, the result is the sequential one."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from runtime import (
    BareLiar,
    Hand,
    Liar,
    Slow,
    Unattended,
    Watch,
    crew,
    hands,
    kuhn,
    leduc,
    never_late,
    outcome,
    sequential,
    serve,
    tiny,
    train_with,
    with_a_snail,
)

from rejoinder.methods.tabular.model import TableModel
from rejoinder.run.checkpoints import RunError
from rejoinder.run.config import RunConfig
from rejoinder.run.rundir import RunDir
from rejoinder.transport.bus import LEARNER_TTL, Bus
from rejoinder.transport.connection import BusError, connect
from rejoinder.transport.server import EmbeddedServer
from rejoinder.transport.wire import Codec, Deltas, EvaluationLease, Lease, Refusal
from rejoinder_learner.evaluations import Evaluations
from rejoinder_learner.publisher import Publisher
from rejoinder_learner.sequential import train
from rejoinder_learner.state import Learner
from rejoinder_learner.telemetry import LearnerMetrics


def new_run(path: Path, config: RunConfig, name: str = "run") -> RunDir:
    return RunDir.create(path / name, config)


def after(games: int) -> Callable[[dict[str, Any]], bool]:
    return lambda status: status["games"] >= games


# The number of workers, and what the network does


@pytest.mark.parametrize("workers", [1, 2, 4, 7])
def test_the_number_of_workers_changes_nothing(
    server: EmbeddedServer, tmp_path: Path, workers: int
) -> None:
    config = kuhn(eval_every=15, games=70)
    assert train_with(server, new_run(tmp_path, config), workers) == sequential(config)


@pytest.mark.parametrize("lag", [0, 2])
@pytest.mark.parametrize("make", [leduc, tiny])
def test_other_games_and_lags(
    server: EmbeddedServer, tmp_path: Path, make: Callable[..., RunConfig], lag: int
) -> None:
    config = make(lag=lag)
    assert train_with(server, new_run(tmp_path, config), 3) == sequential(config)


class Unreliable(Bus):
    """Delivers late, in another order, and often twice."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._held: list[tuple[Sequence[bytes], str]] = []
        self._random = random.Random(self.run)

    def deliver(self, messages: Sequence[bytes], job: str) -> None:
        self._held.append((messages, job))
        if len(self._held) >= 3:
            self.let_go()

    def let_go(self) -> None:
        self._random.shuffle(self._held)
        for messages, job in self._held:
            for _ in range(self._random.randint(1, 3)):
                super().deliver(messages, job)
        self._held.clear()


class Muddler(Hand):
    def make_bus(self, url: str, run: str) -> Bus:
        return Unreliable(connect(url), run)

    def step(self) -> None:
        waiting = self.bus.queue.count
        super().step()
        if not waiting and isinstance(self.bus, Unreliable):
            self.bus.let_go()


@pytest.mark.parametrize("lag", [0, 2])
def test_deltas_that_come_late_twice_and_in_any_order(
    server: EmbeddedServer, tmp_path: Path, lag: int
) -> None:
    config, watch = kuhn(lag=lag, eval_every=20), Watch()
    run = new_run(tmp_path, config)
    got = train_with(server, run, hands(server, run, 3, Muddler), on_status=watch)
    assert got == sequential(config)
    assert watch.last["duplicates"] > 0


# Stop and resume


def test_stop_and_resume_with_other_numbers_of_workers(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    config = kuhn(eval_every=10)
    run = new_run(tmp_path, config)
    stops = random.Random(4)
    for workers in (1, 3, 2, 5):
        seen = LastGames()
        wanted = stops.randint(1, 15)
        run = RunDir.open(run.path)
        train_with(
            server, run, workers, should_stop=lambda s=seen, n=wanted: s.asked(n), on_status=seen
        )
    assert train_with(server, RunDir.open(run.path), 2) == sequential(config)


class LastGames:
    """Stops a learner after it has gone through so many steps."""

    def __init__(self) -> None:
        self._steps = 0

    def __call__(self, status: dict[str, Any]) -> None:
        pass

    def asked(self, steps: int) -> bool:
        self._steps += 1
        return self._steps > 2 * steps


def test_sequential_and_ordered_can_take_turns(server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(eval_every=7, checkpoint_every=0)
    run = new_run(tmp_path, config)
    asked = iter(range(1000))
    train(run, should_stop=lambda: next(asked) >= 13)
    steps = LastGames()
    half = train_with(server, run, 2, should_stop=lambda: steps.asked(6))
    assert 13 * 80 < len(half.ledger) < 60 * 80
    result = train(RunDir.open(run.path))
    assert result.finished
    assert outcome(run, result) == sequential(config)


# The server


def test_everything_on_the_server_is_lost_again_and_again(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    config, watch = kuhn(eval_every=20, games=120), Watch()
    run, telemetry = new_run(tmp_path, config), LearnerMetrics("r")
    client = connect(own_server.url)
    stop = threading.Event()

    def flush() -> None:
        """At any moment, but never before there was some progress."""
        next_at = 5.0
        while not stop.wait(0.01):
            name = "rejoinder_learner_games_folded_total"
            folded = telemetry.registry.get_sample_value(name, {"run": "r"}) or 0
            if folded >= next_at:
                client.flushall()
                next_at = folded + 5

    vandal = threading.Thread(target=flush)
    vandal.start()
    try:
        present = hands(own_server, run, 3, Slow)
        got = train_with(own_server, run, present, on_status=watch, telemetry=telemetry)
    finally:
        stop.set()
        vandal.join()
        client.close()
    assert got == sequential(config)
    assert watch.last["leased_again"] > 0


def test_a_flush_makes_no_game_come_again_for_ever(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    """What arrives between a flush and the next leases needs no lease."""
    config = kuhn(batch=10, lag=0, games=40)
    run = new_run(tmp_path, config)
    client = connect(own_server.url)
    watch = Watch(after(10), client.flushall)
    got = train_with(own_server, run, hands(own_server, run, 4, Slow), on_status=watch)
    client.close()
    assert got == sequential(config)
    assert watch.last["outstanding"] == 0


@pytest.mark.parametrize("away", [0.0, 0.6])
def test_the_server_dies_and_comes_back(
    own_server: EmbeddedServer, tmp_path: Path, away: float
) -> None:
    config, reports = kuhn(eval_every=20), list[str]()
    home = threading.Event()  # a server ends with the thread that has started it

    def restart() -> None:
        own_server.kill()
        threading.Thread(target=revive).start()

    def revive() -> None:
        time.sleep(away)
        own_server.start()
        home.wait(60)

    run = new_run(tmp_path, config)
    watch = Watch(after(20), restart)
    present = hands(own_server, run, 2, Slow)
    try:
        got = train_with(own_server, run, present, on_status=watch, report=reports.append)
    finally:
        home.set()
    assert watch.done
    assert got == sequential(config)
    assert any("the Redis server cannot be used" in report for report in reports)


def test_a_learner_that_gives_up_has_saved(own_server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(checkpoint_every=0)
    run = new_run(tmp_path, config)
    seen: list[int] = []
    watch = Watch(after(10), own_server.kill)
    with crew(hands(own_server, run, 2, Slow)), pytest.raises(BusError) as refused:
        serve(own_server, run, patience=0.3, on_status=watch, report=lambda _: seen.append(1))
    saved = run.result().games
    assert saved >= 10
    assert "what was learned is saved" in str(refused.value)
    assert "\n" not in str(refused.value)
    own_server.start()
    assert train_with(own_server, RunDir.open(run.path)) == sequential(config)


# Workers that die


class Mortal(Hand):
    """Takes one lease and is never heard of again; then its heir comes."""

    heir: Hand

    def work(self, *_: Any) -> None:
        self.died = time.monotonic()
        self.halt.set()
        self.heir.start()


@pytest.mark.slow
def test_what_a_dead_worker_had_is_leased_again(server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(lag=0)
    run = new_run(tmp_path, config)
    watch = Watch(lambda status: status["leased_again"] > 0, lambda: ends.append(time.monotonic()))
    ends: list[float] = []
    mortal = Mortal(server.url, run, "mortal")
    (mortal.heir,) = hands(server, run, 1)
    with crew([mortal]):
        result = serve(server, run, on_status=watch)
    mortal.heir.halt.set()
    mortal.heir.join()
    assert outcome(run, result) == sequential(config)
    assert ends[0] - mortal.died < 60  # a few times what leases have been taking


# Messages that are not what they should be


def test_garbage_is_quarantined_and_changes_nothing(server: EmbeddedServer, tmp_path: Path) -> None:
    config, watch = kuhn(), Watch()
    run = new_run(tmp_path, config)
    garbage = Random(run)
    with crew([garbage.hand(server.url)]):
        got = outcome(run, serve(server, run, on_status=watch))
    assert got == sequential(config)
    kept = run.quarantine()
    assert watch.last["quarantined"] == len(kept) > 50
    assert all(record["reason"] and record["bytes"] >= 0 for record in kept)
    reasons = " ".join(record["reason"] for record in kept)
    for expected in ("not msgpack", "not a message", "belongs to the run"):
        assert expected in reasons
    assert "checksum" in reasons or "do not match their digests" in reasons
    assert "has not been leased" in reasons
    assert "is not for a learner" in reasons


class Random:
    """Makes workers that put all sorts of things on the stream before each delivery."""

    def __init__(self, run: RunDir) -> None:
        self._run = run

    def hand(self, url: str) -> Hand:
        return _Litterer(url, self._run, "litterer")


class _Litterer(Hand):
    def work(self, job: str, message: bytes) -> None:
        dice = random.Random(job)
        other = Codec(self.player.config.model_copy(update={"seed": 99}))
        codec = self.player.codec
        lease = codec.decode(message)
        assert isinstance(lease, Lease)
        honest = self.player.work_on(lease)
        assert isinstance(honest, Deltas)
        good = codec.encode(honest)
        flipped = bytearray(good)
        flipped[dice.randrange(len(good) // 2, len(good))] ^= 1 << dice.randrange(8)
        far = Deltas(50, honest.snapshot, "x", 0.0, honest.counts, honest.entries)
        litter = [
            dice.randbytes(dice.randrange(200)),
            good[: dice.randrange(len(good))],
            bytes(flipped),
            other.encode(honest),
            message,
            b"\x93\x01\x02\x03",
            b"",
            *([codec.encode(far)] if lease.end <= 30 else []),
        ]
        self.bus.deliver(litter, "no-such-job")
        self.bus.client.xadd(f"rejoinder:{self.bus.run}:deltas", {b"strange": b"field"})
        self.bus.deliver([good], job)


# Workers that lie


@pytest.mark.parametrize("kind", [Liar, BareLiar])
def test_a_liar_is_found_and_its_games_are_undone(
    server: EmbeddedServer, tmp_path: Path, kind: type[Liar]
) -> None:
    config, watch = kuhn(audit=1.0, games=120, checkpoint_every=10), Watch()
    run = new_run(tmp_path, config)
    present = hands(server, run, 1, kind) + hands(server, run, 2)
    got = train_with(server, run, present, on_status=watch)
    assert got == sequential(config)
    assert watch.last["banned"] == [present[0].name]
    assert any("wrong delta" in record["reason"] for record in run.quarantine())
    assert watch.last["audited"] > 0


def test_two_liars_are_both_undone(server: EmbeddedServer, tmp_path: Path) -> None:
    """Going back because of one must not make the learner forget what the other has brought."""
    config, watch = kuhn(audit=0.6, games=150, checkpoint_every=10), Watch()
    run = new_run(tmp_path, config)
    present = hands(server, run, 2, Liar) + hands(server, run, 1)
    assert train_with(server, run, present, on_status=watch) == sequential(config)
    assert watch.last["banned"] == [liar.name for liar in present[:2]]


@pytest.mark.slow
def test_a_lie_stays_undone_after_a_crash(server: EmbeddedServer, tmp_path: Path) -> None:
    """The checkpoints with the lie in them are void as soon as the learner goes back."""
    config = kuhn(audit=0.3, games=150, checkpoint_every=5)
    run = new_run(tmp_path, config)

    def crash_after_going_back(report: str) -> None:
        if "going back" in report:
            crashing.append(report)

    def crash(_: dict[str, Any]) -> None:
        if crashing:
            raise KeyboardInterrupt

    crashing: list[str] = []
    for attempt in range(20):  # the audits are random: both may be found before a fold
        present: list[Hand] = [Liar(server.url, run, f"liar-{attempt}-{i}") for i in range(2)]
        with crew(present), suppress(KeyboardInterrupt, Unattended):
            serve(server, run, report=crash_after_going_back, on_status=crash)
        if crashing:
            break
    assert crashing
    assert train_with(server, RunDir.open(run.path), 2) == sequential(config)


class Persistent(BareLiar):
    """Does not care that it is banned, and sends results of games that nobody asked for."""

    def step(self) -> None:
        super().step()
        self.banned = False

    def work(self, job: str, message: bytes) -> None:
        super().work(job, message)
        answer = self.answer(job, message)
        if isinstance(answer, Deltas):
            for first in (0, 55, 10**9):
                strange = Deltas(
                    first, answer.snapshot, self.name, 5e-324, answer.counts, answer.entries
                )
                self.bus.deliver([self.player.codec.encode(strange)], "no-such-job")
        time.sleep(0.01)  # others must get a turn


def test_a_banned_worker_that_goes_on_is_ignored(server: EmbeddedServer, tmp_path: Path) -> None:
    config, watch = kuhn(audit=1.0), Watch()
    run = new_run(tmp_path, config)
    present = hands(server, run, 1, Persistent) + hands(server, run, 2)
    assert train_with(server, run, present, on_status=watch) == sequential(config)
    assert watch.last["banned"] == [present[0].name]


def test_a_ban_survives_the_loss_of_the_server_s_memory(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    run = new_run(tmp_path, kuhn(audit=1.0, games=100))
    client = connect(own_server.url)
    watch = Watch(lambda status: bool(status["banned"]), client.flushall)
    present = hands(own_server, run, 1, Persistent) + hands(own_server, run, 2, Slow)
    train_with(own_server, run, present, on_status=watch)
    assert watch.done
    assert client.smembers(f"rejoinder:{run.id}:banned") == {present[0].name.encode()}
    client.close()


class Twice(Hand):
    """Plays every lease a second time under another name, not quite the same."""

    def work(self, job: str, message: bytes) -> None:
        answer = self.answer(job, message)
        assert isinstance(answer, Deltas)
        true = self.player.codec.encode(answer)
        answer.entries["reach"] /= 2
        other = Deltas(answer.first, answer.snapshot, "forger", 0.0, answer.counts, answer.entries)
        false = self.player.codec.encode(other)
        # Held back by a gap, both are there before either is folded.
        pair = [false, true] if answer.first % 2 else [true, false]
        self.pairs.append((pair, job))
        if len(self.pairs) == 4 or self.bus.queue.count == 0:
            for messages, done in self.pairs[::-1]:
                self.bus.deliver(messages, done)
            self.pairs.clear()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pairs: list[tuple[list[bytes], str]] = []


def test_workers_that_contradict_each_other(server: EmbeddedServer, tmp_path: Path) -> None:
    """Without any audit the game is played again, and whoever was wrong goes."""
    config, watch = kuhn(audit=0.0, lag=2, games=90), Watch()
    run = new_run(tmp_path, config)
    assert train_with(server, run, hands(server, run, 1, Twice), on_status=watch) == sequential(
        config
    )
    assert watch.last["banned"] == ["forger"]


# Evaluations


class Forgetful(Hand):
    """Loses the first result of every evaluation, and is late with the others."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lost: set[int] = set()
        self.late: list[tuple[bytes, str]] = []

    def work(self, job: str, message: bytes) -> None:
        lease = self.player.codec.decode(message)
        if isinstance(lease, Lease):
            super().work(job, message)
        elif lease.snapshot.games in self.lost:  # type: ignore[union-attr]
            answer = self.answer(job, message)
            self.late.append((self.player.codec.encode(answer), job))
        else:
            self.lost.add(lease.snapshot.games)  # type: ignore[union-attr]

    def step(self) -> None:
        super().step()
        if len(self.late) == 3:
            for message, job in self.late[::-1]:
                self.bus.deliver([message], job)
            self.late.clear()


def test_evaluations_that_get_lost_are_made_again(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rejoinder_learner.evaluations.PATIENCE", 0.2)
    config = kuhn(eval_every=20, eval_games=50)
    run = new_run(tmp_path, config)
    got = train_with(server, run, hands(server, run, 1, Forgetful))
    assert got == sequential(config)
    assert [record["games"] for record in got.metrics] == [20, 40, 60]
    assert all("matches" in record for record in got.metrics)
    client = connect(server.url)
    assert client.keys(f"rejoinder:{run.id}:evaluation:*") == []
    client.close()


class NoEvaluations(Hand):
    def work(self, job: str, message: bytes) -> None:
        if isinstance(self.player.codec.decode(message), Lease):
            super().work(job, message)


def test_evaluations_still_to_come_survive_a_stop(server: EmbeddedServer, tmp_path: Path) -> None:
    config = kuhn(eval_every=20, eval_games=50)
    run = new_run(tmp_path, config)
    watch = Watch(after(60))
    train_with(
        server,
        run,
        hands(server, run, 2, NoEvaluations),
        on_status=watch,
        should_stop=lambda: watch.done,
    )
    assert [record.get("matches") for record in run.metrics()] == [None] * 3
    assert train_with(server, RunDir.open(run.path), 1) == sequential(config)


def test_an_evaluation_is_not_lost_when_the_server_goes_at_that_moment(
    own_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kuhn(eval_every=20)
    run = new_run(tmp_path, config)
    drop, lost = Bus.drop_snapshots, list[Any]()

    def fail_once(self: Bus, games: Any, kind: str = "snapshot") -> None:
        if kind == "evaluation" and not lost:
            lost.append(games)
            raise redis.ConnectionError("gone")
        drop(self, games, kind)

    monkeypatch.setattr(Bus, "drop_snapshots", fail_once)
    assert train_with(own_server, run) == sequential(config)
    assert lost


# Unordered mode


def test_unordered_folds_every_game_once_and_can_be_resumed(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    config = kuhn(order="arrival", eval_every=20, games=80, checkpoint_every=15)
    run = new_run(tmp_path, config)
    steps = LastGames()
    train_with(server, run, hands(server, run, 3, Muddler), should_stop=lambda: steps.asked(6))
    half = len(run.ledger())
    assert 0 < half < 80
    got = train_with(server, RunDir.open(run.path), 2)
    games = run.ledger()["unit"].tolist()
    assert sorted(games) == list(range(80))
    assert len(got.metrics) == 4
    assert run.result().games == 80
    with pytest.raises(RunError, match="unordered"):
        train(run)


def test_unordered_with_a_liar_and_without_a_memory(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    config, watch = kuhn(order="arrival", audit=0.5, games=100, checkpoint_every=10), Watch()
    run = new_run(tmp_path, config)
    client = connect(own_server.url)
    watch = Watch(after(40), client.flushall)
    present = hands(own_server, run, 1, Liar) + hands(own_server, run, 2, Slow)
    train_with(own_server, run, present, on_status=watch)
    client.close()
    assert sorted(run.ledger()["unit"].tolist()) == list(range(100))
    assert watch.last["banned"] == [present[0].name]


# One learner


def test_a_second_learner_in_the_same_directory_is_refused_and_does_no_harm(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    config = kuhn(eval_every=5, checkpoint_every=0)
    run = new_run(tmp_path, config)
    refused: list[str] = []

    def intrude() -> None:
        with pytest.raises(RunError) as error:
            serve(server, RunDir.open(run.path))
        refused.append(str(error.value))

    watch = Watch(after(20), intrude)
    present = hands(server, run, 2, Slow)
    assert train_with(server, run, present, on_status=watch) == sequential(config)
    assert refused == [f"{run.path} is being trained by another process"]


@pytest.mark.slow
def test_a_second_learner_with_a_copy_of_the_run_is_refused(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    run = new_run(tmp_path, kuhn())
    shutil.copytree(run.path, tmp_path / "copy")
    client = connect(server.url)
    first = Bus(client, run.id)
    stop = threading.Event()

    def renew() -> None:
        while first.claim() and not stop.wait(LEARNER_TTL / 6):
            pass

    holder = threading.Thread(target=renew)
    holder.start()
    with pytest.raises(RunError, match=f"another learner is at work on the run {run.id}"):
        serve(server, RunDir.open(tmp_path / "copy"))
    stop.set()
    holder.join()
    client.close()


def test_a_learner_that_was_replaced_stops(server: EmbeddedServer, tmp_path: Path) -> None:
    run = new_run(tmp_path, kuhn())
    client = connect(server.url)
    key = f"rejoinder:{run.id}:learner"
    watch = Watch(after(10), lambda: client.set(key, "somebody else"))
    with crew(hands(server, run, 2, Slow)), pytest.raises(RunError, match="has taken over"):
        serve(server, run, on_status=watch)
    client.close()


# Back-pressure


@pytest.mark.parametrize("lag", [0, 3])
def test_memory_is_bounded_when_a_worker_is_slow(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lag: int
) -> None:
    never_late(monkeypatch)
    config = kuhn(lag=lag, games=200, batch=10)
    run = new_run(tmp_path, config)
    snail, present = with_a_snail(server, run, 3)
    watch = Watch(snail.is_waited_for, snail.go_on.set)
    assert train_with(server, run, present, on_status=watch) == sequential(config)
    held = [status["outstanding"] + status["unfolded"] for status in watch.statuses]
    assert max(held) <= (lag + 1) * 10
    assert max(status["unfolded"] for status in watch.statuses) > 0 or lag == 0


# What a status says


def test_what_a_learner_says_of_itself(server: EmbeddedServer, tmp_path: Path) -> None:
    run, watch = new_run(tmp_path, kuhn(eval_every=20)), Watch()
    client = connect(server.url)
    bus = Bus(client, run.id)
    train_with(server, run, 2, on_status=watch)
    assert watch.statuses[0]["state"] in ("training", "waiting for workers")
    last = watch.last
    assert last == bus.status() == run.status()
    assert (last["state"], last["games"], last["target"]) == ("finished", 60, 60)
    assert (last["queued"], last["outstanding"], last["unfolded"]) == (0, 0, 0)
    assert (last["version"], last["checkpoint"], last["quarantined"]) == (12, 60, 0)
    assert set(last["matches"]) == set(run.metrics()[-1]["matches"])
    info = bus.info()
    assert info is not None
    assert info["finished"]
    assert not bus.has_learner()
    assert bus.waiting() == set()
    client.close()


def test_a_refusal_is_mended(server: EmbeddedServer, tmp_path: Path) -> None:
    """A snapshot that is gone is published again; any other refusal is told."""
    run, reports = new_run(tmp_path, kuhn()), list[str]()
    client = connect(server.url)

    class Refuser(Hand):
        refused = 0

        def work(self, job: str, message: bytes) -> None:
            if self.refused < 2:
                self.refused += 1
                client.delete("", *client.keys(f"rejoinder:{run.id}:snapshot:*"))
                refusal = Refusal(job, self.name, "out of sorts", self.refused == 1)
                self.bus.deliver([self.player.codec.encode(refusal)], job)
            else:
                super().work(job, message)

    present: list[Hand] = [Refuser(server.url, run, "refuser")]
    got = train_with(server, run, present, report=reports.append)
    assert got == sequential(run.config)
    assert any("out of sorts" in report for report in reports)
    client.close()


def test_an_evaluation_may_be_refused_any_number_of_times(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first refusal it is ordered when it is late, and lateness has an upper bound."""
    monkeypatch.setattr("rejoinder_learner.evaluations.PATIENCE", 1e-9)
    monkeypatch.setattr("rejoinder_learner.main.LOOK", 1e-4)
    run = new_run(tmp_path, kuhn(games=40, eval_every=40))

    class Refuser(Hand):
        refused = 0

        def work(self, job: str, message: bytes) -> None:
            lease = self.player.codec.decode(message)
            if isinstance(lease, EvaluationLease) and self.refused < 3_000:
                self.refused += 1
                refusal = Refusal(job, self.name, "no", snapshot_missing=False)
                self.bus.deliver([self.player.codec.encode(refusal)], job)
            else:
                super().work(job, message)

    refuser = Refuser(server.url, run, "refuser")
    got = train_with(server, run, [refuser])
    assert got == sequential(run.config)
    assert refuser.refused == 3_000


def test_an_error_in_a_fold_saves_nothing_and_costs_nothing(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kuhn(checkpoint_every=20)
    run, changes, calls = new_run(tmp_path, config), TableModel.changes, iter(range(9))

    def fail_once(model: TableModel) -> Any:
        if next(calls, None) is None:
            raise MemoryError("no memory for a snapshot")
        return changes(model)

    with monkeypatch.context() as patch:
        patch.setattr(TableModel, "changes", fail_once)
        with pytest.raises(MemoryError, match="no memory for a snapshot"):
            train_with(server, run, 2)
    assert run.checkpoint_games()[-1] == 40
    assert train_with(server, RunDir.open(run.path), 2) == sequential(config)


def test_a_refused_evaluation_is_ordered_again_at_once_only_once(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """Else one that nobody can do would be published and refused without a pause."""
    run = new_run(tmp_path, kuhn())
    client = connect(server.url)
    bus, codec = Bus(client, run.id), Codec(run.config)
    publisher, learner = Publisher(bus, codec), Learner(run.config)
    publisher.start_again(learner)
    evaluations = Evaluations(bus, codec, run.config, publisher)
    evaluations.order(learner)
    seen = [bus.waiting()]
    for _ in range(3):
        (job,) = seen[-1] - set().union(*seen[:-1])
        evaluations.refused(job)
        seen.append(bus.waiting())
        if seen[-1] == seen[-2]:
            break
    assert [len(jobs) for jobs in seen] == [1, 2, 2]
    client.close()


def test_a_stopped_learner_takes_its_leases_back(server: EmbeddedServer, tmp_path: Path) -> None:
    run = new_run(tmp_path, kuhn())
    client = connect(server.url)
    bus = Bus(client, run.id)
    steps = LastGames()
    result = serve(server, run, should_stop=lambda: steps.asked(2))
    assert (result.games, result.finished) == (0, False)
    assert bus.waiting() == set()
    assert bus.claim()
    client.close()
