"""Interruption handling (Ctrl-C, SIGINT): the process ends with a sentence and exit code 130.

This holds also while modules load, while a call is read and while the interpreter ends."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
MESSAGE = "Interrupted."


def install_handler() -> None:
    """Make interruptions end the process with a message and exit code 130.

    An interruption stays ignored if the starting process ignores it, as a shell's ``&`` does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # At its end the interpreter gives its handlers up and would be killed by the signal; what
        # is registered first is called last.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGINT, _end_process)


def _end_process(_number: int, _frame: FrameType | None) -> None:
    """Exit immediately: no command is running."""
    try:
        os.write(2, f"{MESSAGE}\n".encode())
    finally:
        os._exit(INTERRUPTED)


class _Interrupting:
    """A signal handler that raises ``KeyboardInterrupt`` and remembers the interruption."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.came = True
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn interruptions inside the block into ``KeyboardInterrupt``, so that running work ends
    cleanly.

    ``KeyboardInterrupt`` also leaves the block if a library has replaced it by another error."""
    before = signal.getsignal(signal.SIGINT)
    if before is not _end_process and not isinstance(before, _Interrupting):
        yield
        return
    interrupt = _Interrupting()
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if interrupt.came:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
