"""Several hosts on this machine: network namespaces with addresses of their own on one switch.

A host is a namespace with an interface; the switch is one more namespace with a bridge, so nothing
appears in the network of the machine itself. All is named after this process and gone in the end:
deleting a namespace removes its interfaces.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from rejoinder.transport.server import end_with_parent

DELAY, LOSS = "2ms", "0.5%"  # of every packet that a host sends, where the kernel can do that
_NETWORK = "10.77.0"
_PREFIX = f"rejoinder-{os.getpid()}"


class Host:
    """A machine on the switch; use it through a `Network`."""

    def __init__(self, name: str, address: str, switch: str) -> None:
        self.name, self.address = name, address
        self._namespace, self._switch = f"{switch}-{name}", switch
        self._port = f"to-{name}"  # the switch's end of the cable
        self.processes: list[subprocess.Popen[bytes]] = []
        _ip("netns", "add", self._namespace)
        peer = ("type", "veth", "peer", "name", self._port, "netns", switch)
        _ip("-n", self._namespace, "link", "add", "eth0", *peer)
        _ip("-n", self._namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _ip("-n", self._namespace, "link", "set", interface, "up")
        _ip("-n", switch, "link", "set", self._port, "master", "switch", "up")

    def disturb_packets(self) -> bool:
        """Delay and lose what the host sends; False if the kernel has no netem."""
        disturb = ("add", "dev", "eth0", "root", "netem", "delay", DELAY, "loss", LOSS)
        command = ["tc", "-n", self._namespace, "qdisc", *disturb]
        return subprocess.run(command, capture_output=True).returncode == 0

    def start(self, command: Sequence[str | Path], log: Path) -> subprocess.Popen[bytes]:
        """Run a program there."""
        with log.open("ab") as file:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self._namespace, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        self.processes.append(process)
        return process

    def rejoinder(self, *arguments: str | Path, log: Path) -> subprocess.Popen[bytes]:
        return self.start([sys.executable, "-u", "-m", "rejoinder_cli.main", *arguments], log)

    def cut_off(self) -> None:
        """Pull the cable: packets are lost without a word, connections stay open."""
        _ip("-n", self._switch, "link", "set", self._port, "down")

    def connect(self) -> None:
        _ip("-n", self._switch, "link", "set", self._port, "up")

    def vanish(self) -> None:
        """As by a power cut: no process has the time to say good-bye, nor the kernel for them."""
        _try_ip("-n", self._switch, "link", "set", self._port, "down")
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        for pid in map(int, _try_ip("netns", "pids", self._namespace).split()):  # children, if any
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.processes.clear()
        _try_ip("netns", "delete", self._namespace)


class Network:
    """Hosts on one switch; use it in a `with`: everything is removed at the end."""

    def __init__(self) -> None:
        self._switch = _PREFIX
        self._cleaning = ExitStack()
        self._hosts = 0
        self.packets_are_disturbed = True

    def __enter__(self) -> Network:
        with ExitStack() as cleaning:
            _ip("netns", "add", self._switch)
            cleaning.callback(_ip, "netns", "delete", self._switch)
            _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
            _ip("-n", self._switch, "link", "set", "switch", "up")
            self._cleaning = cleaning.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleaning.close()

    def host(self, name: str) -> Host:
        """One more machine, plugged in."""
        self._hosts += 1
        self._cleaning.callback(_try_ip, "netns", "delete", f"{self._switch}-{name}")
        host = Host(name, f"{_NETWORK}.{self._hosts}", self._switch)
        self._cleaning.callback(host.vanish)
        self.packets_are_disturbed &= host.disturb_packets()
        return host


def missing() -> str | None:
    """Why there can be no such network here; None if there can."""
    if sys.platform != "linux" or not shutil.which("ip"):
        return "needs Linux and iproute2 (apt-get install iproute2)"
    try:
        with Network() as network:
            network.host("trial")
    except (subprocess.CalledProcessError, OSError) as error:
        why = getattr(error, "stderr", b"") or str(error).encode()
        return f"needs the right to make network namespaces (root): {why.decode().strip()}"
    return None


def namespaces() -> set[str]:
    """Those of this process."""
    names = {line.split()[0] for line in _try_ip("netns", "list").splitlines()}
    return {name for name in names if name.startswith(_PREFIX)}


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _try_ip(*arguments: str) -> str:
    """The same, if there is still something to do; returns what it says."""
    return subprocess.run(["ip", *arguments], capture_output=True, text=True).stdout
