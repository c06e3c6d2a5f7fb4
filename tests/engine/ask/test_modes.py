"""What every retrieval mode keeps to, over a scripted model and over the embedded default."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import tgraph
from tests.support.corpora import made
from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.answer.citations import cite_places, with_grounds
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.methods import TwoStages
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.text_trees import trace_tree
from tgraph.model import Candidate, Edge, Retrieval, Selected, Turn
from tgraph.retrieve.base import Question
from tgraph.retrieve.modes.registry import MODES
from tgraph.retrieve.reports import add_report_evidence, evidence_of_parts, item_of, reports_of
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

TEXTS = {
    "curie.md": "# Marie Curie\n\nMarie Curie discovered Polonium in Paris in 1898. Pierre Curie"
    " worked with Marie Curie at the Sorbonne. Marie Curie taught physics at the Sorbonne.\n",
    "becquerel.txt": "Henri Becquerel discovered radioactivity in Paris. Henri Becquerel shared the"
    " Nobel Prize with Marie Curie and Pierre Curie in 1903.\n",
    "oslo.txt": "Roald Amundsen sailed from Oslo. Roald Amundsen reached the South Pole in 1911."
    " The Fram carried Roald Amundsen to the Bay of Whales.\n",
}
QUESTION = "Where did Marie Curie discover Polonium?"
CATALOGUE = v.collection_iri("explainability")
WAYS = ("model", "embedded")
PROVEN = [mode for mode in MODES if mode not in ("bypass", "sparql")]
"""Modes that prove what prose says: bypass proves nothing, and sparql computes with tables."""
LIGHT = [mode for mode in MODES if mode.startswith("lightrag")]


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def graph(way: str, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("modes")
    with made(folder, TEXTS, scripted=way == "model") as (kg, _):
        yield kg


@pytest.fixture(params=PROVEN)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stored_text(path: str) -> str:
    return TEXTS[Path(path).name]


@pytest.mark.slow
def test_the_sessions_of_all_modes_conform_to_the_shapes(graph):
    """They are checked together, and before others are asked, since each takes its time."""
    for mode in PROVEN:
        graph.ask(QUESTION, mode, history=[])
    assert graph.suggest(2, history=[]).sentences
    assert check_shapes(graph.opened.read(), CATALOGUE) == ()


def test_every_citation_resolves_to_its_characters(graph, mode):
    answer = graph.ask(QUESTION, mode, history=[])
    assert answer.mode == mode
    assert answer.sentences, "there is evidence for it"
    cited = [c for sentence in answer.sentences for c in sentence.citations]
    assert cited
    for citation in cited:
        text = stored_text(citation.path)
        assert text[citation.start : citation.end] == citation.quote
        assert (citation.edge is not None) == (citation.kind == "edge")
        assert citation.item


@pytest.mark.slow
def test_the_same_question_is_answered_in_the_same_way(graph, mode):
    def said() -> tuple[object, ...]:
        answer = graph.ask(QUESTION, mode, history=[])
        found = graph.trace(answer.session)
        kept = [(item.item, item.score, item.rank) for item in (*found.selected, *found.rejected)]
        uuid = answer.session.rpartition(":")[2]
        return answer.text, str(kept).replace(uuid, "")

    assert said() == said()


def test_stages_are_told_in_the_order_of_the_specification(graph, mode):
    messages = list(graph.stream(QUESTION, mode, history=[]))
    stages = [m.explain_id.rsplit(":", 2)[1] for m in messages if m.explain_id]
    assert stages == ["session", "retrieval", "selection", "answer"]
    assert messages[-1].end_of_session


@pytest.mark.slow
def test_the_trace_has_everything_with_rank_and_reason(graph, mode):
    answer = graph.ask(QUESTION, mode, history=[])
    trace = graph.trace(answer.session)
    assert trace.edge_count + trace.item_count >= len(trace.rejected)
    assert all(item.reasoning for item in (*trace.selected, *trace.rejected))
    retrieved = [i for i in (*trace.selected, *trace.rejected) if i.kind != "point"]
    assert all(item.tokens for item in retrieved)
    for sentence in trace.sentences:
        assert all(c.quote in stored_text(c.path) for c in sentence.citations)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(trace_tree(trace, everything=True))
    assert "Answer" in console.export_text()


def test_what_no_document_says_has_no_evidence(graph, mode, way):
    if way == "model":
        pytest.skip("the scripted model answers whatever it is shown")
    answer = graph.ask("How long should sourdough bread be baked?", mode, history=[])
    assert answer.no_evidence
    assert not answer.sentences


@pytest.mark.parametrize("mode", ["local", "basic", "naive", "ppr", "contextual", "raptor"])
def test_budgets_hold(graph, mode):
    budget = 500
    found = retrieve(graph, mode, **{f"{mode}_search.max_context_tokens": budget})
    selector = found.selector
    selection = selector.select(Question(QUESTION), found.retrieval, 25, lambda call: None)
    used = sum(s.candidate.tokens for s in selection.selected)
    assert 0 < used <= budget
    assert len(selection.selected) + len(selection.rejected) == len(found.retrieval.candidates)


class Found:
    def __init__(self, retrieval: Retrieval, selector) -> None:
        self.retrieval = retrieval
        self.selector = selector


def retrieve(graph: tgraph.KnowledgeGraph, mode: str, **settings: object) -> Found:
    parts = Components(
        load_settings(None, settings), graph.root / "cache", embedder=HashingEmbedder()
    )
    method = method_of(mode, parts)
    assert isinstance(method, TwoStages)
    context = graph.context(mode)
    question = Question(QUESTION)
    if method.keywords is not None:
        found = method.keywords.find(question, context, lambda call: None)
        question = Question(QUESTION, keywords=found)
    return Found(method.retriever.retrieve(question, context), method.selector)


@pytest.mark.parametrize(
    "mode",
    ["graph", "local", "basic", "naive", "ppr", "contextual", "raptor", "raptor-traversal", *LIGHT],
)
def test_every_candidate_is_knowledge_and_leads_to_characters(graph, mode):
    retrieval = retrieve(graph, mode).retrieval
    assert [c.rank for c in retrieval.candidates] == list(range(1, len(retrieval.candidates) + 1))
    for candidate in add_report_evidence(retrieval.candidates, graph.context()):
        assert candidate.evidence, candidate.item
        assert 0 <= candidate.score <= 1
        assert v.session_iri("") not in candidate.item.iri
        for place in candidate.evidence:
            assert stored_text(place.path)[place.start : place.end] == place.quote
    edges = sum(isinstance(c.item, Edge) for c in retrieval.candidates)
    assert retrieval.total >= edges
    assert retrieval.items == len(retrieval.candidates) - edges


def test_entities_are_included_and_excluded_by_name(graph):
    wanted = {"local_search.include": ["Oslo"], "local_search.exclude": ["Marie Curie"]}
    retrieval = retrieve(graph, "local", **wanted).retrieval
    labels = [match.label for match in retrieval.matches]
    assert labels[0] == "Oslo"
    assert "Marie Curie" not in labels


def test_edges_are_ranked_by_what_is_set(graph):
    def ranked_by(attribute):
        own = {"local_search.relationship_ranking_attribute": attribute}
        found = retrieve(graph, "local", **own).retrieval
        return [(c.item.iri, c.reasons[0]) for c in found.candidates if isinstance(c.item, Edge)]

    assert ranked_by(None) == ranked_by("rank")
    assert all("relationships" in why for _, why in ranked_by("rank"))
    weighed, told = ranked_by("weight"), ranked_by("text_unit_count")
    assert sorted(iri for iri, _ in weighed) == sorted(iri for iri, _ in ranked_by("rank"))
    among = [float(why.rsplit(" ", 1)[1]) for _, why in weighed if "two entities" in why]
    assert among == sorted(among, reverse=True)
    assert all("chunks state the edge" in why for _, why in told)


@pytest.mark.parametrize("which", ["include", "exclude"])
def test_a_name_that_nothing_has_is_refused(graph, which):
    with pytest.raises(UsageError, match="Atlantis"):
        retrieve(graph, "local", **{f"local_search.{which}": ["Atlantis"]})


def test_questions_are_proposed_with_what_led_to_them(graph, way):
    proposed = graph.suggest(2, history=[])
    assert 0 < len(proposed.sentences) <= 2
    for sentence in proposed.sentences:
        assert sentence.citations
        assert all(c.quote in stored_text(c.path) for c in sentence.citations)
    assert proposed.mode == "suggest"
    if way == "embedded":
        questions = [sentence.text for sentence in graph.suggest(5, history=[]).sentences]
        assert len(questions) == len(set(questions)) == 5


def test_a_conversation_turns_what_is_proposed(graph, way):
    told = [Turn("Where did Roald Amundsen sail from?", "Roald Amundsen sailed from Oslo.")]
    proposed = graph.suggest(1, history=told)
    assert proposed.sentences
    if way == "embedded":
        assert "Amundsen" in proposed.text


def test_a_sentence_leads_through_the_finding_that_it_was_taken_from(graph):
    context = graph.context("local")
    reports = reports_of(context).by_iri
    for report in reports.values():
        candidate = Candidate(item_of(report), 1, 1.0)
        for finding in report.findings:
            said = f"{finding.summary} {finding.explanation}"
            draft = with_grounds(Draft(said, (Selected(0, candidate, "", 1.0),)), context)
            assert finding.iri in draft.selections[0].candidate.evidence[0].via
            citations = cite_places(draft, "0").citations
            findings = {each.iri for each in report.findings}
            assert citations
            assert all(c.via[0] == report.iri and findings & {*c.via} for c in citations)
        whole = with_grounds(Draft("Zyzzyva.", (Selected(0, candidate, "", 1.0),)), context)
        places = whole.selections[0].candidate.evidence
        assert places == evidence_of_parts([report.iri], context)[report.iri]
