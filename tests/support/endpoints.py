"""Triple stores and object storage of others, each a server of its own on a free port."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


_MOTO = "import moto.s3.urls; from moto.server import main; main()"
"""What it would import at its first request is there before."""


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
        yield SparqlEndpoint.from_url(f"http://{address}/update")


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
        yield SparqlEndpoint.from_url(f"http://127.0.0.1:{port}/sparql-auth", "", "dba", "dba")


@contextmanager
def s3_server(folder: Path, *prefix: str, host: str = "127.0.0.1") -> Iterator[str]:
    """Moto's server of S3's protocol, begun by ``prefix`` if any; its URL. It has no bucket."""
    for package in ("moto", "flask", "s3fs"):
        pytest.importorskip(package, reason="a server and a client of S3's protocol: moto, s3fs")
    port, log = free_port(), folder / "s3.log"
    call = [*prefix, sys.executable, "-c", _MOTO, "-H", host, "-p", str(port)]
    with log.open("wb") as file, subprocess.Popen(call, stdout=file, stderr=file) as process:
        try:
            _wait(lambda: b"Running on" in log.read_bytes(), process)
            yield f"http://{host}:{port}"
        finally:
            process.kill()


def s3_options(url: str, **options: Any) -> dict[str, Any]:
    """How fsspec reaches that server, for ``fsspec.config.conf``."""
    return {"endpoint_url": url, "key": "any", "secret": "any", "config_kwargs": options}


@contextmanager
def _running(call: list[str], folder: Path, ready: str) -> Iterator[None]:
    with subprocess.Popen(
        call, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait(lambda: _answers(ready), process)
            yield
        finally:
            process.kill()


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not ready():
        assert process.poll() is None, process.args
        assert time.monotonic() < deadline, process.args
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False
