"""The log of a server process, which nobody waits for."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue

_FORMAT = "%(levelname)s %(name)s: %(message)s"
_WAITING = 1_000
"""Records that wait to be written; what comes beyond is dropped."""


class _DroppingHandler(QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        with suppress(Full):
            self.queue.put_nowait(record)


class ServerLog:
    """Writes warnings and errors to standard error in a thread: whoever doesn't read it, or a
    terminal that is stopped, holds neither requests nor the end of the server."""

    def __init__(self) -> None:
        self._queue: Queue[logging.LogRecord] = Queue(_WAITING)
        stream = logging.StreamHandler()
        stream.setFormatter(logging.Formatter(_FORMAT))
        self._listener = QueueListener(self._queue, stream)

    def start(self) -> None:
        """Begin to write. Comes before other packages add handlers of their own."""
        root = logging.getLogger()
        root.setLevel(logging.WARNING)
        root.addHandler(_DroppingHandler(self._queue))
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # clients can't fill the log
        self._listener.start()

    def write_out(self, seconds: float = 1.0) -> None:
        """Wait until what was logged is written, at most so long."""
        deadline = time.monotonic() + seconds
        while not self._queue.empty() and time.monotonic() < deadline:
            time.sleep(0.02)
