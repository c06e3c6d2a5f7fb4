"""What the documents say works: commands and code are run, links lead somewhere."""

from __future__ import annotations

import math
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tests.example import REPOSITORY, blocks, in_shell, run
from tests.warm import PYTHON, warm_commands
from tgraph.answer.mode_choice import EmbeddedChooser
from tgraph.engine.ask.method_factory import mode_for
from tgraph.retrieve.base import Question
from tgraph.retrieve.modes.registry import AutoSettings

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "SECURITY.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
COLD = ("README.md", "tutorial.md")
"""Pages whose commands are run as a reader's shell runs them, each loading what it needs; those of
the others come from a process that has loaded it already."""

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_TEST = re.compile(r"`((?:tests/[\w/]*)?test_\w+(?:\.py)?)`")


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


def test_the_tests_that_pages_name_are_there():
    """Each guarantee names what holds it, by file or by function."""
    files = list((REPOSITORY / "tests").rglob("test_*.py"))
    known = {part for file in files for part in (file.name, str(file.relative_to(REPOSITORY)))}
    for file in files:
        known |= set(re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE))
    said = {name for page in PAGES for name in _TEST.findall(page.read_text("utf-8"))}
    assert len(said) > 20
    assert said <= known


@pytest.fixture(scope="module")
def modes_table() -> dict[str, Any]:
    """What the script has that makes the tables of modes."""
    return runpy.run_path(str(REPOSITORY / "docs/modes_table.py"))


@pytest.mark.parametrize("table", ["table", "forms_table"])
def test_the_tables_of_modes_are_current(modes_table: dict[str, Any], table: str):
    page = (REPOSITORY / "docs/howto/choose-a-mode.md").read_text("utf-8")
    assert modes_table[table]() in page


@pytest.mark.parametrize("place", range(8))
def test_the_modes_by_form_are_those_that_auto_chooses(
    modes_table: dict[str, Any], place: int, workplace: Path
):
    """``long`` and ``sparse`` tell of the documents, so they are asked as if these were so."""
    assert len(modes_table["FORMS"]) == 8
    row = modes_table["FORMS"][place]
    as_if = {"long": AutoSettings(long_chunks=1), "sparse": AutoSettings(sparse_edges=math.inf)}
    auto = as_if.get(row.setting, AutoSettings())
    with tgraph.open(workplace / "my-graph") as kg:
        context = kg.context()
        form = EmbeddedChooser().choose(Question(row.example), context).form
        assert row.setting in (form, *as_if)
        assert mode_for(form, auto, context)[0] == row.mode


def test_the_reference_of_commands_is_current():
    made = runpy.run_path(str(REPOSITORY / "docs/cli_reference.py"))["page"]()
    assert (REPOSITORY / "docs/reference/cli.md").read_text("utf-8") == made
