"""A line on a stderr terminal that names the model call a command waits for."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tgraph.rendering import one_line

_PATIENCE = 2.0
"""Seconds of a call after which it is shown."""
_ERASE = "\r\x1b[K"


class WaitingLine:
    """The line of the longest call under way, drawn again each second until ``clear``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._drawn = False
        self._hidden = False

    def clear(self, *, hide: bool = False) -> None:
        """Erase the line, so that other text can be written; ``hide`` for ever."""
        with self._lock:
            self._hidden = self._hidden or hide
            if self._drawn:
                sys.stderr.write(_ERASE)
                sys.stderr.flush()
                self._drawn = False

    def draw(self) -> None:
        """Draw the line if a call is under way for long enough."""
        from tgraph.models.client import list_waiting_calls

        call = next(iter(list_waiting_calls()), None)
        seconds = time.monotonic() - call.began if call else 0.0
        if call is None or seconds < _PATIENCE:
            self.clear()
            return
        step = f": {one_line(call.step.replace('_', ' '))}" if call.step else ""
        with self._lock:
            if not self._hidden:
                sys.stderr.write(f"{_ERASE}Waiting for the model{step}, {seconds:.0f} s")
                sys.stderr.flush()
                self._drawn = True

    @contextmanager
    def running(self) -> Iterator[None]:
        """Draw the line meanwhile, where stderr is a terminal."""
        if not sys.stderr.isatty():
            yield
            return
        thread = threading.Thread(target=self._draw_repeatedly, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()
            self.clear()

    def _draw_repeatedly(self) -> None:
        while not self._stopped.wait(1.0):
            self.draw()
