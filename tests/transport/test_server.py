"""The embedded server: private, empty at every start, and gone with whoever started it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from runtime import eventually

from rejoinder.transport import server as module
from rejoinder.transport.connection import BusError, connect
from rejoinder.transport.server import EmbeddedServer


def exists(pid: int) -> bool:
    """Whether it runs; one that has ended and is not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_listens_on_a_private_socket_only(own_server: EmbeddedServer) -> None:
    path = Path(own_server.url.removeprefix("unix://"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    client = connect(own_server.url)
    assert client.config_get("port")["port"] == "0"
    assert client.config_get("save")["save"] == ""
    client.close()


def test_it_comes_back_empty(own_server: EmbeddedServer) -> None:
    client = connect(own_server.url)
    client.set("a", 1)
    first = own_server.pid
    own_server.kill()
    assert not own_server.is_running()
    with pytest.raises(BusError, match="no Redis server answers"):
        connect(own_server.url)
    own_server.start()
    assert own_server.is_running()
    assert own_server.pid != first
    assert connect(own_server.url).keys() == []
    client.close()


def test_stop_leaves_nothing(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "logs/server.log")
    with server:
        pid, folder = server.pid, Path(server.url.removeprefix("unix://")).parent
        assert pid is not None
        assert exists(pid)
    assert not exists(pid)
    assert not folder.exists()
    assert (tmp_path / "logs/server.log").exists()
    server.stop()  # once more does no harm


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    code = (
        "from pathlib import Path; import time\n"
        "from rejoinder.transport.server import EmbeddedServer\n"
        f"s = EmbeddedServer(Path({str(tmp_path / 'log')!r})); s.start()\n"
        "print(s.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert exists(pid)
        os.kill(parent.pid, how)
        parent.wait()
    assert eventually(lambda: not exists(pid))


def test_a_server_that_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_executable", lambda: "/bin/false")
    server = EmbeddedServer(tmp_path / "log")
    with pytest.raises(BusError, match=r"did not start; see .*log"):
        server.start()
    assert not Path(server.url.removeprefix("unix://")).parent.exists()


def test_too_long_a_socket_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_SOCKET_LENGTH", 10)
    with pytest.raises(BusError, match="set TMPDIR to a shorter one"):
        EmbeddedServer(tmp_path / "log")
    assert list(tmp_path.iterdir()) == []
