"""Parsing in a restricted process, where a hostile file does little harm.

The process has little memory and time, no network, and can write to no file; many files share
the process until a file breaks it. The output is trusted as little as the file: JSON of a
bounded size, checked."""

from __future__ import annotations

import atexit
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import IO, Any, cast

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, FileReader, error_reason, shorten_line
from tgraph.isolation import forbid_sockets, forbid_writing, limit_memory, limit_time, start_process

_SIZE = struct.Struct("<Q")
_LONGEST = 500
_MEMORY_FAULT = 2
"""libxml2's ``XML_ERR_NO_MEMORY``."""

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
    with _lock:
        try:
            return _attempt_parse(place, data, name, limits)
        except _ParserDeathError as death:
            if death.late or death.at_first:
                raise _given_up(name, death, limits) from None
        # files before it may have left it weak: what a file comes to is to be its own doing
        try:
            return _attempt_parse(place, data, name, limits)
        except _ParserDeathError as death:
            raise _given_up(name, death, limits) from None


def _attempt_parse(place: Place, data: bytes, name: str, limits: FileLimits) -> FileContent:
    try:
        return _find_process(limits).parse(place, data, name, limits)
    except IngestError:
        raise
    except BaseException:  # an interrupt too leaves it in the middle of something
        _end_process()
        raise


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
    return IngestError(name, message, "Set ingest.memory_mb higher if you trust the file.")


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

    def parse(self, place: Place, data: bytes, name: str, limits: FileLimits) -> FileContent:
        late = threading.Event()
        timer = threading.Timer(limits.seconds, self._stop_process, (late,))
        timer.daemon = True
        timer.start()
        at_first, self._is_new = self._is_new, False
        try:
            reply = self._exchange_job(
                {"place": place, "name": name, "limits": asdict(limits)}, data
            )
            return _parse_reply(reply, name)
        except (OSError, EOFError):
            how = self._describe_death()
        except ValueError:
            how = "gave back no content"
        except MemoryError:
            how = "ran out of memory"
        finally:
            timer.cancel()
        raise _ParserDeathError(how, late=late.is_set(), at_first=at_first)

    def _exchange_job(self, job: dict[str, Any], data: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for part in (json.dumps(job).encode(), data):
            _send_part(self._process.stdin, part)
        return _receive_part(self._process.stdout, job["limits"]["output_bytes"])

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


def _parse_reply(reply: bytes, name: str) -> FileContent:
    """Return the content in a reply.

    Raises ``ValueError`` for meaningless replies, and ``MemoryError`` if the process lacked
    memory."""
    from pydantic import TypeAdapter

    parsed_reply = TypeAdapter(_ParserReply).validate_json(reply)
    if parsed_reply.content is not None:
        return parsed_reply.content
    if parsed_reply.starved:
        raise MemoryError
    message = shorten_line(parsed_reply.message, _LONGEST) or "Its parser gave back nothing."
    raise IngestError(name, message, shorten_line(parsed_reply.remedy, _LONGEST))


@dataclass(frozen=True, slots=True)
class _ParserReply:
    content: FileContent | None = None
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
    """Parse files sent by the parent, in turn, until the parent closes the stream."""
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
        _send_part(replies, _answer_job(job["place"], job["name"], limits))


def _answer_job(place: Sequence[str], name: str, limits: FileLimits) -> bytes:
    try:
        data = _receive_part(sys.stdin.buffer, limits.file_bytes)
        reply = _ParserReply(load_reader(*place)(data, name, limits))
        written = json.dumps(asdict(reply), ensure_ascii=False, separators=(",", ":")).encode()
    except MemoryError:
        reply = _ParserReply(starved=True)
    except IngestError as error:
        reply = _ParserReply(starved=_is_starved(error), message=error.message, remedy=error.remedy)
    except Exception as error:
        reply = _ParserReply(
            message=f"It can't be read: {type(error).__name__}: {error_reason(error)}."
        )
    else:
        if len(written) <= limits.output_bytes:
            return written
        allowed = f"{limits.output_bytes // 1_000_000:,} MB"
        reply = _ParserReply(
            message=f"It comes to more than {allowed} of text.",
            remedy="Set ingest.output_mb higher if you trust the file.",
        )
    return json.dumps(asdict(reply)).encode()


def _is_starved(error: BaseException | None) -> bool:
    """Return whether an error was caused by lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "code", None) == _MEMORY_FAULT:
            return True
        error = error.__context__
    return False
