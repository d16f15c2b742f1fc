"""Games that a gateway deals the same on every run of a test.

Called as a program, it is `rejoinder` with such a gateway.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

from rejoinder_cli.main import main
from rejoinder_gateway import tables


@contextmanager
def dealt_by(seed: int) -> Iterator[None]:
    """Seeds and beginners of new games come from `seed`, one after the other."""
    dealer = random.Random(seed)
    known = SimpleNamespace(**vars(secrets))
    known.randbits, known.randbelow = dealer.getrandbits, dealer.randrange
    with mock.patch.object(tables, "secrets", known):
        yield


if __name__ == "__main__":
    with dealt_by(1):
        main()
