"""Multiple server processes on one socket, supervised by a parent process."""

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
    """A fixed number of child processes, each replaced after death until a stop signal."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._started: dict[int, float] = {}
        self._stopping = False

    def run(self) -> bool:
        """Run child processes.

        Return True in each child; return False in the parent after all children stopped."""
        for number in _STOPS:
            signal.signal(number, self._stop_children)
        while not self._stopping or self._started:
            if not self._stopping and len(self._started) < self._count:
                if self._fork_child():
                    return True
            else:
                self._wait_child()
        return False

    def _fork_child(self) -> bool:
        """Fork with stop signals held back, so that each reaches a child that the parent knows and
        that no longer has the parent's handlers."""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        try:
            pid = os.fork()
            if pid == 0:
                for number in _STOPS:
                    signal.signal(number, signal.SIG_DFL)
            else:
                self._started[pid] = time.monotonic()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        return pid == 0

    def _wait_child(self) -> None:
        pid, status = os.wait()
        lived = time.monotonic() - self._started.pop(pid, 0.0)
        if not self._stopping:
            log.error("A server process (%d) died with status %d.", pid, status)
            time.sleep(max(0.0, _SOONEST - lived))

    def _stop_children(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        for pid in list(self._started):
            _signal_process(pid, number)


def _signal_process(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
