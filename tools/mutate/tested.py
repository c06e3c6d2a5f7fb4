"""Runs tests again and again, each time in a fork of a process that has loaded what they need.

A line on standard input is a JSON list of pytest's arguments, the answer its exit status. What was
loaded from outside the tree is loaded before the next fork; of the tree nothing is, so that each
run sees the modules as they are. Loading takes longer than most tests that find a fault.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

LOG = Path("../log")
LOADED = Path("../loaded")
"""Where a run says what it printed, and what it has loaded."""


def _run(arguments: list[str]) -> int:
    """Run pytest in this process, which is a fork, with all output in the log."""
    import pytest

    handle = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(handle, stream)
    code = int(pytest.main(arguments))
    tree = str(Path.cwd())
    outside = [
        name
        for name, module in list(sys.modules.items())
        if (file := getattr(module, "__file__", None)) and not file.startswith(tree)
    ]
    LOADED.write_text("\n".join(outside))
    return code


def _forked(arguments: list[str]) -> int:
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setpgid(0, 0)
            code = _run(arguments)
        finally:
            os._exit(code)
    print(f"pid {child}", flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _load() -> None:
    """Load what the last run had loaded from outside the tree."""
    with suppress(FileNotFoundError):
        for name in LOADED.read_text().splitlines():
            if name not in sys.modules:
                with suppress(Exception):
                    importlib.import_module(name)
        LOADED.unlink()


def main() -> None:
    sys.path = [entry for entry in sys.path if entry]
    for line in sys.stdin:
        print(f"exit {_forked(json.loads(line))}", flush=True)
        _load()


if __name__ == "__main__":
    main()
