"""A TLS front for a server that has none: real TLS to the client, plain bytes behind."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme


@contextmanager
def tls_front(server: Path, folder: Path) -> Iterator[tuple[int, Path]]:
    """Yields the port that speaks TLS for the server's socket, and the authority to trust."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)

    class Front(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                outer = context.wrap_socket(self.request, server_side=True)
            except OSError:  # the client does not trust us
                return
            inner = socket.socket(socket.AF_UNIX)
            inner.connect(str(server))
            back = threading.Thread(target=_pass_on, args=(inner, outer), daemon=True)
            back.start()
            _pass_on(outer, inner)

    class Threads(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Threads(("127.0.0.1", 0), Front) as front:
        threading.Thread(target=front.serve_forever, daemon=True).start()
        try:
            yield front.server_address[1], folder / "ca.pem"
        finally:
            front.shutdown()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:  # one side is gone, and so the other
        pass
    for end in (source, target):
        end.close()
