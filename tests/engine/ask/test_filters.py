"""Filters in every mode: nothing that they don't admit is retrieved, shown, cited or told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from tests.engine.ask.test_modes import CATALOGUE, PROVEN, TEXTS, WAYS
from tests.support.corpora import made
from tgraph import Filters
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.wording import stage_lines
from tgraph.index.reports.report import report_evidence
from tgraph.index.sources import document_of_chunk, text_value
from tgraph.index.summary_tree import standing_tree, ways_down
from tgraph.retrieve.filters import admitted_documents
from tgraph.retrieve.subset import narrow_context
from tgraph.store.base import text_of
from tgraph.testing import ScriptedModel

QUESTION = "Where did Roald Amundsen sail from?"
OTHERS = ("Curie", "Becquerel", "Polonium", "Sorbonne", "Nobel")
ON_RECORD = Filters(documents=("oslo.txt", "*.md"), since="1900")
NOTHING_LEFT = Filters(since="2999")
DATED = {
    "dated.md": "---\ntitle: A diary\ndate: 1911-12\n---\nRoald Amundsen praised Marie Curie.\n",
}


class Opened:
    def __init__(self, graph: KnowledgeGraph, model: ScriptedModel | None) -> None:
        self.graph = graph
        self.model = model
        self.said: list[str] = []

    def store(self):
        return self.graph.context().store


@pytest.fixture(scope="module", params=WAYS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder, said = tmp_path_factory.mktemp("filters"), list[str]()
    texts, scripted = {**TEXTS, **DATED}, request.param == "model"
    with made(folder, texts, scripted=scripted, message=said.append) as (graph, model):
        found = Opened(graph, model)
        found.said = said
        yield found


def documents_behind(opened: Opened, iri: str) -> set[str]:
    """The documents that say what the item of that IRI is."""
    store = opened.store()
    if iri.startswith(f"{v.URN}chunk:"):
        return {document_of_chunk(iri)}
    if iri.startswith((f"{v.URN}edge:", f"{v.URN}entity:", f"{v.URN}claim:")):
        kind = iri.removeprefix(v.URN).partition(":")[0]
        node = NamedNode(iri)
        names = [node]
        if kind == "edge":
            names += [q.object for q in store.match(node, v.tg("original"), None, None)]
        found = [q.subject.value for n in names for q in store.match(None, v.tg(kind), n, None)]
    elif iri.startswith(f"{v.URN}summary:"):
        return {document_of_chunk(chunk) for chunk in ways_down(standing_tree(store), iri)}
    else:
        found = list(report_evidence(store, iri))
    chunks = (text_value(store, place, v.prov("wasDerivedFrom")) for place in found)
    return {document_of_chunk(chunk) for chunk in chunks if chunk}


@pytest.mark.slow
def test_sessions_with_filters_conform_to_the_shapes(opened):
    """Those of all modes together, and before others are asked, since each takes its time."""
    for mode in PROVEN:
        for filters in (ON_RECORD, NOTHING_LEFT):
            opened.graph.ask(QUESTION, mode, history=[], filters=filters)
    assert check_shapes(opened.graph.opened.read(), CATALOGUE) == ()


@pytest.mark.slow
@pytest.mark.parametrize("mode", PROVEN)
def test_nothing_comes_from_outside(opened, mode):
    filters = Filters(documents=("oslo.txt",))
    (oslo,) = admitted_documents(filters, opened.store())
    opened.graph.ask(QUESTION, mode, history=[])  # builds what the mode needs
    before = len(opened.model.requests) if opened.model else 0
    answer = opened.graph.ask(QUESTION, mode, history=[], filters=filters)
    trace = opened.graph.trace(answer.session)
    items = [*trace.selected, *trace.rejected]
    assert items
    for item in items:
        if item.kind != "point":
            assert oslo in documents_behind(opened, item.item), item
        assert {place.document for place in item.evidence} <= {oslo}
    assert {match.label for match in trace.matches}.isdisjoint(OTHERS)
    assert {source.document for source in answer.sources} <= {oslo}
    if opened.model:
        shown = "\n".join(str(r.messages) for r in opened.model.requests[before:])
        assert "Amundsen" in shown
        assert not [name for name in OTHERS if name in shown]


@pytest.mark.slow
@pytest.mark.parametrize("mode", PROVEN)
def test_filters_are_on_record(opened, mode):
    answer = opened.graph.ask(QUESTION, mode, history=[], filters=ON_RECORD)
    trace = opened.graph.trace(answer.session)
    assert trace.parameters["filter-document"] == '["oslo.txt", "*.md"]'
    assert trace.parameters["filter-since"] == "1900"
    told = "\n".join(stage_lines(trace, answer.session))
    assert "Filters: document oslo.txt, *.md; since 1900" in told


@pytest.mark.parametrize("mode", PROVEN)
def test_filters_that_leave_nothing_leave_no_evidence(opened, mode):
    opened.graph.ask(QUESTION, mode, history=[])  # what the mode needs is built at its first use
    calls = len(opened.model.requests) if opened.model else 0
    answer = opened.graph.ask(QUESTION, mode, history=[], filters=NOTHING_LEFT)
    assert answer.no_evidence
    assert answer.mode == mode
    assert opened.said[-1] == "No document or fact passes the filters."
    assert calls == (len(opened.model.requests) if opened.model else 0)


def test_languages_are_those_that_documents_state_or_read_as(tmp_path):
    texts = {
        "stated.md": "---\nlanguage: de-AT\n---\nRoald Amundsen sailed from Oslo.\n",
        "read.txt": "Roald Amundsen sailed from Bergen, and he was in the Antarctic.\n",
        "zh.txt": "罗阿尔德·阿蒙森从奥斯陆出发，到达了南极。\n",
    }
    with made(tmp_path, texts) as (graph, _):
        for languages, path in (("de", "stated.md"), ("EN-gb", "read.txt"), ("zh", "zh.txt")):
            context = narrow_context(graph.context(), Filters(languages=(languages,)))
            stands = context.store.match(None, v.RDF_TYPE, v.tg("Chunk"), v.SOURCE_GRAPH)
            found = {document_of_chunk(text_of(quad.subject)) for quad in stands}
            assert found == admitted_documents(Filters(documents=(path,)), graph.context().store)
        spoken = Filters(languages=("de", "zh"))
        answer = graph.ask(QUESTION, "graph", history=[], filters=spoken)
        assert {source.path for source in answer.sources} == {str(tmp_path / "stated.md")}
        assert graph.trace().parameters["filter-language"] == '["de", "zh"]'
        assert graph.replay().is_same
        with pytest.raises(UsageError, match=r"'fr'.*The languages are: de, en, zh"):
            graph.ask(QUESTION, filters=Filters(languages=("fr",)))


def test_without_filters_everything_is_there_again(opened):
    narrow = opened.graph.ask(QUESTION, "basic", history=[], filters=Filters(("oslo.txt",)))
    whole = opened.graph.ask(QUESTION, "basic", history=[])
    count_of = lambda answer: opened.graph.trace(answer.session).item_count  # noqa: E731
    assert count_of(narrow) < count_of(whole)


# --- documents ---


def paths(opened: Opened, filters: Filters) -> list[str]:
    store = opened.store()
    return sorted(
        Path(q.object.value).name
        for document in admitted_documents(filters, store)
        for a in store.match(None, v.prov("specializationOf"), NamedNode(document), None)
        for q in store.match(a.subject, v.tg("path"), None, None)
    )


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (("oslo.txt",), ["oslo.txt"]),
        (("*.txt",), ["becquerel.txt", "oslo.txt"]),
        (("curie.md", "oslo.txt"), ["curie.md", "oslo.txt"]),
        (("./oslo.txt",), ["oslo.txt"]),
        (("*",), ["becquerel.txt", "curie.md", "dated.md", "oslo.txt"]),
    ],
)
def test_documents_are_named_by_path_its_end_or_a_pattern(opened, given, names):
    assert paths(opened, Filters(given)) == names


def test_documents_are_named_by_their_iri_or_whole_path(opened):
    (iri,) = admitted_documents(Filters(("oslo.txt",)), opened.store())
    assert paths(opened, Filters((iri,))) == ["oslo.txt"]
    answer = opened.graph.ask(QUESTION, "basic", history=[], filters=Filters((iri,)))
    path = answer.sources[0].path
    assert paths(opened, Filters((path,))) == ["oslo.txt"]


def test_an_unknown_document_is_told_with_names_like_it(opened):
    with pytest.raises(UsageError, match=r"'olso\.txt'.*oslo\.txt"):
        opened.graph.ask(QUESTION, filters=Filters(("olso.txt",)))
    with pytest.raises(UsageError, match="There are"):
        opened.graph.ask(QUESTION, filters=Filters(("zzzzzz",)))


# --- dates ---


@pytest.mark.parametrize(
    ("since", "until", "dated", "others"),
    [
        (None, "1911", True, False),  # its own date, not that of taking it in
        ("1911-12-31", "1911-12-31", True, False),  # somewhere in that month
        ("1912", None, False, True),
        (None, "1911-11", False, False),
        ("2026-01-01", "2026-01-01", False, True),  # the clock of the test
        ("1911", "2026", True, True),
    ],
)
def test_a_document_is_of_its_own_date_or_else_of_its_taking_in(
    opened, since, until, dated, others
):
    found = paths(opened, Filters(since=since, until=until))
    assert ("dated.md" in found) == dated
    assert ("oslo.txt" in found) == others


@pytest.mark.parametrize("text", ["", "soon", "1911-13", "1911-02-30", "11-12-1911"])
def test_what_is_no_date_is_said_to_be_none(opened, text):
    for filters in (Filters(since=text), Filters(until=text)):
        with pytest.raises(UsageError, match="no date"):
            opened.graph.ask(QUESTION, filters=filters)


# --- types ---


@pytest.mark.parametrize("mode", ["graph", "local", "lightrag-mix"])
def test_only_entities_of_a_type_and_what_speaks_of_them(opened, mode):
    if opened.model:
        pytest.skip("the scripted model knows one type only")
    question = "Who was Roald Amundsen?"
    answer = opened.graph.ask(question, mode, history=[], filters=Filters(types=("Person",)))
    trace = opened.graph.trace(answer.session)
    items = [*trace.selected, *trace.rejected]
    assert items
    persons = of_type(opened, "person")
    assert {i.item for i in items if i.kind == "entity"} <= persons
    assert all({i.subject, i.object} & persons for i in items if i.kind == "edge")


def of_type(opened: Opened, label: str) -> set[str]:
    store = opened.store()
    types = [
        q.subject
        for q in store.match(None, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
        if q.object.value == label
    ]
    return {q.subject.value for t in types for q in store.match(None, v.RDF_TYPE, t, None)}


def test_an_unknown_type_is_told_with_those_like_it(opened):
    known = "thing" if opened.model else "person"
    with pytest.raises(UsageError, match=known):
        opened.graph.ask(QUESTION, filters=Filters(types=(f"{known}s",)))


# --- the narrowed state ---


def test_what_is_narrowed_is_read_once(opened):
    context = opened.graph.context()
    filters = Filters(("oslo.txt",))
    assert (
        narrow_context(context, filters).store
        is narrow_context(context, Filters(("oslo.txt",))).store
    )
    assert narrow_context(context, Filters()) is context


def test_descriptions_from_outside_are_not_told(opened):
    """Two documents describe Roald Amundsen; a narrowed state knows what one of them says."""
    if not opened.model:
        pytest.skip("the embedded default describes nothing")
    context = narrow_context(opened.graph.context(), Filters(("oslo.txt",)))
    for predicate in (v.tg("description"), v.tg("summaryText"), v.tg("text")):
        for quad in context.store.match(None, predicate, None, None):
            assert not [name for name in OTHERS if name in str(quad.object)], quad
