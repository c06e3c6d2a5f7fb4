"""Triple stores of others, each a server of its own on a free port of this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tgraph.store.sparql_endpoint import SparqlEndpoint

_PATIENCE = 60.0
_VIRTUOSO = """
[Database]
DatabaseFile = v.db
ErrorLogFile = v.log
LockFile = v.lck
TransactionFile = v.trx
xa_persistent_file = v.pxa
[TempDatabase]
DatabaseFile = vt.db
TransactionFile = vt.trx
[Parameters]
ServerPort = {own}
NumberOfBuffers = 10000
MaxDirtyBuffers = 6000
DirsAllowed = .
[HTTPServer]
ServerPort = {port}
ServerRoot = .
[SPARQL]
ResultSetMaxRows = {most}
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def oxigraph_server(folder: Path) -> Iterator[SparqlEndpoint]:
    """Oxigraph's server, of the package ``oxigraph``."""
    program = shutil.which("oxigraph", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("the package oxigraph is not installed")
    address = f"127.0.0.1:{free_port()}"
    call = [program, "serve", "--location", str(folder / "oxigraph"), "--bind", address]
    with _running(call, folder, f"http://{address}/"):
        yield SparqlEndpoint.at(f"http://{address}/update")


@contextmanager
def virtuoso_server(folder: Path, most_rows: int = 1_000_000) -> Iterator[SparqlEndpoint]:
    """Virtuoso, as Debian packages it (virtuoso-opensource-7)."""
    program = shutil.which("virtuoso-t")
    if program is None:
        pytest.skip("Virtuoso is not installed")
    port = free_port()
    (folder / "v.ini").write_text(_VIRTUOSO.format(port=port, own=free_port(), most=most_rows))
    call = [program, "+foreground", "+configfile", "v.ini"]
    with _running(call, folder, f"http://127.0.0.1:{port}/sparql?query=ASK%20%7B%7D"):
        yield SparqlEndpoint.at(f"http://127.0.0.1:{port}/sparql-auth", "", "dba", "dba")


@contextmanager
def _running(call: list[str], folder: Path, ready: str) -> Iterator[None]:
    with subprocess.Popen(
        call, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + _PATIENCE
            while not _answers(ready):
                assert process.poll() is None, call
                assert time.monotonic() < deadline, call
                time.sleep(0.05)
            yield
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False
