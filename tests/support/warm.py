"""Commands started from a process that has loaded what they all load.

Most of what a command costs is the loading of libraries and of spaCy's pipeline. Here each is a
copy (a fork) of one process that did so once, and has otherwise nothing open. Its arguments,
folder, environment, streams and exit code are its own, as of any process; a shell finds it by its
name.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

PYTHON = "warm-python"
"""The name of a command that runs its argument as ``python -W error -c`` does."""

_HEAVY = ("numpy", "igraph", "tokenizers", "rdflib", "pyshacl", "hnswlib")
"""Not onnxruntime: it starts a thread, and a copy, which has none, would wait for it at its end."""

_STUB = """#!{python} -IS
import _signal, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    _signal.signal(_signal.SIGTERM, lambda *_: server.shutdown(socket.SHUT_WR))
    server.connect({address!r})
    request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    code = server.recv(1)
sys.exit(code[0] if code else "It ended without an exit code.")
"""


@cache
def commands() -> dict[str, EntryPoint]:
    """The commands of the package by name; to find them, all installed packages are read."""
    found = entry_points(group="console_scripts")
    return {point.name: point for point in found if point.value.startswith("tgraph.")}


@contextmanager
def warm_commands() -> Iterator[Path]:
    """A folder for ``PATH`` with the package's commands and ``PYTHON``, while it is open."""
    folder = Path(tempfile.mkdtemp(prefix="tg"))  # a socket's address may have 100 characters only
    address = str(folder / "socket")
    stub = _STUB.format(python=sys.executable, address=address)
    for name in (*commands(), PYTHON):
        (folder / name).write_text(stub)
        (folder / name).chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            stdin=subprocess.PIPE,  # whose end tells it that we are gone
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    try:
        yield folder
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
        shutil.rmtree(folder)


def serve(listening: socket.socket) -> None:
    """Runs each command that comes, in a process watched by another that tells how it ended."""
    _load()
    watching: set[int] = set()
    while listening in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        watching -= {pid for pid in watching if os.waitpid(pid, os.WNOHANG)[0]}
        if watcher := os.fork():
            watching.add(watcher)
            connection.close()
            continue
        listening.close()
        _answer(connection)


def _answer(connection: socket.socket) -> None:
    """Have the command run that is asked for, tell how it ended, and end. A caller that is told to
    stop, or is gone, says nothing more: then the command is told to."""
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(size, "big")))
    command = os.fork()
    if not command:
        connection.close()
        _run(streams, *request)
    for stream in streams:
        os.close(stream)
    caller, ended = connection.fileno(), os.pidfd_open(command)
    if caller in select.select([caller, ended], [], [])[0]:
        os.kill(command, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    with suppress(OSError):
        connection.sendall(bytes([status if status >= 0 else 128 - status]))
    os._exit(0)


def _load() -> None:
    import tgraph

    for module in pkgutil.walk_packages(tgraph.__path__, "tgraph."):
        if not module.name.endswith((".__main__", ".langchain", ".llama_index")):  # other programs
            import_module(module.name)
    for name in _HEAVY:
        import_module(name)
    from tgraph import plugins
    from tgraph.extract.english import parser

    commands()
    plugins.load_extensions()
    parser.load_pipeline()
    gc.collect()
    gc.freeze()  # a copy that collects would write to, and so copy, all that is loaded here


def _run(
    streams: list[int], arguments: list[str], folder: str, environment: dict[str, str]
) -> None:
    """Becomes the command; does not come back."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    name = Path(arguments[0]).name
    sys.argv = [name, *arguments[1:]]
    _end(_exit_code(name))


def _exit_code(name: str) -> int:
    try:
        if name == PYTHON:
            warnings.simplefilter("error")
            exec(compile(sys.argv[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            commands()[name].load()()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(code: int) -> None:
    """As Python ends, but for taking its modules apart: the pages that would be written to are
    shared with the process that loaded them, and copying them takes longer than many a command."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    del sys.path[0]  # this folder
    serve(socket.socket(fileno=int(sys.argv[1])))
