"""Every parser in the code is on the register of readers of foreign bytes."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY
from tgraph.foreign_readers import OWN_BYTES, READERS

CODE = REPOSITORY / "tgraph"
PAGE = REPOSITORY / "docs" / "explanation" / "security.md"
LIBRARIES = frozenset(
    (
        *("bz2", "defusedxml", "docutils", "email", "html5lib", "json_repair", "lxml", "lzma"),
        *("mammoth", "marshal", "msgpack", "odf", "openpyxl", "oxmsg", "pickle", "plistlib"),
        *("pptx", "pyarrow", "pylatexenc", "pypdf", "pypdfium2", "rapidocr_onnxruntime", "shelve"),
        *("xml", "zstandard"),
    )
)
"""Whose import alone means that something is parsed."""
FUNCTIONS = {
    "csv": {"DictReader", "reader"},
    "gzip": {"GzipFile", "decompress", "open"},
    "json": {"JSONDecoder", "load", "loads"},
    "networkx": {"read_gexf", "read_gml", "read_graphml", "node_link_graph"},
    "pyoxigraph": {"parse", "parse_query_results"},
    "rdflib": {"ConjunctiveGraph", "Dataset", "Graph"},
    "tarfile": {"TarFile", "open"},
    "tomllib": {"load", "loads"},
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "scan"},
    "zipfile": {"ZipFile"},
    "zlib": {"decompress", "decompressobj"},
}
METHODS = frozenset(("bulk_load", "model_validate_json", "validate_json"))
_NAMED = re.compile(
    rf"\b(?:import|from) (?:{'|'.join(LIBRARIES | FUNCTIONS.keys())})\b|\.(?:{'|'.join(METHODS)})\b"
)


def find_parsers(source: str) -> set[str]:
    """The parsers that a module's code calls or imports."""
    if not _NAMED.search(source):
        return set()
    nodes = list(ast.walk(ast.parse(source)))
    origins = dict(_imported_names(nodes))
    imported = {origin.partition(".")[0] for origin in origins.values()}
    return (imported & LIBRARIES) | set(_called_parsers(nodes, origins))


def _imported_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                yield each.asname or each.name.partition(".")[0], each.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def _called_parsers(nodes: Sequence[ast.AST], origins: dict[str, str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            yield node.attr
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            library, name = origins.get(node.value.id, ""), node.attr
        elif isinstance(node, ast.Name):
            library, _, name = origins.get(node.id, "").rpartition(".")
        else:
            continue
        if name in FUNCTIONS.get(library, ()):
            yield f"{library}.{name}"


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(CODE.rglob("*.py")):
        yield (
            ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"),
            path,
        )


@pytest.mark.slow
def test_each_module_with_a_parser_is_registered() -> None:
    listed = {module for reader in READERS for module in reader.modules} | OWN_BYTES.keys()
    strangers = {
        module: sorted(parsers)
        for module, path in _modules()
        if (parsers := find_parsers(path.read_text("utf-8"))) and module not in listed
    }
    assert not strangers, "register these readers in tgraph/foreign_readers.py, with their limits"


def test_what_is_registered_is_there_and_parses() -> None:
    modules = dict(_modules())
    names = [module for reader in READERS for module in reader.modules] + list(OWN_BYTES)
    assert len(names) == len(set(names))
    for name in names:
        assert find_parsers(modules[name].read_text("utf-8")), f"{name} parses nothing any more"
    for reader in READERS:
        file, _, test = reader.test.partition("::")
        assert f"def {test}(" in (REPOSITORY / file).read_text("utf-8"), reader.test
        assert reader.limits


@pytest.mark.parametrize(
    "source",
    [
        "import json\ndata = json.loads(b'')",
        "from pyoxigraph import parse as read\nread(b'')",
        "import tarfile as t\nt.open('a')",
        "from pyarrow import parquet",
        "def f(adapter):\n    adapter.validate_json(b'')",
        "def f():\n    import gzip\n    return map(gzip.decompress, ())",
    ],
)
def test_a_new_parser_would_be_seen(source: str) -> None:
    assert find_parsers(source)


def test_the_page_has_the_register() -> None:
    table = runpy.run_path(str(REPOSITORY / "docs/foreign_readers_table.py"))["table"]()
    assert table in PAGE.read_text("utf-8"), "run docs/foreign_readers_table.py"
