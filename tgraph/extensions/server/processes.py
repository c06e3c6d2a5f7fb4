"""Several server processes on one socket, and the one that watches over them."""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import suppress
from types import FrameType

log = logging.getLogger("tgraph.extensions.server")

_STOPS = (signal.SIGINT, signal.SIGTERM)
_SOONEST = 1.0
"""Seconds that a process lives at least before another takes its place at once."""


class Processes:
    """So many child processes, each replaced when it dies, until a stop."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._started: dict[int, float] = {}
        self._stopping = False

    def run(self) -> bool:
        """True in each child; False in the parent, when all of them have ended after a stop."""
        for number in _STOPS:
            signal.signal(number, self._stop)
        while not self._stopping or self._started:
            if not self._stopping and len(self._started) < self._count:
                if self._fork():
                    return True
            else:
                self._wait()
        return False

    def _fork(self) -> bool:
        pid = os.fork()
        if pid == 0:
            for number in _STOPS:
                signal.signal(number, signal.SIG_DFL)
            return True
        self._started[pid] = time.monotonic()
        if self._stopping:  # it came too late for the signal
            _signal(pid, signal.SIGTERM)
        return False

    def _wait(self) -> None:
        pid, status = os.wait()
        lived = time.monotonic() - self._started.pop(pid, 0.0)
        if not self._stopping:
            log.error("A server process (%d) died with status %d.", pid, status)
            time.sleep(max(0.0, _SOONEST - lived))

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        for pid in list(self._started):
            _signal(pid, number)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
