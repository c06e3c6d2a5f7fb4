"""The library's face (design, sections 6.2 and 6.3), over a scripted language model."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.errors import NotAGraphError, StoreError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.model import Turn
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXT = """# Marie Curie

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
CATALOGUE = v.collection_iri("explainability")
QUESTION = "What did Marie Curie discover?"


@pytest.fixture
def graph(tmp_path: Path):
    document = tmp_path / "curie.md"
    document.write_text(TEXT)
    root = tmp_path / "graph"
    ticks = iter(range(1_000_000))
    names = iter(range(1_000_000))
    parts = Components(
        load_settings(None), tmp_path / "cache", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    with tgraph.open(
        root,
        create=True,
        parts=parts,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks)),
        uuid=lambda: f"00000000-0000-4000-8000-{next(names):012d}",
    ) as kg:
        report = kg.index([document])
        assert not report.failed
        assert report.indexed == (str(document),)
        yield kg


def test_every_citation_is_the_text_at_its_place(graph):
    answer = graph.ask(QUESTION)
    assert answer.sentences
    for sentence in answer.sentences:
        for citation in sentence.citations:
            assert TEXT[citation.start : citation.end] == citation.quote
    assert answer.citations == tuple(c for s in answer.sentences for c in s.citations)
    assert answer.explain_id == answer.session
    assert {source.document for source in answer.sources} == {
        c.document for s in answer.sentences for c in s.citations
    }


def test_messages_come_in_the_order_of_the_specification(graph):
    messages = list(graph.stream(QUESTION))
    kinds = [message.message_type for message in messages]
    assert kinds == ["explain"] * 4 + ["chunk"] * (len(kinds) - 4)
    assert len(kinds) > 5
    assert [m.end_of_session for m in messages] == [False] * (len(kinds) - 1) + [True]
    assert [m.explain_id.rsplit(":", 2)[1] for m in messages if m.explain_id] == [
        "session",
        "retrieval",
        "selection",
        "answer",
    ]


def test_the_same_question_twice_retrieves_the_same_edges(graph):
    graph.ask(QUESTION, history=[])
    first = graph.trace()
    graph.ask(QUESTION, history=[])
    second = graph.trace()
    assert first.explain_id != second.explain_id
    assert [(e.edge, e.score, e.rank) for e in (*first.selected, *first.rejected)] == [
        (e.edge, e.score, e.rank) for e in (*second.selected, *second.rejected)
    ]


def test_earlier_questions_are_the_history_of_later_ones(graph):
    graph.ask(QUESTION)
    graph.ask("Where?")
    requests = [r for r in graph.trace().calls if "select_edges" in r.label]
    assert requests
    graph.ask("Where?", history=[Turn("Who?", "Marie Curie.")])
    with pytest.raises(UsageError, match="empty"):
        graph.ask("  ")


def test_async_twins_do_the_same(graph):
    async def run():
        answer = await graph.aask(QUESTION, history=[])
        messages = [message async for message in graph.astream(QUESTION, history=[])]
        return answer, messages

    answer, messages = asyncio.run(run())
    assert answer.text == "".join(m.response for m in messages if m.message_type == "chunk")


def test_every_long_method_has_an_async_twin():
    for name in ("index", "ask", "stream"):
        sync = inspect.signature(getattr(tgraph.KnowledgeGraph, name)).parameters
        twin = inspect.signature(getattr(tgraph.KnowledgeGraph, f"a{name}")).parameters
        assert set(twin) <= set(sync) | {"options"}


def test_a_stream_that_is_left_is_recorded_as_interrupted(graph):
    stream = graph.stream(QUESTION)
    next(stream)
    stream.close()
    assert graph.sessions.summaries()[0].status == "interrupted"


@pytest.mark.slow
def test_an_answer_that_was_begun_and_never_finished_is_none(graph):
    """Its message precedes the first sentence; it has what it derives from, and no text."""
    stream = graph.stream(QUESTION)
    told = next(message for message in stream if ":answer:" in (message.explain_id or ""))
    stream.close()
    store, session = graph.opened.read(), graph.sessions.summaries()[0]
    begun, entity = NamedNode(told.explain_id), v.prov("Entity")
    assert session.status == "interrupted"
    assert [q.object for q in store.match(begun, v.RDF_TYPE, None)] == [entity]
    assert [q.object.value for q in store.match(begun, v.prov("wasDerivedFrom"))] == [
        told.explain_id.replace(":answer:", ":selection:")
    ]
    assert graph.trace(session.explain_id).answer == ""
    assert check_shapes(store, CATALOGUE, session.explain_id) == ()


def test_a_stream_that_is_left_after_the_answer_has_ended_once(graph):
    stream = graph.stream(QUESTION)
    assert next(message for message in stream if message.end_of_session)
    stream.close()
    session = graph.sessions.summaries(1)[0]
    ended = graph.opened.read().match(NamedNode(session.explain_id), v.tg("status"))
    assert [quad.object.value for quad in ended] == ["completed"]


def test_what_is_not_there_is_said_in_one_sentence(tmp_path, graph):
    with pytest.raises(NotAGraphError, match="tgraph index"):
        tgraph.open(tmp_path / "nothing")
    with pytest.raises(StoreError, match="no collection 'other'"):
        tgraph.open(graph.root, collection="other")
    with pytest.raises(UsageError, match="There is no mode"):
        graph.ask(QUESTION, mode="telepathy")
    with pytest.raises(UsageError, match="Did you mean local"):
        graph.ask(QUESTION, mode="locla")


def test_one_content_under_two_names_is_one_document_read_once(tmp_path, graph):
    page = "<html><body><p>Marie Curie discovered Radium in Paris.</p></body></html>"
    for name in ("a.txt", "b.html"):
        (tmp_path / name).write_text(page)
    report = graph.index([tmp_path / "a.txt", tmp_path / "b.html"])
    assert (len(report.indexed), report.chunks) == (2, 1)
    answer = graph.ask("What did Marie Curie discover? Radium", history=[])
    quotes = {c.quote for s in answer.sentences for c in s.citations if c.path != "curie.md"}
    assert quotes
    assert all(q in page or q in TEXT for q in quotes)


def test_what_holds_much_is_told_on_one_line(graph):
    answer = graph.ask(QUESTION)
    found = [
        graph,
        answer,
        graph.trace(),
        graph.documents.read_extractions("curie.md"),
        graph.impact("curie.md"),
        graph.verify(answer.session),
        graph.why_not(answer.session, "Henri Becquerel"),
        graph.replay(),
        graph.sessions.compare(answer.session),
        graph.audit("costs"),
    ]
    for value in found:
        assert repr(value).startswith(f"{type(value).__name__}(")
        assert len(repr(value)) < 1000
        assert "\n" not in repr(value)
    assert QUESTION in repr(answer)
    assert f"sentences=<{len(answer.sentences)} Sentence>" in repr(answer)
    assert str(graph.root) in repr(graph)
