"""Peak memory of work in a process of its own, and of commands.

Each is measured below a small process: what is forked or started counts the memory of its parent,
too, and a process of tests is large."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.paths import REPOSITORY

_COMMAND = "import sys; from tgraph.cli.scripts import main; main()"
_context = multiprocessing.get_context("forkserver")


def peak_memory(work: Callable[..., Any], *arguments: Any) -> int:
    """Return the peak memory in bytes of a process that does the work, or of a process that it
    starts, if that is more; fail where the work does."""
    return int(_run_small(_measure_work, work, *arguments))


def run_measured(*arguments: str) -> tuple[int, str, int]:
    """Run a command of tgraph; return its exit code, what it wrote, and the peak memory in bytes
    of its process and those that it started."""
    code, text, peak = _run_small(_measure_command, *arguments)
    return code, text, peak


def _run_small(work: Callable[..., Any], *arguments: Any) -> Any:
    here, there = _context.Pipe(duplex=False)
    process = _context.Process(target=_send_result, args=(there, work, arguments))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        raise AssertionError("the work failed, see stderr") from None
    finally:
        process.join()


def _send_result(pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    pipe.send(work(*arguments))
    pipe.close()


def _measure_work(work: Callable[..., Any], *arguments: Any) -> int:
    work(*arguments)
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(usage.ru_maxrss for usage in usages) << 10


def _measure_command(*arguments: str) -> tuple[int, str, int]:
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
        return process.returncode, out.read(), usage.ru_maxrss << 10
