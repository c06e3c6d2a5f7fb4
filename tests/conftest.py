"""Configuration of the test run: import paths, hypothesis profiles, the distribution of tests over
processes, and an environment without settings from outside."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase

sys.path.insert(0, str(Path(__file__).parent.parent))

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(  # other examples each time, and those that failed first
    "explore",
    max_examples=1_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=DirectoryBasedExampleDatabase(CACHE / "tgraph-hypothesis"),
)
settings.register_profile(  # for tools/mutate, which doesn't want to know what fails, but whether
    "unshrunk",
    settings.get_profile("repeatable"),
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("repeatable")

APART = ("tests/engine/test_durability.py", "tests/test_docs.py")
"""Files whose tests take long and share little."""
LONG = (
    "tests/engine/test_partitions.py",  # it waits, mostly
    "tests/engine/ask/test_example_questions.py",
    *APART,
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only slow tests are run, files that mark none are not loaded: it takes long."""
    if config.option.markexpr == "slow" and collection_path.match("test_*.py"):
        return b"slow" not in collection_path.read_bytes() or None
    return None


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of ``LONG`` come first, and before them one that makes the example: the other
    processes have something else to do meanwhile."""
    rank = {file: number for number, file in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(_file(item.nodeid), len(LONG)))
    making = (n for n, item in enumerate(items) if "example_place" in _fixtures(item))
    if (first := next(making, None)) is not None:
        items.insert(0, items.pop(first))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no search for garbage goes through it again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests were left out for want of real data: a clean clone has none of it."""
    from tests.support.shared_data import REASON

    skipped = terminalreporter.stats.get("skipped", [])
    if left_out := sum(REASON in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{left_out} tests of real data were left out: {REASON}.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file stay in one process, whose fixtures they share; those of ``APART`` go
    where there is room.

    (Marks of groups would say the same, if they were heeded: xdist 3.8 writes them where pytest
    9.2 doesn't read them.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if _file(nodeid) in APART else _file(nodeid)

    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    """Only ``reader.model`` is set: tests ask about a few made-up sentences, which the reader that
    ships judges by what they say. Those of it take ``shipped_reader`` or run pages' commands."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("TGRAPH_", "OPENAI_")) and name != "TGRAPH_SHARED_DATA":
                patch.delenv(name)
        patch.setenv("TGRAPH_READER__MODEL", "none")
        yield


@pytest.fixture(scope="module")
def shipped_reader() -> Iterator[None]:
    """Settings as a user has them who sets none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TGRAPH_READER__MODEL", raising=False)
        yield


@pytest.fixture(scope="session")
def example_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout with the example corpus indexed; see ``made_once``."""
    from tests.support.example import made_once

    return made_once(tmp_path_factory.getbasetemp().parent)
