"""Reading of foreign bytes in a restricted process, where a hostile file does little harm.

The process has little memory and time, no network, and can write to no file; many documents share
a process until one breaks it, and each table or graph has its own. The output is trusted as little
as the file: JSON of a bounded size, checked."""

from __future__ import annotations

import atexit
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, FileReader, error_reason, shorten_line
from tgraph.isolation import forbid_sockets, forbid_writing, limit_memory, limit_time, start_process

_SIZE = struct.Struct("<Q")
_LONGEST = 500
_MEMORY_FAULT = 2
"""libxml2's ``XML_ERR_NO_MEMORY``."""
_TOGETHER = 1 << 18
"""Bytes of items that are sent together."""
_ITEMS, _END, _FAILURE = b"+", b".", b"-"
_SMALL = 1 << 20
"""Bytes of what is no item."""

T = TypeVar("T")
Place = tuple[str, str]
_lock = threading.Lock()
_running: list[_ParserProcess] = []


def load_reader(module: str, function: str) -> FileReader:
    """Return a format's reader function, imported on demand."""
    return cast(FileReader, getattr(import_module(module), function))


def parse(place: Place, data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Parse data in a separate process, using the reader at ``place`` (module and function).

    Raises ``IngestError`` if the reader raises ``IngestError``, and if the process exceeds the
    limits or dies; another process then takes over. Calls from several threads queue."""
    job = _ParseJob(place, data, name, limits, most=_document_output(len(data), limits))
    with _lock:
        try:
            return _attempt_parse(job)
        except _ParserDeathError as death:
            if death.late or death.at_first:
                raise _given_up(name, death, limits) from None
        # files before it may have left it weak: what a file comes to is to be its own doing
        try:
            return _attempt_parse(job)
        except _ParserDeathError as death:
            raise _given_up(name, death, limits) from None


def _document_output(size: int, limits: FileLimits) -> int:
    """Return the most bytes of a document's content: few for a small file, whatever it unpacks
    to."""
    return min(limits.output_bytes, max(limits.small_output, limits.part_ratio * size))


def _attempt_parse(job: _ParseJob) -> FileContent:
    try:
        contents = list(_find_process(job.limits).read(job, FileContent))
        if len(contents) != 1:
            raise _ParserDeathError("gave back no content", late=False, at_first=True)
        return contents[0]
    except IngestError:
        raise
    except BaseException:  # an interrupt too leaves it in the middle of something
        _end_process()
        raise


def read_items(
    place: Place,
    source: bytes | Path,
    name: str,
    limits: FileLimits,
    kind: type[T],
    **options: Any,
) -> Generator[T]:
    """Yield the items that the reader at ``place`` reads from bytes or from an open file, in a
    process of its own.

    The reader is a function ``(source, name, limits, **options)`` in tgraph's modules, whose
    items are of the kind. ``limits.seconds`` is the time for each batch of items;
    ``limits.output_bytes``, or ``limits.items_ratio`` times the file if that is more, bounds all
    items together. Raises ``IngestError`` like ``parse``."""
    size = len(source) if isinstance(source, bytes) else _size_of_file(source, name)
    most = max(limits.output_bytes, limits.items_ratio * size)
    process = _ParserProcess(limits.memory)
    try:
        yield from process.read(_ParseJob(place, source, name, limits, options, most), kind)
    except _ParserDeathError as death:
        raise _given_up(name, death, limits) from None
    finally:
        process.end()


def _size_of_file(path: Path, name: str) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise IngestError(name, f"The file can't be read: {reason}.") from None


@contextmanager
def closing_parser() -> Iterator[None]:
    """Run a block of work, then end the parser process, if running."""
    try:
        yield
    finally:
        with _lock:
            _end_process()


def _find_process(limits: FileLimits) -> _ParserProcess:
    if _running and not _running[0].serves(limits):
        _end_process()
    if not _running:
        _running.append(_ParserProcess(limits.memory))
    return _running[0]


def _end_process() -> None:
    while _running:
        _running.pop().end()


atexit.register(_end_process)


class _ParserDeathError(Exception):
    """An error for a dead or useless process.

    ``late`` means that the time ran out, ``at_first`` that the process failed on its first
    file."""

    def __init__(self, how: str, *, late: bool, at_first: bool) -> None:
        super().__init__(how)
        self.late = late
        self.at_first = at_first


def _given_up(name: str, death: _ParserDeathError, limits: FileLimits) -> IngestError:
    if death.late:
        message = f"Its parser was stopped after {limits.seconds:g} seconds."
        return IngestError(name, message, "Set ingest.seconds higher if you trust the file.")
    message = f"Its parser {death}; it may use {limits.memory >> 20:,} MB."
    remedy = "Set ingest.memory_mb higher if you trust the file."
    return IngestError(name, message, remedy)


@dataclass(frozen=True, slots=True)
class _ParseJob:
    """What the process is to read: bytes, or a file that it opens; ``most`` bounds the bytes of
    the items."""

    place: Place
    source: bytes | Path
    name: str
    limits: FileLimits
    options: Mapping[str, Any] | None = None
    most: int = 0

    def write(self) -> bytes:
        path = str(self.source.absolute()) if isinstance(self.source, Path) else None
        return json.dumps(
            {
                "place": self.place,
                "name": self.name,
                "limits": asdict(self.limits),
                "options": self.options or {},
                "path": path,
                "most": self.most,
            }
        ).encode()

    @property
    def data(self) -> bytes:
        return self.source if isinstance(self.source, bytes) else b""


class _ParserProcess:
    """A handle of the parser process; the process ends with its standard input, never outliving
    the parent."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._owner = os.getpid()
        self._process = start_process("tgraph.ingest.parser_process", subprocess.DEVNULL)
        self._is_new = True

    def serves(self, limits: FileLimits) -> bool:
        """Return whether the process is alive, owned by the current process (not a fork's
        copy), and equally limited."""
        is_own = self._owner == os.getpid() and self._process.poll() is None
        return is_own and self._memory == limits.memory

    def read(self, job: _ParseJob, kind: type[T]) -> Iterator[T]:
        """Yield the items of a job; raise ``IngestError`` or ``_ParserDeathError``."""
        from pydantic import TypeAdapter

        items: TypeAdapter[list[T]] = TypeAdapter(list[kind])  # type: ignore[valid-type]
        at_first, self._is_new = self._is_new, False
        remaining = job.most
        is_sent = False
        while True:
            late = threading.Event()
            try:
                with self._stopping_late(job.limits.seconds, late):
                    if not is_sent:
                        self._send_job(job)
                    tag, part = self._receive(remaining)
                    batch = items.validate_json(part) if tag == _ITEMS else []
            except (OSError, EOFError):
                raise self._death(self._describe_death(), late, at_first) from None
            except ValueError:
                raise self._death("gave back no content", late, at_first) from None
            if tag == _END:
                return
            if tag == _FAILURE:
                raise self._failure(part, job, late, at_first)
            is_sent, remaining = True, remaining - len(part)
            yield from batch

    @contextmanager
    def _stopping_late(self, seconds: float, late: threading.Event) -> Iterator[None]:
        timer = threading.Timer(seconds, self._stop_process, (late,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _send_job(self, job: _ParseJob) -> None:
        assert self._process.stdin is not None
        for part in (job.write(), job.data):
            _send_part(self._process.stdin, part)

    def _receive(self, most: int) -> tuple[bytes, bytes]:
        assert self._process.stdout is not None
        tag = self._process.stdout.read(1)
        return tag, _receive_part(self._process.stdout, most if tag == _ITEMS else _SMALL)

    def _failure(
        self, part: bytes, job: _ParseJob, late: threading.Event, at_first: bool
    ) -> Exception:
        from pydantic import TypeAdapter

        try:
            failure = TypeAdapter(_ParseFailure).validate_json(part)
        except ValueError:
            return self._death("gave back no content", late, at_first)
        if failure.starved:
            return self._death("ran out of memory", late, at_first)
        message = shorten_line(failure.message, _LONGEST) or "Its parser gave back nothing."
        return IngestError(job.name, message, shorten_line(failure.remedy, _LONGEST))

    def _death(self, how: str, late: threading.Event, at_first: bool) -> _ParserDeathError:
        return _ParserDeathError(how, late=late.is_set(), at_first=at_first)

    def _stop_process(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def _describe_death(self) -> str:
        self._process.kill()
        code = self._process.wait()
        how = signal.Signals(-code).name if -code in set(signal.Signals) else f"code {code}"
        return f"crashed ({how})"

    def end(self) -> None:
        if self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


@dataclass(frozen=True, slots=True)
class _ParseFailure:
    starved: bool = False
    message: str = ""
    remedy: str = ""


def _send_part(stream: IO[bytes], part: bytes) -> None:
    stream.write(_SIZE.pack(len(part)))
    stream.write(part)
    stream.flush()


def _receive_part(stream: IO[bytes], most: int) -> bytes:
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    (size,) = _SIZE.unpack(head)
    if size > most:
        raise ValueError("longer than allowed")
    part = stream.read(size)
    if len(part) < size:
        raise EOFError
    return part


# --- inside ---------------------------------------------------------------------------------------


def main() -> None:
    """Read files sent by the parent, in turn, until the parent closes the stream."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no reply
    forbid_writing()
    forbid_sockets()
    is_first = True
    while head := sys.stdin.buffer.read(_SIZE.size):
        job = json.loads(sys.stdin.buffer.read(*_SIZE.unpack(head)))
        limits = FileLimits(**job["limits"])
        if is_first:
            limit_memory(limits.memory)
        is_first = False
        limit_time(limits.seconds)
        try:
            _answer_job(job, limits, replies)
        except MemoryError:
            _send_failure(replies, _ParseFailure(starved=True))
        except IngestError as error:
            _send_failure(replies, _ParseFailure(_is_starved(error), error.message, error.remedy))
        except Exception as error:  # of a library, which may fail in any way
            reason = f"It can't be read: {type(error).__name__}: {error_reason(error)}."
            _send_failure(replies, _ParseFailure(_is_starved(error), reason))


def _answer_job(job: Mapping[str, Any], limits: FileLimits, replies: IO[bytes]) -> None:
    data = _receive_part(sys.stdin.buffer, limits.file_bytes)
    read: Any = load_reader(*job["place"])
    if job["path"] is None:
        items = read(data, job["name"], limits, **job["options"])
        _send_items([items] if is_dataclass(items) else items, job, limits, replies)
    else:
        with Path(job["path"]).open("rb") as file:
            items = read(file, job["name"], limits, **job["options"])
            _send_items(items, job, limits, replies)
    _send_tagged(replies, _END, b"")


def _send_items(
    items: Iterable[Any], job: Mapping[str, Any], limits: FileLimits, replies: IO[bytes]
) -> None:
    """Send items in batches, each with its time; raise ``IngestError`` beyond the job's bytes."""
    pending: list[bytes] = []
    total = size = 0
    from pydantic_core import to_json

    for item in items:
        written = to_json(item, inf_nan_mode="constants")
        total += len(written) + 3
        if total > job["most"]:
            raise IngestError(
                job["name"],
                f"It comes to more than {job['most'] // 1_000_000:,} MB of text.",
                "Set ingest.output_mb higher if you trust the file.",
            )
        pending.append(written)
        size += len(written)
        if size > _TOGETHER:
            _send_batch(replies, pending, limits)
            size = 0
    if pending:
        _send_batch(replies, pending, limits)


def _send_batch(replies: IO[bytes], pending: list[bytes], limits: FileLimits) -> None:
    _send_tagged(replies, _ITEMS, b"[%s]" % b",".join(pending))
    pending.clear()
    limit_time(limits.seconds)


def _send_failure(replies: IO[bytes], failure: _ParseFailure) -> None:
    _send_tagged(replies, _FAILURE, json.dumps(asdict(failure)).encode())


def _send_tagged(replies: IO[bytes], tag: bytes, part: bytes) -> None:
    replies.write(tag)
    _send_part(replies, part)


def _is_starved(error: BaseException | None) -> bool:
    """Return whether an error was caused by lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "code", None) == _MEMORY_FAULT:
            return True
        error = error.__context__
    return False
