"""Child processes: started, kept alive, and ended with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rejoinder.run.rundir import LOGS, RunDir
from rejoinder.transport.server import EmbeddedServer, end_with_parent
from rejoinder_cli.options import METRICS_VARIABLES, REDIS_VARIABLE

HOPELESS = (2, 3)  # exit codes of wrong input and of a worker that must not work on the run
_STOPPING = 10.0  # seconds that a child may take to end
# What a program that is not ours is told of the environment, in which there may be secrets.
_HARMLESS = ("PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "GOMAXPROCS", "GOMEMLIMIT", "GOGC")
_ALONE = 5.0  # seconds without a worker that can go on
_DEATHS, _PERIOD = 5, 30.0  # so many deaths of one child in so many seconds are too many


class ChildError(OSError):
    """A child that cannot be kept alive."""

    exit_code = 5


class Program:
    """A program as a process of its own."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        essential: bool = False,
        dispensable: bool = False,
    ) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._log = log
        self._essential = essential  # nothing works without it, and its end is the end
        self._dispensable = dispensable  # all the rest works without it, and goes on
        self.given_up = False
        self._deaths: deque[float] = deque(maxlen=_DEATHS)
        self.name = log.stem
        self.start()

    def start(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the parent, which then stops its children
                preexec_fn=end_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def revive(self, report: Callable[[str], None]) -> None:
        """Start it again if it has died; give up if it keeps dying, or says that it must not."""
        code = self.exit_code
        if code is None or self.given_up or (code == 0 and self._essential):
            return
        if code in HOPELESS:
            if self._essential:
                raise ChildError(f"{self.name} cannot go on; {_last_line(self._log)}")
            self.given_up = True
            report(f"{self.name} may not go on; {self.last_words}")
            return
        self._deaths.append(time.monotonic())
        last = _last_line(self._log)
        if len(self._deaths) == _DEATHS and self._deaths[-1] - self._deaths[0] < _PERIOD:
            why = f"{self.name} keeps dying; {last} (see {self._log})"
            if not self._dispensable:
                raise ChildError(why)
            self.given_up = True
            report(f"{why}; the others go on without it")
            return
        report(f"{self.name} died ({_cause(code)}) and is started again; {last}")
        self.start()

    @property
    def last_words(self) -> str:
        return _last_line(self._log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask_to_stop(self) -> None:
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        try:
            self._process.wait(_STOPPING)
        except subprocess.TimeoutExpired:
            self.kill()


class Child(Program):
    """One `rejoinder` command as a process of its own."""

    def __init__(
        self, arguments: Sequence[str], url: str, log: Path, essential: bool = False
    ) -> None:
        # Where its parent is to be scraped is not where a child is.
        inherited = {k: v for k, v in os.environ.items() if k not in METRICS_VARIABLES}
        super().__init__(
            [sys.executable, "-m", "rejoinder_cli.main", *arguments],
            inherited | {REDIS_VARIABLE: url},
            log,
            essential=essential,
        )


class Household:
    """A server, if none was given, and children that use it; use it in a `with`."""

    def __init__(
        self,
        run: RunDir,
        url: str | None,
        report: Callable[[str], None],
        targets: Path | None = None,
    ) -> None:
        self._run = run
        self._report = report
        self._targets = targets  # the folder in which children say where they can be scraped
        self._server = None if url else EmbeddedServer(run.path / LOGS / "server.log")
        self.url = url or (self._server.url if self._server else "")
        self._children: list[Program] = []
        self._workers: list[Child] = []
        self._alone_since: float | None = None  # all of them have given up, and there are no others

    def __enter__(self) -> Household:
        if self._server:
            self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_children()
        if self._server:
            self._server.stop()

    def add(self, name: str, *arguments: str, essential: bool = False) -> Child:
        """Start a child that is kept alive from now on."""
        if self._targets is not None:
            arguments += ("--metrics-targets", str(self._targets))
        child = Child(arguments, self.url, self._log_of(name), essential)
        self._children.append(child)
        return child

    def add_program(self, name: str, command: Sequence[str]) -> None:
        """The same for something that is not ours, and that the rest can do without."""
        told = {name: os.environ[name] for name in _HARMLESS if name in os.environ}
        self._children.append(Program(command, told, self._log_of(name), dispensable=True))

    def add_workers(self, count: int) -> None:
        for n in range(1, count + 1):
            name = f"worker-{n}"
            self._workers.append(self.add(name, "worker", "--run-id", self._run.id, "--name", name))

    def _log_of(self, name: str) -> Path:
        return self._run.path / LOGS / f"{name}.log"

    def tend(self) -> None:
        """Start again whatever has died. To be called often."""
        if self._server and not self._server.is_running():
            self._report("the embedded server died and is started again")
            self._server.start()
        for child in self._children:
            child.revive(self._report)
        if self._server and self._workers and all(child.given_up for child in self._workers):
            self._give_up_if_alone()

    def _give_up_if_alone(self) -> None:
        """None of our workers can go on: an error, if nobody else plays and the run is not over.

        On a server that was given others may come at any time, so there the run waits for them.
        """
        status = self._run.status() or {}
        if status.get("state") == "finished" or status.get("workers"):
            self._alone_since = None
            return
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > _ALONE:
            raise ChildError(f"no worker can go on; {self._workers[-1].last_words}")

    def stop_children(self, but: Sequence[str] = ()) -> None:
        """End the children, all but those of these names."""
        ending = [child for child in self._children if child.name not in but]
        for child in ending:
            child.ask_to_stop()
        for child in ending:
            child.wait()
        self._children = [child for child in self._children if child.name in but]


def _cause(exit_code: int) -> str:
    if exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return f"its last words: {lines[-1]}" if lines else "it said nothing"
