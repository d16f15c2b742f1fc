"""What is learned, pinned: the safety net of every change to the code around it.

The hashes cover keys, regrets and policies as plain little-endian arrays, so they depend neither on
the names of fields nor on how rows are stored, sent or saved. A change that must alter one says why
in its commit and in CHANGELOG.md.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from rejoinder.games.deal import paper
from rejoinder.run.config import load_config
from rejoinder_learner.state import Learner

GAMES = 300
LEARNED = {
    "paper": "1ab7c337bb8bf3f7f3e48f0339bdd8c1c61d75c197f715edbb5bf58243875167",
    "ordered": "a297a346a50c56883dafef79a80d9029b1c3b73fb20d831a977e13911e2a6bd6",
    "strong": "354493890fc7e57f2fb1b574e4cb7c98c986a498760a9790ed1bb640c0918b51",
    "tiny": "040cffc87eb63c720a0264359da9ecaa43d196600f56b7fbbc16c4b09f4c6216",
    "micro": "486009b1dcef62ac76c8b817051edff5a9ab560394034881c02de0b5a7195961",
}
EXPORTED = "1b8b16f5509b460b32b7e0904087c66be293ca669d14f21beffe39833bca5193"


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_learned_never_changes(name: str) -> None:
    assert content_hash(learn(name).rows) == LEARNED[name]


def test_the_export_in_the_format_of_the_paper_never_changes() -> None:
    exported = paper.write(load_config("paper"), learn("paper").rows)
    assert hashlib.sha256(exported).hexdigest() == EXPORTED


def learn(name: str) -> Learner:
    config = load_config(name)
    learner, actor = Learner(config), config.actor()
    while learner.games < GAMES:
        learner.fold(actor.play(learner.units, learner.snapshot_for(learner.units)))
    return learner


def content_hash(rows: Any) -> str:
    policy = rows["policy"]
    columns = (
        (rows["key"], "<u8"),
        (rows["regret"], "<f8"),
        (policy[:, 0], "<f8"),  # the latest policy
        (policy[:, 1], "<f8"),  # the average policy
    )
    made = hashlib.sha256()
    for column, dtype in columns:
        made.update(f"{column.shape}\n".encode())
        made.update(np.ascontiguousarray(column, dtype).tobytes())
    return made.hexdigest()
