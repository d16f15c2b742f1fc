"""Runs that were not made in order, or were changed afterwards."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.methods.tabular.model import TableSnapshot
from rejoinder.run.config import RunConfig
from rejoinder.run.ledger import genesis
from rejoinder.run.rundir import RunDir
from rejoinder_learner.journal import Journal
from rejoinder_learner.state import Learner, Played


def unordered_run(path: Path, config: RunConfig, old: int) -> RunDir:
    """What workers of different speed make: games in another order, with snapshots up to `old`."""
    run, chance = RunDir.create(path, config), random.Random(5)
    learner, actor, journal = Learner(config), config.actor(), Journal(run, print)
    waiting: list[int] = []
    snapshots: dict[int, Any] = {}
    leased = 0
    while learner.games < config.games:
        newest = learner.games // config.batch
        rows = learner.policy_rows()
        snapshots.setdefault(newest, TableSnapshot(rows.dtype, rows))
        end = min(config.playable_before(learner.games), config.games)
        waiting += range(leased, end)
        leased = max(leased, end)
        game = waiting.pop(chance.randrange(len(waiting)))
        version = max(0, newest - chance.randrange(old + 1))
        delta = actor.play(game, snapshots[version])
        learner.fold_all([Played(game, version, delta)])
        if learner.games % config.checkpoint_every == 0:
            journal.save(learner)
    return run


def flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def change_ledger(run: RunDir, change: Callable[[bytes], bytes]) -> None:
    path = run.path / "ledger.bin"
    path.write_bytes(change(path.read_bytes()))


def forge_ledger(run: RunDir, change: Callable[[Any], None]) -> None:
    """Change records and chain all of them anew, as a careful forger would."""
    records = run.ledger().copy()
    change(records)
    head = genesis(run.config.fingerprint)
    for n in range(len(records)):
        head = hashlib.sha256(head + records[n].tobytes()[:48]).digest()
        records["head"][n] = np.frombuffer(head, np.uint8)
    (run.path / "ledger.bin").write_bytes(records.tobytes())


def forge_delta(run: RunDir, n: int) -> None:
    def change(records: Any) -> None:
        records["delta"][n, 5] ^= 1

    forge_ledger(run, change)
