"""What the documents say works: commands and code are run, links lead somewhere."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.example import REPOSITORY, blocks, in_shell, run
from tests.warm import PYTHON, warm_commands

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
COLD = ("README.md", "tutorial.md")
"""Pages whose commands are run as a reader's shell runs them, each loading what it needs; those of
the others come from a process that has loaded it already."""

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def workplace(example_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout, with the example corpus indexed as the README does."""
    return shutil.copytree(example_place, tmp_path_factory.mktemp("docs") / "here", symlinks=True)


@pytest.fixture(scope="module")
def warm() -> Iterator[Path]:
    """Where the commands are that load nothing."""
    with warm_commands() as folder:
        yield folder


def test_the_readme_begins_with_the_two_commands():
    first, second = blocks(REPOSITORY / "README.md", "bash")[:2]
    assert "tgraph index examples/antarctica" in first
    assert "tg-invoke-graph-rag" in first
    assert "pytest" in second


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name != "README.md" and blocks(p, "bash")], ids=lambda p: p.name
)
def test_commands_of_a_page_run(page: Path, workplace: Path, request: pytest.FixtureRequest):
    options = {} if page.name in COLD else {"commands": request.getfixturevalue("warm")}
    for script in blocks(page, "bash"):
        run(in_shell(script), workplace, **options)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_of_a_page_runs(page: Path, workplace: Path, request: pytest.FixtureRequest):
    cold = [sys.executable, "-W", "error", "-c"]
    command = cold if page.name in COLD else [str(request.getfixturevalue("warm") / PYTHON)]
    for code in blocks(page, "python"):
        run([*command, code], workplace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_links_of_a_page_lead_somewhere(page: Path):
    for target in _LINK.findall(page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_table_of_modes_is_current():
    made = runpy.run_path(str(REPOSITORY / "docs/modes_table.py"))["table"]()
    assert made in (REPOSITORY / "docs/howto/choose-a-mode.md").read_text("utf-8")


def test_the_reference_of_commands_is_current():
    made = runpy.run_path(str(REPOSITORY / "docs/cli_reference.py"))["page"]()
    assert (REPOSITORY / "docs/reference/cli.md").read_text("utf-8") == made
