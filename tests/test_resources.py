"""Prompts, queries and ontology: every file can be read, every query parses and is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyoxigraph import Store

from tests.support.paths import REPOSITORY
from tgraph.resources import list_names, read_text
from tgraph.store.base import load_query
from tgraph.vocabulary import PREFIXES

CODE = REPOSITORY / "tgraph"
QUERIES = [name for name in list_names("sparql") if name.endswith(".rq")]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_says_what_it_is_and_parses(name: str):
    text = read_text("sparql", name)
    header = [line for line in text.splitlines() if line.startswith("#")]
    assert any("Answers:" in line or "Question:" in line for line in header), name
    assert any("Columns:" in line for line in header), name
    query = re.sub(r"<number:\w+>", "10", load_query(name.removesuffix(".rq")))
    Store().query(query, prefixes=PREFIXES)


def test_every_query_of_retrieval_is_used():
    code = "\n".join(path.read_text() for path in CODE.rglob("*.py"))
    for name in QUERIES:
        if not name.startswith("audit/"):
            assert f'"{name.removesuffix(".rq")}"' in code, name


def test_no_sparql_and_no_prompt_is_a_string_in_the_code():
    pattern = re.compile(r"SELECT\s+(\?|\*|DISTINCT)|CONSTRUCT\s*\{|INSERT\s+DATA")
    for path in CODE.rglob("*.py"):
        # the help of commands has examples, and one module prints the algebra of questions
        if path.parent.name != "cli" and path.relative_to(CODE) != Path("compute/printing.py"):
            assert not pattern.search(path.read_text()), path


def test_every_prompt_is_used():
    code = "\n".join(path.read_text() for path in CODE.rglob("*.py"))
    for name in list_names("prompts"):
        assert f'"{name.removesuffix(".md")}"' in code, name
