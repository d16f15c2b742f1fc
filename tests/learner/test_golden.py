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
from learning import config
from learning import learn as learn_units

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
# Of Leduc poker after 60 units of 20 iterations: method, weighting (or algorithm of `full`).
METHODS = {
    ("external", "uniform"): "65768d6852ca89f0568734c1885d4d917c4041fda4a775e4e7dabaf0badcbb06",
    ("external", "linear"): "3aa3626435969b3ab9e304511cff28c37aa70124f8e9768fb6f8fd5a9b060384",
    ("external", "discounted"): "8f1bb8b297556301428f58edec07e1a282331224d1b91862cd6fa15d6bbf1f6c",
    ("external", "floor"): "209b4c017132b80f21ec2ccd98d82e3a7d4296499bb8222034aaac47b4122aa2",
    ("outcome", "discounted"): "37ea5e3f8687b41630a956b886f264abd33f0df15b2a20ea17f008839471779d",
    ("chance", "discounted"): "727a6a177963e95276d2c65c8fb4d7a22bbcf8a192f4ccc50fdcb05c67771542",
    ("full", "dcfr"): "cc3e1ea8440c6ea03a15280bfc1b4b341574e0cfb4f8ddb04023fd51dc0107cd",
    ("full", "cfr+"): "eb821eea506918cd1b9971b0aa9b43a116f76d4a4149889b64f0f436fd354d9c",
}
EXPORTED = "1b8b16f5509b460b32b7e0904087c66be293ca669d14f21beffe39833bca5193"


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_learned_never_changes(name: str) -> None:
    assert content_hash(learn(name).rows) == LEARNED[name]


@pytest.mark.parametrize(("method", "variant"), METHODS)
def test_what_other_methods_learn_never_changes(method: str, variant: str) -> None:
    setting = {"algorithm": variant} if method == "full" else {"weighting": variant}
    learner = learn_units(config("leduc", method, **setting), 60)
    assert sums_hash(learner.rows) == METHODS[method, variant]


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
    return hash_of(
        (rows["key"], "<u8"),
        (rows["regret"], "<f8"),
        (policy[:, 0], "<f8"),  # the latest policy
        (policy[:, 1], "<f8"),  # the average policy
    )


def sums_hash(rows: Any) -> str:
    return hash_of((rows["key"], "<u8"), (rows["regret"], "<f8"), (rows["average"], "<f8"))


def hash_of(*columns: tuple[Any, str]) -> str:
    made = hashlib.sha256()
    for column, dtype in columns:
        made.update(f"{column.shape}\n".encode())
        made.update(np.ascontiguousarray(column, dtype).tobytes())
    return made.hexdigest()
