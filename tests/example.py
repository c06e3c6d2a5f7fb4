"""The documentation's commands and code, and the example corpus as README leaves it."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """What the page has in that language, each block to be run after the one before."""
    return [body for name, body in _BLOCK.findall(page.read_text("utf-8")) if name == language]


def run(arguments: list[str], folder: Path, *, commands: Path = Path(sys.executable).parent) -> str:
    """What it says, on either stream; it must end well. Commands are looked for in ``commands``."""
    outside = {name: value for name, value in os.environ.items() if "TGRAPH_" not in name}
    done = subprocess.run(
        arguments,
        cwd=folder,
        env={**outside, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


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
        if not (made / "done").exists():
            made.mkdir(exist_ok=True)
            (made / "examples").symlink_to(REPOSITORY / "examples")
            first = blocks(REPOSITORY / "README.md", "bash")[0].splitlines()
            ours = [line for line in first if line.startswith(("tgraph ", "tg-"))]
            run(in_shell("\n".join(ours)), made)
            (made / "done").touch()
    return made
