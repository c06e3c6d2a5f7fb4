"""The shape of the code: no circles, no name for two ideas, and a map that is true."""

import ast
import gc
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from tests.support.paths import REPOSITORY

CODE = REPOSITORY / "tgraph"
PAGE = REPOSITORY / "docs" / "explanation" / "architecture.md"

SAME_IDEA: dict[str, str] = {}
"""Class names that stand in several modules, and why they may."""


@cache
def modules() -> dict[str, Path]:
    return {_name(path): path for path in CODE.rglob("*.py")}


def _name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(name: str) -> ast.Module:
    gc.disable()  # what it frees may recurse, which CPython 3.11 takes for a fault of the parser
    try:
        return ast.parse(modules()[name].read_text("utf-8"))
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _let_go() -> Iterator[None]:
    """Of the trees, hundreds of thousands of objects, which other tests would be slower for."""
    yield
    tree.cache_clear()


@cache
def imports() -> nx.DiGraph:
    """Who imports whom, within functions and for types only as well."""
    graph = nx.DiGraph()
    for name in modules():
        graph.add_node(name)
        for node in ast.walk(tree(name)):
            graph.add_edges_from((name, found) for found in _imported(node) if found != name)
    return graph


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules())
    elif isinstance(node, ast.ImportFrom) and node.module in modules():
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules() else str(node.module)


def room(module: str) -> str:
    """The sub-package of a module, or the module itself where it is in none."""
    return ".".join(module.split(".")[:3])


def circles(graph: nx.DiGraph) -> list[list[str]]:
    return [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]


@pytest.mark.slow
def test_no_module_imports_itself_by_way_of_others():
    assert circles(imports()) == []


@pytest.mark.slow
def test_values_are_imported_from_their_package():
    imports_of_parts = (
        (name, part)
        for name, part in imports().edges
        if part.startswith("tgraph.model.") and not name.startswith("tgraph.model")
    )
    assert list(imports_of_parts) == []


def packages() -> list[str]:
    return sorted(path.parent.name for path in CODE.glob("*/__init__.py"))


@pytest.mark.parametrize("package", packages())
def test_the_rooms_of_a_package_form_no_circle(package):
    inside = [name for name in modules() if name.startswith(f"tgraph.{package}.")]
    edges = ((room(one), room(other)) for one, other in imports().subgraph(inside).edges)
    graph = nx.DiGraph((one, other) for one, other in edges if one != other)
    assert circles(graph) == []


def test_explain_has_nine_rooms_at_most_and_engine_five():
    rooms = {package: len(list((CODE / package).glob("*/__init__.py"))) for package in packages()}
    assert rooms["explain"] <= 9
    assert rooms["engine"] <= 5


@pytest.mark.slow
def test_a_class_name_stands_for_one_idea():
    places = defaultdict(set)
    for name, path in modules().items():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].add(name)
    twice = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert twice.keys() == SAME_IDEA.keys(), twice


# --- the map ---


def section(title: str) -> str:
    text = PAGE.read_text("utf-8")
    return re.split(r"\n## ", text.split(f"\n## {title}\n")[1])[0]


def named(text: str) -> list[str]:
    """The paths of code that the text names."""
    return re.findall(r"`(tgraph/[\w/]*(?:\.py)?)`", text)


def test_the_page_begins_with_the_map():
    assert PAGE.read_text("utf-8").split("\n## ")[1].startswith("Map\n")


def test_everything_that_the_page_names_is_there():
    missing = [path for path in named(PAGE.read_text("utf-8")) if not (REPOSITORY / path).exists()]
    assert missing == []


def test_eight_files_are_to_be_read_first():
    first = named(section("Map").split("\n### ")[1])
    assert len(first) == 8
    assert all(path.endswith(".py") for path in first)


def test_the_map_has_each_package_and_no_other():
    packages = {
        f"{path.parent.relative_to(REPOSITORY).as_posix()}/"
        for path in CODE.rglob("*.py")
        if path.parent != CODE
    }
    listed = re.findall(r"^\s*- `(tgraph/[\w/]+/)`", section("Map"), re.MULTILINE)
    assert sorted(listed) == sorted(packages)


@pytest.mark.parametrize("way", ["a question", "a document", "a record"])
def test_the_way_of_each_is_told_in_files(way):
    told = named(section("Map").split(f"\n### The way of {way}\n")[1].split("\n### ")[0])
    assert len(told) >= 5
    assert all(path.endswith(".py") for path in told)


def test_the_command_line_loads_neither_the_store_nor_the_settings_before_it_knows_what_to_do():
    libraries = {"pyoxigraph", "pydantic", "numpy", "rich", "prompt_toolkit"}
    heavy = {*libraries, "tgraph.model", "tgraph.settings"}
    code = f"import sys, tgraph.cli.main; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _flags_in_errors(tree: ast.AST) -> Iterator[str]:
    """Flags in texts that are given to an error, those of a whole command in backticks aside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    alone = re.sub(r"`[^`]*`|Run: .*", "", part.value)
                    yield from re.findall(r"(?<![\w-])--?[a-z][\w-]*", alone)


def test_errors_of_the_library_name_no_flag_of_a_command():
    found = {
        name: list(_flags_in_errors(tree(name)))
        for name in modules()
        if not name.startswith("tgraph.cli.") and not name.endswith(("_command", "_commands"))
    }
    assert {name: flags for name, flags in found.items() if flags} == {}
