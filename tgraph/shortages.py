"""What a machine can run out of: one sentence and a remedy for each, and a look ahead before native
libraries, which end the process where memory or threads are missing."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tgraph.errors import StoreError, TgraphError, UsageError

AGAIN = "Run the command again; it goes on from what is there."
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_READING_MEGABYTES, _WRITING_MEGABYTES = 600, 600
_MEGABYTES_PER_CORE, _MOST_CORES = 100, 8
_MODEL_MEGABYTES = 400
_REQUEST_MEGABYTES = 64
_START_SECONDS = 10.0
_THREADS = 8
"""As many as a store's library starts at once."""


_Sign = Callable[[BaseException, str, int | None], bool]
"""Tells by an error, its text and its number whether it shows a shortage."""


class ShortageError(StoreError):
    """The machine or a limit of the process gives no more memory, threads or files."""


def explain_shortage(error: BaseException) -> TgraphError | None:
    """Return a foreseeable failure of the machine in one sentence without paths, with a remedy;
    None for other errors."""
    if isinstance(error, TgraphError):
        return error
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        return UsageError(
            "A text of the call is no valid Unicode: it has a lone surrogate.",
            "Write the text anew, in UTF-8.",
        )
    text, code = str(error), getattr(error, "errno", None)
    return next((make() for is_shown, make in _SHORTAGES if is_shown(error, text, code)), None)


@contextmanager
def explained_shortages() -> Iterator[None]:
    """Raise a foreseeable failure of the machine as the error that explains it."""
    try:
        yield
    except TgraphError:
        raise
    except Exception as error:
        if (shortage := explain_shortage(error)) is None:
            raise
        raise shortage from error


def _match_signs(*signs: str, codes: frozenset[int] = frozenset()) -> _Sign:
    lowered = tuple(sign.lower() for sign in signs)
    return lambda error, text, code: code in codes or any(s in text.lower() for s in lowered)


def _is_memory(error: BaseException, text: str, code: int | None) -> bool:
    signs = "bad_alloc", "cannot allocate memory", "failed to map segment"
    has_sign = _match_signs(*signs, codes=frozenset({errno.ENOMEM}))
    return isinstance(error, MemoryError) or has_sign(error, text, code)


def _full_disk() -> StoreError:
    return StoreError(
        "The disk is full; nothing that was acknowledged is lost.",
        "Free some space (or raise the quota, or the limit of `ulimit -f`) and run the command "
        "again.",
    )


def _forbidden() -> StoreError:
    return StoreError(
        "The folder can't be written: it is read-only, or belongs to somebody else.",
        "Check the permissions of the graph's folder (and of what is written), and how its disk is"
        " mounted.",
    )


def _memory() -> ShortageError:
    return ShortageError(
        "The memory is not sufficient.",
        "Free some, or raise the limit of the process (`ulimit -v`; 2 GB are enough for small"
        f" graphs). {AGAIN}",
    )


def _threads() -> ShortageError:
    return ShortageError(
        "The process can start no more threads or processes.",
        f"Raise the limit (`ulimit -u`, or of the container), or end other programs. {AGAIN}",
    )


def _descriptors() -> ShortageError:
    return ShortageError(
        "The process has as many files open as it may.",
        f"Raise the limit (`ulimit -n 4096`). {AGAIN}",
    )


def _failing_disk() -> StoreError:
    return StoreError(
        "The disk reports an error.",
        "Look into the log of the system, and run `tgraph doctor` when the disk is well.",
    )


_SHORTAGES: tuple[tuple[_Sign, Callable[[], TgraphError]], ...] = (
    (
        _match_signs(
            "no space left", "quota exceeded", "file too large", "disk is full", codes=_FULL
        ),
        _full_disk,
    ),
    (
        _match_signs(
            "read-only file system", "permission denied", "readonly database", codes=_FORBIDDEN
        ),
        _forbidden,
    ),
    (
        _match_signs(
            "too many open files",
            "descriptors for non-rocksdb usage",
            codes=frozenset({errno.EMFILE, errno.ENFILE}),
        ),
        _descriptors,
    ),
    (_is_memory, _memory),
    (
        _match_signs(
            "can't start new thread",
            "resource temporarily unavailable",
            codes=frozenset({errno.EAGAIN}),
        ),
        _threads,
    ),
    (
        _match_signs("disk i/o error", "input/output error", codes=frozenset({errno.EIO})),
        _failing_disk,
    ),
)


def check_store_headroom(*, writing: bool) -> None:
    """Raise ``ShortageError`` if the library of the store would lack address space or threads:
    it ends the process then. Writing starts threads for each core."""
    cores = min(os.cpu_count() or 1, _MOST_CORES)
    _check_address_space(
        _WRITING_MEGABYTES + _MEGABYTES_PER_CORE * cores if writing else _READING_MEGABYTES
    )
    _check_threads()


def check_model_headroom() -> None:
    """Raise ``ShortageError`` if an embedded model would lack address space or threads."""
    _check_address_space(_MODEL_MEGABYTES)
    _check_threads()


def check_request_headroom() -> None:
    """Raise ``ShortageError`` if a request would lack address space, as where the limit of a
    running server was lowered."""
    _check_address_space(_REQUEST_MEGABYTES)


class _ThreadStart(threading.Event):
    """The sign of a thread that it runs, which one without memory never gives."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_START_SECONDS if timeout is None else timeout):
            raise RuntimeError("can't start new thread")
        return True


def bound_thread_starts() -> None:
    """Have ``Thread.start`` fail in this process for a thread that dies of missing memory before
    it runs, instead of waiting for it for ever."""
    make_thread = threading.Thread.__init__

    def make_bounded(thread: threading.Thread, *arguments: Any, **options: Any) -> None:
        make_thread(thread, *arguments, **options)
        thread._started = _ThreadStart()  # type: ignore[attr-defined]

    threading.Thread.__init__ = make_bounded  # type: ignore[assignment,method-assign]


def _check_address_space(megabytes: int) -> None:
    """Reserve address space for a moment; no memory is used."""
    import mmap
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    try:
        mmap.mmap(-1, megabytes << 20).close()
    except (OSError, ValueError) as error:
        raise _memory() from error


def _check_threads() -> None:
    release = threading.Event()
    threads = [threading.Thread(target=release.wait, daemon=True) for _ in range(_THREADS)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise _threads() from error
    finally:
        release.set()
        for thread in started:
            thread.join()
