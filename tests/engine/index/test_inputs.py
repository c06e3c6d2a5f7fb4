"""Texts, tables, bytes and graphs in memory are indexed as documents; no other value is a path."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rdflib import Graph

import tgraph
from tgraph.errors import NothingIndexedError, UsageError
from tgraph.extensions.interchange import import_graph
from tgraph.model import Chunk, Extraction
from tgraph.models.base import CallSink, no_sink
from tgraph.testing import HashingEmbedder, ScriptedModel

PUMPS = """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <https://example.org/> .
:a a :Pump ; rdfs:label "Alpha" ; :weight 12 . :b a :Pump ; rdfs:label "Beta" ; :weight 14 .
:b :near [ rdfs:label "Hall 3" ] ."""


class Frame:
    """A table that writes itself as pandas' does."""

    def to_csv(self, *, index: bool) -> str:
        assert not index
        return "ship,built\nFram,1892\nNimrod,1866\n"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[tgraph.KnowledgeGraph]:
    with tgraph.open(tmp_path / "graph", create=True, embedder=HashingEmbedder()) as kg:
        yield kg


def test_a_text_is_cited_by_its_title_and_characters(graph):
    text = "Anna Berg keeps the lighthouse of Skagen."
    assert graph.index_text(text, "Keepers").indexed == ("Keepers.txt",)
    assert graph.index_text(text, "Keepers").unchanged == ("Keepers.txt",)
    (citation, *_) = graph.ask("Who keeps the lighthouse of Skagen?").citations
    assert (citation.title, text[citation.start : citation.end]) == ("Keepers", text)


@pytest.mark.parametrize(
    "table", [Frame(), [{"ship": "Fram", "built": 1892}, {"ship": "Nimrod", "built": 1866}]]
)
def test_a_table_is_computed_with(graph, table):
    graph.index_table(table, "Ships")
    computed = graph.ask("Which ship was built first?", "sparql")
    assert computed.text.startswith("Nimrod")
    assert {citation.path for citation in computed.citations} == {"Ships.csv"}


def test_a_stream_is_read_by_the_suffix_of_its_name(graph):
    page = io.BytesIO(b"<p>The Nimrod was built in Dundee.</p>")
    assert graph.index_data(page, "ships.html").indexed == ("ships.html",)
    assert graph.documents.read_text("ships.html").endswith("The Nimrod was built in Dundee.")


def test_a_graph_of_rdflib_is_a_document_and_equal_graphs_are_one(graph):
    first, second = (
        import_graph(graph, Graph().parse(data=PUMPS), title="Pumps") for _ in range(2)
    )
    assert first.indexed == second.unchanged == ("Pumps.nt",)
    answer = graph.ask("Which pump is the heaviest?", "sparql")
    assert answer.text.startswith("Beta")
    assert {citation.title for citation in answer.citations} == {"Pumps"}


@pytest.mark.parametrize(
    "call",
    [
        lambda kg: kg.index(io.BytesIO(b"text")),
        lambda kg: kg.index([{"ship": "Fram"}]),
        lambda kg: kg.index_text("A text.", " "),
        lambda kg: kg.index_table([], "Ships"),
        lambda kg: kg.index_table(["Fram"], "Ships"),
        lambda kg: kg.index_data(io.StringIO("text"), "a.txt"),
        lambda kg: import_graph(kg, Graph()),
    ],
)
def test_what_cannot_be_indexed_is_refused_with_a_remedy(graph, call):
    with pytest.raises(UsageError) as refused:
        call(graph)
    assert refused.value.remedy
    with pytest.raises(NothingIndexedError):
        graph.documents.summaries()


def test_one_path_is_not_read_letter_by_letter(graph, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Anna Berg lives in Skagen.")
    report = graph.index(str(tmp_path / "docs"))
    assert report.indexed == (str(tmp_path / "docs" / "a.txt"),)
    assert not report.failed


class EmptyExtractor:
    """An extractor that finds nothing, and counts what it reads."""

    key, prompts = "empty-1", ()
    agent = HashingEmbedder().agent

    def __init__(self) -> None:
        self.titles: list[str] = []

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        self.titles.append(title)
        return Extraction(chunk.iri, (), ())


def test_own_parts_take_the_place_of_those_of_the_settings(tmp_path):
    extractor, ranked = EmptyExtractor(), []

    def rank(question, texts, sink):
        ranked.append(question)
        return [(at, 1.0 - at / 100) for at in range(len(texts))]

    with tgraph.open(
        tmp_path / "graph",
        create=True,
        chat=ScriptedModel(),
        embedder=HashingEmbedder(),
        extractor=extractor,
        reranker=rank,
    ) as kg:
        kg.index_text("Anna Berg lives in Skagen.", "Keepers")
        kg.ask("Where does Anna Berg live?", "contextual")
    assert extractor.titles == ["Keepers"]
    assert ranked == ["Where does Anna Berg live?"]
