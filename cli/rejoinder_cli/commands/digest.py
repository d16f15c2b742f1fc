"""`rejoinder digest RUN`: the SHA-256 of the learner's state."""

from __future__ import annotations

from rejoinder_cli.output import JsonFlag, Output
from rejoinder_cli.runs import RunArgument, open_run


def digest(run: RunArgument, as_json: JsonFlag = False) -> None:
    """Print the SHA-256 of the learner's state in the newest checkpoint."""
    output = Output(as_json)
    opened = open_run(run, output)
    output.say(f"{opened.digest}  after {opened.checkpoint.games} {opened.run.config.counts}")
    output.result({"digest": opened.digest, "games": opened.checkpoint.games})
