"""What a document says of itself, before its chunks: read, embedded, shown, never quoted."""

from __future__ import annotations

import gzip
import json
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.corpora import Corpus
from tgraph.errors import UsageError
from tgraph.index.prepended_metadata import document_preface, standing_prefaces, stored_preface
from tgraph.index.sources import Texts
from tgraph.index.vectors.items import items_of
from tgraph.ingest.files import load
from tgraph.settings import ChunkSettings, load_settings
from tgraph.testing import ScriptedModel

PAGE = """---
title: The long night
author: Ann Ice
date: 1911-03-04
tags: [winter, hut]
ship: Fram
---
The hut was dark. Amundsen met Nansen in the hut.

They sewed all day. Amundsen praised Nansen.
"""
PLAIN = "Wisting met Bjaaland at the depot.\n"
FIELDS = ("title", "date", "tags", "ship", "nothing")
PREFACE = "title: The long night\ndate: 1911-03-04\ntags: hut, winter\nship: Fram"
QUESTION = "Whom did Amundsen meet?"


def corpus(folder: Path, model: object = None, *fields: str, **settings: object) -> Corpus:
    own = {"chunk.prepend_metadata": fields, "extract.gleanings": 0} | settings
    made = Corpus(folder, model)
    made.settings.update(own)
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A corpus whose chunks have something before them; only read."""
    found = corpus(tmp_path_factory.mktemp("prepended"), ScriptedModel(), *FIELDS)
    found.index({"night.md": PAGE, "depot.txt": PLAIN})
    return found


def test_what_stands_before_a_chunk_is_the_same_from_the_file_and_from_the_record(made: Corpus):
    document = load(PAGE.encode(), "night.md")
    assert document_preface(document, FIELDS) == PREFACE
    assert document_preface(document, ()) == ""
    with made.open() as kg:
        texts = Texts(kg.opened.read(), kg.opened.librarian)
        assert stored_preface(kg.opened.read(), texts, document.iri, FIELDS) == PREFACE
        assert set(standing_prefaces(kg.opened.read()).values()) == {PREFACE, "title: Depot"}


def test_it_is_read_by_the_model_and_embedded_and_shown(made: Corpus):
    read = [r for r in made.chat.requests if r.prompt.name == "extract_graph"]
    assert any(f"{PREFACE}\n\n" in r.messages[1]["content"] for r in read)
    with made.open() as kg:
        embedded = [text for _, text in items_of("chunk", kg.opened.read(), kg.opened.librarian)]
        assert any(text.startswith(f"{PREFACE}\n\n") for text in embedded)
        shown = kg.gather_context(QUESTION, "basic")
    assert shown.rows[0].row["metadata"] in (PREFACE, "title: Depot")
    assert {row.row.get("metadata") for row in shown.rows} == {PREFACE, "title: Depot"}


@pytest.mark.slow
def test_places_and_quotes_are_exact_and_the_question_replays(made: Corpus):
    with made.open() as kg:
        for mode in ("basic", "local", "graph"):
            answer = kg.ask(QUESTION, mode)
            assert kg.replay(answer.session).is_same
            for citation in answer.citations:
                text = (made.folder / Path(citation.path).name).read_text()
                assert text[citation.start : citation.end] == citation.quote
        assert kg.audit("knowledge").rows == ()
        assert kg.audit("shapes").rows == ()


def test_a_quote_from_what_stands_before_is_dropped(tmp_path: Path):
    row = {"subject": "Ann Ice", "predicate": "write", "object": "Fram", "quote": "ship: Gjøa",
           "description": "", "keywords": [], "strength": 1}  # fmt: skip
    entities: list[dict[str, object]] = [
        {"name": n, "type": "person", "description": n, "aliases": []} for n in ("Ann Ice", "Fram")
    ]
    reply = json.dumps({"entities": entities, "relationships": [row], "attributes": []})
    page = PAGE.replace("ship: Fram", "ship: Gjøa").partition("---\n")[2].partition("---\n")[2]
    found = corpus(tmp_path, ScriptedModel({"extract_graph": reply}), "title")
    report = found.index({"night.md": page})
    assert report.relationships == 0


def test_the_default_adds_nothing(tmp_path: Path):
    found = corpus(tmp_path, ScriptedModel())
    found.index({"night.md": PAGE})
    with found.open() as kg:
        assert standing_prefaces(kg.opened.read()) == {}
        assert "metadata" not in kg.gather_context(QUESTION, "basic").rows[0].row
        chunks = [
            chunk.chunk
            for page in kg.documents.read_extractions("night.md").pages
            for chunk in page.chunks
        ]
    other = corpus(tmp_path / "other", None, "title")
    other.index({"night.md": PAGE})
    with other.open() as kg:  # the place of a chunk depends on nothing that stands before it
        found_there = [
            c.chunk for page in kg.documents.read_extractions("night.md").pages for c in page.chunks
        ]
    assert found_there == chunks


@pytest.mark.slow
def test_a_changed_setting_counts_from_the_next_run_on(tmp_path: Path):
    found = corpus(tmp_path, None, "title")
    found.index({"night.md": PAGE, "depot.txt": PLAIN})
    with found.open() as kg:
        session = kg.ask(QUESTION, "basic").session
    found.settings["chunk.prepend_metadata"] = ("author",)
    found.index({"night.md": PAGE, "depot.txt": PLAIN})
    with found.open() as kg:
        assert set(standing_prefaces(kg.opened.read()).values()) == {"author: Ann Ice"}
        assert kg.audit("knowledge").rows == ()
        assert kg.replay(session).is_same
        kg.retract("night.md", reason="test")
        assert standing_prefaces(kg.opened.read()) == {}
    found.settings["chunk.prepend_metadata"] = ()


@pytest.mark.slow
def test_an_erased_document_leaves_none(tmp_path: Path):
    found = corpus(tmp_path, None, "ship")
    page = PAGE.replace("ship: Fram", "ship: Zyxomara")
    found.index({"night.md": page, "depot.txt": PLAIN})
    (tmp_path / "night.md").unlink()
    with found.open() as kg:
        kg.ask(QUESTION, "basic")
        assert set(standing_prefaces(kg.opened.read()).values()) == {"ship: Zyxomara"}
        kg.purge("night.md", reason="test")
    for file in (tmp_path / "graph").rglob("*"):
        kept = file.read_bytes() if file.is_file() else b""
        with suppress(OSError, EOFError, zlib.error):
            kept += gzip.decompress(kept)
        assert b"zyxomara" not in kept.lower(), file
    with found.open() as kg:
        assert kg.integrity().ok


def test_its_size_may_count(tmp_path: Path):
    from tgraph.engine.index.extraction import chunks_of

    document = load((PAGE + "word " * 400).encode(), "night.md")
    plain = chunks_of(document, ChunkSettings(size=120, overlap=10))
    less = ChunkSettings(size=120, overlap=10, prepend_metadata=FIELDS, size_includes_metadata=True)
    assert max(c.tokens for c in chunks_of(document, less)) < max(c.tokens for c in plain)
    same = ChunkSettings(size=120, overlap=10, prepend_metadata=FIELDS)
    assert [c.iri for c in chunks_of(document, same)] == [c.iri for c in plain]
    with pytest.raises(UsageError, match="leave"):
        chunks_of(document, less.model_copy(update={"size": 30}))


def test_it_can_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TGRAPH_CHUNK__PREPEND_METADATA", '["title"]')
    assert load_settings(None).chunk.prepend_metadata == ("title",)
