"""What a machine runs out of, against index, ask, serve, backup, ship and follow.

The disk is full, the folder is read-only, there are no descriptors, no threads, little memory, less
than a running server uses, or a file of the published snapshot is damaged. Each work is done under
each fault, and again when the fault is over. A work passes if

- it does what it should in spite of the fault, or says in one sentence what is missing, with a
  remedy, and without a traceback or an abort (named);
- it ends within a minute and a half (bounded);
- afterwards the record is intact and has what was acknowledged (kept);
- the same work succeeds when the fault is over, and a server is not started again for it (healed).

Run: python -m benchmarks.faults [FAULT ...]
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tgraph

PATIENCE = 90.0
_ENVIRONMENT = {**os.environ, "TGRAPH_EMBEDDING__PROVIDER": "hashing", "PYTHONWARNINGS": "ignore"}
_START = """
import sys
from tgraph.cli.main import cli
cli(sys.argv[1:])
"""
_NO_THREADS = f"""
import threading
def refuse(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
{_START}"""
_QUESTION = "Who led the Fram Expedition?"
_MEGABYTE = 1 << 20

Limit = tuple[int, int]
"""A limit of a process: which, and how much."""


@dataclass
class Place:
    """A folder on a small disk of its own where one can be mounted, else an ordinary folder."""

    folder: Path
    mounted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(self.folder)]
        self.mounted = _succeeds(mount)

    @property
    def graph(self) -> Path:
        return self.folder / "g"

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)


def _succeeds(command: Sequence[str]) -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


# --- faults ---


@dataclass(frozen=True)
class Fault:
    """A fault: how it is made in a place, which limits a process gets, and how it is started."""

    name: str
    limits: tuple[Limit, ...] = ()
    in_place: Callable[[Place], Callable[[], None]] | None = None
    threads: bool = True
    lowered: bool = False
    """Whether the limit of address space is what a running server uses already."""

    @contextmanager
    def made(self, place: Place, server: int | None = None) -> Iterator[None]:
        """Make the fault, also for a running server, until the exit."""
        before = [(which, resource.prlimit(server, which)) for which, _ in self.limits if server]
        for which, most in self.limits if server else ():
            if which == resource.RLIMIT_NOFILE:  # enough to accept connections
                most = len(list(Path(f"/proc/{server}/fd").iterdir())) + 3
            if self.lowered:
                pages = int(Path(f"/proc/{server}/statm").read_text().split()[0])
                most = pages * resource.getpagesize()
            resource.prlimit(server or 0, which, (most, resource.prlimit(server or 0, which)[1]))
        undo = self.in_place(place) if self.in_place else None
        try:
            yield
        finally:
            if undo:
                undo()
            for which, limit in before:
                resource.prlimit(server or 0, which, limit)


def _fill_disk(place: Place) -> Callable[[], None]:
    filler = place.folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * (_MEGABYTE // 64)):
            pass
    return filler.unlink


def _make_read_only(place: Place) -> Callable[[], None]:
    folder = str(place.folder)
    if place.mounted:  # a mount over it, since nobody has files open there
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        return lambda: _run(["umount", "-l", folder])
    paths = [path for path in (place.graph, *place.graph.rglob("*")) if path.is_dir()]
    _set_modes(paths, 0o500)
    return lambda: _set_modes(paths, 0o700)


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)


def _set_modes(paths: Sequence[Path], mode: int) -> None:
    for path in paths:
        path.chmod(mode)


def _damage_snapshot(place: Place) -> Callable[[], None]:
    """Write over the middle of every table of the published snapshot; the store has its own."""
    collection = place.graph / "collections" / "default"
    pointer = json.loads((collection / "current.json").read_text())
    for path in (collection / "snapshots" / str(pointer["snapshot"]) / "store").glob("*.sst"):
        data = bytearray(path.read_bytes())
        data[len(data) // 3 : len(data) // 2] = b"\xff" * (len(data) // 2 - len(data) // 3)
        path.unlink()
        path.write_bytes(data)
    return lambda: None


def faults(place: Place) -> dict[str, Fault]:
    """Return the faults by name; where no disk can be mounted, files may not grow instead."""
    full = (
        Fault("full disk", in_place=_fill_disk)
        if place.mounted
        else Fault("full disk", limits=((resource.RLIMIT_FSIZE, 4096),))
    )
    known = (
        full,
        Fault("read-only folder", in_place=_make_read_only),
        Fault("no descriptors", limits=((resource.RLIMIT_NOFILE, 24),)),
        Fault("no threads", threads=False),
        Fault("little memory", limits=((resource.RLIMIT_AS, 600 * _MEGABYTE),)),
        Fault("lowered memory", limits=((resource.RLIMIT_AS, 600 * _MEGABYTE),), lowered=True),
        Fault("damaged snapshot", in_place=_damage_snapshot),
    )
    return {fault.name: fault for fault in known}


# --- works ---


@dataclass(frozen=True)
class Outcome:
    """What came of a work: exit code or HTTP status, its words, and the seconds it took."""

    code: int
    text: str
    seconds: float

    @property
    def is_done(self) -> bool:
        return self.code in (0, 200, 202)

    @property
    def is_named(self) -> bool:
        """Done, or failed in words that were foreseen."""
        unforeseen = ("Traceback", "Unexpected error", "unforeseen", "terminate called")
        failed_well = self.code in (1, 2, 4, 5) and "Error: " in self.text
        refused_well = self.code >= 400 and '"detail"' in self.text
        said = self.is_done or failed_well or refused_well
        return said and not any(sign in self.text for sign in unforeseen)


def _limit_process(fault: Fault | None) -> None:
    for which, most in fault.limits if fault else ():
        resource.setrlimit(which, (most, resource.getrlimit(which)[1]))


def run_command(arguments: Sequence[str], fault: Fault | None = None) -> Outcome:
    """Run a command of tgraph, under the limits of a fault."""
    start = _NO_THREADS if fault and not fault.threads else _START
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", start, *arguments],
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            preexec_fn=partial(_limit_process, fault),
            check=False,
        )
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        code, text = 124, f"{error.stdout or b''!r}{error.stderr or b''!r}"
    return Outcome(code, text, time.monotonic() - began)


def works(place: Place, outside: Path) -> dict[str, list[str]]:
    """Return commands by name; what they write is in the place, also backups and logs."""
    root = ["-r", str(place.graph)]
    return {
        "index": ["index", str(outside / "more"), *root, "-q"],
        "ask": ["ask", _QUESTION, *root],
        "backup": ["backup", str(place.folder / f"{time.monotonic_ns()}.tar"), *root, "-q"],
        "ship": ["ship", str(place.folder / "log"), *root, "-q"],
        "follow": ["follow", str(outside / "shipped"), "-r", str(place.folder / "r"), "-q"],
    }


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Takes an answer of any status as one."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response


def _build_opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_AnyStatus)


class Server:
    """A server of the graph, in a process of its own."""

    def __init__(self, place: Place, fault: Fault | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the server
        start = _START if fault is None or fault.threads else _NO_THREADS
        command = [sys.executable, "-c", start, "serve", "-r", str(place.graph), "--port"]
        self.process = subprocess.Popen(
            [*command, str(self.port)],
            env=_ENVIRONMENT,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=partial(_limit_process, fault),
        )

    def wait(self) -> Outcome:
        """Wait until the server is ready, or has ended."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE and self.process.poll() is None:
            with suppress(OSError):
                if self.request("ready").code == 200:
                    return Outcome(0, "", time.monotonic() - began)
            time.sleep(0.2)
        code = self.process.poll()
        return Outcome(124 if code is None else code, self.log, time.monotonic() - began)

    def request(self, path: str, body: Any = None, kind: str = "application/json") -> Outcome:
        """Send a request, a POST where there is a body."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}/{path}"
        began = time.monotonic()
        try:
            request = urllib.request.Request(url, data, {"Content-Type": kind})
            with _build_opener().open(request, timeout=PATIENCE) as reply:
                code, text = reply.status, reply.read().decode()
        except (OSError, http.client.HTTPException) as error:
            code, text = -1, str(error)
        return Outcome(code, text, time.monotonic() - began)

    def ask(self) -> Outcome:
        return self.request("api/v1/collections/default/ask", {"question": _QUESTION})

    def ask_many(self) -> Outcome:
        """Ask questions of several modes at once; return the worst outcome."""
        path = "api/v1/collections/default/ask"
        asked = [
            {"question": question, "mode": mode}
            for question in (_QUESTION, "Who led the Gjoa?", "What did Otto Sverdrup lead?")
            for mode in ("graph", "basic", "local", "global")
        ]
        with ThreadPoolExecutor(len(asked)) as pool:
            outcomes = list(pool.map(lambda body: self.request(path, body), asked))
        return max(outcomes, key=lambda outcome: (not outcome.is_named, not outcome.is_done))

    def upload(self) -> Outcome:
        body = (
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="n.txt"\r\n\r\n'
            b"Nansen led the Fram.\r\n--x--\r\n"
        )
        path = "api/v1/collections/default/documents"
        return self.request(path, body, "multipart/form-data; boundary=x")

    @property
    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.kill()
        self.process.wait()


# --- trials ---


@dataclass(frozen=True)
class Trial:
    """A work under a fault, and what held."""

    fault: str
    work: str
    under: Outcome
    after: Outcome
    intact: bool
    server_held: bool = True

    @property
    def failures(self) -> list[str]:
        """What didn't hold."""
        held = {
            "named": self.under.is_named,
            "bounded": max(self.under.seconds, self.after.seconds) < PATIENCE,
            "kept": self.intact,
            "healed": self.after.is_done and self.server_held,
        }
        return [name for name, holds in held.items() if not holds]


def prepare(outside: Path) -> None:
    """Make a graph with a session, the log of it, and documents to index."""
    for folder, text in (
        ("documents", "Otto Sverdrup led the Fram Expedition.\nRoald Amundsen led the Gjoa.\n"),
        ("more", "Robert Falcon Scott led the Terra Nova Expedition.\n"),
    ):
        (outside / folder).mkdir()
        (outside / folder / "a.txt").write_text(text)
    root = ["-r", str(outside / "g")]
    for command in (
        ["index", str(outside / "documents"), *root, "-q"],
        ["ask", _QUESTION, *root],
        ["ship", str(outside / "shipped"), *root, "-q"],
    ):
        done = run_command(command)
        assert done.is_done, done.text


def is_intact(place: Place, sessions: int) -> bool:
    """Return whether the record is intact and has at least so many sessions."""
    with tgraph.open(place.graph) as graph:
        return graph.integrity().ok and len(graph.sessions.summaries()) >= sessions


def try_command(fault: Fault, work: str, place: Place, outside: Path) -> Trial:
    arguments = works(place, outside)[work]
    with fault.made(place):
        under = run_command(arguments, fault)
    after = run_command(arguments if work != "backup" else works(place, outside)[work])
    return Trial(fault.name, work, under, after, is_intact(place, 1))


def try_server(fault: Fault, work: str, place: Place) -> Trial:
    """Have a running server work under the fault, and again after it."""
    server = Server(place)
    try:
        ready = server.wait()
        assert ready.is_done, ready.text
        assert server.ask().is_done
        calls = {"serve: upload": server.upload, "serve: ask many": server.ask_many}
        call = calls.get(work, server.ask)
        _wait_until_folded(place)  # a native library that is opened in the moment of a fault aborts
        with fault.made(place, server.process.pid):
            under = call()
        after = _first_done(call)
        held = server.process.poll() is None
        return Trial(fault.name, work, under, after, is_intact(place, 2), held)
    finally:
        server.stop()


def _wait_until_folded(place: Place) -> None:
    """Wait until no session waits to be folded, and for the publication that follows."""
    end = time.monotonic() + PATIENCE
    while any(place.graph.rglob("*.journal")) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(2)


def _first_done(call: Callable[[], Outcome]) -> Outcome:
    """Return the first outcome that is done, or the last after ten seconds."""
    end = time.monotonic() + 10
    while not (outcome := call()).is_done and time.monotonic() < end:
        time.sleep(0.5)
    return outcome


def try_start(fault: Fault, place: Place) -> Trial:
    """Start a server under the fault, and another after it."""
    under, after = _start_server(place, fault), _start_server(place, None)
    return Trial(fault.name, "serve: start", under, after, is_intact(place, 1))


def _start_server(place: Place, fault: Fault | None) -> Outcome:
    server = Server(place, fault)
    try:
        return server.wait()
    finally:
        server.stop()


COMMANDS = ("index", "ask", "backup", "ship", "follow")
REQUESTS = ("serve: ask", "serve: ask many", "serve: upload")


def try_work(name: str, work: str, base: Path, folder: Path) -> Trial:
    """Do a work under a fault in a fresh copy of the prepared graph, on a disk of its own."""
    place = Place(folder)
    try:
        shutil.copytree(base / "g", place.graph)
        fault = faults(place)[name]
        if work in COMMANDS:
            return try_command(fault, work, place, base)
        return try_start(fault, place) if work == "serve: start" else try_server(fault, work, place)
    finally:
        place.close()


def main(names: Sequence[str]) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch) / "base"
        base.mkdir()
        prepare(base)
        number = 0
        for name in names or FAULTS:
            running = name not in ("no threads",)
            starts = ("serve: start",) if name in ("no threads", "little memory") else ()
            commands = COMMANDS if name != "lowered memory" else ()
            for work in (*commands, *(REQUESTS if running else ()), *starts):
                number += 1
                trial = try_work(name, work, base, Path(scratch) / str(number))
                verdict = f"FAILED: {', '.join(trial.failures)}" if trial.failures else "held"
                failed += bool(trial.failures)
                shown = trial.after if trial.failures == ["healed"] else trial.under
                words = " ".join(shown.text.split())[-160:]
                print(f"{name} | {work} | {trial.under.code} | {verdict} | {words}", flush=True)
    print(f"{number - failed} of {number} held.")
    return min(failed, 1)


FAULTS = (
    "full disk",
    "read-only folder",
    "no descriptors",
    "no threads",
    "little memory",
    "lowered memory",
    "damaged snapshot",
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
