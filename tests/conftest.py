"""Makes ``tests.workers`` importable, also in the tests' processes; hypothesis repeatable; says
which tests share a process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent.parent))

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")

LONG = ("tests/test_docs.py", "tests/test_example_questions.py", "tests/test_durability.py")
"""Files whose tests take long and share little."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file stay in one process, whose fixtures they share; those of ``LONG`` go
    where there is room, and first."""
    long: dict[str, list[pytest.Item]] = {file: [] for file in LONG}
    others = []
    for item in items:
        file = item.nodeid.partition("::")[0]
        if file in long:
            long[file].append(item)
        else:
            item.add_marker(pytest.mark.xdist_group(file))
            others.append(item)
    items[:] = [*(item for found in long.values() for item in found), *others]


@pytest.fixture(scope="session")
def example_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout with the example corpus indexed; see ``made_once``."""
    from tests.example import made_once

    return made_once(tmp_path_factory.getbasetemp().parent)
