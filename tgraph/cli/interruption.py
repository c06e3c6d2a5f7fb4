"""How an interruption (Ctrl-C, SIGINT) ends the process: with a sentence and exit code 130, also
while modules load, while a call is read and while the interpreter ends."""

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


def heed() -> None:
    """From here on an interruption ends the process so, unless who started it has it ignored, as a
    shell's ``&`` does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # At its end the interpreter gives its handlers up and would be killed by the signal; what
        # is registered first is called last.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGINT, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    """End at once: no command has begun, or it is done."""
    try:
        os.write(2, f"{MESSAGE}\n".encode())
    finally:
        os._exit(INTERRUPTED)


class _Interrupting:
    """A handler that raises ``KeyboardInterrupt``, and knows whether it did."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.came = True
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, an interruption is a ``KeyboardInterrupt``, so that what was begun is ended well; it
    is one outside too where a library has made another error of it."""
    before = signal.getsignal(signal.SIGINT)
    if before is not _end and not isinstance(before, _Interrupting):
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
