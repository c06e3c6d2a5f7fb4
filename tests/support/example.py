"""The documentation's commands, and the example corpus as README leaves it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.support.paths import REPOSITORY
from tests.support.printed import page_blocks

PRINTED_MAKING = "printed"
"""The file beside the example that has what its making printed."""
COLUMNS = 100
"""How wide a terminal is."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def blocks(page: Path, language: str) -> list[str]:
    """What the page has in that language, each block to be run after the one before."""
    return [block.body for block in page_blocks(page) if block.language == language]


def run(
    arguments: list[str],
    folder: Path,
    *,
    commands: Path = Path(sys.executable).parent,
    terminal: bool = False,
) -> str:
    """What it says, on either stream; it must end well. Commands are looked for in ``commands``."""
    outside = {
        name: value
        for name, value in os.environ.items()
        if "TGRAPH_" not in name and name not in ("COLUMNS", "LINES")  # they outrank a terminal
    }
    environment = {**outside, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    reading, writing = pty.openpty() if terminal else os.pipe()
    if terminal:
        environment["TERM"] = "xterm"  # a terminal called "dumb" has 80 columns, whatever its size
        termios.tcsetwinsize(writing, (50, COLUMNS))
    with (
        subprocess.Popen(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
        ) as process,
        os.fdopen(reading, "rb") as stream,
    ):
        os.close(writing)
        said = _COLOURS.sub("", b"".join(_pieces(stream)).decode()).replace("\r\n", "\n")
    assert process.returncode == 0, f"{arguments[-1]}\n{said}"
    return said


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    with suppress(OSError):  # the end of a terminal
        while piece := os.read(stream.fileno(), 65536):
            yield piece


def in_shell(script: str) -> list[str]:
    return ["bash", "-euo", "pipefail", "-c", script]


def made_once(base: Path) -> Path:
    """A folder like a checkout, with the example corpus in ``my-graph``, below ``base``.

    It is made by README's first commands and once in a test run, by whoever of its processes comes
    first. Nobody changes it: tests work on copies.
    """
    made = base / f"example-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    with (base / f"{made.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / PRINTED_MAKING).exists():
            made.mkdir(exist_ok=True)
            (made / "examples").symlink_to(REPOSITORY / "examples")
            first = blocks(REPOSITORY / "README.md", "bash")[0].splitlines()
            ours = [line for line in first if line.startswith(("tgraph ", "tg-"))]
            printed = run(in_shell("\n".join(ours)), made)
            (made / PRINTED_MAKING).write_text(printed, "utf-8")
    return made
