"""Contexts of chunks: made, recorded, kept up to date; search in them, and ranking anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyshacl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import QuerySolutions
from rdflib import Graph

from tests.support import corpora
from tests.support.small_reader import small_cross_encoder
from tgraph.cli.options import settings_of
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.methods import TwoStages
from tgraph.engine.components import Components
from tgraph.engine.index.run import IndexReport
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.index.chunk_context_model import ModelSituator
from tgraph.index.chunk_contexts import Setting, enclosing_lines, names_that_matter, split_pieces
from tgraph.ingest.sentences import sentences
from tgraph.model import Chunk, Retrieval
from tgraph.models.base import Call
from tgraph.models.tokens import count_tokens
from tgraph.resources import read_text
from tgraph.retrieve.base import Question
from tgraph.retrieve.search.contextual import fuse_rankings
from tgraph.retrieve.text.bm25 import WordIndex, search_terms
from tgraph.retrieve.text.reading import LONGEST, split_passages
from tgraph.settings import load_settings
from tgraph.store.statements import format_nquads
from tgraph.testing import Fault, HashingEmbedder, ScriptedModel, ScriptedServer

CODE = """class RingBuffer:
    def readByte(self):
        value = self.items.pop()
        return value

    def writeByte(self, value):
        self.items.append(value)
"""
TEXTS = {
    "fram.md": "# The Fram\n\nColin Archer built the Fram in 1892.\n\n## Later\n\nRoald Amundsen"
    " sailed her to the Bay of Whales. Roald Amundsen left her in 1914.\n",
    "code.txt": CODE,
}
CONTEXTS = """SELECT ?chunk ?text ?agent ?error WHERE {
  ?chunk tg:context ?context .
  ?context a tg:ChunkContext ; tg:text ?text ; prov:wasDerivedFrom ?chunk ;
    prov:wasGeneratedBy ?made .
  ?made a tg:Situating ; prov:wasAssociatedWith/rdfs:label ?agent .
  OPTIONAL { ?made tg:error ?error }
} ORDER BY ?chunk"""


class Corpus(corpora.Corpus):
    """A folder of documents and a graph of them."""

    def __init__(self, folder: Path, chat: Any = None, **settings: object) -> None:
        own = {"chunk__size": 30, "chunk__overlap": 0, "extract__gleanings": 0}
        super().__init__(folder, chat, **own, **settings)
        self.calls: list[Call] = []

    def index(self, texts: Mapping[str, str] = TEXTS) -> IndexReport:
        return super().index(texts)

    def contexts(self) -> list[list[str]]:
        """(chunk, text, agent, error) of each."""
        with self.open() as kg:
            found = kg.sparql(CONTEXTS)
            assert isinstance(found, QuerySolutions)
            return [["" if term is None else str(term.value) for term in row] for row in found]

    def retrieve(self, question: str, **settings: object) -> Retrieval:
        values = load_settings(None, {**self.settings, **settings})
        parts = Components(values, self.folder / "cache", embedder=HashingEmbedder())
        try:
            method = method_of("contextual", parts)
            assert isinstance(method, TwoStages)
            with self.open() as kg:
                context = kg.context("contextual").for_question(self.calls.append)
                return method.retriever.retrieve(Question(question), context)
        finally:
            parts.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path)


# --- contexts ---


def test_a_chunk_is_situated_by_title_section_and_names(corpus: Corpus) -> None:
    corpus.settings["contextual_search.enabled"] = True
    corpus.index()
    texts = [text for _, text, agent, _ in corpus.contexts() if agent == "document-structure"]
    assert any(text.startswith("The Fram > Later\n") and "Roald Amundsen" in text for text in texts)
    assert any("class RingBuffer:" in text.splitlines()[0] for text in texts)


@pytest.mark.slow
def test_contexts_are_made_on_first_use_and_kept_up_to_date_from_then_on(corpus: Corpus) -> None:
    corpus.index()
    assert not corpus.contexts()
    with corpus.open() as kg:
        answer = kg.ask("Who built the Fram?", "contextual")
        assert [c.quote for s in answer.sentences for c in s.citations]
    assert any("contextual" in line for line in corpus.said)
    corpus.said.clear()
    before = corpus.contexts()
    corpus.index({"new.txt": "Henrik Ibsen wrote Peer Gynt. Henrik Ibsen lived in Skien.\n"})
    with corpus.open() as kg:
        kg.ask("Who built the Fram?", "contextual")
    assert not corpus.said
    after = corpus.contexts()
    assert len(after) > len(before)
    assert all(row in after for row in before)


def test_nothing_is_made_anew_that_has_not_changed(corpus: Corpus) -> None:
    corpus.settings["contextual_search.enabled"] = True
    first = corpus.index()
    assert corpus.index().generation == first.generation


def test_a_superseded_document_takes_its_contexts_out_of_knowledge(corpus: Corpus) -> None:
    corpus.settings["contextual_search.enabled"] = True
    corpus.index()
    corpus.index({"fram.md": "# The Fram\n\nThe Fram is in Oslo now.\n"})
    chunks = {chunk for chunk, *_ in corpus.contexts()}
    with corpus.open() as kg:
        assert chunks == set(kg.context().vectors["context"].keys)
        assert chunks == set(kg.context().vectors["chunk"].keys)


@pytest.mark.slow
def test_everything_that_is_written_conforms_to_the_shapes(corpus: Corpus) -> None:
    corpus.settings["contextual_search.enabled"] = True
    corpus.index()
    with corpus.open() as kg:
        quads = replace_triple_terms(kg.opened.read().match())
    graph = Graph().parse(data=format_nquads(quads), format="nt")
    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    conforms, _, text = pyshacl.validate(graph, shacl_graph=shapes, inference="none")
    assert conforms, text


# --- contexts by a model ---


@pytest.fixture
def told(tmp_path: Path) -> Corpus:
    corpus = Corpus(tmp_path, ScriptedModel(), contextual_search__by_model=True)
    corpus.settings["contextual_search.enabled"] = True
    return corpus


def test_a_model_is_shown_the_document_before_the_chunk(told: Corpus) -> None:
    told.index()
    asked = [r for r in told.chat.requests if r.prompt.name == "situate_chunk"]
    texts = [str(request.messages[-1]["content"]) for request in asked]
    assert texts
    assert all(text.index("<<<DOCUMENT") < text.index("<<<CHUNK") for text in texts)
    assert all("built the Fram" in t.partition("<<<CHUNK")[0] or "RingBuffer" in t for t in texts)
    assert {(agent, text) for _, text, agent, _ in told.contexts()} == {
        (told.chat.agent.name, "From The Fram."),
        (told.chat.agent.name, "From Code."),
    }


def test_a_reply_that_is_of_no_use_costs_its_context_and_is_asked_for_again(told: Corpus) -> None:
    broken = ScriptedModel({"situate_chunk": lambda request: '{"context": " "}'})
    good, told.chat = told.chat, broken
    report = told.index()
    rows = told.contexts()
    assert {agent for *_, agent, _ in rows} == {"document-structure"}
    assert all("situate_chunk" in error for *_, error in rows)
    assert report.dropped["context whose reply can't be used"] == len(rows)
    told.chat = good
    told.index()
    assert {agent for *_, agent, _ in told.contexts()} == {good.agent.name}


def test_an_interrupted_run_does_not_pay_for_a_context_twice(tmp_path: Path) -> None:
    with ScriptedServer(faults=[Fault("unauthorised", "situate_chunk", nth=3)]) as server:
        corpus = Corpus(tmp_path, contextual_search__by_model=True, chat__concurrency=1)
        corpus.settings |= {"chat.base_url": server.base_url, "contextual_search.enabled": True}
        corpus.chat = None
        with pytest.raises(EndpointError):
            corpus.index()
        corpus.index()
        assert server.count("situate_chunk") == len(corpus.contexts()) + 1


def test_contexts_by_a_model_need_one(corpus: Corpus) -> None:
    corpus.settings |= {"contextual_search.by_model": True, "contextual_search.enabled": True}
    with pytest.raises(UsageError, match="no language model is set"):
        corpus.index()


def test_only_the_part_around_the_chunk_of_a_long_document_is_shown() -> None:
    text = "".join(f"Sentence number {number} says so. " for number in range(400))
    chunk = Chunk("a" * 64, None, 0, 9_000, 9_030, text[9_000:9_030], 8)
    model = ScriptedModel()
    ModelSituator(model, 500).situate(Setting(chunk, "Long", text, 9_000))
    shown = str(model.requests[0].messages[-1]["content"])
    block = shown.partition("<<<DOCUMENT\n")[2].partition("\nDOCUMENT>>>")[0]
    assert chunk.text.strip() in block
    assert count_tokens(block) <= 510


# --- what situates ---


def test_lines_of_code_stand_under_what_they_are_indented_under() -> None:
    start = CODE.index("        return value")
    assert enclosing_lines(CODE, start) == ["class RingBuffer:", "def readByte(self):"]
    assert enclosing_lines(CODE, 0) == []
    assert enclosing_lines("", 0) == []


@given(st.text(alphabet="ab \n\t", max_size=80), st.integers(0, 80))
def test_enclosing_lines_are_lines_before(text: str, start: int) -> None:
    lines = enclosing_lines(text, min(start, len(text)))
    assert all(line in text for line in lines)


def test_names_are_those_that_the_document_uses_more_than_once() -> None:
    chunks = [("Nansen met readByte. Nansen left.", ["Nansen"]), ("readByte, writeByte", [])]
    assert names_that_matter(chunks, 5) == ("Nansen", "readByte")
    assert names_that_matter(chunks, 1) == ("Nansen",)


def test_one_word_is_a_name_where_it_is_written_as_only_code_does() -> None:
    code = "class Octal { Octal(int n); }\nreturn Octal::decode(Text) + Text;"
    assert names_that_matter([(code, [])], 5) == ("Octal",)
    assert names_that_matter([("Text came (Text, she said). Text.", [])], 5) == ()


@given(st.text(alphabet="ab \n", max_size=300), st.integers(10, 40))
def test_pieces_hold_everything_and_none_is_too_long(text: str, size: int) -> None:
    found = list(split_pieces(text, size))
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(0 < len(piece) <= size for piece in found)


# --- searching ---


def test_identifiers_are_found_by_their_parts_and_as_a_whole() -> None:
    found = set(search_terms("HTTPServer.read_buffer2(maxSize)"))
    assert set(search_terms("HTTP server, read a buffer of a max size")) <= found
    assert set(search_terms("maxsize httpserver")) <= found
    index = WordIndex([("a", "def readBuffer(): pass"), ("b", "Nothing of the sort.")])
    assert [key for key, _ in index.search("How is the buffer read?", 5)] == ["a"]
    assert index.search("of the", 5) == []
    assert WordIndex([("a", " ")]).search("buffer", 5) == []


def test_rankings_are_fused_by_reciprocal_rank() -> None:
    found = fuse_rankings([("a", 0.9), ("b", 0.8)], [("b", 3.0), ("c", 1.0)], 60)
    assert [each.chunk for each in found] == ["b", "a", "c"]
    assert found[0].score == round((1 / 62 + 1 / 61) / (2 / 61), 6)
    assert len(found[0].reasons) == 2


def test_what_only_the_context_says_finds_the_chunk(corpus: Corpus) -> None:
    corpus.index()
    first = corpus.retrieve("Which class has readByte?").candidates[0]
    assert first.item.kind == "chunk"
    later = corpus.retrieve("What became of the Fram later?").candidates
    assert "sailed her" in later[0].evidence[0].quote


# --- ranking by a server ---


def reranked(corpus: Corpus, server: ScriptedServer, **settings: object) -> Retrieval:
    own = {"rerank.base_url": server.base_url, "rerank.model": "ranker", **settings}
    return corpus.retrieve("Amundsen left", **own)


def test_a_server_ranks_the_chunks_anew(corpus: Corpus) -> None:
    corpus.index()
    with ScriptedServer() as server:
        found = reranked(corpus, server, **{"rerank.api_key": "secret-key"})
    assert "left her" in found.candidates[0].evidence[0].quote
    assert found.candidates[0].reasons[0].startswith("the reranker gives the chunk a score of ")
    assert [c.score for c in found.candidates] == sorted(
        (c.score for c in found.candidates), reverse=True
    )
    request = server.requests[-1]
    assert (request.path, request.key, request.body["model"]) == (
        "/v1/rerank",
        "secret-key",
        "ranker",
    )
    assert all("The Fram" in text or "Code" in text for text in request.body["documents"])
    call = next(call for call in corpus.calls if call.kind == "rerank")
    assert call.agent.name == "ranker"
    assert call.usage.input_tokens > 0
    assert "secret-key" not in str(call)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    ["{}", '{"results": "no"}', '{"results": [{"index": 99, "relevance_score": 1}, 7]}', "[]"],
)
def test_a_ranking_that_is_of_no_use_leaves_the_order_and_is_counted(
    corpus: Corpus, reply: str
) -> None:
    corpus.index()
    with ScriptedServer({"rerank": reply}) as server:
        found = reranked(corpus, server)
    assert found.dropped == {"a ranking that can't be used": 1}
    assert [c.item for c in found.candidates] == [
        c.item for c in corpus.retrieve("Amundsen left").candidates
    ]


def test_logits_are_scores_too_and_what_is_not_ranked_comes_last(corpus: Corpus) -> None:
    corpus.index()
    rows = [{"index": 1, "relevance_score": 4.0}, {"index": 0, "relevance_score": -4.0}]
    with ScriptedServer({"rerank": json.dumps({"results": rows})}) as server:
        found = reranked(corpus, server)
    plain = corpus.retrieve("Amundsen left").candidates
    assert [c.item for c in found.candidates] == [
        plain[1].item,
        plain[0].item,
        *(c.item for c in plain[2:]),
    ]
    assert all(0 <= c.score <= 1 for c in found.candidates)


@pytest.mark.slow
def test_what_is_ranked_too_low_is_left_out_and_named(corpus: Corpus) -> None:
    corpus.index()
    plain = corpus.retrieve("Amundsen left").candidates
    rows = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]
    rows += [{"index": at, "relevance_score": 0.0} for at in range(2, len(plain))]
    with ScriptedServer({"rerank": json.dumps({"results": rows})}) as server:
        found = reranked(corpus, server, **{"rerank.min_score": 0.5})
        assert [c.item for c in found.candidates] == [plain[1].item]
        assert found.dropped == {"chunk ranked below rerank.min_score": len(plain) - 1}
        assert len(reranked(corpus, server, **{"rerank.min_score": 0.0}).candidates) == len(plain)
        corpus.settings |= {
            "rerank.base_url": server.base_url, "rerank.model": "ranker", "rerank.min_score": 0.5
        }  # fmt: skip
        with corpus.open() as kg:
            session = kg.ask("Amundsen left", "contextual").session
            trace = kg.trace(session)
            assert trace.parameters["rerank.min-score"] == "0.5"
            why = kg.why_not(session, plain[0].item.iri)
            assert (why.limit, why.cutoff) == ("rerank.min-score", 0.5)
            assert "the reranker score is 0.10, less than 0.5" in why.reason
            assert kg.replay(session).is_same
            assert not check_shapes(kg.opened.read(), kg.opened.catalogue, session)


def test_a_ranking_is_tried_again(corpus: Corpus) -> None:
    corpus.index()
    with ScriptedServer(faults=[Fault("rate_limit", "rerank", nth=1)]) as server:
        assert not reranked(corpus, server).dropped
        assert server.count("rerank") == 2


def test_a_server_that_refuses_is_an_error(corpus: Corpus) -> None:
    corpus.index()
    with (
        ScriptedServer(faults=[Fault("unauthorised", "rerank")]) as server,
        pytest.raises(EndpointError),
    ):
        reranked(corpus, server)


def test_a_ranking_model_needs_a_name(corpus: Corpus) -> None:
    corpus.index()
    with pytest.raises(UsageError, match=r"rerank\.model"):
        corpus.retrieve("Fram", **{"rerank.base_url": "http://127.0.0.1:9/v1"})


@pytest.mark.slow
def test_a_session_keeps_the_call_of_the_ranking(corpus: Corpus) -> None:
    corpus.index()
    with ScriptedServer() as server:
        corpus.settings |= {"rerank.base_url": server.base_url, "rerank.model": "ranker"}
        with corpus.open() as kg:
            answer = kg.ask("Who built the Fram?", "contextual")
            calls = [call.label for call in kg.trace(answer.session).calls]
            assert not check_shapes(kg.opened.read(), kg.opened.catalogue, answer.session)
    assert "rerank call" in calls


# --- ranking by the reader ---


def by_reader(corpus: Corpus, folder: Path, **settings: object) -> dict[str, object]:
    """The settings with which a reader ranks for which what sails is relevant."""
    made = small_cross_encoder(folder / "ranker", {"sailed": 4.0, "readByte": 2.0})
    return {"rerank.provider": "embedded", "reader.model": str(made), **settings}


def test_the_reader_ranks_the_chunks_anew(corpus: Corpus, tmp_path: Path) -> None:
    corpus.index()
    found = corpus.retrieve("Who built the Fram?", **by_reader(corpus, tmp_path))
    first, second, *_ = found.candidates
    assert "sailed her" in first.evidence[0].quote
    assert first.reasons[0] == "the reranker gives the chunk a score of 0.98"
    assert "readByte" in second.evidence[0].quote
    [call] = [call for call in corpus.calls if call.kind == "reading"]
    assert call.agent.name == "ranker"
    assert call.usage.input_tokens > 0


def test_only_the_pool_is_ranked(corpus: Corpus, tmp_path: Path) -> None:
    corpus.index()
    plain = corpus.retrieve("Who built the Fram?").candidates
    settings = by_reader(corpus, tmp_path, **settings_of({"max_reranker_input": 1}))
    ranked = corpus.retrieve("Who built the Fram?", **settings).candidates
    assert [c.item for c in ranked] == [c.item for c in plain]
    assert ranked[0].reasons[0].startswith("the reranker gives the chunk a score of ")


def test_a_ranking_by_a_reader_needs_one(corpus: Corpus) -> None:
    corpus.index()
    settings = {"rerank.provider": "embedded", "reader.model": "none"}
    with pytest.raises(UsageError, match=r"reader\.model"):
        corpus.retrieve("Fram", **settings)


@pytest.mark.slow
def test_a_session_that_the_reader_ranked_replays_without_it(
    corpus: Corpus, tmp_path: Path
) -> None:
    corpus.index()
    corpus.settings |= by_reader(corpus, tmp_path, **{"contextual_search.k": 1})
    with corpus.open() as kg:
        answer = kg.ask("Who built the Fram?", "contextual")
        assert "reading call" in [call.label for call in kg.trace(answer.session).calls]
        assert not check_shapes(kg.opened.read(), kg.opened.catalogue, answer.session)
    corpus.settings |= {"reader.model": "none"}
    del corpus.settings["rerank.provider"]
    with corpus.open() as kg:
        replay = kg.replay(answer.session)
        assert replay.is_same, replay
        found = kg.why_not(answer.session, "code.txt")
        assert (found.limit, found.rank) == ("k", 2)
        assert "by the reranker" in found.reason


def test_a_session_that_nobody_ranked_replays_where_the_reader_ranks(
    corpus: Corpus, tmp_path: Path
) -> None:
    corpus.index()
    with corpus.open() as kg:
        answer = kg.ask("Who built the Fram?", "contextual")
    corpus.settings |= by_reader(corpus, tmp_path)
    with corpus.open() as kg:
        assert kg.replay(answer.session).is_same


@given(st.text(max_size=2_000))
def test_windows_hold_all_sentences_in_their_order(text: str) -> None:
    said = [text[start:end] for start, end in sentences(text)]
    found = split_passages(text)
    assert all(any(one in window for window in found) for one in said)
    assert all(len(window) <= LONGEST or window in said for window in found)
    assert len(found) <= len(said)
