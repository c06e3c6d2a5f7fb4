"""User SPARQL execution in a separate, stoppable process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from tgraph import vocabulary as v
from tgraph.errors import DamagedStoreError, QueryError, TgraphError
from tgraph.explain.query.worker import QUERY_FAULT
from tgraph.isolation import start_process
from tgraph.rendering import one_line
from tgraph.store.files import store_error
from tgraph.store.query_guard import QUERY_FORMS, UPDATE_FORMS, check_query, words
from tgraph.store.sums import check_files

TIMEOUT = 60.0
MEMORY = 2 << 30
FORMATS = ("lines", "json", "csv", "tsv", "xml", "turtle", "ntriples")
_BLOCK = 1 << 16


class StoppedQueryError(QueryError):
    """A stopped query error: the query exceeded a bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Query bounds: seconds, bytes of memory, maximum number of rows (None: all), base IRI for
    relative IRIs (None: no relative IRIs allowed), and bytes of the result (None: any)."""

    timeout: float = TIMEOUT
    memory: int = MEMORY
    limit: int | None = None
    base: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Graph IRIs read by a query, replacing graphs named in the query text (SPARQL 1.1
    Protocol, 2.1.4)."""

    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def stream_query(
    store: Path,
    text: str,
    format: str = "json",
    bounds: Bounds = Bounds(),
    dataset: Dataset | None = None,
) -> Generator[bytes, None, None]:
    """Yield a query result piece by piece, over the union of all graphs (narrowed by ``GRAPH``)
    or over the ``dataset``.

    ``store`` is the folder of a pinned snapshot; tgraph prefixes are predefined. ``format`` is
    one of ``FORMATS``: ``lines`` writes a JSON array of N-Triples terms per line, names first.
    Complete results are never held in memory here. Raise ``QueryError``, possibly after some
    pieces, for a wrong or refused query, or one stopped at a bound; ``DamagedStoreError`` if a
    damaged store file is the cause."""
    check_query(text)
    try:
        job = _build_job(store, text, format, bounds, update=False)
        yield from _run_worker({**job, "dataset": asdict(dataset) if dataset else None}, bounds)
    except StoppedQueryError:
        check_files(store)  # over a damaged block a query may never end
        raise


def run_update(store: Path, text: str, bounds: Bounds = Bounds()) -> None:
    """Apply an update to a private copy of a store. Raises as ``stream_query`` does."""
    check_query(text, update=True)
    for _ in _run_worker(_build_job(store, text, "", bounds, update=True), bounds):
        pass


def _build_job(
    store: Path, text: str, format: str, bounds: Bounds, *, update: bool
) -> dict[str, Any]:
    return {
        "store": str(store.absolute()),
        "text": text,
        "format": format,
        "limit": bounds.limit,
        "memory": bounds.memory,
        "seconds": bounds.timeout,
        "prefixes": v.PREFIXES,
        "base": bounds.base,
        "update": update,
    }


def _run_worker(job: Mapping[str, Any], bounds: Bounds) -> Generator[bytes, None, None]:
    process = start_process("tgraph.explain.query.worker", subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    stopped = threading.Event()
    timer = threading.Timer(bounds.timeout, _stop_worker, (process, stopped))
    timer.daemon = True
    timer.start()
    complaint: list[bytes] = []
    listener = threading.Thread(target=complaint.extend, args=(process.stderr,), daemon=True)
    listener.start()
    try:
        _feed_worker(process.stdin, json.dumps(job).encode())
        size = 0
        while block := process.stdout.read1(_BLOCK):  # type: ignore[attr-defined]
            size += len(block)
            if bounds.size is not None and size > bounds.size:
                raise StoppedQueryError(
                    f"The result has more than {bounds.size >> 10:,} kB.",
                    "Narrow the query, or ask for a part with LIMIT and OFFSET.",
                )
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
            "Narrow the query, or allow a longer `timeout`.",
        )
    if code:
        complaint_text = b"".join(complaint).decode("utf-8", "replace")
        raise _worker_error(code, complaint_text, str(job["text"]), bounds)


def _feed_worker(stream: IO[bytes], job: bytes) -> None:
    try:
        stream.write(job)
        stream.close()
    except BrokenPipeError:
        pass  # the worker has died; its exit code says why


def _stop_worker(process: subprocess.Popen[bytes], stopped: threading.Event) -> None:
    stopped.set()
    process.kill()


def _worker_error(code: int, complaint: str, text: str, bounds: Bounds) -> TgraphError:
    line = complaint.strip().rpartition("\n")[2]
    if isinstance(damage := store_error(RuntimeError(line)), DamagedStoreError):
        return damage
    if code == QUERY_FAULT:
        return _syntax_error(line, text)
    starved = "memory" in complaint.lower() or "bad_alloc" in complaint
    if code == -signal.SIGSEGV and not starved:
        return StoppedQueryError(
            "The process of the query crashed, possibly because the query is nested very deeply.",
            "Write it flatter.",
        )
    if starved or code < 0:
        return StoppedQueryError(
            f"The query needed more than {bounds.memory / (1 << 30):.3g} GB of memory.",
            "Narrow the query, or allow more `memory`.",
        )
    return QueryError(f"The query failed: {line or f'exit code {code}'}.")


_PLACE = re.compile(r"error at (\d+):(\d+)")
_NAME = re.compile(r"(?<![\w<\"'])([A-Za-z][\w-]*):[\w.-]*$")
_BESIDE = 60
"""Characters of the query that are shown before a mistake."""


def _syntax_error(complaint: str, text: str) -> QueryError:
    """Return an error describing a query mistake with its approximate place.

    The place is where the engine stopped reading, possibly beyond the mistake."""
    place = _PLACE.match(complaint)
    if place is None:
        return QueryError(f"The SPARQL is wrong: {complaint.rstrip('.')[:300]}.")
    if not any(word in (*QUERY_FORMS, *UPDATE_FORMS) for word in words(text)):
        return QueryError(f"The SPARQL is wrong: it has no {', '.join(QUERY_FORMS)}.")
    line, column = int(place[1]), int(place[2])
    lines = text.split("\n")[:line]
    before = one_line("\n".join([*lines[:-1], lines[-1][: column - 1]]))
    where = f"near line {line}, column {column}"
    name = _NAME.search(before)
    if name and name[1] not in v.PREFIXES and not re.search(rf"(?i)PREFIX\s+{name[1]}:", text):
        return QueryError(
            f"The SPARQL is wrong {where}: the prefix {name[1]} is not declared.",
            f"Begin with PREFIX {name[1]}: <...>; known are {', '.join(v.PREFIXES)}.",
        )
    excerpt = before if len(before) <= _BESIDE else f"…{before[1 - _BESIDE :]}"
    return QueryError(f"The SPARQL is wrong {where}, after “{excerpt}”.")
