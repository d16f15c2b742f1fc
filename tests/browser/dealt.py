"""`rejoinder gateway` that deals its games by number, so that tests play the same every time."""

from __future__ import annotations

import itertools
import secrets
from types import SimpleNamespace
from unittest import mock

from rejoinder_cli.main import main
from rejoinder_gateway import tables

if __name__ == "__main__":
    seeds = itertools.count(1)
    dealt = SimpleNamespace(**vars(secrets))
    dealt.randbits = lambda _: next(seeds)
    with mock.patch.object(tables, "secrets", dealt):
        main()
