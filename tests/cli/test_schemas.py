"""The published JSON Schemas are those of the code.

Renew them with ``tgraph ask --json-schema``, one file for each key.
"""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.support.paths import REPOSITORY
from tgraph.engine.schemas import build_schemas

FOLDER = REPOSITORY / "docs" / "reference" / "schemas"
KEYS = {
    "question", "mode", "answer", "no_evidence", "sentences", "selection", "sources",
    "explain_id", "explain_collection", "usage", "model",
}  # fmt: skip
CITATION = {
    "kind", "edge", "edge_selection", "chunk", "document", "title", "path", "page", "start", "end",
    "quote", "via",
}  # fmt: skip
SELECTION = {
    "kind", "edge", "subject", "subject_label", "predicate", "predicate_label", "object",
    "object_label", "reasoning", "score",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(build_schemas()))
def test_the_published_schema_is_current(name):
    published = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert published == build_schemas()[name]
    jsonschema.Draft202012Validator.check_schema(published)


def test_nothing_else_is_published():
    assert {path.stem for path in FOLDER.iterdir()} == set(build_schemas())


def test_the_promised_keys_are_required():
    ask = build_schemas()["ask"]
    assert set(ask["required"]) >= KEYS
    assert set(ask["$defs"]["CitationOut"]["required"]) >= CITATION
    assert set(ask["$defs"]["SelectionOut"]["required"]) >= SELECTION


def test_the_schemas_can_be_printed(terminal):
    assert json.loads(terminal("ask", "--json-schema").stdout) == build_schemas()
