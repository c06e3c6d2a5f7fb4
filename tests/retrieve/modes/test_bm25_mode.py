"""The mode ``bm25`` from the question to why-not: words alone, without graph or vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.corpora import Corpus
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extensions.lab import evaluate
from tgraph.retrieve.filters import Filters

SHIPS = ("Fram", "Gauss", "Nimrod", "Belgica", "Discovery")
TEXTS = {
    f"{name.lower()}.md": f"The ship {name} lay in the ice for {number} winters."
    f" {'It was a wooden ship of a shipyard. ' * number}\n"
    for number, name in enumerate(SHIPS, 1)
} | {"bread.md": "Anna baked rye bread in Oslo. Her oven was hot at four.\n"}


class Asked:
    def __init__(self, folder: Path, **settings: object) -> None:
        self.corpus = Corpus(folder, bm25_search__k=2, **settings)
        self.corpus.index(TEXTS)

    def open(self) -> KnowledgeGraph:
        return self.corpus.open()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with Asked(tmp_path_factory.mktemp("bm25")).open() as kg:
        yield kg


def retrieved(graph: KnowledgeGraph, question: str, **options: object) -> list[str]:
    answer = graph.ask(question, "bm25", history=[], **options)  # type: ignore[arg-type]
    trace = graph.trace(answer.session)
    items = sorted((*trace.selected, *trace.rejected), key=lambda item: item.rank)
    return [item.label.split()[0].strip(",") for item in items]


def test_the_chunk_with_the_rarest_word_is_first(graph):
    assert retrieved(graph, "Where did the ship Gauss lie in the ice?")[0] == "Gauss"


def test_what_shares_no_word_is_no_candidate(graph):
    assert retrieved(graph, "rye") == ["Bread"]
    assert graph.ask("Volcano?", "bm25", history=[]).no_evidence


def test_so_many_chunks_are_candidates_as_the_limit_says(graph):
    assert len(retrieved(graph, "Which ship lay in the ice?")) == 2


def test_filters_leave_what_they_admit(graph):
    only = Filters(documents=("nimrod.md",))
    assert retrieved(graph, "Which ship lay in the ice?", filters=only) == ["Nimrod"]


def test_the_record_says_that_words_were_searched_and_by_whom(graph):
    answer = graph.ask("Who baked rye bread?", "bm25", history=[])
    steps = graph.sparql(
        "PREFIX tg: <https://trustgraph.ai/ns/> PREFIX prov: <http://www.w3.org/ns/prov#>"
        " SELECT ?agent WHERE { ?step a tg:WordSearch ; prov:wasAssociatedWith ?agent }"
    )
    assert {"bm25" in row["agent"].value for row in steps} == {True}
    assert "four" not in answer.text
    assert answer.sentences[0].citations[0].quote in TEXTS["bread.md"]


def test_it_is_asked_again_in_the_same_way(graph):
    answer = graph.ask("Who baked rye bread?", "bm25", history=[])
    assert graph.replay(answer.session).is_same


def test_why_not_tells_the_place_in_the_order_of_words(graph):
    answer = graph.ask("Which ship lay in the ice?", "bm25", history=[])
    lost = [graph.why_not(answer.session, f"{name.lower()}.md") for name in SHIPS]
    beyond = [found for found in lost if found.cause == "beyond-limit"]
    assert sorted(found.rank or 0 for found in beyond) == [3, 4, 5]
    assert {(found.limit, found.cutoff) for found in beyond} == {("k", 2)}
    assert graph.why_not(answer.session, "bread.md").cause == "not-linked"


def test_an_evaluation_asks_in_it(graph, tmp_path):
    file = tmp_path / "questions.json"
    asked = {"query": "Who baked rye bread?", "gt_answer": "Anna baked rye bread in Oslo."}
    file.write_text(json.dumps([asked]))
    assert evaluate(graph, file, "bm25").mode == "bm25"
