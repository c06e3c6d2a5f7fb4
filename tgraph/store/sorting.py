"""Sorting the lines of a file that may be larger than the memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from tgraph.store.files import disk_errors

AT_ONCE = 100_000
"""Lines sorted in memory; more are sorted in runs, beside the file, and merged."""


def sorted_lines(path: Path, at_once: int = AT_ONCE) -> Iterator[bytes]:
    """The lines of the file, each with its line end, in the order of their bytes.

    In UTF-8 that is the order of code points. The last line must have an end too.
    """
    with disk_errors(), path.open("rb") as file, ExitStack() as stack:
        lines = _next(file, at_once)
        runs: list[BinaryIO] = []
        while len(lines) == at_once:
            run = stack.enter_context(TemporaryFile(dir=path.parent))
            run.writelines(lines)
            run.seek(0)
            runs.append(run)
            lines = _next(file, at_once)
        yield from heapq.merge(*runs, lines)


def _next(file: BinaryIO, at_once: int) -> list[bytes]:
    return sorted(islice(file, at_once))
