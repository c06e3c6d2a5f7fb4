"""LightRAG's modes: keywords on two levels, what they lead to, what has room; the model alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.ask.test_modes import CATALOGUE, QUESTION, TEXTS, stored_text
from tests.support.corpora import opened, write
from tgraph.answer.keywords import GivenKeywords
from tgraph.answer.model import VERIFY
from tgraph.answer.token_budget import CappedSelector
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.wording import stage_lines
from tgraph.model import Agent, Candidate, Edge, Item, Retrieval
from tgraph.retrieve.base import Context, Keywords, Question
from tgraph.retrieve.modes.lightrag import LightragSearchSettings
from tgraph.retrieve.modes.registry import MODES
from tgraph.retrieve.search.lightrag import LightRetriever, in_turn, linked_entities, pick_by_weight
from tgraph.testing import ScriptedModel


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lightrag")
    with opened(root, create=True) as graph:
        assert not graph.index(write(root, TEXTS)).failed
    return root


@pytest.fixture
def context(home):
    with opened(home) as graph:
        yield graph.context()


def labels(retrieval: Retrieval) -> list[str]:
    return [match.label for match in retrieval.matches]


def retrieve(context: Context, mode: str, keywords: Keywords, **settings: object) -> Retrieval:
    light = LightragSearchSettings.model_validate(settings)
    return LightRetriever(MODES[mode], light).retrieve(
        Question(QUESTION, keywords=keywords), context
    )


# --- keywords ---


def test_each_keyword_is_linked_by_itself(context):
    links = linked_entities(["Oslo", "Marie Curie", "Roald Amundsen"], 6, 0.0, context).links
    assert [link.keyword for link in links[:3]] == ["Oslo", "Marie Curie", "Roald Amundsen"]
    assert [link.method for link in links[:3]] == ["name"] * 3


def test_lists_take_turns_and_what_has_come_is_passed_over():
    assert in_turn(["abc", "bd", "e"], str) == ["a", "b", "e", "d", "c"]
    assert in_turn([], str) == []


def test_what_a_question_names_leads_to_entities_and_the_edges_around_them(context):
    found = retrieve(context, "lightrag-local", Keywords(low=("Roald Amundsen",)), top_k=1)
    assert labels(found) == ["Roald Amundsen"]
    edges = [c.edge for c in found.candidates if isinstance(c.item, Edge)]
    assert edges
    assert all("Roald Amundsen" in (e.subject_label, e.object_label) for e in edges)


def test_its_themes_lead_to_edges_and_their_ends(context):
    found = retrieve(
        context, "lightrag-global", Keywords(high=("discovered radioactivity",)), top_k=1
    )
    (edge,) = [c.edge for c in found.candidates if isinstance(c.item, Edge)]
    assert set(labels(found)) <= {edge.subject_label, edge.object_label}
    assert {match.method for match in found.matches} == {"edge"}
    assert "Henri Becquerel" in labels(found)


def test_hybrid_takes_from_both_in_turn(context):
    keywords = Keywords(low=("Roald Amundsen",), high=("discovered radioactivity",))
    found = retrieve(context, "lightrag-hybrid", keywords)
    assert labels(found)[0] == "Roald Amundsen"
    assert found.matches[1].method == "edge"
    local = retrieve(context, "lightrag-local", keywords)
    around = retrieve(context, "lightrag-global", keywords)
    assert set(labels(found)) == {*labels(local), *labels(around)}


def test_mix_has_the_chunks_nearest_to_the_question_too(context):
    nothing = Keywords()
    assert not retrieve(context, "lightrag-hybrid", nothing).candidates
    found = retrieve(context, "lightrag-mix", nothing).candidates
    assert found
    assert {c.item.kind for c in found} == {"chunk"}


@pytest.mark.parametrize("way", ["vector", "weight"])
def test_chunks_come_from_what_was_found(context, way):
    keywords = Keywords(low=("Oslo",))
    found = retrieve(context, "lightrag-local", keywords, top_k=1, chunk_pick=way)
    chunks = [c for c in found.candidates if c.item.kind == "chunk"]
    assert [Path(c.evidence[0].path).name for c in chunks] == ["oslo.txt"]
    without = retrieve(context, "lightrag-local", keywords, chunk_top_k=0)
    assert not [c for c in without.candidates if c.item.kind == "chunk"]


def test_what_has_no_room_brings_no_chunks(context):
    no_room = {"max_entity_tokens": 0, "max_relationship_tokens": 0}
    found = retrieve(context, "lightrag-local", Keywords(low=("Oslo",)), **no_room)
    assert found.candidates
    assert not [c for c in found.candidates if c.item.kind == "chunk"]


def test_what_adds_most_to_a_prompt_stands_first(context):
    keywords = Keywords(low=("Oslo", "Marie Curie", "Roald Amundsen"))
    found = retrieve(context, "lightrag-local", keywords).candidates
    kinds = [c.item.kind for c in found]
    assert set(kinds[kinds.index("chunk") :]) == {"chunk", "entity"}, "bare names are not last"
    chunk = found[kinds.index("chunk")]
    assert Path(chunk.evidence[0].path).name == "curie.md"
    edges = [c for c in found if c.item.kind == "edge"]
    quotes = [{(e.chunk, e.start, e.end) for e in edge.evidence} for edge in edges]
    new = [bool(own - set().union(*quotes[:place])) for place, own in enumerate(quotes)]
    assert new == sorted(new, reverse=True), "an edge that repeats quotes stands before another"
    assert not all(new), "no quote is repeated"
    edge_vectors, question = context.vectors["edge"], context.embed([QUESTION])
    likeness = dict(edge_vectors.search(question, len(edge_vectors))[0])
    scores = [(is_new, likeness[edge.item.iri]) for edge, is_new in zip(edges, new, strict=True)]
    assert scores == sorted(scores, reverse=True)


def test_chunks_are_picked_by_weight_from_more_to_fewer():
    groups = [list("abcdef"), list("gh"), list("aijkl")]
    picked, orders = pick_by_weight(groups, 3)
    assert picked[0] == "a"  # which two groups share
    assert len(picked) == 6  # 3 + 2 + 1
    assert len(set(picked)) == 6
    left = {chunk for order in orders for chunk in order.items}
    assert left == set("abcdefghijkl") - set(picked)
    assert pick_by_weight([list("ab"), list("cdefgh")], 4)[0] == ["a", "b", "c", "d", "e"]
    assert pick_by_weight([], 5) == ([], ())


def test_caps_hold_for_each_kind_and_for_all():
    def candidate(rank: int, kind: str, tokens: int) -> Candidate:
        item = Item(kind, f"urn:{rank}", kind, "")  # type: ignore[arg-type]
        return Candidate(item, rank, 0.5, reasons=("it is",), tokens=tokens)

    costs = [("entity", 60), ("entity", 60), ("entity", 30), ("chunk", 100), ("chunk", 60)]
    found = tuple(candidate(n, kind, cost) for n, (kind, cost) in enumerate(costs, 1))
    selector = CappedSelector(200, {"entity": 100})
    selection = selector.select(Question(""), Retrieval(found, 0, 5), 25, lambda call: None)
    assert [s.candidate.rank for s in selection.selected] == [1, 3, 4]
    assert [r.reason for r in selection.rejected] == [
        "the candidate does not fit into the token budget for the kind entity (100 tokens)",
        "the candidate does not fit into the token budget (200 tokens in total)",
    ]


def test_a_question_is_its_own_keyword_where_no_other_leads_anywhere(context):
    found = retrieve(context, "lightrag-global", Keywords(high=("qwertyuiop",)))
    assert found.candidates
    assert {match.concept for match in found.matches} == {QUESTION}


# --- who finds the keywords ---


class Never:
    agent = Agent("method", "never")

    def find(self, question, context, sink):
        raise AssertionError("nothing is to be found")


def test_given_keywords_need_no_finder(context):
    finder = GivenKeywords(Keywords(low=(" the  Fram ", "")), {"low"}, Never())
    assert finder.find(Question(QUESTION), context, lambda call: None) == Keywords(("the Fram",))
    assert finder.agent.name == "given-keywords"


def test_what_is_not_given_is_found_and_never_empty(context):
    class Nothing(Never):
        def find(self, question, context, sink):
            return Keywords()

    finder = GivenKeywords(Keywords(low=("Fram",)), {"low", "high"}, Nothing())
    found = finder.find(Question(QUESTION), context, lambda call: None)
    assert found == Keywords(("Fram",), (QUESTION,))
    assert finder.agent.name == "never"


@pytest.mark.slow
def test_keywords_are_on_record_with_their_level(home):
    given = {"lightrag_search.low_keywords": ["Fram"], "lightrag_search.high_keywords": ["ships"]}
    with opened(home, settings=given) as graph:
        answer = graph.ask("What carried Roald Amundsen?", "lightrag-hybrid", history=[])
        trace = graph.trace(answer.session)
        assert trace.keywords == {"low": ("Fram",), "high": ("ships",)}
        assert set(trace.concepts) == {"Fram", "ships"}
        assert trace.parameters["low-keywords"] == '["Fram"]'
        uuid = answer.session.rpartition(":")[2]
        told = "\n".join(stage_lines(trace, f"urn:trustgraph:prov:retrieval:{uuid}"))
        assert "low level: Fram; high level: ships" in told
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)


@pytest.mark.slow
@pytest.mark.parametrize("said", ["no JSON at all", '{"high": "x', "[1, 2]"])
def test_broken_keywords_cost_nothing_but_the_models_words(home, said):
    model = ScriptedModel({"extract_keywords": [said, said]})
    with opened(home, model) as graph:
        answer = graph.ask(QUESTION, "lightrag-hybrid", history=[])
        trace = graph.trace(answer.session)
        assert answer.sentences
        assert "Marie Curie" in trace.keywords["low"]
        assert trace.dropped["reply without keywords: found without the model"] == 1
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)


def test_keywords_are_asked_for_once_and_cleaned(home):
    reply = '{"high": ["  discovery ", "discovery", ""], "low": ["Polonium"]}'
    model = ScriptedModel({"extract_keywords": reply})
    with opened(home, model) as graph:
        answer = graph.ask(QUESTION, "lightrag-mix", history=[])
        assert graph.trace(answer.session).keywords == {
            "low": ("Polonium",),
            "high": ("discovery",),
        }
    assert model.count("extract_keywords") == 1
    assert answer.usage.calls >= 2


def test_a_server_that_cannot_be_reached_is_not_passed_over(home):
    model = ScriptedModel({"extract_keywords": EndpointError("No server.", "Start it.")})
    with opened(home, model) as graph, pytest.raises(EndpointError):
        graph.ask(QUESTION, "lightrag-local", history=[])


@pytest.mark.parametrize(
    ("kind", "caps"),
    [
        ("edge", {}),
        ("summary", {"max_relationship_tokens": 0, "chunk_top_k": 0}),  # entities
    ],
)
def test_what_is_taken_from_descriptions_and_edges_is_cited(home, kind, caps):
    settings = {f"lightrag_search.{name}": cap for name, cap in caps.items()}
    with opened(home, ScriptedModel(), settings=settings) as graph:
        answer = graph.ask(QUESTION, "lightrag-local", history=[])
    kinds = {citation.kind for sentence in answer.sentences for citation in sentence.citations}
    assert kind in kinds
    for sentence in answer.sentences:
        assert sentence.citations
        for c in sentence.citations:
            assert stored_text(c.path)[c.start : c.end] == c.quote


# --- the model alone ---


def test_the_model_alone_proves_nothing(home):
    rows = '{"sentence": "It was in Paris."}\n{"sentence": "I think.", "start": "paragraph"}'
    model = ScriptedModel({"answer_alone": rows})
    with opened(home, model) as graph:
        answer = graph.ask(QUESTION, "bypass", history=[])
        assert answer.text == f"It was in Paris. {VERIFY}\n\nI think. {VERIFY}"
        assert not any(sentence.citations for sentence in answer.sentences)
        assert not answer.selection
        trace = graph.trace(answer.session)
        assert [step.kind for step in trace.steps] == ["Bypassing", "Synthesising"]
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
    assert [request.prompt.name for request in model.requests] == ["answer_alone"]


def test_a_model_that_does_not_know_says_so(home):
    model = ScriptedModel({"answer_alone": '{"no_evidence": true}'})
    with opened(home, model) as graph:
        assert graph.ask(QUESTION, "bypass", history=[]).no_evidence


def test_prose_of_the_model_alone_is_marked_too(home):
    model = ScriptedModel({"answer_alone": "It was in Paris. Or not."})
    with opened(home, model) as graph:
        answer = graph.ask(QUESTION, "bypass", history=[])
    assert answer.text == f"It was in Paris. {VERIFY} Or not. {VERIFY}"


def test_without_a_model_there_is_nobody_to_ask(home):
    with opened(home) as graph, pytest.raises(UsageError, match="no language model is set"):
        graph.ask(QUESTION, "bypass", history=[])
