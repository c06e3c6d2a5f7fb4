"""Peak memory of work in a process of its own, and of commands."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.paths import REPOSITORY

_SETTINGS = {"TGRAPH_EMBEDDING__PROVIDER": "hashing"}
_COMMAND = "import sys; from tgraph.cli.scripts import main; main()"


def peak_memory(work: Callable[..., Any], *arguments: Any) -> int:
    """Return the peak memory in bytes of a fork that does the work, or of a process that it
    starts, if that is more, beyond what this process takes, which a fork begins with; fail where
    the work does."""
    inside, outside = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # beside threads that wait
        child = os.fork()
    if child == 0:
        status = 1
        try:
            begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            work(*arguments)
            usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            peak = max(usage.ru_maxrss for usage in usages)
            os.write(outside, str((peak - begun) << 10).encode())
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(outside)
    with os.fdopen(inside) as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the work failed, see stderr"
    return int(text)


def run_measured(*arguments: str) -> tuple[int, str, int]:
    """Run a command of tgraph; return its exit code, what it wrote, and the peak memory in bytes
    of its process and those that it started, beyond what this process takes."""
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _COMMAND, *arguments],
            cwd=Path(tempfile.gettempdir()),
            env={
                **os.environ,
                "PYTHONPATH": str(REPOSITORY),
                "TGRAPH_EMBEDDING__PROVIDER": "hashing",
            },
            stdout=out,
            stderr=out,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, out.read(), max(0, usage.ru_maxrss - begun) << 10
