"""Background tasks that go on after a fault, and say that they are in trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tgraph.masking import hide_paths
from tgraph.shortages import explain_shortage

log = logging.getLogger("tgraph.extensions.server")
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class Supervisor:
    """Runs background tasks again after a fault, after growing pauses; ``troubles`` has the fault
    of each task that waits to be run again, by the task's name."""

    def __init__(self, first_pause: float = _FIRST_PAUSE) -> None:
        self._first_pause = first_pause
        self.troubles: dict[str, str] = {}

    async def keep_running(
        self, name: str, work: Callable[[Callable[[], None]], Awaitable[None]]
    ) -> None:
        """Run ``work`` until it returns or is cancelled.

        ``work`` calls its argument whenever it did what it is for, which ends its trouble."""
        pause = self._first_pause

        def succeed() -> None:
            nonlocal pause
            pause = self._first_pause
            if self.troubles.pop(name, None) is not None:
                log.warning("%s works again.", name)

        while True:
            try:
                return await work(succeed)
            except Exception as error:
                shortage = explain_shortage(error)
                reason = shortage.message if shortage else str(error)
                self.troubles[name] = hide_paths(reason) or type(error).__name__
                log.error("%s failed: %s Next try in %g s.", name, self.troubles[name], pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
