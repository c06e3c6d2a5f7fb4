"""A user's SPARQL, run where it can do no harm: a process of its own that can be stopped."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tgraph import vocabulary as v
from tgraph.errors import DamagedStoreError, QueryError, TgraphError
from tgraph.explain.query.guard import check
from tgraph.explain.query.worker import QUERY_FAULT
from tgraph.isolation import start
from tgraph.store.files import store_error
from tgraph.store.sums import check_files

TIMEOUT = 60.0
MEMORY = 2 << 30
FORMATS = ("lines", "json", "csv", "tsv", "xml", "turtle", "ntriples")
_BLOCK = 1 << 16


class StoppedQueryError(QueryError):
    """A query that reached a bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a query may use: seconds, bytes of memory, and rows (None: all)."""

    timeout: float = TIMEOUT
    memory: int = MEMORY
    limit: int | None = None


def stream_query(
    store: Path, text: str, format: str = "json", bounds: Bounds = Bounds()
) -> Generator[bytes, None, None]:
    """The result of a query over the union of all graphs (``GRAPH`` narrows it), piece by piece.

    ``store`` is the folder of a pinned snapshot; tgraph's prefixes are known. ``format`` is one of
    ``FORMATS``: ``lines`` is a JSON array of N-Triples terms a line, the names first. The result is
    never held in memory here. Raises ``QueryError``, possibly after some pieces, where the query is
    wrong, refused, or was stopped because it reached a bound; ``DamagedStoreError`` where a damaged
    file of the store is why.
    """
    check(text)
    try:
        yield from _run(_job(store, text, format, bounds, update=False), bounds)
    except StoppedQueryError:
        check_files(store)  # over a damaged block a query may never end
        raise


def run_update(store: Path, text: str, bounds: Bounds = Bounds()) -> None:
    """Apply an update to a private copy of a store. Raises as ``stream_query`` does."""
    check(text, update=True)
    for _ in _run(_job(store, text, "", bounds, update=True), bounds):
        pass


def _job(store: Path, text: str, format: str, bounds: Bounds, *, update: bool) -> bytes:
    job = {
        "store": str(store.absolute()),
        "text": text,
        "format": format,
        "limit": bounds.limit,
        "memory": bounds.memory,
        "seconds": bounds.timeout,
        "prefixes": v.PREFIXES,
        "update": update,
    }
    return json.dumps(job).encode()


def _run(job: bytes, bounds: Bounds) -> Generator[bytes, None, None]:
    process = start("tgraph.explain.query.worker", subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    stopped = threading.Event()
    timer = threading.Timer(bounds.timeout, _stop, (process, stopped))
    timer.daemon = True
    timer.start()
    complaint: list[bytes] = []
    listener = threading.Thread(target=complaint.extend, args=(process.stderr,), daemon=True)
    listener.start()
    try:
        _feed(process.stdin, job)
        while block := process.stdout.read1(_BLOCK):  # type: ignore[attr-defined]
            yield block
        code = process.wait()
        listener.join()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        listener.join()
        process.stdout.close()
        process.stderr.close()
    if stopped.is_set():
        raise StoppedQueryError(
            f"The query was stopped after {bounds.timeout:g} seconds.",
            "Narrow it, or allow a longer `timeout`.",
        )
    if code:
        raise _failure(code, b"".join(complaint).decode("utf-8", "replace"), bounds)


def _feed(stream: IO[bytes], job: bytes) -> None:
    try:
        stream.write(job)
        stream.close()
    except BrokenPipeError:
        pass  # the worker has died; its exit code says why


def _stop(process: subprocess.Popen[bytes], stopped: threading.Event) -> None:
    stopped.set()
    process.kill()


def _failure(code: int, complaint: str, bounds: Bounds) -> TgraphError:
    line = complaint.strip().rpartition("\n")[2]
    if isinstance(damage := store_error(RuntimeError(line)), DamagedStoreError):
        return damage
    if code == QUERY_FAULT:
        return QueryError(f"The SPARQL is wrong: {_short(line)}.")
    starved = "memory" in complaint.lower() or "bad_alloc" in complaint
    if starved or code < 0:
        return StoppedQueryError(
            f"The query needed more than {bounds.memory / (1 << 30):.3g} GB of memory.",
            "Narrow it, or allow more `memory`.",
        )
    return QueryError(f"The query failed: {line or f'exit code {code}'}.")


def _short(problem: str) -> str:
    """The parser's complaint without its list of everything that would have been right."""
    if len(problem) > 160:
        problem = problem.partition(": expected")[0]
    return problem.rstrip(".")[:300]
