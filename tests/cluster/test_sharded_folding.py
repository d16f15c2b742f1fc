"""The claim of docs/scaling.md: folding can be divided by infoset, and not a bit changes."""

from __future__ import annotations

import numpy as np
import pytest
from runtime import tiny

from rejoinder_bench.recording import record
from rejoinder_learner.state import Learner


@pytest.mark.parametrize("averaging", ["buffer", "linear"])
@pytest.mark.parametrize("shards", [2, 5])
def test_folders_that_share_the_infosets_make_the_same_table(shards: int, averaging: str) -> None:
    config = tiny(**{"method.averaging": averaging}, games=120)
    recording = record(config)
    whole = Learner(config)
    folders = [Learner(config) for _ in range(shards)]
    first_use: dict[int, tuple[int, int]] = {}  # by key: game, place
    for game, delta in enumerate(recording.deltas):
        whole.fold(delta)
        for place, key in enumerate(delta["key"].tolist()):
            first_use.setdefault(key, (game, place))
        for shard, folder in enumerate(folders):
            folder.fold(delta[delta["key"] % np.uint64(shards) == shard])
    assert whole.digest() == recording.digest
    assert all(len(folder.rows) for folder in folders)
    merged = np.concatenate([folder.rows for folder in folders])
    order = sorted(range(len(merged)), key=lambda row: first_use[int(merged["key"][row])])
    assert merged[order].tobytes() == whole.rows.tobytes()
