"""What the documents say works: commands and code are run, links lead somewhere."""

from __future__ import annotations

import math
import pkgutil
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tests.support.example import PRINTED_MAKING, blocks, in_shell, run
from tests.support.paths import REPOSITORY
from tests.support.printed import (
    RUNNABLE,
    Block,
    first_difference,
    is_printed,
    page_blocks,
)
from tests.support.warm import PYTHON, warm_commands
from tgraph.answer.mode_choice import EmbeddedChooser
from tgraph.engine.ask.method_factory import mode_for
from tgraph.extensions.operations.telemetry import attributes
from tgraph.retrieve.base import Question
from tgraph.retrieve.modes.registry import AutoSettings

MADE = ("cli.md", "audits.md")
"""Pages that a script makes from the code, which another test runs."""
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "SECURITY.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
RUN = [
    page
    for page in PAGES
    if page.name not in MADE
    and any(b.language in RUNNABLE or (b.is_output and any(b.outputs())) for b in page_blocks(page))
]
MARKS = {("text", "figure"), ("console", "figure"), ("bash", "terminal")}
COLD = ("README.md", "tutorial.md", "write-an-extension.md")
"""Pages whose commands are run as a reader's shell runs them, each loading what it needs; those of
the others come from a process that has loaded it already."""

FRAMEWORKS = {"langchain-and-llamaindex.md": ("langchain_core", "llama_index.core")}
"""Pages whose code needs what the extra ``frameworks`` has."""

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_SOURCE_FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")
_DOTTED_NAME = re.compile(r"`(tgraph(?:\.\w+)+)(?:\(\))?`")
_TEST = re.compile(r"`((?:tests/[\w/]*)?test_\w+(?:\.py)?)`")


@pytest.fixture(scope="module")
def workplace(example_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout, with the example corpus indexed as the README does."""
    return copied(example_place, tmp_path_factory.mktemp("docs") / "here")


def copied(place: Path, target: Path) -> Path:
    return shutil.copytree(place, target, symlinks=True)


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


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda p: p.name)
def test_what_a_page_runs_prints_what_it_says(
    page: Path, example_place: Path, tmp_path: Path, request: pytest.FixtureRequest
):
    """All blocks in their order, over a graph of the page's own."""
    for package in FRAMEWORKS.get(page.name, ()):
        pytest.importorskip(package, reason="needs the extra 'frameworks'")
    here = copied(example_place, tmp_path / "here")
    warm = None if page.name in COLD else request.getfixturevalue("warm")
    printed, wrong = "", []
    for block in page_blocks(page):
        if is_done(block):
            printed = (here / PRINTED_MAKING).read_text("utf-8")
        elif block.language in RUNNABLE:
            printed = run_block(block.language, block.body, here, warm, block.mark == "terminal")
        for command, said in block.outputs() if block.is_output else ():
            if command:
                printed = run_block("bash", f"({command}) || true", here, warm)
            if not is_printed(said, printed):
                wrong.append((first_difference(said, printed), said, printed))
    message = "\n\n".join(
        f"Not printed: {line}\n--- said\n{said}\n--- printed\n{printed}"
        for line, said, printed in wrong
    )
    assert not wrong, message


def is_done(block: Block) -> bool:
    """Whether it is what made the example, or what runs these tests."""
    making, testing = blocks(REPOSITORY / "README.md", "bash")[:2]
    return block.body == testing or set(block.body.splitlines()) <= set(making.splitlines())


def run_block(
    language: str, code: str, here: Path, warm: Path | None, terminal: bool = False
) -> str:
    if language == "python":
        cold = [sys.executable, "-W", "error", "-c"]
        return run([*([str(warm / PYTHON)] if warm else cold), code], here)
    return run(in_shell(code), here, terminal=terminal, **({"commands": warm} if warm else {}))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_what_is_not_printed_anew_has_its_command(page: Path):
    """And no other marks are there than those that mean something."""
    for block in page_blocks(page):
        assert (block.language, block.mark) in MARKS or not block.mark, block.mark
        assert block.mark != "figure" or block.is_explained, block.body


_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_FIGURE = re.compile(r"\s*(?:\d+\.\d|\d[\d,]* ?(?:%|s|MB)\b)")
_MAKING = re.compile(r"\bpython (?:-m )?((?:benchmarks|tools|docs)[./]\w+)|\btime (?:-v )?tgraph ")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in MADE], ids=lambda p: p.name
)
def test_a_table_of_figures_has_the_command_that_makes_it(page: Path):
    """In its section; a table of which a third and more are figures."""
    text = page.read_text("utf-8")
    for table in _TABLE.finditer(text):
        rows = table[0].splitlines()[2:]
        cells = [cell for row in rows for cell in row.strip("|").split("|") if cell.strip()]
        if sum(bool(_FIGURE.match(cell)) for cell in cells) * 3 >= len(cells) > 0:
            section = text.rfind("\n## ", 0, table.start()) + 1
            assert _MAKING.search(text[section : table.start()]), table[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_scripts_that_a_page_names_are_there(page: Path):
    for name in _MAKING.findall(page.read_text("utf-8")):
        place = REPOSITORY / name.replace(".", "/")
        assert place.with_suffix(".py").exists() or place.exists(), name


def test_what_is_said_to_be_printed_is_compared():
    printed = "Took 3.2 s\n\nA  1.04\nurn:x:0123456789abcdef0\nmiddle\n├── end  of it\n"
    assert is_printed("Took 9 s\nA 1.00\nurn:x:fedcba98765432100", printed)
    assert is_printed("A 1.05\n…\n├── end…", printed)
    assert not is_printed("A 1.20", printed)
    assert not is_printed("A 1.04\nmiddle", printed)
    assert not is_printed("iddle", printed)
    assert first_difference("A 1.04\nmiddle\nend", printed) == "middle"


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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_the_site_shows_marked_blocks_as_code(page: Path) -> None:
    """Python-Markdown knows no mark behind the language of a block."""
    prepare_page = runpy.run_path(str(REPOSITORY / "docs/site_hooks.py"))["on_page_markdown"]
    shown = prepare_page(page.read_text("utf-8"))
    assert not re.search(r"^\s*```\w+ ", shown, re.MULTILINE)


SOURCES = [*PAGES, REPOSITORY / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", SOURCES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_source_files_on_a_page_exist(page: Path) -> None:
    """Paths start at the repository, at ``tgraph/`` or, without a folder, anywhere."""
    for name in _SOURCE_FILE.findall(page.read_text("utf-8")):
        if "NAME" not in name:
            places = [REPOSITORY / name, REPOSITORY / "tgraph" / name]
            exists = any(place.exists() for place in places)
            assert exists or ("/" not in name and any(REPOSITORY.rglob(name))), name


@pytest.mark.parametrize("page", SOURCES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_dotted_names_on_a_page_exist(page: Path) -> None:
    """A dotted name is a module or an object of tgraph, or an attribute of a span."""
    span_attributes = {value for value in vars(attributes).values() if isinstance(value, str)}
    names = set(_DOTTED_NAME.findall(page.read_text("utf-8"))) - {"tgraph.toml", *span_attributes}
    assert not [name for name in sorted(names) if not is_defined(name)]


def is_defined(name: str) -> bool:
    """Return whether a dotted name is a module, or an object of a module."""
    with suppress(ModuleNotFoundError):  # not below a package
        if find_spec(name):
            return True
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.fixture(scope="module")
def modes_table() -> dict[str, Any]:
    """What the script has that makes the tables of modes."""
    return runpy.run_path(str(REPOSITORY / "docs/modes_table.py"))


@pytest.mark.parametrize("table", ["table", "forms_table"])
def test_the_tables_of_modes_are_current(modes_table: dict[str, Any], table: str):
    page = (REPOSITORY / "docs/howto/choose-a-mode.md").read_text("utf-8")
    assert modes_table[table]() in page


@pytest.mark.slow
@pytest.mark.slow
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


def test_the_reference_of_rights_is_current():
    made = runpy.run_path(str(REPOSITORY / "docs/rights_table.py"))["page"]()
    assert (REPOSITORY / "docs/reference/rights.md").read_text("utf-8") == made


def test_the_reference_of_commands_is_current():
    made = runpy.run_path(str(REPOSITORY / "docs/cli_reference.py"))["page"]()
    assert (REPOSITORY / "docs/reference/cli.md").read_text("utf-8") == made
