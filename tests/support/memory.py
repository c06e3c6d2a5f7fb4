"""Peak memory of work in a process of its own."""

from __future__ import annotations

import os
import resource
import warnings
from collections.abc import Callable
from typing import Any


def peak_memory(work: Callable[..., Any], *arguments: Any) -> int:
    """Return the peak memory in bytes of a fork that does the work, or of a process that it
    starts, if that is more; fail where the work does."""
    inside, outside = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # beside threads that wait
        child = os.fork()
    if child == 0:
        status = 1
        try:
            work(*arguments)
            usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            peak = max(usage.ru_maxrss for usage in usages)
            os.write(outside, str(peak << 10).encode())
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(outside)
    with os.fdopen(inside) as said:
        peak = said.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the work failed, see stderr"
    return int(peak)
