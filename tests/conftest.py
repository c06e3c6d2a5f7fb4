"""Makes ``tests.workers`` importable, also in the tests' processes; hypothesis repeatable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent.parent))

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")

DOCS = "tests/test_docs.py"
PARTS = 4


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file stay in one process, whose fixtures they share; those of the
    documentation, which take longest, are spread over several."""
    pages = 0
    for item in items:
        group = item.nodeid.partition("::")[0]
        if group == DOCS:
            pages += 1
            group = f"{DOCS}-{pages % PARTS}"
        item.add_marker(pytest.mark.xdist_group(group))
