"""An entity with hundreds of edges: the right one is found, wherever it is by meaning alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.search.graph import GraphRetriever
from tgraph.retrieve.subgraph import (
    by_meaning,
    edges_of,
    hubs_of,
    nearest_at,
    nearest_of,
    share_of,
)
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.question_analysis import analyse_question
from tgraph.retrieve.text.sentence_ranking import meaning_of
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder
from tgraph.vocabulary import entity_iri

pytestmark = pytest.mark.slow

EDGES = 700
QUESTION = "In which town did Marcus Varro open the observatory?"
RIGHT = (
    "After long quarrels about money, stone, glass and timber, and against the advice of nearly"
    " everybody who had been heard, Marcus Varro founded an observatory above the vineyards of"
    " Tarvisium, which burned down within a year of the first comet that was seen there."
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    folder: Path = tmp_path_factory.mktemp("hub")
    told = [
        f"In the town of Vicus{n:03d} did Marcus Varro open the Gate{n:03d}." for n in range(EDGES)
    ]
    told.insert(EDGES // 2, RIGHT)
    file = folder / "varro.txt"
    file.write_text("\n\n".join(told))
    parts = Components(load_settings(None), folder / "cache", embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", create=True, parts=parts) as kg:
        assert not kg.index([file]).failed
        yield kg.context()


def right_edges(edges: list[str], context: Context) -> list[int]:
    evidence = context.evidence.of_edges(edges, 12)
    quoted = [any("observatory" in e.quote for e in evidence.get(iri, ())) for iri in edges]
    return [rank for rank, right in enumerate(quoted, 1) if right]


def test_words_bring_forward_what_is_far_down_by_meaning(context):
    hub = entity_iri("Marcus Varro")
    edges = edges_of(hub, context)
    assert len(edges) >= EDGES
    inquiry = analyse_question(QUESTION, count_frequencies(context))
    meaning = meaning_of(inquiry, context)
    meaning.learn(edges)
    alone = right_edges(by_meaning(edges, meaning), context)
    assert alone[0] > 247
    together = right_edges(nearest_of(hub, edges, inquiry, meaning, context), context)
    assert together[0] <= share_of(context.limits.triple_limit)


def test_the_right_edge_of_a_hub_is_a_candidate(context):
    found = GraphRetriever().retrieve(Question(QUESTION, concepts=("Marcus Varro",)), context)
    assert any("observatory" in c.evidence[0].quote for c in found.candidates)
    assert found.dropped["triple limit"] > EDGES // 2
    quotes = " ".join(c.evidence[0].quote for c in found.candidates)
    assert "Vicus349" in quotes, "what stands beside it is read too"


def test_a_question_without_words_of_the_sentences_ranks_by_meaning(context):
    hub = entity_iri("Marcus Varro")
    edges = edges_of(hub, context)
    inquiry = analyse_question("Xyzzy plugh?", count_frequencies(context))
    meaning = meaning_of(inquiry, context)
    meaning.learn(edges)
    assert nearest_of(hub, edges, inquiry, meaning, context) == by_meaning(edges, meaning)


@pytest.mark.parametrize(
    "question",
    [QUESTION, "Xyzzy plugh?", "Who founded an observatory?", "In which town is Gate007?"],
)
def test_what_is_kept_of_a_hub_ranks_its_edges_as_their_sentences_do(context, question):
    hub = entity_iri("Marcus Varro")
    edges = edges_of(hub, context)
    inquiry = analyse_question(question, count_frequencies(context))
    meaning = meaning_of(inquiry, context)
    meaning.learn(edges)
    kept = hubs_of([hub, entity_iri("Vicus349"), entity_iri("Nobody")], context)
    assert list(kept) == [hub]
    assert nearest_at(kept, inquiry, meaning)[hub] == nearest_of(
        hub, edges, inquiry, meaning, context
    )
    assert context.graph.hubs.triples(edges) == edges
